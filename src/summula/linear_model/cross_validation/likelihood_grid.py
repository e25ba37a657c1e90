"""The grid of a cross-validated likelihood, from scikit-learn's current and deprecated parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError, warn
from summula.core.estimator.input.argument_values import is_number, list_in
from summula.core.estimator.parameters import integer

__all__ = ["Grid", "grid_of", "has_legacy_attributes"]

Array = NDArray[Any]


class Grid(NamedTuple):
    """The grid: Cs, L1 ratios, and the L1 ratios as passed by the user (None by default)."""

    Cs: Array
    ratios: tuple[float, ...]
    given: Any


def grid_of(model: Any) -> Grid:
    """Return Cs and L1 ratios from scikit-learn's current and deprecated parameters, with its warnings."""
    ratios = model.l1_ratios
    if isinstance(ratios, str):
        warn(
            "The default value for l1_ratios will change from None to (0.0,) in version 1.10. From version 1.10 "
            "onwards, only array-like with values in [0, 1] will be allowed, None will be forbidden. To avoid this "
            "warning, explicitly set a value, e.g. l1_ratios=(0,).",
            FutureWarning,
        )
        ratios = None
    elif ratios is None and model.penalty == "deprecated":
        warn(
            "'l1_ratios=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use an array-like "
            "with values in [0, 1] instead.",
            FutureWarning,
        )
    if model.penalty != "deprecated":
        warn(
            "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, leave "
            "'penalty' set to its default value and use 'l1_ratios' and 'Cs' instead. Use l1_ratios=(0,) instead "
            "of penalty='l2', l1_ratios=(1,) instead of penalty='l1', l1_ratios set to floats between 0 and 1 "
            "instead of penalty='elasticnet', and Cs=(np.inf,) instead of penalty=None.",
            FutureWarning,
        )
        if model.penalty != "elasticnet" and ratios is not None:
            warn(
                f"l1_ratios parameter is only used when penalty is 'elasticnet'. Got (penalty={model.penalty})",
                UserWarning,
            )
    if ratios is not None or model.penalty == "elasticnet":
        _check_ratios(ratios)
    if ratios is None or model.penalty in ("l1", "l2"):
        used = [1.0 if model.penalty == "l1" else 0.0] * (1 if ratios is None else len(ratios))
    else:
        used = [float(ratio) for ratio in ratios]
    return Grid(_checked_Cs(model.Cs), tuple(used), ratios)


def _checked_Cs(given: Any) -> Array:
    if integer(1).accepts(given):
        return np.logspace(-4, 4, int(given))
    Cs = list_in("Cs", given)
    if not Cs:
        raise ParameterError("Cs must be an int or a non-empty list of positive numbers; got an empty list.")
    for place, C in enumerate(Cs):
        if not is_number(C) or not float(C) > 0:
            raise ParameterError(f"Cs[{place}] is {C!r}; Cs must be positive numbers (inf for no penalty).")
    return np.asarray(Cs, np.float64)


def _check_ratios(ratios: Any) -> None:
    numbers = [] if ratios is None else list_in("l1_ratios", ratios)
    if not numbers or any(not is_number(r) or not 0 <= float(r) <= 1 for r in numbers):
        raise ParameterError(f"l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios={ratios!r}).")


def has_legacy_attributes(model: Any) -> bool:
    """Return whether attributes have the older shapes, with scikit-learn's warnings for defaults that change."""
    if isinstance(model.scoring, str) and model.scoring == "warn":
        warn(
            "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to 'neg_log_loss' "
            "in version 1.11. To silence this warning, explicitly set the scoring parameter: "
            "scoring='neg_log_loss' for the new, scoring='accuracy' or scoring=None for the old default.",
            FutureWarning,
        )
    legacy = model.use_legacy_attributes
    if isinstance(legacy, str):
        name = type(model).__name__
        warn(
            f"The fitted attributes of {name} will be simplified in scikit-learn 1.10 to remove redundancy. Set"
            "`use_legacy_attributes=False` to enable the new behavior now, or set it to `True` to silence this "
            "warning during the transition period while keeping the deprecated behavior for the time being. The "
            "default value of use_legacy_attributes will change from True to False in scikit-learn 1.10. See the "
            f"docstring of {name} for more details.",
            FutureWarning,
        )
    if model.select == "1se" and not model.refit:
        raise ParameterError("select='1se' selects one model for all splits, so it needs refit=True.")
    return bool(legacy)
