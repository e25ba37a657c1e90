"""Model selection: splits, cross-validation, the bootstrap, error curves, and a test set that is used once.

Splitters and searches are re-exported from scikit-learn. Names are loaded on first use (PEP 562).
"""

from typing import Any

from summula.core.lazy_names import lazy_names

_own, _own_names, _names = lazy_names(
    __name__,
    {
        "bootstrap": "BootstrapError bootstrap_error",
        "cross_validation": "cross_val_score cross_validate",
        "curves": "LearningCurve ValidationCurve learning_curve validation_curve",
        "selection": "Selection select",
        "splits": "Split",
    },
)
_FROM_SKLEARN = (
    "BaseCrossValidator",
    "BaseShuffleSplit",
    "FixedThresholdClassifier",
    "GridSearchCV",
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LearningCurveDisplay",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "LeavePOut",
    "ParameterGrid",
    "ParameterSampler",
    "PredefinedSplit",
    "RandomizedSearchCV",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
    "TunedThresholdClassifierCV",
    "ValidationCurveDisplay",
    "check_cv",
    "cross_val_predict",
    "permutation_test_score",
    "train_test_split",
)

__all__ = sorted([*_names, *_FROM_SKLEARN])


def __getattr__(name: str) -> Any:
    if name in _FROM_SKLEARN:
        import sklearn.model_selection

        value = getattr(sklearn.model_selection, name)
        globals()[name] = value
        return value
    return _own(name)


def __dir__() -> list[str]:
    return sorted({*_own_names(), *_FROM_SKLEARN})
