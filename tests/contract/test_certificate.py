"""Promise 9: the certificate is true, and can be verified from the data without the solver."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest

from summula.core.errors import DataError
from tests.contract import storage
from tests.contract.registry import CASES, SIZES, Case, over, over_frames

sizes = pytest.mark.parametrize("size", SIZES)


def scale_of(case: Case, y: Any) -> float:
    """Return the size of the sums whose difference is the gap."""
    if case.likelihood or not case.regressor:
        return 0.0
    squares = float(((y - y.mean(axis=0)) ** 2).sum())
    return squares if case.exact else squares / (2 * len(y))  # (without a closed form: half the mean)


def moved(certificate: Any, field: str, change: Any) -> Any:
    """The certificate of another point: `change` is applied to a field, to a field of a field, and so on."""
    outer, _, inner = field.partition(".")
    value = getattr(certificate, outer)
    if inner:
        new = moved(value, inner, change)
    else:
        new = tuple(map(change, value)) if isinstance(value, tuple) else change(value)
    return dataclasses.replace(certificate, **{outer: new})


@sizes
@over("certified")
def test_it_states_the_objective_and_a_gap_of_rounding(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = (model := case.model(size, weighted=True)).certificate_
    assert certificate.kind == ("global" if case.iterative else "exact")
    assert certificate.primal == pytest.approx(case.objective(case, model, X, y, weight), rel=1e-10)
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


@over("certified")
def test_rows_of_another_number_of_columns_are_refused(case: Case) -> None:
    X, y, _ = case.data()
    certificate = case.model().certificate_
    for other in (X[:, :-1], np.column_stack([X, X[:, 0]])):
        with pytest.raises(
            DataError, match=f"X has {other.shape[1]} columns, but the model was fitted to {X.shape[1]} "
        ):
            certificate.verify(other, y)


@sizes
@over("certified")
def test_a_tampered_certificate_is_not_verified(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    point, *others = case.point
    changes = [(point, lambda v: v * 1.001), ("primal", lambda p: p * 0.999), ("primal", lambda p: p * 1.001)]
    # (Softmax is invariant to a common step for all classes.)
    changes += [(name, lambda b: b + 0.01 * (1 + np.arange(np.size(b))).reshape(np.shape(b))) for name in others]
    changes += [(name, lambda c: c + 1.0) for name in ("penalty", "alpha") if hasattr(certificate, name)]
    for name, change in changes:
        assert not moved(certificate, name, change).verify(X, y, weight), name


@sizes
@over("certified")
def test_a_worse_point_with_its_true_objective_and_no_gap_is_not_verified(case: Case, size: str) -> None:
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    worse = moved(certificate, case.point[0], lambda v: np.abs(v) * 1.01 + 1e-3)
    primal = worse.verify(X, y, weight).primal
    assert primal > certificate.primal
    assert not dataclasses.replace(worse, primal=primal, gap=0.0).verify(X, y, weight)


@sizes
@over("certified")
def test_the_gap_bounds_what_a_worse_point_loses(case: Case, size: str) -> None:
    """At any point the gap is at least the distance to the optimal objective, that of the fit; nearby not much more."""
    X, y, weight = case.data(size)
    certificate = case.model(size, weighted=True).certificate_
    rng = np.random.default_rng(0)

    def stepped(v: Any) -> Any:
        other = v + size_of_step * rng.normal(size=v.shape)
        return np.abs(other) if (v >= 0).all() else other  # signs may be part of the problem

    for size_of_step in (1e-6, 1e-3, 1.0):
        checked = moved(certificate, case.point[0], stepped).verify(X, y, weight)
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
    assert model.certificate_.primal == pytest.approx(case.objective(case, model, X, y, np.ones(len(y))), rel=1e-9)
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X, y[::-1])
    assert np.max(model.n_iter_) > 1
    assert case.iterative or len(model.trace_) > 1


@over("certified")
def test_its_text_names_its_kind(case: Case) -> None:
    output = str(case.model().certificate_)
    assert output.startswith("global: objective " if case.iterative else "exact: objective ")
    assert "above the best" in output


# Every class that documents a certificate, also those without the trait of an objective.
DOCUMENTED = [case for case in CASES if "certificate_" in (type(case.estimator).__doc__ or "")]

# (Polynomials of values of 1e15 have no accurate kernel matrix, and a linear machine with an L1 penalty needs all of
# its steps, which takes a minute.)
FAR = [
    case
    for case in DOCUMENTED
    if not case.counts
    if not any(slow in str(case) for slow in ("poly", "penalty='l1',tol"))
]


@pytest.mark.parametrize("case", DOCUMENTED, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_only_the_training_data_confirm_a_documented_one(case: Case, weighted: bool) -> None:
    (X, y, weight), other = case.data(), case.data(seed=1)
    certificate = case.model(weighted=weighted).certificate_
    mine, theirs = (weight, other.weight) if weighted else (None, None)
    assert certificate.verify(X, y, mine)
    assert not certificate.verify(other.X, other.y, theirs)
    assert not certificate.verify(X, y, None if weighted else weight)
    if case.supervised:
        assert not certificate.verify(X, other.y, mine)
        changed = np.array(y)
        changed[weight > 0] = np.roll(changed[weight > 0], 1, axis=0)  # (rows without weight are excluded)
        assert not certificate.verify(X, changed, mine)


@pytest.mark.parametrize("case", FAR, ids=str)
def test_columns_far_from_zero_leave_it_true(case: Case) -> None:
    """The certificate covers the returned model with rounded parameters, and its gap includes the cost of rounding."""
    X, y, _ = case.data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns may be collinear to rounding, and descent does not converge
        for far in (X + 1e8, X + 1e15 * np.eye(X.shape[1])[0], X + 1e15):
            certificate = case.fit(far, y).certificate_
            checked = certificate.verify(far, y)
            assert checked
            if hasattr(certificate, "primal"):  # rounding of a kernel matrix is part of the gap
                # (A mixture states how far one more step of EM moves it, and no gap.)
                gap = 0.0 if case.density and "Mixture" in str(case) else certificate.gap
                allowed = 1.01 * gap + 1e-9 * abs(certificate.primal)
                assert abs(checked.primal - certificate.primal) <= allowed < np.inf


@pytest.mark.parametrize("case", [case for case in FAR if "QuadraticDisc" not in str(case)], ids=str)
def test_other_columns_far_from_zero_leave_it_true(case: Case) -> None:
    """Collinear ones, of both signs, with weights, and in single precision, which does not hold the means of columns."""
    X, y, weight = case.data()
    w = weight + 1.0 if case.weighted else None
    rows = np.arange(len(X))[:, None] * [1.0, 1.0, 0.0, 0.0]
    tables = [X * [0, 0, 1, 1] + rows + np.append(far, [0, 0]) for far in ((-1e6, 3e5), (2e8, -1e7), (1e10, 1e15))]
    mixed = X * [1e3, 1e-3, 1e-3, 1e-3] + [0.0, 1e6, 0.0, 0.0]
    for far in (*tables, 1e3 * X - 1e7, X + np.array([0.0, 0.0, 1e4, 0.0]), mixed, X + 1e8, X + 1e10):
        for kept in (np.asfortranarray(far), far.astype(np.float32)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                certificate = case.fit(kept, y, w).certificate_
                assert certificate.verify(kept, y, w)
