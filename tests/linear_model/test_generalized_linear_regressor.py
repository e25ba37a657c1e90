"""Generalised linear models: optimality, bounds and supports, and true certificates."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import optimize, sparse
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance

import summula
from summula.linear_model import GammaRegressor, GeneralizedLinearRegressor, PoissonRegressor, TweedieRegressor
from tests.faults.sentences import one_sentence, refused

Array = NDArray[Any]

POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5, "inverse_gaussian": 3.0}


def drawn(n: int, d: int, family: str, seed: int = 0) -> tuple[Array, Array]:
    """Rows, and targets of a family with a log link (or a logit for shares)."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    mu = np.exp(0.7 * X @ rng.normal(size=d) / np.sqrt(d) + 0.3)
    if family == "poisson":
        return X, rng.poisson(mu).astype(float)
    if family == "gamma":
        return X, mu * rng.gamma(3.0, 1 / 3, n)
    if family == "tweedie":
        return X, rng.gamma(2.0 * np.maximum(counts := rng.poisson(mu), 1)) * (counts > 0)
    if family == "inverse_gaussian":
        return X, rng.wald(mu, 3.0)
    return X, rng.binomial(8, mu / (1 + mu)) / 8


def objective(X: Any, y: Array, model: Any, power: float, alpha: float, weight: Any = None, offset: Any = 0.0) -> float:
    """Equation (1) of the module from the public attributes, in plain NumPy."""
    mu = np.exp(X @ model.coef_ + model.intercept_ + offset)
    deviance = mean_tweedie_deviance(y, mu, sample_weight=weight, power=power)
    return float(deviance / 2 + alpha / 2 * (model.coef_**2).sum())


def reference(X: Array, y: Array, power: float, alpha: float, *, bounds: Any = None) -> float:
    """Return the minimum of the objective with a log link, by SciPy on standardised columns."""
    size = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    A = np.hstack([np.ones((len(X), 1)), X / size])
    shrink = alpha * np.append(0.0, 1 / size**2)

    def evaluate(x: Array) -> tuple[float, Array]:
        mu = np.exp(A @ x)
        slope = A.T @ (mu ** (2 - power) - y * mu ** (1 - power)) / len(y) + shrink * x
        return mean_tweedie_deviance(y, mu, power=power) / 2 + shrink @ x**2 / 2, slope

    x = np.append(np.log(y.mean()), np.zeros(X.shape[1]))
    for _ in range(3):
        options = {"maxiter": 5_000, "ftol": 0.0, "gtol": 1e-12}
        x = optimize.minimize(evaluate, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return evaluate(x)[0]


families = pytest.mark.parametrize("family", POWERS)

# ------------------------------------------------------------------------------------------------------------- optimum


@families
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_badly_scaled_columns_reach_the_optimum(family: str, alpha: float) -> None:
    X, y = drawn(500, 5, family)
    X = X * np.logspace(-6, 6, 5)
    model = GeneralizedLinearRegressor(family, "log", alpha=alpha).fit(X, y)
    mine = objective(X, y, model, POWERS[family], alpha)
    assert mine <= reference(X, y, POWERS[family], alpha) * (1 + 1e-8)
    assert model.certificate_.primal == pytest.approx(mine * len(y), rel=1e-9)
    assert model.certificate_.verify(X, y)


@families
def test_sorted_targets_change_nothing(family: str) -> None:
    """The start uses leading rows, which contain the smallest targets here, for counts only zeros."""
    X, y = drawn(20_000, 3, family)
    order = np.argsort(y, kind="stable")
    model = GeneralizedLinearRegressor(family, "log").fit(X[order], y[order])
    expected = GeneralizedLinearRegressor(family, "log").fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize(("estimator", "family"), [
    (PoissonRegressor(alpha=0.3, tol=1e-8), "poisson"),
    (GammaRegressor(alpha=0.3, tol=1e-8), "gamma"),
    (TweedieRegressor(power=1.5, alpha=0.3, tol=1e-8), "tweedie"),
])  # fmt: skip
def test_the_named_regressors_are_special_cases(estimator: Any, family: str) -> None:
    X, y = drawn(300, 4, family)
    general = GeneralizedLinearRegressor(family, "log", alpha=0.3, tol=1e-8).fit(X, y)
    estimator.fit(X, y)
    np.testing.assert_allclose(estimator.coef_, general.coef_, rtol=1e-10)
    assert estimator.score(X, y) == pytest.approx(d2_tweedie_score(y, estimator.predict(X), power=POWERS[family]))


# ---------------------------------------------------------------------------------------------------- offsets, exposures


def test_an_exposure_multiplies_the_mean() -> None:
    X, _ = drawn(400, 2, "poisson")
    rng = np.random.default_rng(1)
    years = rng.uniform(0.1, 5.0, 400)
    y = rng.poisson(years * np.exp(0.5 * X[:, 0] - 0.2))
    exposed = GeneralizedLinearRegressor("poisson", tol=1e-8).fit(X, y, exposure=years)
    shifted = GeneralizedLinearRegressor("poisson", tol=1e-8).fit(X, y, offset=np.log(years))
    # Rates with weights have the same likelihood.
    rates = GeneralizedLinearRegressor("poisson", tol=1e-8).fit(X, y / years, sample_weight=years)
    for other in (shifted, rates):
        np.testing.assert_allclose(exposed.coef_, other.coef_, rtol=1e-7, atol=1e-9)
        assert exposed.intercept_ == pytest.approx(other.intercept_, abs=1e-7)
    np.testing.assert_allclose(exposed.predict(X, exposure=years), years * exposed.predict(X))
    np.testing.assert_allclose(exposed.predict(X, offset=np.log(years)), years * exposed.predict(X))
    assert exposed.certificate_.verify(X, y, exposure=years)
    assert exposed.score(X, y, exposure=years) > exposed.score(X, y)


def test_an_offset_may_be_a_column(constructor: Any, tmp_path: Path) -> None:
    X, y = drawn(200, 2, "poisson")
    offset = np.linspace(-1, 1, 200)
    table = {"a": X[:, 0], "b": X[:, 1], "y": y, "o": offset}
    expected = GeneralizedLinearRegressor("poisson").fit(X, y, offset=offset)
    named = GeneralizedLinearRegressor("poisson").fit(constructor(table), "y", offset="o")
    np.testing.assert_array_equal(named.coef_, expected.coef_)
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet")
    scanned = GeneralizedLinearRegressor("poisson").fit(summula.scan(tmp_path / "rows.parquet"), "y", offset="o")
    np.testing.assert_allclose(scanned.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize(("options", "words"), [
    ({"exposure": np.r_[np.ones(29), 0.0]}, ["exposure is 0 at row 29", "must be positive"]),
    ({"offset": np.r_[np.nan, np.zeros(29)]}, ["offset is nan at row 0"]),
    ({"offset": np.zeros(7)}, ["offset has shape (7,)", "30 rows"]),
    ({"offset": "o"}, ["offset='o' is a column name"]),
])  # fmt: skip
def test_a_bad_offset_is_named(options: dict[str, Any], words: list[str]) -> None:
    X, y = drawn(30, 2, "poisson")
    refused(*words, by=GeneralizedLinearRegressor("poisson"), X=X, y=y, **options)


def test_an_exposure_needs_the_log_link() -> None:
    X, y = drawn(30, 2, "shares")
    with pytest.raises(summula.ParameterError, match="log link") as caught:
        GeneralizedLinearRegressor("binomial").fit(X, y, exposure=np.ones(30))
    one_sentence(caught.value)


# -------------------------------------------------------------------------------------------------------------- weights


@families
def test_rows_of_weight_zero_are_absent_whatever_they_hold(family: str) -> None:
    X, y = drawn(200, 2, family)
    weight = np.ones(200)
    weight[::4] = 0.0
    wild, wrong = X.copy(), y.copy()
    wild[::4], wrong[::4] = 1e6, -5.0
    expected = GeneralizedLinearRegressor(family, "log", tol=1e-9).fit(X[weight > 0], y[weight > 0])
    model = GeneralizedLinearRegressor(family, "log", tol=1e-9).fit(wild, wrong, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-8)
    assert model.deviance_ == pytest.approx(expected.deviance_)


# --------------------------------------------------------------------------------------------------------------- bounds


@families
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("limits", [(0.0, None), (None, 0.0), (-0.1, 0.1), ([0.0, -np.inf, -1.0, 0.2], np.inf)])
def test_bounds_are_kept_and_optimal(family: str, alpha: float, limits: Any) -> None:
    """KKT conditions: zero slope for free coefficients, at a bound only a slope against it."""
    lower, upper = limits
    X, y = drawn(300, 4, family, seed=3)
    model = GeneralizedLinearRegressor(family, "log", alpha=alpha, lower=lower, upper=upper, tol=1e-8).fit(X, y)
    low = np.broadcast_to(-np.inf if lower is None else lower, 4)
    high = np.broadcast_to(np.inf if upper is None else upper, 4)
    assert (model.coef_ >= low).all()
    assert (model.coef_ <= high).all()
    mu, p = model.predict(X), POWERS[family]
    residual = mu ** (2 - p) - y * mu ** (1 - p)
    slope = X.T @ residual / len(y) + alpha * model.coef_
    assert abs(residual.mean()) < 1e-6  # the intercept is free
    at_low, at_high = model.coef_ <= low + 1e-12, model.coef_ >= high - 1e-12
    assert (at_low | at_high).any()
    assert (np.abs(slope[~at_low & ~at_high]) < 1e-6).all()
    assert (slope[at_low] > -1e-6).all()
    assert (slope[at_high] < 1e-6).all()
    bounds = [(None, None), *zip(low * X.std(axis=0), high * X.std(axis=0), strict=True)]
    best = reference(X, y, p, alpha, bounds=bounds)
    assert objective(X, y, model, p, alpha) <= best * (1 + 1e-8)


@pytest.mark.parametrize(("limits", "words"), [
    ({"lower": 1.0, "upper": 0.0}, ["column 0 conflict", "lower is 1 and upper is 0"]),
    ({"lower": [0.0, 0.0, 2.0], "upper": 1.0}, ["column 2 conflict"]),
    ({"lower": [0.0, 0.0]}, ["lower has shape (2,)", "3 columns"]),
    ({"upper": [0.0, np.nan, 0.0]}, ["upper contains NaN"]),
])  # fmt: skip
def test_invalid_bounds(limits: dict[str, Any], words: list[str]) -> None:
    X, y = drawn(30, 3, "poisson")
    model = GeneralizedLinearRegressor("poisson", **limits)
    with pytest.raises(summula.ParameterError) as caught:
        model.fit(X, y)
    one_sentence(caught.value, *words)
    assert not hasattr(model, "coef_")


# -------------------------------------------------------------------------------------------------------------- support


@pytest.mark.parametrize(("family", "value", "words"), [
    ("poisson", -1.0, "y is -1 at row 77"),
    ("gamma", 0.0, "y is 0 at row 77"),
    ("inverse_gaussian", -0.5, "y is -0.5 at row 77"),
    ("tweedie", -3.0, "y is -3 at row 77"),
    ("negative_binomial", -1.0, "y is -1 at row 77"),
    ("binomial", 1.5, "y is 1.5 at row 77"),
])  # fmt: skip
def test_a_target_outside_the_support_is_named(family: str, value: float, words: str) -> None:
    X, y = drawn(100, 2, "poisson" if family == "negative_binomial" else family)
    y[77] = value
    model = GeneralizedLinearRegressor(family)
    with summula.engine("threads", chunk_rows=16):
        refused(words, "out of the valid range", by=model, X=X, y=y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("power", [2.5, 3.0])
def test_losses_that_are_not_convex_are_followed_to_the_optimum(power: float) -> None:
    """Steps with expected curvature overshoot there: they have to be shortened there, too."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(15, 2))
        y = np.exp(X @ rng.normal(size=2)) * rng.gamma(0.7, size=15) + 1e-3
        model = TweedieRegressor(power=power, max_iter=10_000).fit(X, y)

        def objective(x: Any, X: Any = X, y: Any = y) -> float:
            return float(mean_tweedie_deviance(y, np.exp(x[0] + X @ x[1:]), power=power) / 2 + x[1:] @ x[1:] / 2)

        found = np.append(model.intercept_, model.coef_)
        best = optimize.minimize(objective, found, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        assert objective(found) <= best.fun * (1 + 1e-8)


def test_several_targets_are_refused() -> None:
    X, y = drawn(30, 2, "poisson")
    refused("one target, not 2", by=PoissonRegressor(), X=X, y=np.column_stack([y, y]))


# ----------------------------------------------------------------------------------------------------------- odd shapes


def test_only_constant_columns_leave_the_mean() -> None:
    _, y = drawn(100, 2, "poisson")
    model = PoissonRegressor(tol=1e-8).fit(np.full((100, 3), 2.5), y)
    np.testing.assert_allclose(model.predict(np.full((1, 3), 2.5)), y.mean())
    np.testing.assert_array_equal(model.coef_, np.zeros(3))


def test_more_columns_than_rows_without_a_penalty_take_the_shortest_answer() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(8, 20)) * np.logspace(-1, 1, 20)
    eta = rng.normal(size=8)
    model = GeneralizedLinearRegressor("gamma", fit_intercept=False, tol=1e-10).fit(X, np.exp(eta))
    shortest = np.linalg.pinv(X) @ eta
    np.testing.assert_allclose(model.coef_, shortest, rtol=1e-5, atol=1e-7)
    free = GeneralizedLinearRegressor("gamma", tol=1e-10).fit(X, np.exp(eta))
    np.testing.assert_allclose(free.predict(X), np.exp(eta), rtol=1e-6)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(free.coef_, np.linalg.pinv(centred) @ (eta - eta.mean()), rtol=1e-5, atol=1e-7)


def test_wide_sparse_and_dense_rows_agree() -> None:
    rng = np.random.default_rng(6)
    X = sparse.random_array((400, 2_500), density=0.01, rng=rng, format="csr")
    y = rng.poisson(np.exp(np.clip(X @ rng.normal(size=2_500), -3, 3))).astype(float)
    models = [PoissonRegressor(alpha=0.01, max_iter=2_000).fit(rows, y) for rows in (X, X.toarray())]
    for model in models:
        assert model.certificate_.kind == "global"
        assert model.certificate_.gap <= 1e-5 * model.certificate_.primal
        assert model.certificate_.verify(X, y)
    assert models[0].certificate_.primal == pytest.approx(models[1].certificate_.primal, rel=1e-8)
    assert objective(X, y, models[0], 1.0, 0.01) == pytest.approx(models[0].certificate_.primal / 400, rel=1e-9)


# --------------------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("family", ["poisson", "gamma", "negative_binomial"])
@pytest.mark.parametrize("seed", range(8))
def test_the_gap_is_a_true_bound(family: str, seed: int) -> None:
    """A loose tolerance gives a gap; a tight one shows that the gap is an upper bound."""
    rng = np.random.default_rng([seed, 3])
    n, d = int(rng.integers(30, 400)), int(rng.integers(1, 8))
    X, y = drawn(n, d, "poisson" if family == "negative_binomial" else family, seed)
    X = X * 10.0 ** rng.uniform(-2, 2, d)
    weight = rng.gamma(1.0, size=n)
    alpha = 0.0 if seed % 2 else 10.0 ** rng.uniform(-3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of being stopped
        tight = GeneralizedLinearRegressor(family, "log", alpha=alpha, tol=1e-9).fit(X, y, weight).certificate_
        for steps in (1, 2, 3, 5):
            model = GeneralizedLinearRegressor(family, "log", alpha=alpha, tol=0.1, max_iter=steps).fit(X, y, weight)
            loose = model.certificate_
            if loose.kind == "global":
                assert loose.primal - tight.primal <= loose.gap * (1 + 1e-9) + 1e-12 * abs(loose.primal) < np.inf
            assert loose.verify(X, y, weight)
    assert tight.kind == "global"
    assert tight.gap <= 1e-9 * tight.primal
    assert tight.verify(X, y, weight)


@pytest.mark.parametrize("parameters", [
    {"family": "normal", "link": "log"}, {"family": "poisson", "link": "identity"},
    {"family": "binomial", "link": "probit"}, {"family": "gamma", "link": "inverse"},
])  # fmt: skip
def test_what_is_no_proof_is_called_local(parameters: dict[str, str]) -> None:
    """Losses that are not self-concordant have an estimate instead of a bound, which the data still confirm."""
    X, y = drawn(300, 2, "shares" if parameters["family"] == "binomial" else "gamma")
    X = 0.1 * X
    certificate = GeneralizedLinearRegressor(**parameters).fit(X, y).certificate_
    assert certificate.kind == "local"
    assert "a further Newton step would gain about" in str(certificate)
    assert "above the best" not in str(certificate)
    assert certificate.verify(X, y)
    assert not certificate.verify(X, y[::-1])


def counting(points: list[Any]) -> Any:
    """Return an evaluation of the objective that records the points it is called with."""
    from summula.linear_model.glm.objective import Objective

    evaluate = Objective.__call__

    def evaluated(self: Any, x: Any, order: int) -> Any:
        points.append(np.array(x))
        return evaluate(self, x, order)

    return evaluated


@pytest.mark.parametrize("parameters", [
    {"family": "poisson", "alpha": 0.1}, {"family": "poisson", "alpha": 0.1, "l1_ratio": 0.5},
    {"family": "normal", "link": "log", "alpha": 0.01, "l1_ratio": 0.5}, {"family": "gamma", "link": "inverse"},
])  # fmt: skip
@pytest.mark.parametrize("offset", [0.0, 1e12])
def test_verify_does_not_call_a_solver(
    parameters: dict[str, Any], offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for columns so far from 0 that the intercept loses digits: there the point before rounding is evaluated."""
    from summula.linear_model.glm import lbfgs, solver
    from summula.linear_model.l1 import likelihood, quadratic_model

    def called(*_: Any, **__: Any) -> None:
        raise AssertionError("a solver was called")

    X, y = drawn(300, 2, "gamma")
    X = 0.1 * X + offset
    certificate = GeneralizedLinearRegressor(**parameters).fit(X, y).certificate_
    for module, names in ((solver, ("newton", "solve")), (lbfgs, ("lbfgs",)), (likelihood, ("descend", "solve_l1"))):
        for name in names:
            monkeypatch.setattr(module, name, called)
    for name in ("minimise_l1", "newton_on_face"):
        monkeypatch.setattr(quadratic_model, name, called)
    monkeypatch.setattr("summula.linear_model.glm.objective.Objective.__call__", counting(evaluations := []))
    checked = certificate.verify(X, y)
    assert checked
    assert checked.gap <= 2 * certificate.gap + 1e-11 * abs(certificate.primal) < np.inf
    assert not certificate.verify(X, y[::-1])
    # A solver would evaluate other points than the returned one and the one before rounding.
    assert len({x.tobytes() for x in evaluations}) <= 2


def test_what_intercepts_lost_is_saved_and_any_such_point_gives_a_true_bound(tmp_path: Path) -> None:
    X, y = drawn(300, 2, "poisson")
    X = X + 1e14
    best = GeneralizedLinearRegressor("poisson", alpha=0.1).fit(X - 1e14, y).certificate_  # the difference is exact
    model = GeneralizedLinearRegressor("poisson", alpha=0.1).fit(X, y)
    summula.save(model, tmp_path / "model.safetensors")
    certificate = summula.load(tmp_path / "model.safetensors").certificate_
    assert certificate.verify(X, y)
    rounding = 1e-12 * best.primal
    assert certificate.primal - best.primal > 100 * rounding
    for lost in (None, np.zeros(1), 0.5 * certificate.lost, certificate.lost + 0.1):
        checked = dataclasses.replace(certificate, lost=lost).verify(X, y)
        assert checked.dual <= best.primal + rounding
        assert checked.gap < np.inf


# ----------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(("parameters", "words"), [
    ({"family": "gauss"}, "The 'family' parameter of GeneralizedLinearRegressor must be"),
    ({"link": "cube"}, "The 'link' parameter of GeneralizedLinearRegressor must be"),
    ({"l1_ratio": 1.5}, "The 'l1_ratio' parameter"),
    ({"max_iter": 0}, "The 'max_iter' parameter"),
])  # fmt: skip
def test_an_invalid_parameter(parameters: dict[str, Any], words: str) -> None:
    X, y = drawn(30, 2, "gamma")
    with pytest.raises(ValueError, match=words):
        GeneralizedLinearRegressor(**parameters).fit(X, y)


def test_families_and_links_may_be_objects() -> None:
    from summula.stats.families import Tweedie
    from summula.stats.links import Log

    X, y = drawn(100, 2, "tweedie")
    by_object = GeneralizedLinearRegressor(Tweedie(1.5), Log()).fit(X, y)
    np.testing.assert_array_equal(by_object.coef_, GeneralizedLinearRegressor("tweedie", "log").fit(X, y).coef_)


def test_a_model_with_objects_as_parameters_is_saved(tmp_path: Path) -> None:
    from summula.stats.families import NegativeBinomial

    X, y = drawn(100, 2, "poisson")
    model = GeneralizedLinearRegressor(NegativeBinomial(0.7), lower=[0.0, -1.0]).fit(X, y, exposure=np.full(100, 2.0))
    summula.save(model, tmp_path / "model.safetensors")
    loaded = summula.load(tmp_path / "model.safetensors")
    assert loaded.family == NegativeBinomial(0.7)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.certificate_.verify(X, y, exposure=np.full(100, 2.0))
    assert loaded.deviance_ == model.deviance_
