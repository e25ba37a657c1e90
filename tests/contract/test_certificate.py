"""Promise 9: the certificate is true, and whoever has the data can check it without the solver."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.contract import storage
from tests.contract.registry import SIZES, Case, over, over_frames

sizes = pytest.mark.parametrize("size", SIZES)


def objective(case: Case, model: Any, X: Any, y: Any, weight: Any = None) -> float:
    """The loss (weighted squares of the residuals, or half the deviance) plus the penalty, from public attributes."""
    if hasattr(model, "predictive"):  # what is minimised is the loss of the mode, not of an average
        model = copy.copy(model).set_params(predictive="map")
    weight = np.ones(len(y)) if weight is None else weight
    alpha = np.asarray(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    if case.classifier:
        totals = dict(zip(model.classes_, (weight[y == c].sum() for c in model.classes_), strict=True))
        balanced = np.array([weight.sum() / (len(totals) * totals[label]) for label in y])
        weight = weight * balanced if getattr(model, "class_weight", None) == "balanced" else weight
        C = getattr(model, "C_", getattr(model, "C", getattr(model, "prior_scale_", 1.0) ** 2))
        alpha = np.array(1.0 / C)
    elif case.likelihood:
        alpha = alpha * weight.sum()
    elif case.zeroing:  # half the mean of the squares
        ratio, v = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0)), model.coef_
        penalty = float(alpha * (ratio * np.abs(v).sum() + (1 - ratio) / 2 * (v**2).sum()))
        return case.loss(y, case.output(model, X), weight) / (2 * weight.sum()) + penalty
    if case.likelihood:
        ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0))
        penalty = alpha * (ratio * np.abs(model.coef_).sum() + (1 - ratio) / 2 * (model.coef_**2).sum())
    else:
        penalty = (alpha * (np.atleast_2d(model.coef_) ** 2).sum(axis=1)).sum()
    return float(case.loss(y, case.output(model, X), weight) + penalty)


def scale_of(case: Case, y: Any) -> float:
    """The size of the sums that a gap is the difference of."""
    squares = ((y - y.mean(axis=0)) ** 2).sum() if y.dtype.kind == "f" else 0.0
    if case.zeroing and not case.likelihood:  # half the mean of the squares
        return float(squares) / (2 * len(y))
    return 0.0 if case.iterative else squares


@sizes
@over("certified")
def test_it_states_the_objective_and_a_gap_of_rounding(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = (model := case.model(size, weighted=True)).certificate_
    assert certificate.kind == ("global" if case.iterative else "exact")
    assert certificate.primal == pytest.approx(objective(case, model, X, y, weight), rel=1e-10)
    assert 0 <= certificate.gap <= 1e-12 * (certificate.primal + scale_of(case, y))
    assert certificate.dual == certificate.primal - certificate.gap


@sizes
@over("certified")
def test_the_training_data_confirm_it(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    for w in (None, weight):
        checked = case.model(size, weighted=w is not None).certificate_.verify(X, y, w)
        assert checked
        assert checked.gap <= 1e-9 * checked.primal


@over_frames("certified")
def test_the_training_data_confirm_it_in_any_container(case: Case, constructor: Any) -> None:
    X, y, _ = case.data()
    certificate = case.model().certificate_
    assert certificate.verify(constructor(storage.columns(X)), y)
    assert certificate.verify(X.tolist(), y.tolist())
    if case.sparse:
        assert certificate.verify(storage.SPARSE["csr_array"](X), y)


@sizes
@over("certified")
def test_other_data_do_not(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    other = case.data(size, seed=1)
    assert not certificate.verify(other.X, other.y, other.weight)
    assert not certificate.verify(X, y)  # without the weights
    changed = case.other_target(y)
    assert not certificate.verify(X, changed, weight + 1e-3)
    assert not certificate.verify(X[1:], y[1:], weight[1:] + 1.0)


@sizes
@over("certified")
def test_a_tampered_one_is_found_out(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    for change in (
        {"coef": certificate.coef * 1.001},
        # (To softmax the same step for all classes is none.)
        {"intercept": certificate.intercept + 0.01 * np.arange(1, 1 + np.size(certificate.intercept))},
        {"primal": certificate.primal * 0.999},
        {"primal": certificate.primal * 1.001},
        {"penalty": certificate.penalty + 1.0} if case.likelihood else {"alpha": certificate.alpha + 1.0},
    ):
        assert not dataclasses.replace(certificate, **change).verify(X, y, weight), change


@sizes
@over("certified")
def test_a_worse_point_with_an_honest_objective_and_no_gap_is_found_out(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    worse = dataclasses.replace(certificate, coef=np.abs(certificate.coef) * 1.01 + 1e-3)
    primal = worse.verify(X, y, weight).primal
    assert primal > certificate.primal
    assert not dataclasses.replace(worse, primal=primal, gap=0.0).verify(X, y, weight)


@sizes
@over("certified")
def test_the_gap_bounds_what_a_worse_point_loses(case: Case, size: str) -> None:
    """At any point the gap is at least the distance to the best objective, which the fit knows; nearby not much more."""
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    rng = np.random.default_rng(0)
    for size_of_step in (1e-6, 1e-3, 1.0):
        coef = certificate.coef + size_of_step * rng.normal(size=certificate.coef.shape)
        coef = np.abs(coef) if (certificate.coef >= 0).all() else coef  # signs may be part of the problem
        checked = dataclasses.replace(certificate, coef=coef).verify(X, y, weight)
        lost, whole = checked.primal - certificate.primal, certificate.primal + scale_of(case, y)
        assert checked.gap >= lost * (1 - 1e-6) - 1e-13 * whole
        if size_of_step == 1e-6:
            assert checked.gap <= 1e-3 * whole
        assert checked.dual <= certificate.primal * (1 + 1e-9)


@over("wide_sparse")
def test_an_iterative_fit_is_certified(case: Case) -> None:
    X, y = case.wide_data()
    model = case.wide_model()
    assert model.certificate_.kind == "global"
    assert model.certificate_.primal == pytest.approx(objective(case, model, X, y), rel=1e-9)
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X, y[::-1])
    assert np.max(model.n_iter_) > 1
    assert case.iterative or len(model.trace_) > 1


@over("certified")
def test_it_says_what_it_is(case: Case) -> None:
    said = str(case.model().certificate_)
    assert said.startswith("global: objective " if case.iterative else "exact: objective ")
    assert "above the best" in said
