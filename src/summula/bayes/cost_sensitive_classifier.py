"""Cost-sensitive decisions for any classifier with probabilities.

    action(x) = argmin over a of  sum_k costs[a, k] P(class k | x)                                              (1)

(1) is only as good as the probabilities: a classifier that ranks rows well may still be overconfident. Calibration on
held-out rows corrects this.

Reference: Elkan (2001), The foundations of cost-sensitive learning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from summula.bayes.costs import CostTable, cost_table, mean_cost
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import is_choice

__all__ = ["CostSensitiveClassifier"]

Array = NDArray[np.float64]

_MANY_ROWS = 1_000  # number of rows from which isotonic regression does not overfit
_CALIBRATIONS = ("sigmoid", "isotonic", "temperature")


def _has_scores(model: Any) -> bool:
    return hasattr(model.estimator, "predict_proba") or bool(model.calibrate)


class CostSensitiveClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Choose the action with minimum expected cost (1), by the probabilities of another classifier.

    Parameters
    ----------
    estimator : classifier
        Classifier with `predict_proba`; with `calibrate`, a `decision_function` is sufficient.
    costs : array-like of shape (n_actions, n_classes), dict or callable, optional
        costs[action, class] in the order of the sorted classes, where the actions of a square table are the classes; or
        action -> {class: cost}; or a function of X that returns such a table for each row, shape
        (n_samples, n_actions, n_classes). Errors cost 1 by default. Per-row tables that are not functions of X are
        passed to `predict`, `risk` and `score`; see Notes.
    reject_cost : float, optional
        Cost of the additional action "reject", which makes no prediction and defers the case to a human.
    calibrate : bool or {"sigmoid", "isotonic", "temperature"}, default=True
        Whether to calibrate the probabilities by cross-validation (`sklearn.calibration.CalibratedClassifierCV` with
        five folds). True means isotonic from 1,000 rows on; with fewer rows, sigmoid for classifiers with a
        `decision_function`, and temperature for others.

    Attributes
    ----------
    estimator_ : estimator
        The fitted classifier, calibrated if requested.
    classes_ : ndarray of shape (n_classes,)
    actions_ : ndarray of shape (n_actions,)
        Possible return values of `predict`; an object array if numeric classes are combined with "reject".
    costs_ : ndarray of shape (n_actions, n_classes)
        Cost table; None if `costs` is a function.

    Notes
    -----
    In pipelines and grid searches, per-row costs are metadata (scikit-learn's metadata routing): with
    `sklearn.set_config(enable_metadata_routing=True)` and
    `CostSensitiveClassifier(...).set_predict_request(costs=True).set_score_request(costs=True)`, costs passed to `fit`
    of `GridSearchCV`, or to `predict` and `score` of a pipeline, are routed to this classifier, split by row.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.bayes import CostSensitiveClassifier
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = np.where(X[:, 0] + rng.normal(size=400) > 0, "ill", "well")
    >>> costs = {"treat": {"ill": 0, "well": 1}, "send home": {"ill": 20, "well": 0}}
    >>> model = CostSensitiveClassifier(LogisticRegression(), costs).fit(X, y)
    >>> model.predict([[-2.0], [-0.5], [1.0]])
    array(['send home', 'treat', 'treat'], dtype='<U9')
    """

    def __init__(self, estimator: Any, costs: Any = None, *, reject_cost: Any = None, calibrate: Any = True) -> None:
        self.estimator, self.costs, self.reject_cost, self.calibrate = estimator, costs, reject_cost, calibrate

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> CostSensitiveClassifier:
        """Fit the classifier.

        Parameters
        ----------
        X, y
            Training data in the form supported by the classifier; calibration needs rows in memory.
        sample_weight : array-like of shape (n_samples,), optional
        **fit_params : dict
            Passed to the `fit` of the classifier.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            if not has_fit_parameter(self.estimator, "sample_weight"):
                raise ParameterError(f"{type(self.estimator).__name__} does not support sample_weight; omit it.")
            fit_params["sample_weight"] = sample_weight
        model = self._model(y, weighted=sample_weight is not None)
        model.fit(X, y, **fit_params)
        classes = np.asarray(model.classes_)
        table = cost_table(None if callable(self.costs) else self.costs, classes.tolist(), self.reject_cost)
        self.estimator_, self.classes_, self._table = model, classes, table
        self.costs_ = None if callable(self.costs) else table.values
        if hasattr(model, "n_features_in_"):
            self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        return self

    def _model(self, y: Any, *, weighted: bool) -> Any:
        if self.calibrate is False or self.calibrate is None:
            if not hasattr(self.estimator, "predict_proba"):
                raise ParameterError(
                    f"{type(self.estimator).__name__} has no predict_proba, and costs need probabilities: use "
                    "calibrate=True."
                )
            return clone(self.estimator)
        method = self.calibrate
        if method is True:
            # A sigmoid of probabilities that are all near 0 or 1 does not calibrate them, but one of scores does.
            few = "sigmoid" if hasattr(self.estimator, "decision_function") else "temperature"
            method = "isotonic" if np.size(y) >= _MANY_ROWS else few
        if not is_choice(method, _CALIBRATIONS):
            raise ParameterError(f"calibrate must be a bool or one of {', '.join(_CALIBRATIONS)}; got {method!r}.")
        estimator = clone(self.estimator)
        if weighted and get_config()["enable_metadata_routing"]:
            estimator.set_fit_request(sample_weight=True)  # calibration passes the weights on
        return CalibratedClassifierCV(estimator, method=method, ensemble=False)

    @property
    def actions_(self) -> NDArray[Any]:
        """Possible return values of `predict`, in the order of the rows of `costs_`."""
        check_is_fitted(self)
        table: CostTable = self._table
        if table.actions == tuple(self.classes_.tolist()):
            return self.classes_
        kinds = {isinstance(action, str) for action in table.actions}
        if len(kinds) == 1:
            return np.array(table.actions)
        labels = np.empty(len(table.actions), object)
        labels[:] = list(table.actions)
        return labels

    @available_if(_has_scores)
    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities, calibrated if requested."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def risk(self, X: Any, costs: Any = None) -> Array:
        """Compute the expected cost of every action.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        costs : array-like of shape (n_samples, n_actions, n_classes), optional
            A cost table for each row, instead of the parameter.

        Returns
        -------
        ndarray of shape (n_samples, n_actions)
        """
        p = np.asarray(self.predict_proba(X), np.float64)
        given = self.costs(X) if costs is None and callable(self.costs) else costs
        if given is None:
            return self._table.risks(p)
        own = len(self._table.actions) - (self.reject_cost is not None)
        tables = np.asarray(given, np.float64)
        if tables.shape != (len(p), own, p.shape[1]) or not np.isfinite(tables).all():
            raise DataError(
                f"Costs per row must be finite numbers of shape (rows, actions, classes), here "
                f"{(len(p), own, p.shape[1])}; got {tables.shape}."
            )
        risks = np.einsum("nak,nk->na", tables, p)
        return risks if self.reject_cost is None else np.column_stack([risks, np.full(len(p), float(self.reject_cost))])

    @inherit_docs(risk)
    def predict(self, X: Any, costs: Any = None) -> NDArray[Any]:
        """Predict the action with minimum expected cost; ties go to the first.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        risks = self.risk(X, costs)
        return np.asarray(self.actions_[risks.argmin(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Return the negative mean cost of the decisions, so that larger is better, as for grid search.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), optional
        costs : array-like of shape (n_samples, n_actions, n_classes), optional
            A cost table for each row, instead of the parameter, both for the decisions and for their evaluation.

        Returns
        -------
        float
        """
        table = costs
        if table is None:
            table = self.costs(X) if callable(self.costs) else self.costs
        if table is None:
            table = 1.0 - np.eye(len(self.classes_))
        return -mean_cost(
            y,
            self.predict(X, costs),
            table,
            classes=self.classes_,
            reject_cost=self.reject_cost,
            sample_weight=sample_weight,
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
