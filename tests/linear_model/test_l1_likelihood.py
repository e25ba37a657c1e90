"""L1 and elastic-net penalties of likelihoods: optimality conditions, closed forms, other libraries, invariances, certificates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as theirs
from numpy.typing import NDArray
from scipy import optimize, sparse, special

import summula
from summula import ParameterError
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.linear_model import GeneralizedLinearRegressor, LogisticRegression
from summula.linear_model.glm.bounds.dual import TAU, Balanced
from summula.linear_model.glm.sums import At
from summula.linear_model.l1 import likelihood as l1_likelihood
from summula.losses import GammaLog, Logistic, Loss, Multinomial, PoissonLog, Squared
from tests.data import rival_cases

Array = NDArray[Any]


def data(n: int = 150, d: int = 10, K: int = 2, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng([seed, n, d, K])
    X = rng.standard_normal((n, d)) * np.geomspace(0.2, 5.0, d) + 1.0
    slopes = np.zeros((d, K))
    slopes[:4] = 2 * rng.standard_normal((4, K))
    y = ((X - 1) @ slopes + rng.gumbel(size=(n, K))).argmax(axis=1)
    return X, y, rng.integers(0, 4, n).astype(float)


def slopes_of_loss(model: Any, X: Any, y: Array, w: Array | None = None) -> Array:
    """X'W(P - Y), of shape (K, d), and below it the sums over the rows, from public attributes."""
    w = np.ones(len(y)) if w is None else w
    P = model.predict_proba(X)
    R = (P - (y[:, None] == model.classes_)) * w[:, None]
    R = R[:, 1:] if len(model.classes_) == 2 else R
    return np.hstack([np.asarray(X.T @ R).T, R.sum(axis=0)[:, None]])


def assert_optimal(model: Any, X: Any, y: Array, w: Array | None = None, tolerance: float = 1e-8) -> None:
    """The optimality conditions of C sum loss + rho |V|_1 + (1 - rho)/2 |V|^2."""
    g, V, rho = model.C * slopes_of_loss(model, X, y, w), model.coef_, model.l1_ratio
    used = V != 0
    slope = g[:, :-1] + (1 - rho) * V
    assert np.abs(slope[used] + rho * np.sign(V[used])).max(initial=0.0) <= tolerance
    assert (np.abs(slope[~used]) <= rho + tolerance).all()
    if model.fit_intercept:
        assert np.abs(g[:, -1]).max() <= tolerance * len(y)


@pytest.fixture(params=["all columns", "working sets"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both solvers in turn: all columns at once, and small working sets."""
    if request.param == "working sets":
        monkeypatch.setattr(l1_likelihood, "_WHOLE", 0)
        monkeypatch.setattr(l1_likelihood, "_WHOLE_STREAM", 0)
        monkeypatch.setattr(l1_likelihood, "_FIRST", 2)
    return str(request.param)


# --------------------------------------------------------------------------------------------------------- optimality


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("storage", ["dense", "fortran", "csr", "csc"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("K", [2, 3])
def test_optimality_conditions(K: int, l1_ratio: float, fit_intercept: bool, storage: str) -> None:
    X, y, w = data(K=K)
    kinds: dict[str, Any] = {"dense": np.array, "fortran": np.asfortranarray}
    kept = (kinds | {"csr": sparse.csr_array, "csc": sparse.csc_array})[storage](X)
    model = LogisticRegression(C=0.1, l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=1e-9).fit(kept, y, w)
    assert l1_ratio < 1 or (model.coef_ == 0).any()
    assert_optimal(model, X, y, w)
    assert model.certificate_.verify(kept, y, w)
    assert model.certificate_.gap <= 1e-10 * model.certificate_.primal


def test_more_columns_than_rows_in_memory() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 900))
    y = (X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(80) > 0).astype(int)
    model = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-9).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 80
    assert_optimal(model, X, y)
    by_columns = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-9).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(by_columns.coef_, model.coef_, atol=1e-9)


@pytest.mark.usefixtures("way")
def test_columns_of_any_scale_reach_the_optimum() -> None:
    X, y, _ = data()
    X = (X - 1) * np.logspace(-4, 4, X.shape[1]) + 1
    model = LogisticRegression(C=2.0, l1_ratio=1.0, tol=1e-9).fit(X, y)
    assert model.certificate_.gap <= 1e-9 * model.certificate_.primal
    assert_optimal(model, X, y, tolerance=1e-6)  # (slopes of the longest column have errors of 1e-12 times 1e4)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("K", [2, 4])
def test_above_the_largest_alpha_there_is_but_a_constant(K: int) -> None:
    X, y, w = data(K=K)
    share = np.array([w[y == k].sum() for k in range(K)]) / w.sum()
    slopes = X.T @ (w[:, None] * (share - (y[:, None] == np.arange(K))))
    largest = np.abs(slopes).max()
    zero = LogisticRegression(C=(1 - 1e-9) / largest, l1_ratio=1.0, tol=1e-8).fit(X, y, w)
    assert not zero.coef_.any()
    np.testing.assert_allclose(zero.predict_proba(X[:1])[0], share, rtol=1e-6)
    assert zero.certificate_.gap <= 1e-10 * zero.certificate_.primal
    one = LogisticRegression(C=1.001 / largest, l1_ratio=1.0, tol=1e-8).fit(X, y, w)
    assert 1 <= np.count_nonzero(one.coef_) <= 2


def test_one_indicator_has_a_closed_form() -> None:
    """With x in {-1, 1} equally often, balanced, without intercept: C n (p - share) + sign = 0."""
    x = np.repeat([1.0, -1.0], 50)[:, None]
    y = np.concatenate([np.repeat([1, 0], [40, 10]), np.repeat([1, 0], [10, 40])])
    C = 0.05
    model = LogisticRegression(C=C, l1_ratio=1.0, fit_intercept=False, tol=1e-9).fit(x, y)
    np.testing.assert_allclose(model.coef_[0, 0], special.logit(0.8 - 1 / (C * 100)), rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------- rivals


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("K", [2, 3])
def test_scikit_learn_agrees(K: int, l1_ratio: float) -> None:
    X, y, w = data(100, 6, K)
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # saga needs it
    options: dict[str, Any] = {"C": 0.4, "l1_ratio": l1_ratio}
    ours = LogisticRegression(**options, tol=1e-8).fit(X, y, w)
    other = theirs.LogisticRegression(**options, solver="saga", tol=1e-12, max_iter=100_000).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-7)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-7)


@pytest.mark.parametrize(("library", "intercept"), [("celer", False), ("skglm", True)])
def test_no_rival_is_lower(library: str, intercept: bool) -> None:
    X, y = rival_cases.wide_classes()
    least = rival_cases.answer(library, "lasso", X, y)
    ours = LogisticRegression(C=rival_cases.LASSO_C, l1_ratio=1.0, fit_intercept=intercept, tol=1e-8).fit(X, y)
    mine = rival_cases.lasso_objective(ours.coef_, ours.intercept_)
    assert mine <= least * (1 + 1e-10)
    np.testing.assert_allclose(mine, least, rtol=1e-6)
    np.testing.assert_allclose(rival_cases.LASSO_C * ours.certificate_.primal, mine, rtol=1e-10)


@pytest.mark.parametrize("l1_ratio", rival_cases.RATIOS)
@pytest.mark.parametrize("family", rival_cases.FAMILIES)
def test_glum_agrees(family: str, l1_ratio: float) -> None:
    X, y, w = rival_cases.glm_rows(family)
    intercept, *coef = rival_cases.answer("glum", f"{family}-{l1_ratio}", X, y, w)
    options: dict[str, Any] = {"alpha": 0.03, "l1_ratio": l1_ratio}
    ours = GeneralizedLinearRegressor(family, rival_cases.link_of(family), **options, tol=1e-8).fit(X, y, w)
    np.testing.assert_allclose(ours.coef_, coef, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, intercept, atol=1e-6)
    assert ours.certificate_.kind == ("local" if family == "inverse_gaussian" else "global")
    assert ours.certificate_.verify(X, y, w)
    assert not ours.certificate_.verify(X, y)


@pytest.mark.parametrize(("family", "link"), [("binomial", "probit"), ("binomial", "cloglog"), ("gamma", "inverse")])
def test_other_links_meet_their_conditions(family: str, link: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 6)) / 4
    y = rival_cases.targets(family, X[:, :2] @ [1.0, -1.0], rng)
    model = GeneralizedLinearRegressor(family, link, alpha=0.01, l1_ratio=0.8, tol=1e-9).fit(X, y)
    loss = model.certificate_.loss
    g = -X.T @ loss.slope(y, X @ model.coef_ + model.intercept_) / len(y) - 0.002 * model.coef_
    used = model.coef_ != 0
    np.testing.assert_allclose(g[used], 0.008 * np.sign(model.coef_[used]), atol=1e-9)
    assert (np.abs(g[~used]) <= 0.008 + 1e-9).all()
    assert model.certificate_.gap <= 1e-9 * model.certificate_.primal


def test_the_normal_family_is_the_elastic_net() -> None:
    X, y, w = data()
    target = X[:, 0] - X[:, 1] + 0.1 * y
    glm = GeneralizedLinearRegressor(alpha=0.2, l1_ratio=0.6, tol=1e-9).fit(X, target, w)
    net = summula.linear_model.ElasticNet(alpha=0.2, l1_ratio=0.6, tol=1e-10).fit(X, target, w)
    np.testing.assert_allclose(glm.coef_, net.coef_, atol=1e-8)


def test_an_offset_shifts_the_predictor() -> None:
    rng = np.random.default_rng(5)
    X, years = rng.standard_normal((300, 5)), rng.uniform(0.5, 3.0, 300)
    claims = rng.poisson(years * np.exp(0.5 * X[:, 0])).astype(float)
    options: dict[str, Any] = {"alpha": 0.05, "l1_ratio": 1.0, "tol": 1e-9}
    by_exposure = GeneralizedLinearRegressor("poisson", **options).fit(X, claims, exposure=years)
    # The same by rates weighted by their exposure (McCullagh and Nelder, section 6.3), alpha for the mean weight.
    options["alpha"] *= 300 / years.sum()
    by_rate = GeneralizedLinearRegressor("poisson", **options).fit(X, claims / years, years)
    np.testing.assert_allclose(by_exposure.coef_, by_rate.coef_, atol=1e-9)
    assert by_exposure.certificate_.verify(X, claims, exposure=years)


@pytest.mark.parametrize("kind", [np.float64, np.float32, "sparse"])
def test_many_columns_offsets_and_weights(kind: Any) -> None:
    rng = np.random.default_rng(6)
    X, years, w = (
        rng.standard_normal((200, 450)) + 3.0,
        rng.uniform(0.5, 3.0, 200),
        rng.integers(0, 3, 200).astype(float),
    )
    claims = rng.poisson(years * np.exp(0.5 * X[:, 0] - 1.5)).astype(float)
    given = sparse.csr_array(X) if kind == "sparse" else X.astype(kind)
    model = GeneralizedLinearRegressor("poisson", alpha=0.1, l1_ratio=0.9, tol=1e-9).fit(
        given, claims, w, exposure=years
    )
    mean = years * np.exp(X @ model.coef_.astype(float) + float(model.intercept_))
    g = X.T @ (w * (claims - mean)) / w.sum() - 0.01 * model.coef_
    used = model.coef_ != 0
    tolerance = 1e-4 if kind == np.float32 else 1e-9
    assert 0 < used.sum() < 100
    np.testing.assert_allclose(g[used], 0.09 * np.sign(model.coef_[used]), atol=tolerance)
    assert (np.abs(g[~used]) <= 0.09 + tolerance).all()


# -------------------------------------------------------------------------------------------------------- invariances


def test_no_l1_is_the_l2_fit() -> None:
    X, y, w = data(K=3)
    none, little = (LogisticRegression(C=0.5, l1_ratio=r, tol=1e-9).fit(X, y, w) for r in (0.0, 1e-12))
    np.testing.assert_allclose(little.coef_, none.coef_, atol=1e-8)
    np.testing.assert_allclose(little.certificate_.primal, none.certificate_.primal, rtol=1e-9)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("K", [2, 3])
def test_a_weight_equals_repeated_rows(K: int) -> None:
    X, y, w = data(K=K)
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    model = LogisticRegression(C=0.3, l1_ratio=0.7, tol=1e-9)
    weighted, repeated = model.fit(X, y, w).coef_, model.fit(X[rows], y[rows]).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


def test_penalties_by_their_older_names() -> None:
    X, y, _ = data()
    for penalty, ratio in (("l1", 1.0), ("elasticnet", 0.5)):
        with pytest.warns(FutureWarning, match="penalty"):
            old = LogisticRegression(penalty, l1_ratio=ratio, C=0.5).fit(X, y)
        np.testing.assert_array_equal(old.coef_, LogisticRegression(l1_ratio=ratio, C=0.5).fit(X, y).coef_)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_no_solver_refuses_a_penalty(solver: str) -> None:
    X, y, _ = data(K=3)
    expected = LogisticRegression(l1_ratio=0.5).fit(X, y)
    np.testing.assert_array_equal(LogisticRegression(l1_ratio=0.5, solver=solver).fit(X, y).coef_, expected.coef_)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("K", [2, 3])
def test_files_give_the_same(K: int, tmp_path: Any) -> None:
    X, y, w = data(500, 8, K)
    names = [f"c{j}" for j in range(8)]
    frame = pd.DataFrame(X, columns=names).assign(y=y, w=w)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=120)
    model = LogisticRegression(C=0.3, l1_ratio=1.0, tol=1e-9)
    expected = model.fit(X, y, w).coef_
    streamed = model.fit(summula.scan(tmp_path / "rows.parquet"), "y", sample_weight="w")
    np.testing.assert_allclose(streamed.coef_, expected, atol=1e-9)
    assert streamed.certificate_.verify(summula.scan(tmp_path / "rows.parquet"), "y", "w")


def test_float32_and_balanced_classes() -> None:
    X, y, _ = data()
    single = LogisticRegression(C=0.3, l1_ratio=1.0, class_weight="balanced").fit(X.astype(np.float32), y)
    double = LogisticRegression(C=0.3, l1_ratio=1.0, class_weight="balanced").fit(X, y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-4)
    counts = np.bincount(y)
    by_hand = LogisticRegression(C=0.3, l1_ratio=1.0).fit(X, y, (len(y) / (2 * counts))[y])
    np.testing.assert_allclose(double.coef_, by_hand.coef_, atol=1e-7)


def test_a_warm_start_is_close_already() -> None:
    X, y, _ = data(400, 20)
    model = LogisticRegression(C=0.3, l1_ratio=1.0, warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_[0] <= 1


# ------------------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("K", [2, 3])
def test_certified_zeros_are_zero_in_any_better_fit(K: int) -> None:
    X, y, _ = data(200, 30, K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rough = LogisticRegression(C=0.1, l1_ratio=1.0, max_iter=6).fit(X, y)
    exact = LogisticRegression(C=0.1, l1_ratio=1.0, tol=1e-9).fit(X, y)
    zeros = rough.certificate_.zeros
    assert zeros.shape == exact.coef_.shape
    assert not exact.coef_[zeros].any()
    assert exact.certificate_.zeros.sum() >= max(zeros.sum(), 1)
    assert rough.certificate_.primal - exact.certificate_.primal <= rough.certificate_.gap * (1 + 1e-9) < np.inf


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("K", [2, 3])
def test_the_gap_bounds_the_distance_from_the_least(K: int, l1_ratio: float, steps: int) -> None:
    X, y, w = data(K=K)
    options: dict[str, Any] = {"C": 0.3, "l1_ratio": l1_ratio}
    least = LogisticRegression(**options, tol=1e-9).fit(X, y, w).certificate_.primal
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = LogisticRegression(**options, max_iter=steps).fit(X, y, w).certificate_
    assert 0 <= certificate.primal - certificate.gap <= least * (1 + 1e-12)
    assert certificate.verify(X, y, w)


@pytest.mark.parametrize("loss", [Logistic(), PoissonLog(), Squared(), Multinomial(3), GammaLog()])
def test_the_conjugate_above_its_tangent(loss: Loss) -> None:
    """e(tau) = l*(tau s) - l*(s) + (1 - tau) s'eta, the conjugate found by maximising."""
    rng = np.random.default_rng(1)
    K = 3 if isinstance(loss, Multinomial) else 1
    eta = rng.normal(size=(1, K))
    y = np.array([2.0 if K == 3 else 1.0])
    one = eta if K == 3 else eta[:, 0]
    value, slope, _ = loss.derivatives(y, one)

    def conjugate(theta: Array) -> float:
        def negative(z: Array) -> float:
            return float(loss.derivatives(y, z[None] if K == 3 else z).value[0] - theta @ z)

        return -float(optimize.minimize(negative, np.ravel(eta), tol=1e-14).fun)

    run = Run(Unnamed(), as_source(Unnamed(), np.ones((1, 1)), y, None, needs_y=True))
    sums = run.sum(Balanced, At(loss, np.zeros(1), eta, False, 1))
    for tau, above in zip(TAU, sums.value.sum(axis=1), strict=True):
        if not np.isfinite(above):
            assert isinstance(loss, GammaLog)
            continue
        s = np.ravel(slope)
        direct = conjugate(tau * s) - conjugate(s) + (1 - tau) * float(s @ np.ravel(eta))
        np.testing.assert_allclose(above, direct, atol=1e-7)


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("parameters", [{"l1_ratio": -0.1}, {"l1_ratio": 1.5}, {"C": 0.0}, {"C": -1.0}])
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    X, y, _ = data(20)
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        LogisticRegression(**parameters).fit(X, y)


def test_constant_columns_stay_out() -> None:
    X, y, _ = data()
    X[:, 3] = 7.0
    model = LogisticRegression(l1_ratio=1.0, tol=1e-9).fit(X, y)
    assert model.coef_[0, 3] == 0.0
    assert_optimal(model, X, y)


def test_bounds_and_l1_do_not_go_together() -> None:
    X, y, _ = data()
    with pytest.raises(ParameterError, match="Bounds cannot be combined with an L1 penalty"):
        GeneralizedLinearRegressor("poisson", alpha=0.1, l1_ratio=0.5, lower=0.0).fit(X, y)


def test_a_penalised_fit_has_no_standard_errors() -> None:
    X, y, _ = data()
    with pytest.raises(ParameterError, match="unpenalised"):
        LogisticRegression(l1_ratio=1.0).fit(X, y).summary()
