"""Training, validation and test rows, and a test set that is meant to be used once.

Models are fitted to the training rows, selected by their error on the validation rows, and the selected one is
evaluated on the test rows. A test set that is used again after a change of the model has become a validation set:
the smallest of M test errors is optimistic, by about sqrt(2 log(M) / n) standard deviations of a loss.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target

from summula.core.data.frames import is_frame, opened, pop_columns
from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, HoldoutWarning, ParameterError, warn
from summula.core.estimator.input.scan_columns import is_list_of_names
from summula.model_selection.row_selection import count_rows, indexable, take_rows

__all__ = ["Rows", "Split"]

Places = NDArray[np.intp]

_MOST_CLASSES = 20  # maximum number of distinct floats in a target that is treated as classes


class Rows(NamedTuple):
    """Features and target of some rows."""

    X: Any
    y: Any


class Split:
    """Split rows into training, validation and test rows, with a single use of the test rows.

    Parameters
    ----------
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of X
        Named columns are not features.
    test : float, default=0.2
        Fraction of the rows (or of the groups) used for the test.
    validation : float, default=0.0
        Fraction used for validation; 0 if models are selected by cross-validation.
    stratify : bool or "auto", default="auto"
        Whether every part has the same class proportions; "auto" stratifies class labels, unless there are
        groups or an order.
    groups : array-like of shape (n_samples,), optional
        Rows of a group stay together.
    ordered : bool, default=False
        Whether the rows are in time order: validation follows training, and the test follows both.
    random_state : int, Generator or None
        Seed of the shuffle.

    Attributes
    ----------
    train_indices, validation_indices, test_indices : ndarray of int
        Numbers of the rows of each part.
    groups : ndarray or None
    ordered : bool
    n_test_uses : int
        Number of times the test rows were returned.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.model_selection import Split
    >>> X, y = np.arange(100.0).reshape(50, 2), np.arange(50) % 2
    >>> split = Split(X, y, test=0.2, validation=0.2, random_state=0)
    >>> [len(part.y) for part in (split.train(), split.validation(), split.test())], split.n_test_uses
    ([30, 10, 10], 1)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        test: float = 0.2,
        validation: float = 0.0,
        stratify: bool | str = "auto",
        groups: ArrayLike | None = None,
        ordered: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        X, y = _without_targets(X, y)
        self._X, self._y = indexable(X), indexable(y, "y")
        n = count_rows(self._X)
        if count_rows(self._y) != n:
            raise DataError(f"X has {n} rows and y has {count_rows(self._y)}: pass one target per row.")
        _check_shares(test, validation)
        if groups is not None and ordered:
            raise ParameterError("Rows are split by groups or in time order: pass groups, or ordered=True, not both.")
        units, unit_of = _units(groups, n)
        labels = None if groups is not None or ordered else _strata(self._y, stratify)
        order = np.arange(units) if ordered else np.random.default_rng(draw_seed(random_state)).permutation(units)
        parts = _divided(order, labels, test, validation)
        places = [np.flatnonzero(np.isin(unit_of, part)) for part in parts]
        self.train_indices, self.validation_indices, self.test_indices = places
        self.n_test_uses = 0
        self.groups = None if groups is None else np.asarray(groups)
        self.ordered = ordered

    def train(self) -> Rows:
        """Return the training rows."""
        return self._rows(self.train_indices)

    def validation(self) -> Rows:
        """Return the validation rows."""
        if not len(self.validation_indices):
            raise ParameterError("This Split has no validation rows: construct it with validation=0.2, for instance.")
        return self._rows(self.validation_indices)

    def development(self) -> Rows:
        """Return the training and validation rows, to which the chosen model is refitted."""
        return self._rows(self.development_indices)

    @property
    def development_indices(self) -> Places:
        """Numbers of the training and validation rows."""
        return np.sort(np.concatenate([self.train_indices, self.validation_indices]))

    def test(self) -> Rows:
        """Return the test rows; warn if they were returned before."""
        self.n_test_uses += 1
        if self.n_test_uses > 1:
            warn(
                f"The test rows are used for the {_ordinal(self.n_test_uses)} time: if the model was changed after the "
                "first, its error on them is optimistic. Choose models on split.validation(), or hold out new rows.",
                HoldoutWarning,
            )
        return self._rows(self.test_indices)

    def _rows(self, places: Places) -> Rows:
        return Rows(take_rows(self._X, places), take_rows(self._y, places))

    def __repr__(self) -> str:
        sizes = [len(one) for one in (self.train_indices, self.validation_indices, self.test_indices)]
        named = f"{sizes[0]} training, {sizes[1]} validation, {sizes[2]} test rows"
        return f"Split({named}; test used {self.n_test_uses} times)"


def _without_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Return features and targets, with targets that are names of columns taken from the frame."""
    if not is_frame(X):
        return X, y
    frame = opened(X)
    if isinstance(y, str):
        X, popped = pop_columns(X, [y])
        return X, popped[0].to_native()
    if is_list_of_names(y) and len(y) != len(frame) and set(y) <= set(frame.columns):  # else labels
        return pop_columns(X, y)[0], frame.select(list(y)).to_native()
    return X, y


def _ordinal(n: int) -> str:
    return {2: "second", 3: "third"}.get(n, f"{n}th")


def _check_shares(test: Any, validation: Any) -> None:
    for name, share, least in (("test", test, "above 0"), ("validation", validation, "at least 0")):
        number = isinstance(share, float | int | np.number) and not isinstance(share, bool)
        if not number or not (0 <= share < 1) or (name == "test" and share == 0):
            raise ParameterError(f"{name} must be a fraction of the rows, {least} and below 1; got {share!r}.")
    if test + validation >= 1:
        raise ParameterError(f"test={test} and validation={validation} leave no rows to train on: use smaller shares.")


def _units(groups: Any, n: int) -> tuple[int, Places]:
    """Return the number of independent units, and the unit of each row."""
    if groups is None:
        return n, np.arange(n)
    values = np.asarray(groups)
    if values.shape != (n,):
        raise DataError(f"groups must contain one group for each of the {n} rows; it has shape {values.shape}.")
    names, codes = np.unique(values, return_inverse=True)
    return len(names), codes


def _strata(y: Any, stratify: Any) -> Places | None:
    """Return the class of each row, or None."""
    if not isinstance(stratify, bool | np.bool_) and not (isinstance(stratify, str) and stratify == "auto"):
        raise ParameterError(
            "stratify must be True, False or 'auto', and takes the classes from y; "
            f"got {stratify if np.ndim(stratify) == 0 else type(stratify).__name__!r}."
        )
    values = np.asarray(y)
    if isinstance(stratify, str):
        numbers = values.dtype.kind in "fc"
        stratify = values.ndim == 1 and not (numbers and not np.isfinite(values).all())
        stratify = stratify and (not numbers or len(np.unique(values)) <= _MOST_CLASSES)
        stratify = stratify and (values.dtype.kind == "O" or type_of_target(values) in ("binary", "multiclass"))
    if not stratify:
        return None
    if values.ndim != 1:
        raise ParameterError(f"stratify=True needs one label per row; y has shape {values.shape}: use stratify=False.")
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError:
        raise DataError(
            "y has missing labels, or mixes types that cannot be ordered, such as text and None: drop such rows, or "
            "use one type."
        ) from None


def _divided(order: Places, labels: Places | None, test: float, validation: float) -> list[Places]:
    """Return the units of training, validation and test; the last ones in order are for the test."""
    n = len(order)
    if labels is not None:  # evenly spread within each class
        rank = np.empty(n)
        for code in np.unique(labels):
            own = order[labels[order] == code]
            rank[own] = (np.arange(len(own)) + 0.5) / len(own)
        order = order[np.argsort(rank[order], kind="stable")]
    n_test = max(1, round(n * test))
    n_validation = max(1, round(n * validation)) if validation else 0
    if n - n_test - n_validation < 1:
        raise DataError(f"{n} rows (or groups) are too few to split with test={test} and validation={validation}.")
    middle = n - n_test - n_validation
    return [order[:middle], order[middle : n - n_test], order[n - n_test :]]
