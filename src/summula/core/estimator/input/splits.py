"""The splits of a cross-validation, as scikit-learn's `cv` parameters give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ParameterError

__all__ = ["splits_of"]

Rows = NDArray[Any]  # row numbers, or a mask


def splits_of(cv: Any, X: Any, y: Any = None, *, classifier: bool = False, **given: Any) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows that each split trains and tests on; raise ParameterError where `cv` is none.

    Parameters
    ----------
    cv : int, splitter, iterable of splits, or None
    X, y : what the splitter is passed
    classifier : bool
        Whether folds are stratified by classes.
    **given
        Further arguments of the splitter, such as groups.
    """
    from sklearn.model_selection import check_cv

    number = 0
    try:
        splitter = check_cv(cv, y, classifier=classifier)
        for number, (train, test) in enumerate(splitter.split(X, y, **given)):
            yield _rows(train, number), _rows(test, number)
    except ParameterError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(error, ValueError) and not any(word in str(error) for word in ("unpack", "inhomogeneous")):
            raise  # scikit-learn's sentence
        raise _no_splits(number) from error


def _rows(given: Any, number: int) -> Rows:
    rows = np.asarray(given)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iub"):
        raise _no_splits(number)
    return rows


def _no_splits(number: int) -> ParameterError:
    return ParameterError(
        "cv must be a number of folds, a splitter, or splits, which are pairs of row numbers to train and to test on; "
        f"split {number} is none."
    )
