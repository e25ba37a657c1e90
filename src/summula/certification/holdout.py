"""How good is a model, really: bounds on its true risk, from rows it has not met, that hold with a known probability.

The risk of a model f is the mean loss it would have on the whole population, R = E[loss(y, f(x))]. A hold-out of n rows
gives n independent losses with mean R, provided the model was fixed before they were looked at; `stats/bounds.py` and
`stats/bounds_betting.py` turn them into

    P(R > upper) <= delta,     P(R < lower) <= delta                                                           (1)

Losses of two values are counted (Clopper-Pearson), others are bet on, in an order drawn from hashes of model and rows.
Of M models that were compared on the same rows, each is tested at delta / M, so that (1) holds for whichever is chosen
(the union bound). Two models are compared by the difference of their losses, row by row.

A certificate is bound to the hash of the model: a new fit voids it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import betting_order, data_hash, model_hash, row_hashes, share_seen
from summula.certification.records import Comparison, RiskCertificate, use
from summula.certification.rows import Loss, Measured, check_fitted, loss_named, measure, of_blocks, risk_bounds
from summula.core.data.scan import Scan
from summula.core.data.training_data import recalled
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.validation import collection_reader
from summula.stats.bounds import check_delta, mcnemar, shared_delta
from summula.stats.bounds_betting import betting_bounds

__all__ = ["certify", "certify_best", "compare"]

Array = NDArray[np.float64]


def certify(
    model: Any, X: Any, y: Any, loss: Any = "zero_one", range: Any = None, costs: Any = None, delta: float = 0.05
) -> RiskCertificate:
    """Bound the true risk of a fitted model from held-out rows.

    Parameters
    ----------
    model : estimator
        Fitted, Summula's or any with scikit-learn's `predict`.
    X : {array-like, frame, sparse matrix, scan, Dask collection}
        Rows that were not used to fit the model or to choose its settings.
    y : array-like, or name of a column of X
        Their true answers.
    loss : {"zero_one", "squared", "absolute", "log"} or callable
        A function is called with the answers and the predictions, and gives one loss a row.
    range : tuple of float, optional
        The smallest and the largest loss there can be; needed unless the loss counts errors.
    costs : array-like of shape (n_classes, n_classes), optional
        What it costs to take a true class (row) for another (column), in the order of `model.classes_`. For a
        `bayes.CostSensitiveClassifier` the columns are its `actions_`: `costs=model.costs_.T`.
    delta : float
        The chance that a bound is wrong, for each of the two.

    Returns
    -------
    RiskCertificate
        With `estimate`, `lower`, `upper`, `method`, `assumptions`; prints as a sentence; `verify(X, y)`, `to_json()`.

    Warns
    -----
    HoldoutWarning
        When some of the rows served to certify another model before.

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
    delta, meant = check_delta(delta), loss_named(loss, range, costs)
    check_fitted(model)
    rows = measure([model], X, y, meant)
    _refuse_training_rows([model], rows.hashes)
    return _certificate(model, rows, meant, delta)


def certify_best(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,
    y: Any,
    loss: Any = "zero_one",
    range: Any = None,
    costs: Any = None,
    delta: float = 0.05,
) -> RiskCertificate:
    """Choose the best of several fitted models on held-out rows, and bound its true risk from the same rows.

    Each of the M models is tested at delta / M, so the bounds hold whichever is chosen.

    Parameters
    ----------
    models : list or dict of estimators
        All that were considered; leaving out those that did badly would void the bounds.
    X, y, loss, range, costs, delta
        As in `certify`.

    Returns
    -------
    RiskCertificate
        Of the model with the smallest mean loss; `chosen` is its place or its name.

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
    delta, meant = check_delta(delta), loss_named(loss, range, costs)
    listed = list(models.values()) if isinstance(models, Mapping) else list(models)
    names = [str(name) for name in models] if isinstance(models, Mapping) else np.arange(len(listed)).tolist()
    if not listed:
        raise ParameterError("models is empty; certify_best needs at least one fitted model.")
    for model in listed:
        check_fitted(model)
    rows = measure(listed, X, y, meant)
    _refuse_training_rows(listed, rows.hashes)
    best = int(np.argmin(rows.losses.mean(axis=0)))
    hashes = tuple(model_hash(model) for model in listed)
    one = Measured(rows.losses[:, [best]], rows.hashes)
    return _certificate(listed[best], one, meant, delta, hashes, names[best])


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

    Rows on which both do equally well cancel, so that differences much smaller than the bounds of either risk are seen.

    Parameters
    ----------
    first, second : estimator
        Fitted.
    X, y, loss, range, costs, delta
        As in `certify`.

    Returns
    -------
    Comparison
        With `estimate`, `lower`, `upper` of risk(first) - risk(second), `better`, and McNemar's `p_value`.

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
    delta, meant = check_delta(delta), loss_named(loss, range, costs)
    for model in (first, second):
        check_fitted(model)
    rows = measure([first, second], X, y, meant)
    _refuse_training_rows([first, second], rows.hashes)
    a, b = rows.losses.T
    hashes = (model_hash(first), model_hash(second))
    data = data_hash(rows.hashes)
    width = meant.high - meant.low
    # A difference lies between -width and width. The order is the same whichever model comes first.
    order = betting_order(rows.hashes, *sorted(hashes), data)
    lower, upper = betting_bounds(np.clip(((a - b) / width + 1) / 2, 0.0, 1.0)[order], delta)
    estimate = float(np.mean(a - b))
    comparison = Comparison(
        estimate=estimate,
        lower=min((2 * float(lower) - 1) * width, estimate),
        upper=max((2 * float(upper) - 1) * width, estimate),
        p_value=float(mcnemar(np.sum(a > b), np.sum(b > a)).p_value) if meant.binary else None,
        n=len(a),
        delta=delta,
        method="betting on differences",
        loss=meant.name,
        range=(-width, width),
        models=(type(first).__name__, type(second).__name__),
        model_hashes=hashes,
        data_hash=data,
    )
    return use(comparison, rows.hashes, hashes)


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


def _refuse_training_rows(models: Sequence[Any], hashes: Any) -> None:
    """Raise when a model still has its training rows and these are among them."""
    for model in models:
        kept = recalled(getattr(model, "_training", None))
        if kept is None or isinstance(kept[0], Scan) or collection_reader(kept[0]) is not None:
            continue
        trained = np.concatenate(of_blocks(row_hashes, kept[0], kept[1], model))
        if share := share_seen(hashes, trained):
            raise DataError(
                f"{share:.2%} of these rows were in the training data of {type(model).__name__}, on which its error "
                "says nothing about new rows: certify on rows held out of the fit."
            )
