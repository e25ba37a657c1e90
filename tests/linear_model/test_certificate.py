"""The certificate: its gap is the distance to the minimum, and false claims are not confirmed."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from summula import AccuracyWarning, CollinearityWarning, engine
from summula.linear_model import LinearRegression, PolynomialRegression, Ridge
from summula.linear_model.least_squares import problem
from tests.reference import exact


def data(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    return X, X @ np.arange(1.0, d + 1) - 2 + rng.normal(size=n)


def objective(X, y, v, b, alpha=0.0, w=None):
    w = np.ones(len(X)) if w is None else w
    r = np.asarray(y - X @ v - b, np.longdouble)
    return float(w @ r**2 + alpha * v @ v)


def moved(model, step, intercept=0.0):
    """Return the certificate of another point, without claims about it."""
    c = model.certificate_
    return replace(c, coef=c.coef + np.asarray(step)[:, None], intercept=c.intercept + intercept)


# ------------------------------------------------------------------------------------------------------- gap = distance


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 12),
    d=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.5, 20.0]),
    intercept=st.booleans(),
    size=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_the_gap_is_the_objective_less_its_minimum_at_any_point(seed, n, d, alpha, intercept, size):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-4, 5, (n, d)).astype(float), rng.integers(-9, 9, n).astype(float)
    w = rng.integers(1, 4, n).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearityWarning)
        model = Ridge(alpha, fit_intercept=intercept).fit(X, y, w)
    least = exact.least_squares(X, y, weight=w, alpha=alpha, intercept=intercept)[2]
    step, shift = size * rng.normal(size=d), size * rng.normal() * intercept
    there = moved(model, step, shift)
    check = there.verify(X, y, w)
    value = objective(X, y, there.coef[:, 0], there.intercept[0], alpha, w)
    assert check.primal == pytest.approx(value, rel=1e-12)
    # The gap is summed directly, not as a difference, so it is accurate even if the difference has no digits left.
    assert check.gap == pytest.approx(value - least, rel=1e-7, abs=1e-10 * (value + y @ y))
    assert check.dual == pytest.approx(least, abs=1e-8 * (value + y @ y))


@pytest.mark.parametrize("alpha", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("shape", [(40, 4), (6, 9)])
@pytest.mark.parametrize("intercept", [True, False])
def test_with_signs_the_gap_bounds_the_distance_and_closes_at_the_answer(alpha, shape, intercept):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=shape) + 0.3, rng.normal(size=shape[0])
    model = Ridge(alpha, positive=True, fit_intercept=intercept).fit(X, y)
    Z, t = (X - X.mean(axis=0), y - y.mean()) if intercept else (X, y)
    stacked = np.vstack([Z, np.sqrt(alpha) * np.eye(shape[1])])
    least = optimize.nnls(stacked, np.append(t, np.zeros(shape[1])))[1] ** 2
    assert model.certificate_.primal == pytest.approx(least, rel=1e-9, abs=1e-12)
    assert model.certificate_.gap <= 1e-9 * (y @ y)
    assert model.certificate_.verify(X, y)
    for size in (1e-4, 1e-2, 1.0, 100.0):
        step = size * np.abs(rng.normal(size=shape[1]))
        there = moved(model, step, size * intercept)
        check = there.verify(X, y)
        distance = objective(X, y, there.coef[:, 0], there.intercept[0], alpha) - least
        assert check.gap >= distance * (1 - 1e-9) - 1e-10
        assert np.isfinite(check.gap) == (alpha > 0 or shape[0] > shape[1])


COLLINEAR = {
    "sum": lambda A: np.column_stack([A, A.sum(axis=1), A[:, 0] - A[:, 1]]),
    "opposite": lambda A: np.column_stack([A, -A]),
    "opposite sum": lambda A: np.column_stack([A, -A.sum(axis=1)]),
    "few rows": lambda A: np.random.default_rng(0).normal(size=(4, 8)),
}


@pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")
@pytest.mark.parametrize("name", COLLINEAR)
def test_with_signs_and_collinear_columns_no_false_bound_is_given(name):
    """H is singular, and the slope plus multipliers need not be in its range."""
    columns, gaps = COLLINEAR[name], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = columns(rng.normal(size=(20, 2)))
        y = rng.normal(size=len(X))
        model = LinearRegression(positive=True).fit(X, y)
        assert model.certificate_.gap < 1e-9
        assert model.certificate_.verify(X, y)
        least = optimize.nnls(X - X.mean(axis=0), y - y.mean())[1] ** 2
        for size in (0.1, 1.0, 10.0):
            v = np.maximum(model.coef_ + size * rng.normal(size=X.shape[1]), 0)
            b = y.mean() - X.mean(axis=0) @ v
            there = replace(model.certificate_, coef=v[:, None], intercept=np.array([b]))
            gaps.append(there.verify(X, y).gap)
            assert gaps[-1] >= (objective(X, y, v, b) - least) * (1 - 1e-9) - 1e-12
    # A column and its negative: both coefficients are unbounded, so their slopes have no multipliers.
    assert (np.isfinite(gaps).sum() > 10) == (not name.startswith("opposite"))


def test_a_wrong_intercept_alone_is_detected():
    X, y = data()
    model = LinearRegression().fit(X, y)
    check = moved(model, np.zeros(3), 0.5).verify(X, y)
    assert check.gap == pytest.approx(30 * 0.25, rel=1e-12)


def test_several_targets_add_up():
    X, y = data()
    Y, alphas = np.column_stack([y, y**2]), [0.5, 8.0]
    both = Ridge(alphas).fit(X, Y)
    ones = [Ridge(alpha).fit(X, Y[:, j]) for j, alpha in enumerate(alphas)]
    assert both.certificate_.primal == pytest.approx(sum(m.certificate_.primal for m in ones), rel=1e-12)
    step = np.array([0.1, -0.2, 0.3])
    there = replace(both.certificate_, coef=both.certificate_.coef + step[:, None])
    gaps = [moved(m, step).verify(X, Y[:, j]).gap for j, m in enumerate(ones)]
    assert there.verify(X, Y).gap == pytest.approx(sum(gaps), rel=1e-9)


# ------------------------------------------------------------------------------------------------------- true and false


MODELS = [
    LinearRegression(), LinearRegression(fit_intercept=False), LinearRegression(positive=True), Ridge(3.0),
    Ridge(3.0, positive=True), Ridge(0.0), PolynomialRegression(2), PolynomialRegression(3, fit_intercept=False),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("weighted", [True, False])
class TestVerify:
    def test_a_fit_is_confirmed(self, model, weighted):
        X, y = data()
        w = np.random.default_rng(0).random(30) if weighted else None
        c = model.fit(X, y, w).certificate_
        check = c.verify(X, y, w)
        assert check
        assert check.primal == pytest.approx(c.primal, rel=1e-9)
        assert c.kind == "exact"
        assert c.gap <= 1e-9 * c.primal
        assert c.dual == c.primal - c.gap
        assert "exact: objective" in str(c)

    def test_it_is_confirmed_in_other_chunks_orders_and_frames(self, model, weighted, constructor):
        X, y = data()
        w = np.random.default_rng(0).random(30) if weighted else None
        c = model.fit(X, y, w).certificate_
        with engine("serial", chunk_rows=4):
            assert c.verify(np.asfortranarray(X), y, w)
        frame = constructor({name: X[:, j].copy() for j, name in enumerate("abc")})
        assert c.verify(frame, y, w)

    def test_other_data_are_not_confirmed(self, model, weighted):
        X, y = data()
        w = np.random.default_rng(0).random(30) if weighted else None
        c = model.fit(X, y, w).certificate_
        assert not c.verify(X, y + np.eye(30)[3], w)
        assert not c.verify(X * [1.0, 1.01, 1.0], y, w)
        assert not c.verify(X, y, np.arange(1.0, 31))

    def test_another_point_is_not_confirmed(self, model, weighted):
        X, y = data()
        w = np.random.default_rng(0).random(30) if weighted else None
        model.fit(X, y, w)
        step = np.full(len(model.certificate_.coef), 0.01)
        there = moved(model, step)
        assert not there.verify(X, y, w)
        # Not even if the stated objective is correct, as long as the gap is understated.
        honest = replace(there, primal=there.verify(X, y, w).primal)
        assert not honest.verify(X, y, w)
        assert replace(honest, gap=honest.verify(X, y, w).gap).verify(X, y, w)

    def test_a_prettier_objective_is_not_confirmed(self, model, weighted):
        X, y = data()
        w = np.random.default_rng(0).random(30) if weighted else None
        c = model.fit(X, y, w).certificate_
        assert not replace(c, primal=0.999 * c.primal).verify(X, y, w)


def test_a_point_against_the_signs_is_not_confirmed():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    free, bound = LinearRegression().fit(X, y), LinearRegression(positive=True).fit(X, y)
    assert (free.coef_ < 0).any()
    # The unconstrained solution has a smaller objective, but is infeasible.
    assert not replace(free.certificate_, positive=True).verify(X, y)
    assert free.certificate_.primal < bound.certificate_.primal


def test_float32_fits_are_confirmed_to_their_digits():
    X, y = (part.astype(np.float32) for part in data(500))
    for model in (LinearRegression(), Ridge(2.0)):
        c = model.fit(X, y).certificate_
        assert c.verify(X, y)
        assert not c.verify(X, y + 1)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.usefixtures("by_gram")
def test_gram_solutions_are_confirmed_by_orthogonal_factors(monkeypatch, large):
    if large:
        monkeypatch.setattr(problem, "EXTENDED_ELEMENTS", 0)
    for spread in (1.0, 1e-2, 1e-4, 1e-7):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 1)) + spread * rng.normal(size=(60, 3)) + 5
        y = X @ [1.0, 2, 3] + rng.normal(size=60)
        assert LinearRegression().fit(X, y).certificate_.verify(X, y)


# --------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("positive", [False, True])
def test_sparse_fits(width, positive):
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 12), density=0.3, format="csr", rng=rng)
    y, w = X @ rng.normal(size=12) + rng.normal(size=80), rng.random(80)
    model = Ridge(0.5, positive=positive).fit(X, y, w)
    c = model.certificate_
    assert c.verify(X, y, w)
    assert c.kind == ("global" if width == "wide" else "exact")
    least = Ridge(0.5, positive=positive).fit(X.toarray(), y, w).certificate_.primal
    for size in (0.0, 0.1):
        there = moved(model, size * np.ones(12), size)
        distance = objective(X.toarray(), y, there.coef[:, 0], there.intercept[0], 0.5, w) - least
        assert distance * (1 - 1e-9) - 1e-9 <= there.verify(X, y, w).gap < np.inf
    assert not moved(model, 0.01 * np.ones(12)).verify(X, y, w)


@pytest.mark.usefixtures("by_conjugate_gradients")
def test_wide_sparse_least_squares_without_penalty_states_that_it_has_no_bound():
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 12), density=0.3, format="csr", rng=rng)
    y = X @ rng.normal(size=12) + rng.normal(size=80)
    c = LinearRegression().fit(X, y).certificate_
    assert c.gap == np.inf
    assert c.verify(X, y)


@pytest.mark.filterwarnings("ignore::summula.AccuracyWarning")
@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-5, 3e-7, 1e-8, 1e-9])
@pytest.mark.parametrize("way", ["partial_fit", "merge", "forget"])
def test_updated_models_of_nearly_collinear_columns_state_a_true_gap(way: str, apart: float) -> None:
    """The sums do not resolve such columns, and their differences cancel in the objective: the gap has to say so."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    X[:, 2] = X[:, 0] + apart * rng.normal(size=400)
    y = X[:, 1] + (X[:, 2] - X[:, 0]) / apart + 0.1 * rng.normal(size=400)
    model = LinearRegression().fit(X[:200], y[:200])
    if way == "partial_fit":
        model.partial_fit(X[200:], y[200:])
    elif way == "merge":
        model.merge(LinearRegression().fit(X[200:], y[200:]))
    else:
        model.fit(np.vstack([X, X[:50] + 1.0]), np.append(y, y[:50])).forget(X[:50] + 1.0, y[:50])
    best = ((y - LinearRegression().fit(X, y).predict(X)) ** 2).sum()
    certificate = model.certificate_
    assert ((y - model.predict(X)) ** 2).sum() - best <= certificate.gap
    assert certificate.verify(X, y)
    if apart == 1.0:
        assert certificate.gap < 1e-11 * certificate.primal


def test_updates_warn_where_sums_do_not_resolve_what_y_depends_on_only() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 3))
    for apart in (0.0, 1e-8):
        X[:, 2] = X[:, 0] + apart * rng.normal(size=400)
        y = X[:, 1] + (X[:, 2] - X[:, 0]) / (apart or 1.0) + 0.1 * rng.normal(size=400)
        with pytest.warns(CollinearityWarning) if not apart else nullcontext():
            model = LinearRegression().fit(X[:200], y[:200])
        with pytest.warns(AccuracyWarning, match="only about 0 accurate digits") if apart else nullcontext():
            model.partial_fit(X[200:], y[200:])
        assert (model.certificate_.gap < 1e-9) is (apart == 0.0)
