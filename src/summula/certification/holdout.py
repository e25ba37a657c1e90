"""Confidence bounds on the true risk of a model, from held-out rows.

The risk of a model f is its expected loss on the population, R = E[loss(y, f(x))]. A held-out set of n rows gives n
independent losses with mean R, provided that the model was fixed before the rows were used; `stats/bounds.py` and
`stats/bounds_betting.py` convert them into bounds with

    P(R > upper) <= delta,     P(R < lower) <= delta                                                           (1)

Losses with two values are counted (Clopper-Pearson); for others betting bounds are used, in an order derived from
hashes of model and rows. If M models are compared on the same rows, each is tested at delta / M, so that (1) holds for
the selected one (union bound). Two models are compared by the differences of their losses, row by row.

A certificate refers to the hash of the model and is void after a new fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import betting_order, data_hash, in_training, model_hash, row_hashes
from summula.certification.records import Comparison, RiskCertificate, use
from summula.certification.rows import (
    Loss,
    Measured,
    check_fitted,
    cost_array,
    loss_named,
    mean_by_group,
    measure,
    of_blocks,
    risk_bounds,
)
from summula.core.data.scan import Scan
from summula.core.data.training_data import recalled
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.input.validation import collection_reader
from summula.stats.bounds import check_delta, mcnemar, shared_delta
from summula.stats.bounds_betting import betting_bounds

__all__ = ["certify", "certify_best", "compare"]

Array = NDArray[np.float64]


class KnownDifferences(NamedTuple):
    """Prior knowledge of the differences of losses, before held-out rows are used.

    Attributes
    ----------
    low, high : float
        Smallest and largest possible difference.
    earlier : ndarray or None
        Differences that are independent of the held-out rows, such as those of cross-validation.
    """

    low: float
    high: float
    earlier: Array | None = None


_MIN_FRESH = 10  # minimum number of rows that must remain after training rows are dropped


def certify(
    model: Any,
    X: Any,
    y: Any,
    loss: Any = "zero_one",
    range: Any = None,
    costs: Any = None,
    delta: float = 0.05,
    groups: Any = None,
) -> RiskCertificate:
    """Bound the true risk of a fitted model from held-out rows.

    Parameters
    ----------
    model : estimator
        A fitted estimator with a `predict` method.
    X : {array-like, frame, sparse matrix, scan, Dask collection}
        Held-out rows, which were not used to fit the model or to select its hyperparameters.
    y : array-like, or name of a column of X
        True targets or labels.
    loss : {"zero_one", "squared", "absolute", "log"} or callable
        Loss function. A callable takes true and predicted values and returns one loss per row.
    range : tuple of float, optional
        Smallest and largest possible loss; required unless the loss is "zero_one".
    costs : array-like of shape (n_predictions, n_classes) or dict, optional
        costs[prediction, true class], the cost of predicting one class (row) if another is true (column), in the order
        of `model.classes_`; or a dict prediction -> {true class: cost}. For a `bayes.CostSensitiveClassifier` the rows
        are its `actions_`: `costs=model.costs_`.
    delta : float
        Error probability of each one-sided bound.
    groups : array-like of shape (n_samples,), optional
        Group of each row (patient, site, ...), if rows of the same group are not independent. The bounds are then on
        the mean over groups of the mean loss in a group.

    Returns
    -------
    RiskCertificate
        Has `estimate`, `lower`, `upper`, `method`, `assumptions`, `verify(X, y)` and `to_json()`.

    Warns
    -----
    HoldoutWarning
        If some of the rows were used to certify another model before.

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3_000, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=3_000) > 0
    >>> model = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> print(summula.certify(model, X[1_000:], y[1_000:]))
    true risk at most 0.1592, at least 0.1326 (each with confidence 95 %); observed 0.1455
    zero_one loss of LogisticRegression, 2,000 held-out rows, Clopper-Pearson
    """
    delta = check_delta(delta)
    check_fitted(model)
    loss = loss_named(loss, range, cost_array(costs, model))
    rows, fresh = _measured([model], X, y, loss)
    groups = None if groups is None else _of_fresh(groups, fresh)
    return replace(certificate_of(model, rows, loss, delta, groups), n_dropped=int((~fresh).sum()))


def certificate_of(model: Any, rows: Measured, loss: Loss, delta: float, groups: Any = None) -> RiskCertificate:
    """Return the certificate for measured rows that are known to be held out."""
    if groups is None:
        return _certificate(model, rows, loss, delta)
    means = mean_by_group(rows, groups)
    found = _certificate(model, means, replace(loss, binary=False), delta)
    return replace(found, n=len(rows.losses), sampling="groups", n_groups=len(means.losses), _loss=loss)


def certify_best(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,
    y: Any,
    loss: Any = "zero_one",
    range: Any = None,
    costs: Any = None,
    delta: float = 0.05,
) -> RiskCertificate:
    """Select the best of several fitted models on held-out rows, and bound its true risk from the same rows.

    Each of the M models is tested at delta / M, so the bounds hold for the selected one.

    Parameters
    ----------
    models : list or dict of estimators
        All models that were considered; omitting poor ones would invalidate the bounds.
    X, y, loss, range, costs, delta
        As in `certify`.

    Returns
    -------
    RiskCertificate
        Certificate of the model with the smallest mean loss; `chosen` is its index or name.

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(3_000, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=3_000) > 0
    >>> models = {c: LogisticRegression(C=float(c)).fit(X[:1_000], y[:1_000]) for c in ("1e-4", "1", "1e4")}
    >>> best = summula.certify_best(models, X[1_000:], y[1_000:])
    >>> print(best)
    true risk at most 0.1694, at least 0.1347 (each with confidence 95 %); observed 0.1515
    zero_one loss of LogisticRegression, 2,000 held-out rows, Clopper-Pearson; chosen from 3 models
    """
    delta = check_delta(delta)
    listed = list(models.values()) if isinstance(models, Mapping) else list(models)
    names = [str(name) for name in models] if isinstance(models, Mapping) else np.arange(len(listed)).tolist()
    if not listed:
        raise ParameterError("models is empty; certify_best needs at least one fitted model.")
    for model in listed:
        check_fitted(model)
    loss = loss_named(loss, range, cost_array(costs, listed[0]))
    rows, fresh = _measured(listed, X, y, loss)
    best = int(np.argmin(rows.losses.mean(axis=0)))
    hashes = tuple(model_hash(model) for model in listed)
    one = Measured(rows.losses[:, [best]], rows.hashes)
    return replace(_certificate(listed[best], one, loss, delta, hashes, names[best]), n_dropped=int((~fresh).sum()))


def compare(
    first: Any,
    second: Any,
    X: Any,
    y: Any,
    loss: Any = "zero_one",
    range: Any = None,
    costs: Any = None,
    delta: float = 0.05,
) -> Comparison:
    """Bound the difference of the true risks of two fitted models, from the same held-out rows.

    Rows on which both have the same loss cancel, so differences much smaller than the uncertainty of either risk can be
    detected.

    Parameters
    ----------
    first, second : estimator
        Fitted models.
    X, y, loss, range, costs, delta
        As in `certify`.

    Returns
    -------
    Comparison
        Has `estimate`, `lower`, `upper` of risk(first) - risk(second), `better`, and McNemar's `p_value`.

    Examples
    --------
    >>> import numpy as np
    >>> import summula
    >>> from summula.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(2)
    >>> X = rng.normal(size=(3_000, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=3_000) > 0
    >>> good = LogisticRegression().fit(X[:1_000], y[:1_000])
    >>> bad = LogisticRegression().fit(X[:1_000, ::-1], y[:1_000])
    >>> summula.compare(good, bad, X[1_000:], y[1_000:]).better
    'first'
    """
    delta = check_delta(delta)
    for model in (first, second):
        check_fitted(model)
    loss = loss_named(loss, range, cost_array(costs, first))
    rows, _ = _measured([first, second], X, y, loss)
    return comparison_of(first, second, rows, loss, delta)


def comparison_of(
    first: Any,
    second: Any,
    rows: Measured,
    loss: Loss,
    delta: float,
    hashes: tuple[str, str] | None = None,
    known: KnownDifferences | None = None,
) -> Comparison:
    """Return the comparison of two models for measured rows that are known to be held out."""
    a, b = rows.losses.T
    hashes = (model_hash(first), model_hash(second)) if hashes is None else hashes
    data = data_hash(rows.hashes)
    width = loss.high - loss.low
    low, high, earlier = KnownDifferences(-width, width) if known is None else known

    def scaled(difference: Array) -> Array:
        return np.clip((difference - low) / (high - low), 0.0, 1.0)

    # The order is symmetric in the models.
    order = betting_order(rows.hashes, *sorted(hashes), data)
    found = betting_bounds(scaled(a - b)[order], delta, None if earlier is None else scaled(earlier))
    estimate = float(np.mean(a - b))
    comparison = Comparison(
        estimate=estimate,
        lower=min(low + float(found.lower) * (high - low), estimate),
        upper=max(low + float(found.upper) * (high - low), estimate),
        p_value=float(mcnemar(np.sum(a > b), np.sum(b > a)).p_value) if loss.binary else None,
        n=len(a),
        delta=delta,
        method="betting on differences",
        loss=loss.name,
        range=(low, high),
        models=(type(first).__name__, type(second).__name__),
        model_hashes=hashes,
        data_hash=data,
    )
    return use(comparison, rows.hashes, hashes)


def _measured(models: Sequence[Any], X: Any, y: Any, loss: Loss) -> tuple[Measured, NDArray[np.bool_]]:
    """Return the losses and hashes of the rows that were not training rows, and a mask of these rows."""
    rows = measure(models, X, y, loss)
    fresh = fresh_rows(models, rows)
    return rows.only(fresh), fresh


def _of_fresh(groups: Any, fresh: NDArray[np.bool_]) -> Any:
    groups = np.asarray(groups)
    return groups[fresh] if len(groups) == len(fresh) else groups  # a wrong length raises an error later


def _certificate(
    model: Any,
    rows: Measured,
    loss: Loss,
    delta: float,
    among: tuple[str, ...] | None = None,
    chosen: int | str | None = None,
) -> RiskCertificate:
    own, data = model_hash(model), data_hash(rows.hashes)
    family = (own,) if among is None else among
    risk = risk_bounds(rows, loss, shared_delta(delta, len(family)), own, data)
    certificate = RiskCertificate(
        estimate=risk.estimate,
        lower=risk.lower,
        upper=risk.upper,
        delta=delta,
        n=len(rows.losses),
        method="Clopper-Pearson" if loss.binary else "betting",
        loss=loss.name,
        range=(loss.low, loss.high),
        model=type(model).__name__,
        model_hash=own,
        data_hash=data,
        n_models=len(family),
        chosen=chosen,
        costs=None if loss.costs is None else tuple(tuple(row) for row in loss.costs.tolist()),
        _bound_to=model,
        _loss=loss,
    )
    return use(certificate, rows.hashes, family)


def _kept_hashes(model: Any) -> NDArray[np.uint64] | None:
    """Return the hashes of a model's training rows: stored ones, or computed while the rows are still in memory."""
    own = getattr(model, "training_hashes_", None)
    if own is not None and len(own):
        return np.asarray(own)
    kept = recalled(getattr(model, "_training", None))
    if kept is None or isinstance(kept[0], Scan) or collection_reader(kept[0]) is not None:
        return None
    return np.asarray(np.concatenate(of_blocks(row_hashes, kept[0], kept[1], model)))


def fresh_rows(models: Sequence[Any], rows: Measured) -> NDArray[np.bool_]:
    """Return a mask of the rows that no model was trained on; raise if too few are left."""
    fresh = np.ones(len(rows.losses), bool)
    for model in models:
        trained = _kept_hashes(model)
        if trained is not None:
            fresh &= ~in_training(rows.hashes, trained)
    left = int(fresh.sum())
    if left < min(len(fresh), _MIN_FRESH):
        name, seen = type(models[0]).__name__, len(fresh) - left
        raise DataError(
            f"{seen:,} of these {len(fresh):,} rows {'was' if seen == 1 else 'were'} in the training data of {name}, "
            f"so errors there say nothing about new rows, and only {left} {'is' if left == 1 else 'are'} left: certify "
            "on rows held out of the fit."
        )
    return fresh
