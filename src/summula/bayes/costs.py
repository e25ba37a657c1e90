"""Costs of actions: cost tables, conditional risk, and the mean cost of decisions.

    costs[a, s]: the cost of action a in state s;        R(a | x) = sum_s costs[a, s] P(s | x)                 (1)

The Bayes action minimises (1); ties go to the first action. Rejecting is an additional action, whose cost does not
depend on the state.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.bayes.labelled import list_or_dict
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.argument_values import number_or_nan, numbers_in

__all__ = ["REJECT", "CostTable", "cost_table", "expected_cost", "mean_cost"]

Array = NDArray[np.float64]

REJECT = "reject"


class CostTable(NamedTuple):
    """Costs of actions by state.

    Attributes
    ----------
    actions : tuple
        Names, in the order of the rows of `values`.
    values : ndarray of shape (n_actions, n_states)
    """

    actions: tuple[Any, ...]
    values: Array

    def risks(self, posterior: Array) -> Array:
        """Return the conditional risk (1) of every action for rows of posterior probabilities."""
        return np.asarray(posterior @ self.values.T)


def cost_table(costs: Any, states: Sequence[Any], reject_cost: Any = None) -> CostTable:
    """Return the cost table for the costs passed by a user.

    Parameters
    ----------
    costs : dict of dicts, DataFrame, array-like or None
        action -> {state: cost}, also as a DataFrame with the states as columns; or an array costs[action, state], whose
        actions are the states if it is square and 0, 1, ... otherwise; or None: 0 for the correct state, 1 for others.
    states : sequence
        Names of the states.
    reject_cost : float, optional
        Cost of the additional action "reject".
    """
    costs = list_or_dict(costs, states)
    if isinstance(costs, list) and costs and isinstance(costs[0], Mapping):  # a DataFrame with names of states only
        costs = list(_of_mapping(dict(enumerate(costs)), states).values)
    if costs is None:
        table = CostTable(tuple(states), 1.0 - np.eye(len(states)))
    elif isinstance(costs, Mapping):
        table = _of_mapping(costs, states)
    else:
        values = numbers_in("costs", costs)
        if values.ndim != 2 or values.shape[1] != len(states) or not len(values):
            raise ParameterError(
                f"costs must have the shape (actions, states), that is (n, {len(states)}) for the states "
                f"{list(states)!r}; got {values.shape}."
            )
        square = values.shape[0] == values.shape[1]
        table = CostTable(tuple(states) if square else tuple(range(len(values))), values)
    if not np.isfinite(table.values).all():
        raise ParameterError("costs must be finite numbers; some are NaN or infinite.")
    if reject_cost is None:
        return table
    if not np.isfinite(number_or_nan(reject_cost)):
        raise ParameterError(f"reject_cost must be a finite number; got {reject_cost!r}.")
    constant = np.full((1, len(states)), float(reject_cost))
    return CostTable((*table.actions, REJECT), np.vstack([table.values, constant]))


def _of_mapping(costs: Mapping[Any, Any], states: Sequence[Any]) -> CostTable:
    rows = []
    for action, by_state in costs.items():
        if not isinstance(by_state, Mapping) or set(by_state) != set(states):
            given = list(by_state) if isinstance(by_state, Mapping) else by_state
            raise ParameterError(
                f"The costs of the action {action!r} must be a dict with a cost for each of the states "
                f"{list(states)!r}; got {given!r}."
            )
        rows.append(numbers_in(f"costs[{action!r}]", [by_state[state] for state in states]))
    if not rows:
        raise ParameterError("costs is empty; pass the costs of at least one action.")
    return CostTable(tuple(costs), np.array(rows))


def mean_cost(
    y_true: Any, y_pred: Any, costs: Any, *, classes: Any = None, reject_cost: Any = None, sample_weight: Any = None
) -> float:
    """Compute the mean cost of decisions, given the true classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like of shape (n_samples,)
        Actions: classes, names of actions, or "reject".
    costs : dict or array-like of shape (n_actions, n_classes), or of shape (n_samples, n_actions, n_classes)
        costs[action, class], with actions and classes in the order of `classes`; or such a table per sample.
    classes : array-like, optional
        The classes in the order of `costs`; by default those in `y_true`, sorted.
    reject_cost : float, optional
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float

    Examples
    --------
    >>> from summula.bayes import mean_cost
    >>> mean_cost(["ill", "well"], ["well", "well"], [[0, 1], [20, 0]])  # ill, well: actions by states
    10.0
    """
    truth = np.asarray(y_true)
    order = (np.unique(truth) if classes is None else np.asarray(classes)).tolist()
    costs = list_or_dict(costs, order)
    values: Any = costs if isinstance(costs, Mapping) else numbers_in("costs", costs)
    per_sample = not isinstance(values, Mapping) and values.ndim == 3
    table = cost_table(values[0] if per_sample else values, order, reject_cost)
    states = _places(truth, order, "class")
    actions = _places(np.asarray(y_pred), list(table.actions), "action")
    if len(states) != len(actions):
        raise DataError(f"There are {len(states)} true classes and {len(actions)} decisions; pass one of each per row.")
    incurred = table.values[actions, states]
    if per_sample:
        own = actions < values.shape[1]
        rows = np.arange(len(states))
        incurred = np.where(own, values[rows, np.minimum(actions, values.shape[1] - 1), states], incurred)
    return float(np.average(incurred, weights=sample_weight))


def _places(labels: NDArray[Any], known: list[Any], what: str) -> NDArray[np.intp]:
    places = {label: place for place, label in enumerate(known)}
    try:
        return np.array([places[label] for label in labels.tolist()], np.intp)
    except KeyError as error:
        raise DataError(f"The {what} {error.args[0]!r} has no cost; costs are known for {known!r}.") from None


class expected_cost:
    """Scorer for model selection: the negative mean cost of a model's decisions, so that larger is better.

    Parameters
    ----------
    costs : dict or array-like of shape (n_actions, n_classes), optional
        costs[action, class], in the order of the model's `classes_`; actions are classes if the table is square.
        None if costs are passed per row (see Notes).
    reject_cost : float, optional
        Cost of the decision "reject".

    Notes
    -----
    A table per row, shape (n_samples, n_actions, n_classes), is passed to a call as `costs`. With scikit-learn's
    metadata routing, `cross_validate(..., scoring=expected_cost(), params={"costs": tables})` and
    `GridSearchCV(..., scoring=expected_cost()).fit(X, y, costs=tables)` do so; the scorer requests `costs` (and
    `sample_weight` after `set_score_request(sample_weight=True)`). A model whose `predict` requests `costs`, such as
    `CostSensitiveClassifier` or a pipeline that ends with one, uses them for its decisions, too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from summula.bayes import expected_cost
    >>> from summula.linear_model import LogisticRegression
    >>> X, y = np.arange(40.0).reshape(-1, 1), np.repeat([0, 1], 20)
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=expected_cost([[0, 5], [1, 0]]), cv=4)
    >>> bool((scores <= 0).all())
    True
    """

    def __init__(self, costs: Any = None, *, reject_cost: Any = None) -> None:
        self.costs, self.reject_cost = costs, reject_cost
        self._requests: dict[str, Any] = {"costs": costs is None, "sample_weight": None}

    def set_score_request(self, **requests: Any) -> expected_cost:
        """Request metadata (`costs`, `sample_weight`), as for scikit-learn's scorers."""
        unknown = requests.keys() - self._requests.keys()
        if unknown:
            raise ParameterError(
                f"{sorted(unknown)[0]!r} is not metadata of expected_cost; it supports costs and sample_weight."
            )
        self._requests.update(requests)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the requested metadata (`sklearn.utils.metadata_routing.MetadataRequest`)."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name, alias in self._requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """Return the negative mean cost of the decisions of a fitted model on rows with these labels.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True classes.
        sample_weight : array-like of shape (n_samples,), optional
        costs : array-like of shape (n_samples, n_actions, n_classes), optional
            A cost table for each row, instead of the parameter.

        Returns
        -------
        float
        """
        table = self.costs if costs is None else costs
        if table is None:
            raise ParameterError(
                "expected_cost() has no costs: pass expected_cost(costs=...), or per-row costs as metadata, such as "
                "GridSearchCV(..., scoring=expected_cost()).fit(X, y, costs=...) with metadata routing enabled."
            )
        decides = costs is not None and _decides_by_costs(estimator)
        return -mean_cost(
            y,
            estimator.predict(X, costs=costs) if decides else estimator.predict(X),
            table,
            classes=estimator.classes_,
            reject_cost=self.reject_cost,
            sample_weight=sample_weight,
        )

    def __repr__(self) -> str:
        return f"expected_cost({self.costs!r}, reject_cost={self.reject_cost!r})"


def _decides_by_costs(estimator: Any) -> bool:
    """Return whether `predict` supports per-row costs, as a parameter or as routed metadata of a pipeline."""
    from sklearn.utils.metadata_routing import get_routing_for_object

    if "costs" in inspect.signature(estimator.predict).parameters:
        return True
    return bool(get_routing_for_object(estimator).consumes("predict", ["costs"]))
