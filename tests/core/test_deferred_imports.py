"""scikit-learn is imported without `scipy.stats` and pandas; afterwards both can be imported as usual."""

from __future__ import annotations

import pytest

from tests.processes import run

pytest.importorskip("pandas")


def test_an_estimator_loads_neither():
    assert run("""
    import json, sys
    from summula.linear_model import Ridge
    Ridge().fit([[1.0], [2.0], [4.0]], [1.0, 2.0, 3.0])
    print(json.dumps(not {"scipy.stats", "pandas", "scipy.optimize"} & set(sys.modules)))
    """)


def test_both_are_the_real_modules_afterwards():
    assert run("""
    import json, sys
    import summula
    import sklearn.utils.fixes
    import pandas, pandas.api.types, scipy, scipy.stats
    from scipy.stats import norm
    real = [type(sys.modules[name]).__name__ == "module" for name in ("pandas", "scipy.stats")]
    same = [scipy.stats is sys.modules["scipy.stats"], pandas.DataFrame is sklearn.utils.fixes.pd.DataFrame]
    print(json.dumps(all(real) and all(same) and bool(norm.cdf(0.0) == 0.5)))
    """)


def test_the_importing_module_can_use_them():
    assert run("""
    import json
    import summula
    from sklearn.utils import fixes
    mode = fixes._mode([1, 2, 2]).mode.tolist() if hasattr(fixes, "_mode") else [2]
    print(json.dumps(mode == [2] and fixes.__loader__ is fixes.__spec__.loader and fixes.pd.__name__ == "pandas"))
    """)


def test_modules_imported_before_are_kept():
    assert run("""
    import json
    import pandas, scipy.stats
    import summula
    from sklearn.utils import fixes
    print(json.dumps(fixes.pd is pandas))
    """)


def test_without_pandas_the_module_raises_with_advice():
    assert run("""
    import json, sys
    sys.modules["pandas"] = None
    import summula
    from sklearn.utils import fixes
    print(json.dumps(fixes.pd is None))
    """)


def test_an_import_while_the_module_is_executed():
    """A stand-in that another thread has bound in the meantime passes all attributes on."""
    assert run("""
    import json, sys
    from summula.core import deferred_imports
    with deferred_imports._stand_ins():
        import pandas, scipy.stats
        from pandas import DataFrame
        value = sys.modules["scipy.stats"].norm.cdf(0.0)
    import pandas as real
    print(json.dumps(bool(value == 0.5) and DataFrame is real.DataFrame and type(real).__name__ == "module"))
    """)
