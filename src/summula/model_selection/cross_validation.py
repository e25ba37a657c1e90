"""Cross-validation, with one pass over the rows if the model allows it.

Rows with the same role in all splits form a group (a fold, for k-fold). A model whose fit is a sum over rows is fitted
once to each group; the model of a split is solved from the sums of the groups it is trained on,

    training sums of split s = sum over the groups g that s is trained on of (sums of g)                         (1)

so k folds cost one pass over the rows instead of k - 1, and the scores are those of refitting, up to rounding. With the
sums of all groups before, and all groups after, each group, k folds need 3 k additions and k solves. Models that cannot
be merged (other estimators, sums that would cancel, splits that repeat rows) are refitted for each split by
scikit-learn, and so are models of small data, where reading the rows takes less time than a solve.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import cross_validate as _refit_each_split

from summula.core.errors import AccuracyWarning
from summula.core.estimator.additive import AdditiveEstimator
from summula.core.estimator.input.splits import splits_of
from summula.linear_model.cross_validation.folds import Batch, batches_of
from summula.linear_model.least_squares.model import LeastSquaresModel
from summula.model_selection.row_selection import check_rows_in_memory, indexable, take_rows

__all__ = ["Options", "cross_val_score", "cross_validate", "may_merge", "scores_from_groups"]

_MOST_GROUPS = 64  # maximum number of groups of rows that are fitted together
_SMALLEST = {"float64": 1e-9, "float32": 1e-3}  # smallest eigenvalue of the correlations for sums of products
_FEWEST_ROWS = 2  # minimum mean number of rows per group for merging
_FEWEST_SAVED = 200_000  # minimum number of values per split that merging avoids reading: about 1 ms
_COLUMNS = (
    100  # columns of least squares above which a solve takes longer than that: as long as summing 20 rows per column
)

Split = tuple[Any, Any]


class Options(NamedTuple):
    """Options of `cross_validate` other than the data and the splits."""

    scoring: Any
    return_train_score: bool
    return_estimator: bool
    return_indices: bool


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
) -> dict[str, Any]:
    """Evaluate an estimator by cross-validation.

    Estimators with `merge` (least squares, naive Bayes, discriminants, ...) are fitted to each fold once, and the
    models of the splits are computed from the sums of these; others, and small data, are refitted for each split, by
    scikit-learn. The scores are those of refitting, up to rounding.

    Parameters
    ----------
    estimator : estimator
        Not modified.
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
    y : array-like, optional
        Target.
    groups : array-like of shape (n_samples,), optional
        Group of each row, for splitters that use it.
    scoring : str, callable, list, tuple or dict, optional
        Scorer or scorers, as in scikit-learn; by default the estimator's `score`.
    cv : int, splitter or iterable, optional
        As in scikit-learn; 5 folds by default, stratified for classifiers.
    n_jobs : int, optional
        Number of parallel fits, for estimators that are refitted for each split.
    verbose : int, default=0
        Verbosity of such fits.
    params : dict, optional
        Parameters of `fit`, such as `sample_weight`; with metadata routing also those of the splitter and the scorer.
    pre_dispatch : int or str, default="2*n_jobs"
        Number of jobs dispatched at a time.
    return_train_score, return_estimator, return_indices : bool, default=False
        Whether to return scores on the training rows, the fitted estimators, and the row numbers of the splits.
    error_score : "raise" or number, default=nan
        Score of a split whose fit fails; "raise" raises the error.

    Returns
    -------
    dict of str to ndarray
        `test_score` (or one entry per scorer), `fit_time`, `score_time`, and the optional results.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.linear_model import LinearRegression
    >>> from summula.model_selection import cross_validate
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_validate(LinearRegression(), X, y, cv=5)["test_score"].round(2)
    array([0.43, 0.52, 0.48, 0.43, 0.55])
    """
    check_rows_in_memory(X, y)
    if may_merge(estimator, params):
        rows, target = indexable(X), None if y is None else indexable(y, "y")
        splits = list(splits_of(cv, rows, target, classifier=is_classifier(estimator), groups=groups))
        options = Options(scoring, return_train_score, return_estimator, return_indices)
        found = scores_from_groups(estimator, rows, target, splits, params or {}, options)
        if found is not None:
            return found
        cv = splits  # random splitters would draw different splits
    found = _refit_each_split(
        estimator, X, y, groups=groups, scoring=scoring, cv=cv, n_jobs=n_jobs, verbose=verbose, params=params,
        pre_dispatch=pre_dispatch, return_train_score=return_train_score, return_estimator=return_estimator,
        return_indices=return_indices, error_score=error_score,
    )  # fmt: skip
    return dict(found)


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    error_score: Any = np.nan,
) -> NDArray[Any]:
    """Compute the test scores of a cross-validation; see `cross_validate`.

    Parameters
    ----------
    estimator, X, y, groups, cv, n_jobs, verbose, params, pre_dispatch, error_score
        As in `cross_validate`.
    scoring : str or callable, optional
        One scorer.

    Returns
    -------
    ndarray of shape (n_splits,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from summula.model_selection import cross_val_score
    >>> from summula.naive_bayes import GaussianNB
    >>> cross_val_score(GaussianNB(), *load_iris(return_X_y=True), cv=3).round(2)
    array([0.92, 0.94, 0.96])
    """
    found = cross_validate(
        estimator, X, y, groups=groups, scoring={"score": check_scoring(estimator, scoring=scoring)}, cv=cv,
        n_jobs=n_jobs, verbose=verbose, params=params, pre_dispatch=pre_dispatch, error_score=error_score,
    )  # fmt: skip
    return np.asarray(found["test_score"])


def may_merge(estimator: Any, params: dict[str, Any] | None = None) -> bool:
    """Return whether estimator and arguments permit merging the models of the splits."""
    return (
        isinstance(estimator, AdditiveEstimator)
        and not sklearn.get_config()["enable_metadata_routing"]
        and set(params or {}) <= {"sample_weight"}
    )


def scores_from_groups(
    estimator: Any, X: Any, y: Any, splits: Sequence[Split], params: dict[str, Any], options: Options
) -> dict[str, Any] | None:
    """Cross-validate by merging; return None if that is not possible, or not faster."""
    try:
        batches = batches_of(splits, X.shape[0], _MOST_GROUPS)
        if not _is_worth_it(X, batches, _fewest_saved(estimator, X)):
            return None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("error", AccuracyWarning)
            merged = [model for batch in batches for model in _models(estimator, X, y, params, batch)]
        if any(_has_lost_digits(model) for model, _ in merged):
            return None
        results = [
            _scored(model, X, y, split, options) | {"fit_time": seconds}
            for (model, seconds), split in zip(merged, splits, strict=True)
        ]
    except Exception:  # refitting gives the result, or raises the proper error
        return None
    for one in caught:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return _collected(results, splits, options)


def _fewest_saved(estimator: Any, X: Any) -> float:
    """Return the values per split whose sum takes as long as merging: overhead, or a second least-squares solve."""
    solves = isinstance(estimator, LeastSquaresModel) and not issparse(X)
    return _FEWEST_SAVED * max(1.0, (X.shape[1] / _COLUMNS) ** 2 if solves else 1.0)


def _is_worth_it(X: Any, batches: Sequence[Batch], least: float) -> bool:
    """Return whether no split repeats rows, and merging avoids reading at least `least` values per split."""
    n, values = X.shape[0], (X.nnz if issparse(X) else X.shape[0] * X.shape[1])
    if any((batch.train > 1).any() or n < _FEWEST_ROWS * batch.n_groups for batch in batches):
        return False
    sizes = [np.bincount(batch.of(0, n), minlength=batch.n_groups) for batch in batches]
    trained = sum(int((batch.train @ size).sum()) for batch, size in zip(batches, sizes, strict=True))
    n_splits = sum(len(batch.train) for batch in batches)
    saved = (trained - len(batches) * n) * (values / n)
    return bool(saved > max(0, least * n_splits))


def _has_lost_digits(model: Any) -> bool:
    """Return whether columns of least squares are too nearly collinear for accurate sums of products."""
    if not isinstance(model, LeastSquaresModel):
        return False
    sums, d = model._kept_sums(), len(model._fit.coef)
    if sums is None:
        return True
    alpha = float(np.min(getattr(model, "alpha", 0.0)))
    G = (sums.centred() if model.fit_intercept else sums.products)[:d, :d] + alpha * np.eye(d)
    scale = np.sqrt(np.diag(G))
    if not (scale > 0).all():
        return True
    return bool(np.linalg.eigvalsh(G / scale / scale[:, None])[0] < _SMALLEST[model._given.dtype])


class Timed(NamedTuple):
    """A fitted model and its fit time in seconds."""

    model: Any
    seconds: float


def _models(estimator: Any, X: Any, y: Any, params: dict[str, Any], batch: Batch) -> list[Timed]:
    """Equation (1): the model of each split of a batch."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups that are fitted separately
        fitted = _fitted_groups(estimator, X, y, params.get("sample_weight"), batch)
    before, after = _running(fitted), _running(fitted[::-1])
    shared = (time.perf_counter() - start) / len(batch.train)
    found = []
    for times in batch.train:
        start = time.perf_counter()
        found.append(Timed(_merged(fitted, before, after, times > 0), shared + time.perf_counter() - start))
    return found


def _fitted_groups(estimator: Any, X: Any, y: Any, weight: Any, batch: Batch) -> list[Any]:
    """Return the models of the groups, each fitted separately."""
    labels = batch.of(0, batch.n_rows)
    fitted = []
    for group in range(batch.n_groups):
        rows = np.flatnonzero(labels == group)
        given = {} if weight is None else {"sample_weight": np.asarray(weight)[rows]}
        target = () if y is None else (take_rows(y, rows),)
        fitted.append(clone(estimator).fit(take_rows(X, rows), *target, **given))
    return fitted


def _running(models: Sequence[Any]) -> list[Any]:
    """Return unsolved models with the cumulative sums of the first 1, 2, ... models."""
    found = [models[0]]
    for model in models[1:]:
        found.append(copy.copy(found[-1]))
        found[-1]._add_sums(model)
    return found


def _merged(fitted: list[Any], before: list[Any], after: list[Any], used: NDArray[np.bool_]) -> Any:
    """Return the model of the groups in use: a leading run, a trailing run, and single groups in between."""
    n = len(used)
    if used.sum() == 1:
        return copy.copy(fitted[int(np.argmax(used))])
    lead = n if used.all() else int(np.argmin(used))
    trail = 0 if lead == n else int(np.argmin(used[::-1]))
    parts = [before[lead - 1]] if lead else []
    parts += [fitted[g] for g in range(lead, n - trail) if used[g]]
    parts += [after[trail - 1]] if trail else []
    model = copy.copy(parts[0])
    for part in parts[1:]:
        model._add_sums(part)
    model._use_sums(model._sums_or_error("merge"), False)
    return model


def _scored(model: Any, X: Any, y: Any, split: Split, options: Options) -> dict[str, Any]:
    """Return the scores of one split."""
    start = time.perf_counter()
    test = _scores(model, X, y, split[1], options.scoring)
    found: dict[str, Any] = {"score_time": time.perf_counter() - start}
    train = _scores(model, X, y, split[0], options.scoring) if options.return_train_score else {}
    for name, value in test.items():
        found[f"test_{name}"] = value
        if options.return_train_score:
            found[f"train_{name}"] = train[name]
    if options.return_estimator:
        found["estimator"] = model
    return found


def _scores(model: Any, X: Any, y: Any, rows: Any, scoring: Any) -> dict[str, Any]:
    single = scoring is None or isinstance(scoring, str) or callable(scoring)
    scorer = scoring if callable(scoring) else check_scoring(model, scoring=scoring, raise_exc=True)
    target = () if y is None else (take_rows(y, rows),)
    found = scorer(model, take_rows(X, rows), *target)
    if single and not isinstance(found, dict):
        return {"score": float(found)}
    return {name: float(value) for name, value in found.items()}


def _collected(results: list[dict[str, Any]], splits: Sequence[Split], options: Options) -> dict[str, Any]:
    """Collect the results in a dictionary, like scikit-learn."""
    found: dict[str, Any] = {name: np.array([one[name] for one in results]) for name in ("fit_time", "score_time")}
    if options.return_estimator:
        found["estimator"] = [one["estimator"] for one in results]
    if options.return_indices:
        found["indices"] = {"train": [train for train, _ in splits], "test": [test for _, test in splits]}
    names = [name for name in results[0] if name.startswith(("test_", "train_"))]
    return found | {name: np.array([one[name] for one in results]) for name in names}
