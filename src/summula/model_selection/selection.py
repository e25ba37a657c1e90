"""Selection among models by validation error, a refit of the selected one, and a single use of the test rows.

    chosen   the candidate with the best mean validation score, or with the one-standard-error rule the first
             candidate (list simple ones first) with   score >= best score - its standard error                  (1)
    report   the error of the refitted model on test rows that took no part in the choice, with confidence bounds

Bounds of classifiers are those of `summula.certify`: exact for any model and sample size. The squared error of a
regressor has no bound without a range, so its root mean squared error has a bootstrap interval
(`summula.metrics.interval`).
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import GroupKFold, ParameterGrid, TimeSeriesSplit

from summula.certification.holdout import certify
from summula.certification.records import RiskCertificate
from summula.core.errors import DataError, ParameterError, warn
from summula.metrics.confidence import MetricInterval, interval
from summula.model_selection.cross_validation import cross_val_score
from summula.model_selection.splits import Rows, Split
from summula.stats.bounds import check_delta

__all__ = ["Candidate", "Selection", "select"]


class Candidate(NamedTuple):
    """A candidate and its validation score.

    Attributes
    ----------
    name : str
    estimator : estimator
        Unfitted.
    score, standard_error : float
        Mean score over the splits and its standard error; of a single validation set the error is NaN. A candidate
        that could not be fitted or scored has NaN, and is not chosen.
    """

    name: str
    estimator: Any
    score: float
    standard_error: float


@dataclass(frozen=True)
class Selection:
    """The selected model, and its error on test rows that were used once.

    Attributes
    ----------
    best_name : str
    best_estimator : estimator
        The chosen candidate, refitted to all rows but the test rows (unless `refit=False`: to the training rows).
    table : list of Candidate
        All candidates with their validation scores, in the order given.
    test : RiskCertificate or MetricInterval
        Error rate of a classifier, or root mean squared error of a regressor, on the test rows, with bounds.
    split : Split
    n_test_uses : int
        Number of times the test rows have been used, including this one; 1 unless a `Split` was used before.
    test_score : float
        Score on the test rows: that of the selection, `scoring` (by default the estimator's `score`).
    scoring : str or None
        Name of that score; None for the estimator's own.
    """

    best_name: str
    best_estimator: Any
    table: list[Candidate]
    test: RiskCertificate | MetricInterval
    split: Split
    n_test_uses: int = 1
    test_score: float = math.nan
    scoring: str | None = None

    @property
    def verdict(self) -> str:
        """One sentence: the selected candidate, the number of candidates, and its true error."""
        found, n = self.test, len(self.split.test_indices)
        if isinstance(found, RiskCertificate):
            words = (
                f"its true error rate is at most {found.upper:.4g} and at least {found.lower:.4g} "
                f"(each with confidence {100 * (1 - found.delta):g} %)"
            )
        else:
            words = (
                f"its true RMSE is between {found.lower:.4g} and {found.upper:.4g} "
                f"(confidence {100 * found.confidence:g} %)"
            )
        what = f"chosen from {len(self.table)} candidates" if len(self.table) > 1 else "fitted"
        uses = "used once" if self.n_test_uses == 1 else (
            f"used {self.n_test_uses} times: if the candidates depend on the earlier uses, the error is optimistic"
        )  # fmt: skip
        score = "" if self.scoring is None else f"; the {self.scoring} on them is {self.test_score:.4g}"
        result = f"observed {found.estimate:.4g} on {n:,} test rows, {uses}{score}."
        return f"{self.best_name}, {what} without the test rows: {words}; {result}"

    def plot(self, *, ax: Any = None) -> Any:
        """Plot the validation scores of the candidates, mark the selected one, and return the matplotlib Axes."""
        from summula.plotting import candidate_scores

        names = [one.name for one in self.table]
        scores, errors = [one.score for one in self.table], [one.standard_error for one in self.table]
        chosen = names.index(self.best_name)
        return candidate_scores(names, scores, errors, chosen=chosen, measure="validation score", ax=ax)

    def __str__(self) -> str:
        width = max(len(one.name) for one in self.table)
        lines = [
            f"{'*' if one.name == self.best_name else ' '} {one.name:<{width}}  {one.score:>10.4g}"
            + ("" if math.isnan(one.standard_error) else f"   (standard error {one.standard_error:.2g})")
            for one in self.table
        ]
        return "\n".join([*lines, self.verdict])


def select(
    candidates: Any,
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    scoring: str | Callable[..., float] | None = None,
    test_size: float = 0.2,
    one_standard_error: bool = False,
    delta: float = 0.05,
    **options: Any,
) -> Selection:
    """Select among models by validation error, refit the best, and evaluate it once on test rows.

    Parameters
    ----------
    candidates : estimator, list or dict of estimators, or of pairs (estimator, grid)
        A grid maps names of parameters to lists of values; each combination is a candidate. With
        `one_standard_error` list simple candidates first.
    X : {array-like, frame, sparse matrix} of shape (n_samples, n_features), or Split
        A `Split` brings its own rows (y is then None); its validation rows are used instead of `cv` if it has any.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of X
    cv : int, splitter or iterable, default=5
        Cross-validation on all rows except the test rows; a number means folds of whole groups if there are
        groups, and folds in time order for ordered rows.
    scoring : str or callable, optional
        Score for the selection, a name of scikit-learn or a function of (estimator, X, y); by default the estimator's
        `score`. Of the test rows, it is reported beside the error rate or root mean squared error, which have bounds.
    test_size : float, default=0.2
        Fraction of the rows used for the test.
    one_standard_error : bool, default=False
        Whether to choose the first candidate within one standard error of the best (1).
    delta : float, default=0.05
        Error probability of each bound on the test error.
    **options
        `groups`, `ordered`, `stratify` and `random_state` of `Split`; `refit` (default True): whether the chosen
        candidate is fitted to validation rows, too.

    Returns
    -------
    Selection

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from summula.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from summula.model_selection import select
    >>> from summula.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = select([GaussianNB(), LinearDiscriminantAnalysis()], X, y, random_state=0)
    >>> found.best_name, len(found.table), found.split.n_test_uses
    ('LinearDiscriminantAnalysis', 2, 1)
    """
    delta = check_delta(delta)
    _check_scoring(scoring)
    refit = options.pop("refit", True)
    listed = list(_expanded(candidates))
    if isinstance(X, Split):
        if y is not None or options:
            raise ParameterError("A Split has its own targets and options: pass select(candidates, split) without y.")
        split = X
    else:
        if y is None:
            raise DataError("select needs the targets y to compute validation errors.")
        split = Split(X, y, test=test_size, **options)
    table = _table(listed, split, cv, scoring)
    best = _chosen(table, one_standard_error)
    rows = split.development() if refit else split.train()
    model = clone(best.estimator).fit(rows.X, rows.y)
    test = split.test()
    tested = _tested(model, split, test, delta)
    score = float(check_scoring(model, scoring=scoring)(model, test.X, test.y))
    measure = scoring if scoring is None or isinstance(scoring, str) else "score"
    return Selection(best.name, model, table, tested, split, split.n_test_uses, score, measure)


def _check_scoring(scoring: Any) -> None:
    """Raise ParameterError unless `scoring` is None, the name of a scorer, or a function of (estimator, X, y)."""
    if scoring is None:
        return
    if isinstance(scoring, str):
        if scoring not in (names := get_scorer_names()):
            near = difflib.get_close_matches(scoring, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "sklearn.metrics.get_scorer_names() lists them."
            raise ParameterError(f"scoring={scoring!r} is not the name of a scorer of scikit-learn; {hint}")
        return
    if not callable(scoring):
        raise ParameterError(
            f"scoring must be the name of a scorer, such as 'accuracy' or 'r2', or a function of (estimator, X, y); "
            f"got {scoring!r}."
        )
    try:
        inspect.signature(scoring).bind(None, None, None)
    except ValueError:  # a function without a signature
        return
    except TypeError:
        name = getattr(scoring, "__name__", "f")
        name = name if name.isidentifier() else "f"  # of a lambda
        raise ParameterError(
            f"scoring must be a function of (estimator, X, y); a function {name} of (y_true, y_pred) is passed as "
            f"sklearn.metrics.make_scorer({name}), with greater_is_better=False if it is an error."
        ) from None


def _expanded(candidates: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and estimators; grids are expanded, and equal names numbered."""
    if hasattr(candidates, "fit") or _is_grid(candidates):
        candidates = [candidates]
    if not isinstance(candidates, Mapping | Sequence) or not len(candidates):
        raise ParameterError("candidates must be an estimator, or a list or dict of estimators or (estimator, grid).")
    pairs = candidates.items() if isinstance(candidates, Mapping) else ((None, one) for one in candidates)
    counts: dict[str, int] = {}
    for given, one in pairs:
        estimator, grid = one if _is_grid(one) else (one, {})
        if not hasattr(estimator, "fit"):
            raise ParameterError(f"A candidate must be an estimator, or a tuple (estimator, grid); got {one!r}.")
        for values in ParameterGrid(grid):
            listed = ", ".join(f"{name}={value!r}" for name, value in values.items())
            name = str(type(estimator).__name__ if given is None else given) + (f"({listed})" if listed else "")
            counts[name] = counts.get(name, 0) + 1
            yield (name if counts[name] == 1 else f"{name} {counts[name]}"), clone(estimator).set_params(**values)


def _is_grid(candidate: Any) -> bool:
    return isinstance(candidate, tuple) and len(candidate) == 2 and isinstance(candidate[1], Mapping | list)


def _table(listed: list[tuple[str, Any]], split: Split, cv: Any, scoring: Any) -> list[Candidate]:
    """Score all candidates; warn about those that fail, unless all do."""
    table, failures = [], []
    for name, model in listed:
        try:
            table.append(_judged(name, model, split, cv, scoring))
        except Exception as error:
            failures.append((name, error))
            table.append(Candidate(name, model, math.nan, math.nan))
    if len(failures) == len(listed):
        raise failures[0][1]
    for name, failure in failures:
        warn(f"Candidate {name} cannot be chosen, since it failed: {failure}", FitFailedWarning)
    return table


def _judged(name: str, model: Any, split: Split, cv: Any, scoring: Any) -> Candidate:
    """Score a candidate on the validation rows, or by cross-validation."""
    if len(split.validation_indices):
        train, held_out = split.train(), split.validation()
        scorer = check_scoring(model, scoring=scoring)
        score = float(scorer(clone(model).fit(train.X, train.y), held_out.X, held_out.y))
        return Candidate(name, model, score, math.nan)
    rows = split.development()
    groups = None if split.groups is None else split.groups[split.development_indices]
    if isinstance(cv, int) and (groups is not None or split.ordered):
        cv = GroupKFold(cv) if groups is not None else TimeSeriesSplit(cv)
    scores = cross_val_score(model, rows.X, rows.y, cv=cv, scoring=scoring, groups=groups, error_score="raise")
    error = float(scores.std(ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
    return Candidate(name, model, float(scores.mean()), error)


def _chosen(table: list[Candidate], one_standard_error: bool) -> Candidate:
    """Equation (1)."""
    scores = np.array([one.score for one in table])
    if np.isnan(scores).all():
        raise DataError("No candidate has a validation score: the score is undefined for the folds.")
    best = table[int(np.nanargmax(scores))]
    if not one_standard_error:
        return best
    if math.isnan(best.standard_error):
        raise ParameterError("one_standard_error needs several splits: use cv instead of one set of validation rows.")
    return next(one for one in table if one.score >= best.score - best.standard_error)


def _tested(model: Any, split: Split, rows: Rows, delta: float) -> RiskCertificate | MetricInterval:
    """Bound the error by the test rows: whole groups are the independent units, where there are groups."""
    groups = None if split.groups is None else split.groups[split.test_indices]
    if is_classifier(model):
        return certify(model, rows.X, rows.y, delta=delta, groups=groups)
    y, predicted = np.asarray(rows.y), np.asarray(model.predict(rows.X))
    if groups is None and y.ndim == 1:
        return interval("rmse", y, predicted, confidence=1 - 2 * delta)
    squares = ((y - predicted.reshape(y.shape)) ** 2).reshape(len(y), -1).mean(axis=1)  # over several targets
    names, codes = np.unique(np.arange(len(y)) if groups is None else groups, return_inverse=True)
    totals, sizes = np.bincount(codes, weights=squares), np.bincount(codes)
    found = interval(
        lambda total, size: math.sqrt(total.sum() / size.sum()), totals, sizes, confidence=1 - 2 * delta, method="bca"
    )
    return replace(found, metric="rmse", n=len(names))
