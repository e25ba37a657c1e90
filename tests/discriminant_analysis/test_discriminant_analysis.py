"""Discriminant analysis: densities by definition, scikit-learn, maximum likelihood, more columns than rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.discriminant_analysis as peers
from numpy.testing import assert_array_equal
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.covariance import OAS, LedoitWolf

import summula
from summula.core.errors import DataError, ParameterError
from summula.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 400)
X = RNG.normal(size=(400, 5)) @ RNG.normal(size=(5, 5)) + Y[:, None] * RNG.normal(size=5) + 50.0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"priors": [0.2, 0.3, 0.5]},
        {"solver": "lsqr"},
        {"solver": "eigen", "priors": [0.2, 0.3, 0.5]},
        {"solver": "lsqr", "shrinkage": "auto"},
        {"solver": "eigen", "shrinkage": 0.3},
        {"solver": "lsqr", "covariance_estimator": OAS()},
        {"solver": "eigen", "covariance_estimator": LedoitWolf(), "priors": [0.2, 0.3, 0.5]},
    ],
    ids=repr,
)
def test_linear_posteriors_are_those_of_scikit_learn(options: Any) -> None:
    ours, theirs = (
        package.fit(X, Y)
        for package in (LinearDiscriminantAnalysis(**options), peers.LinearDiscriminantAnalysis(**options))
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-11)
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-12)
    if options.get("solver", "svd") == "svd":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
        np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reg_param": 0.2},
        {"solver": "eigen", "shrinkage": "auto"},
        {"solver": "eigen", "shrinkage": 0.3},
        {"solver": "eigen", "covariance_estimator": OAS()},
    ],
    ids=repr,
)
def test_quadratic_posteriors_are_those_of_scikit_learn(options: Any) -> None:
    ours = QuadraticDiscriminantAnalysis(**options, store_covariance=True).fit(X, Y)
    theirs = peers.QuadraticDiscriminantAnalysis(**options, store_covariance=True).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-11)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-9)


@pytest.mark.parametrize("covariance", ["full", "diag", "spherical"])
def test_joint_densities_by_their_definition(covariance: str) -> None:
    quadratic = QuadraticDiscriminantAnalysis(covariance=covariance).fit(X, Y)
    linear = LinearDiscriminantAnalysis(covariance=covariance).fit(X, Y)

    def form(S: Any) -> Any:
        return {"full": S, "diag": np.diag(np.diag(S)), "spherical": np.eye(5) * np.trace(S) / 5}[covariance]

    own = [np.cov(X[k == Y].T, bias=True) for k in range(3)]
    shares = np.bincount(Y) / 400
    pooled = form(sum(p * S for p, S in zip(shares, own, strict=True)))
    for model, S in ((quadratic, [form(one) for one in own]), (linear, [pooled] * 3)):
        joint = np.column_stack(
            [np.log(shares[k]) + stats.multivariate_normal(X[k == Y].mean(axis=0), S[k]).logpdf(X) for k in range(3)]
        )
        np.testing.assert_allclose(model.predict_joint_log_proba(X), joint, rtol=1e-8)
        np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=1), rtol=1e-8)
        np.testing.assert_array_equal(model.predict(X), joint.argmax(axis=1))


def test_the_posterior_of_two_classes_is_a_logistic_of_a_plane() -> None:
    two = Y < 2
    model = LinearDiscriminantAnalysis(covariance="spherical").fit(X[two], Y[two])
    m0, m1 = (X[two & (k == Y)].mean(axis=0) for k in (0, 1))
    away = X[two] - np.where((Y[two] == 1)[:, None], m1, m0)
    variance = (away**2).mean()
    w = (m1 - m0) / variance
    b = -(m1 @ m1 - m0 @ m0) / (2 * variance) + np.log((Y == 1).sum() / (Y == 0).sum())
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(X @ w + b), rtol=1e-8)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9)


def test_outliers_have_a_small_density() -> None:
    model = QuadraticDiscriminantAnalysis().fit(X, Y)
    assert model.score_samples(X.mean(axis=0, keepdims=True) + 100)[0] < model.score_samples(X).min() - 100


class TestMoreColumnsThanRows:
    wide = np.random.default_rng(1).normal(size=(30, 60))
    label = np.arange(30) % 2

    def test_linear_leaves_out_what_does_not_vary(self) -> None:
        ours = LinearDiscriminantAnalysis().fit(self.wide, self.label)
        theirs = peers.LinearDiscriminantAnalysis().fit(self.wide, self.label)
        np.testing.assert_allclose(ours.decision_function(self.wide), theirs.decision_function(self.wide), rtol=1e-6)
        assert np.isfinite(ours.score_samples(self.wide)).all()

    def test_shrinkage_generalises(self) -> None:
        rng = np.random.default_rng(2)
        y = rng.integers(0, 2, 1_000)
        Z = rng.normal(size=(1_000, 60)) + 0.4 * y[:, None]
        for model in (LinearDiscriminantAnalysis(shrinkage="auto"), QuadraticDiscriminantAnalysis(shrinkage="auto")):
            assert model.fit(Z[:40], y[:40]).score(Z[40:], y[40:]) > 0.8

    def test_quadratic_gives_advice(self) -> None:
        with pytest.raises(
            np.linalg.LinAlgError, match="class 0 is not full rank.*shrinkage='auto' or covariance='diag'"
        ):
            QuadraticDiscriminantAnalysis().fit(self.wide, self.label)
        assert (
            QuadraticDiscriminantAnalysis(covariance="diag").fit(self.wide, self.label).score(self.wide, self.label)
            > 0.9
        )


def test_constant_columns() -> None:
    Z = np.column_stack([X, np.full(400, 7.0)])
    np.testing.assert_allclose(
        LinearDiscriminantAnalysis().fit(Z, Y).predict_proba(Z),
        LinearDiscriminantAnalysis().fit(X, Y).predict_proba(X),
        atol=1e-10,
    )
    with pytest.raises(DataError, match=r"use shrinkage='auto', or drop columns: columns \[5\] are constant in it"):
        QuadraticDiscriminantAnalysis().fit(Z, Y)


def test_units_of_columns_make_no_difference() -> None:
    scale = np.array([1e-9, 1e-3, 1.0, 1e4, 1e9])
    for make in (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis):
        np.testing.assert_allclose(
            make().fit(X * scale, Y).predict_proba(X * scale), make().fit(X, Y).predict_proba(X), atol=1e-9
        )


def test_lsqr_of_a_singular_covariance_is_that_of_scikit_learn_on_standardised_columns() -> None:
    """Its pseudo-inverse depends on the units of columns; here every solver standardises them, as its "svd" does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 20)), np.arange(10) % 2
    Z = rng.normal(size=(30, 20))
    within = np.concatenate([X[y == k] - X[y == k].mean(axis=0) for k in (0, 1)]).std(axis=0)
    ours = LinearDiscriminantAnalysis("lsqr").fit(X, y).predict_proba(Z)
    theirs = peers.LinearDiscriminantAnalysis("lsqr").fit(X / within, y).predict_proba(Z / within)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    theirs = peers.LinearDiscriminantAnalysis("svd").fit(X, y).predict_proba(Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("make", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_parts_merging_and_forgetting(make: Any) -> None:
    whole = make().fit(X, Y)
    parts = make().partial_fit(X[:100], Y[:100], classes=[0, 1, 2]).partial_fit(X[100:], Y[100:])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)
    merged = summula.combine([make().fit(X[:150], Y[:150]), make().fit(X[150:], Y[150:])])
    np.testing.assert_allclose(merged.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-9)
    merged.partial_fit(X[:20] + 5, Y[:20]).forget(X[:20] + 5, Y[:20])
    np.testing.assert_allclose(merged.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-7)
    weighted = make().fit(X, Y, sample_weight=Y + 1.0)
    repeated = make().fit(np.repeat(X, Y + 1, axis=0), np.repeat(Y, Y + 1))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)


def test_a_part_may_lack_a_class() -> None:
    some = Y < 2
    model = LinearDiscriminantAnalysis().partial_fit(X[some], Y[some], classes=[0, 1, 2])
    assert set(model.predict(X)) <= {0, 1}
    assert not hasattr(LinearDiscriminantAnalysis(shrinkage="auto"), "partial_fit")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, Y),
            ParameterError,
            "must match number of classes",
        ),
        (lambda: LinearDiscriminantAnalysis(priors=[-0.5, 0.5, 1.0]).fit(X, Y), ParameterError, "non-negative"),
        (lambda: LinearDiscriminantAnalysis(n_components=3).fit(X, Y), ParameterError, "n_components cannot be larger"),
        (lambda: LinearDiscriminantAnalysis(covariance="round").fit(X, Y), ParameterError, "'covariance' parameter"),
        (
            lambda: LinearDiscriminantAnalysis().fit(X[:3], [0, 1, 2]),
            DataError,
            "must be more than the number of classes",
        ),
        (lambda: QuadraticDiscriminantAnalysis().fit(X[:5], [0, 0, 0, 0, 1]), DataError, "only 1 sample in class 1"),
        (lambda: LinearDiscriminantAnalysis().fit(np.where(X > 60, np.nan, X), Y), DataError, "NaN"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_priors_that_do_not_sum_to_one_are_scaled_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="The priors do not sum to 1 but to 2"):
        model = LinearDiscriminantAnalysis(priors=[0.5, 0.5, 1.0]).fit(X, Y)
    np.testing.assert_allclose(model.priors_, [0.25, 0.25, 0.5])


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(shrinkage="auto"),
        LinearDiscriminantAnalysis(shrinkage=0.3, priors=[0.2, 0.3, 0.5]),
        LinearDiscriminantAnalysis("lsqr", priors=[0.2, 0.3, 0.5]),
        LinearDiscriminantAnalysis(covariance="diag"),
        QuadraticDiscriminantAnalysis(shrinkage="auto"),
        QuadraticDiscriminantAnalysis(reg_param=0.2, covariance="spherical"),
    ],
    ids=repr,
)
def test_requested_covariances_are_certified(model: Any) -> None:
    """Of shrunk ones, the objective is least where the model's covariance is the shrunk one of the data."""
    model = model.fit(X, Y)
    checked = model.certificate_.verify(X, Y)
    assert checked
    assert checked.gap <= 1e-12 * checked.primal
    assert not model.certificate_.verify(X * 1.001, Y)


def test_directions_in_which_rows_do_not_vary_are_no_part_of_a_certificate() -> None:
    wide = np.random.default_rng(1).normal(size=(20, 50))
    model = LinearDiscriminantAnalysis().fit(wide, np.arange(20) % 2)
    assert model.certificate_.verify(wide, np.arange(20) % 2)
    assert not model.certificate_.verify(wide[::-1], np.arange(20) // 3 % 2)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_an_estimator_of_covariances_is_not_changed_and_its_fit_is_certified(kind: Any) -> None:
    estimator = OAS()
    model = kind(covariance_estimator=estimator).fit(X, Y)
    assert not hasattr(estimator, "covariance_")
    assert model.certificate_.verify(X, Y)
    assert not model.certificate_.verify(X + 1.0, Y)
    plain = model.set_params(covariance_estimator=None).fit(X, Y)
    np.testing.assert_array_equal(plain.predict_proba(X), kind().fit(X, Y).predict_proba(X))


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_an_estimator_of_covariances_is_refused_where_it_cannot_work(kind: Any, tmp_path: Any) -> None:
    pq.write_table(pa.table({**{f"x{j}": X[:, j] for j in range(5)}, "y": Y}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match="needs its rows in memory"):
        kind(covariance_estimator=OAS()).fit(summula.scan(tmp_path / "rows.parquet"), "y")
    with pytest.raises(ParameterError, match="KMeans has no attribute covariance_"):
        kind(covariance_estimator=KMeans(n_clusters=2)).fit(X, Y)
    with pytest.raises(ParameterError, match="does not support weights"):
        kind(covariance_estimator=OAS()).fit(X, Y, np.ones(len(Y)))
    with pytest.raises(ParameterError, match="Only one of the two"):
        kind(covariance_estimator=OAS(), shrinkage=0.5).fit(X, Y)
    with pytest.raises(ParameterError, match="svd"):
        kind(covariance_estimator=OAS(), solver="svd").fit(X, Y)
    model = kind(covariance_estimator=OAS()).fit(X, Y)
    with pytest.raises((ParameterError, AttributeError), match="partial_fit"):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize(
    "model", [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(reg_param=1e-6)], ids=["linear", "quadratic"]
)
def test_certificates_of_nearly_collinear_columns_hold_for_any_order_of_sums(model: Any, apart: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    X[:, 2] = X[:, 0] + apart * rng.normal(size=400)
    y = X[:, 1] + (X[:, 2] - X[:, 0]) / apart + 0.1 * rng.normal(size=400) > 0
    whole = clone(model).fit(X, y)
    assert whole.certificate_.verify(X[::-1], y[::-1])
    assert not whole.certificate_.verify(X[:-1], y[:-1])
    parts = clone(model).partial_fit(X[:200], y[:200], classes=[False, True]).partial_fit(X[200:], y[200:])
    assert parts.certificate_.verify(X, y)


@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize(("name", "other"), [("diagonal", "diag"), ("isotropic", "spherical")])
def test_forms_of_covariance_have_other_names(model, name, other):
    one, two = (model(covariance=form).fit(X, Y).predict_proba(X) for form in (name, other))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("cls", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_merging_models_whose_sums_overflow_says_so(cls: Any) -> None:
    """An error of LAPACK, or of constant columns."""
    merged, other = cls().fit(X, Y), cls().fit(1e140 * X + 1e155, Y)
    with pytest.raises(DataError, match="sums of squares of the columns overflow"):
        merged.merge(other)
    assert_array_equal(merged.means_, cls().fit(X, Y).means_)


def test_a_tolerance_whose_square_overflows_takes_all_directions_as_constant() -> None:
    assert LinearDiscriminantAnalysis(tol=1e300).fit(X, Y).scalings_.shape[1] == 0
    with pytest.raises(DataError, match="not full rank"):
        QuadraticDiscriminantAnalysis(tol=1e300).fit(X, Y)
