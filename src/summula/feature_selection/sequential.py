"""Sequential feature selection: add or remove one feature at a time, the one with the best resulting score.

    forward     S_0 = {},          S_t = S_{t-1} + argmax over j not in S of score(S_{t-1} + j)                  (1)
    backward    S_0 = all,         S_t = S_{t-1} - argmax over j in S of score(S_{t-1} - j)                      (2)

where score(S) is the mean cross-validation score on the columns S. The best subset of the whole search is the S_t
with the highest score; ties go to the smallest. For least squares and ridge all scores follow from one pass over the
rows (`subset_scores.py`); other estimators are cross-validated for every candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from summula.core.data.sparse_format import check_sparse
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_choice
from summula.feature_selection.subset_scores import subset_scores
from summula.model_selection.cross_validation import cross_val_score

__all__ = ["SequentialFeatureSelector"]

Scores = Callable[[NDArray[np.intp]], NDArray[np.float64]]


class SequentialFeatureSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select features by forward or backward search.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator, which is cross-validated on subsets of the columns.
    n_features_to_select : "auto", "best", int or float, default="auto"
        Number of features, or fraction of all. "best" searches to the end and selects the best subset of the search.
        "auto" stops when the score improves by less than `tol`; without `tol` it selects half of the features.
    tol : float, optional
        Smallest improvement of the score with "auto"; negative values are possible for backward search.
    direction : {"forward", "backward"}, default="forward"
    scoring : str or callable, optional
        Score to maximise; by default the estimator's `score`.
    cv : int, splitter or iterable, default=5
        Cross-validation; every candidate is scored on the same splits.
    n_jobs : int, optional
        Number of parallel fits, for estimators that are fitted split by split.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        The selected features.
    n_features_to_select_ : int
        Number of selected features.
    order_ : ndarray of int
        Features in the order in which they were added, or removed.
    scores_ : ndarray of float
        Score after each step. Backward search for "best" begins with the score of all features.
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from summula.feature_selection import SequentialFeatureSelector
    >>> from summula.linear_model import LinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = SequentialFeatureSelector(LinearRegression(), n_features_to_select="best").fit(X, y)
    >>> search.order_[:2], search.scores_[:2].round(2)
    (array([2, 8]), array([0.32, 0.44]))
    >>> SequentialFeatureSelector(LinearRegression(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([2, 8])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_features_to_select: Any = "auto",
        tol: float | None = None,
        direction: str = "forward",
        scoring: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.direction = direction
        self.scoring = scoring
        self.cv = cv
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Search for the features.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        **params : dict
            Passed to the estimator, the splitter and the scorer, if scikit-learn's metadata routing is enabled.

        Returns
        -------
        self
        """
        self._check_parameters(params)
        check_sparse(X)
        X = validate_data(
            self,
            X,
            accept_sparse="csc",
            ensure_min_features=2,
            ensure_all_finite=not get_tags(self).input_tags.allow_nan,
        )
        wanted, stops = self._wanted(X.shape[1])
        if params:
            process_routing(self, "fit", **params)
        y = y if y is None or hasattr(y, "shape") else np.asarray(y)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = cv if params else list(cv.split(X, y))  # the same random splits for all candidates
        score = _scores(self, X, y, splits, params)
        order, scores = self._search(score, X.shape[1], wanted, stops)
        self._name_results(order, scores, X.shape[1])
        return self

    def _check_parameters(self, params: dict[str, Any]) -> None:
        from sklearn import get_config

        if params and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"Passing extra keyword arguments to SequentialFeatureSelector.fit is only supported if "
                f"enable_metadata_routing=True, which you can set using `sklearn.set_config`. Extra parameters passed "
                f"are: {set(params)}"
            )
        if not is_choice(self.direction, ("forward", "backward")):
            raise ParameterError(
                f"The 'direction' parameter of SequentialFeatureSelector must be a str among {{'forward', "
                f"'backward'}}. Got {self.direction!r} instead."
            )
        wanted = self.n_features_to_select
        number = isinstance(wanted, Real) and not isinstance(wanted, bool)
        whole = isinstance(wanted, Integral)
        if not (isinstance(wanted, str) and wanted in ("auto", "best")) and not (
            number and (wanted >= 1 if whole else 0 < wanted <= 1)
        ):
            raise ParameterError(
                "The 'n_features_to_select' parameter of SequentialFeatureSelector must be 'auto', 'best', a float in "
                f"the range (0.0, 1.0] or an int in the range [1, inf). Got {wanted!r} instead."
            )
        tol: Any = self.tol
        if isinstance(tol, bool) or not (tol is None or isinstance(tol, Real)):
            raise ParameterError(
                f"The 'tol' parameter of SequentialFeatureSelector must be None or a float. Got {tol!r} instead."
            )
        if tol is not None and tol < 0 and self.direction == "forward":
            raise ParameterError("tol must be strictly positive when doing forward selection")

    def _wanted(self, d: int) -> tuple[int, bool]:
        """Return the number of steps of the search, and whether it stops when the score no longer improves."""
        wanted = self.n_features_to_select
        if wanted == "best":
            return (d if self.direction == "forward" else d - 1), False
        if wanted == "auto":
            return (d // 2, False) if self.tol is None else (d - 1, True)
        if isinstance(wanted, Integral):
            kept = int(wanted)
            if kept >= d:
                raise ParameterError("n_features_to_select must be < n_features.")
        else:
            kept = int(d * wanted)
        return (kept if self.direction == "forward" else d - kept), False

    def _search(self, score: Scores, d: int, steps: int, stops: bool) -> tuple[list[int], list[float]]:
        """Equations (1) and (2)."""
        changed = np.zeros(d, bool)
        order: list[int] = []
        scores: list[float] = []
        backward_best = self.n_features_to_select == "best" and self.direction == "backward"
        if backward_best:
            scores.append(float(score(np.arange(d)[None, :])[0]))
        before = -np.inf
        for _ in range(steps):
            candidates = np.flatnonzero(~changed)
            subsets = []
            for j in candidates:
                mask = changed.copy()
                mask[j] = True
                subsets.append(np.flatnonzero(mask if self.direction == "forward" else ~mask))
            found = score(np.array(subsets))
            place = int(np.argmax(np.where(np.isnan(found), -np.inf, found)))
            if stops and found[place] - before < self.tol:
                break
            before = float(found[place])
            changed[candidates[place]] = True
            order.append(int(candidates[place]))
            scores.append(before)
        return order, scores

    def _name_results(self, order: list[int], scores: list[float], d: int) -> None:
        kept = len(order)
        if self.n_features_to_select == "best":
            values = np.where(np.isnan(scores), -np.inf, scores)
            if self.direction == "forward":
                kept = int(np.argmax(values)) + 1
            else:
                kept = len(values) - 1 - int(np.argmax(values[::-1]))
        mask = np.zeros(d, bool)
        mask[order[:kept]] = True
        self.support_ = mask if self.direction == "forward" else ~mask
        self.n_features_to_select_ = int(self.support_.sum())
        self.order_, self.scores_ = np.array(order, np.intp), np.array(scores)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of = get_tags(self.estimator)
        tags.input_tags.allow_nan, tags.input_tags.sparse = of.input_tags.allow_nan, of.input_tags.sparse
        return tags

    def get_metadata_routing(self) -> Any:
        """Return the routing of metadata; see scikit-learn's user guide.

        Returns
        -------
        MetadataRouter
        """
        mapping = {name: MethodMapping().add(caller="fit", callee=name) for name in ("fit", "split", "score")}
        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=mapping["fit"])
        splitter = check_cv(self.cv, classifier=is_classifier(self.estimator))
        router.add(splitter=splitter, method_mapping=mapping["split"])
        scorer = check_scoring(self.estimator, scoring=self.scoring)
        return router.add(scorer=scorer, method_mapping=mapping["score"])


def _scores(selector: SequentialFeatureSelector, X: Any, y: Any, splits: Any, params: dict[str, Any]) -> Scores:
    """Return the function that scores subsets of the columns: from sums of products, or by cross-validation."""
    estimator = clone(selector.estimator)
    sums = None
    if isinstance(X, np.ndarray) and y is not None and not params:
        sums = subset_scores(estimator, X, y, selector.scoring, splits)

    def one(subset: NDArray[np.intp]) -> float:
        options: dict[str, Any] = {"cv": splits, "scoring": selector.scoring, "n_jobs": selector.n_jobs}
        return float(cross_val_score(estimator, X[:, subset], y, params=params or None, **options).mean())

    def scores(subsets: NDArray[np.intp]) -> NDArray[np.float64]:
        found = None if sums is None else sums(subsets)
        return np.array([one(subset) for subset in subsets]) if found is None else found

    return scores
