"""Metrics, re-exported from scikit-learn, and confidence intervals for them (`interval`).

Names are loaded on first use (PEP 562).
"""

from typing import Any

from summula.core.lazy_names import lazy_names

_own, _own_names, __all__ = lazy_names(__name__, {"confidence": "MetricInterval interval"})


def __getattr__(name: str) -> Any:
    if name in __all__ or name.startswith("_"):
        return _own(name)
    import sklearn.metrics

    if name not in sklearn.metrics.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(sklearn.metrics, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    import sklearn.metrics

    return sorted({*_own_names(), *sklearn.metrics.__all__})
