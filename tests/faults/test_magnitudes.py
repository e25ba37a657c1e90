"""Columns, targets and weights of any size: the same model in other units, or one error; never wrong results or warnings."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from summula import linear_model
from summula.cluster import KMeans
from summula.core.errors import DataError
from summula.decomposition import PCA, FactorAnalysis
from summula.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from summula.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from summula.kernel_approximation import Nystroem
from summula.kernel_ridge import KernelRidge
from summula.linear_model import LogisticRegression, PoissonRegressor
from summula.mixture import GaussianMixture
from summula.naive_bayes import ComplementNB, GaussianNB, MixedNB, MultinomialNB
from summula.neighbors import NearestCentroid
from summula.preprocessing import StandardScaler
from summula.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM
from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.faults.rows import linear_rows

RNG = np.random.default_rng(0)
X, Y, LABELS = linear_rows(RNG, 150, [1.0, 0.0, 0.0])

FORESTS = [RandomForestRegressor(3, max_depth=3, random_state=0), ExtraTreesRegressor(3, max_depth=3, random_state=0)]
TREES = [DecisionTreeRegressor(max_depth=3), DecisionTreeClassifier(max_depth=3)]
EXTRA = ExtraTreesClassifier(3, max_depth=3, random_state=0)


def name(model: Any) -> str:
    return type(model).__name__


@pytest.mark.parametrize("power", [70, -80])
@pytest.mark.parametrize("model", FORESTS, ids=name)
def test_importances_do_not_depend_on_the_unit_of_the_target(model: Any, power: int) -> None:
    """Squares of 2^70 overflow single precision, in which forests keep what they do not need more exactly."""
    plain, other = clone(model).fit(X, Y), clone(model).fit(X, Y * 2.0**power)
    np.testing.assert_allclose(other.feature_importances_, plain.feature_importances_, rtol=1e-5)
    np.testing.assert_array_equal(other.predict(X), plain.predict(X) * 2.0**power)


@pytest.mark.parametrize("power", [130, -140])
@pytest.mark.parametrize("model", [EXTRA, TREES[1]], ids=name)
def test_probabilities_do_not_depend_on_the_unit_of_the_weights(model: Any, power: int) -> None:
    weight = RNG.integers(1, 4, 150).astype(float)
    plain, other = clone(model).fit(X, LABELS, weight), clone(model).fit(X, LABELS, weight * 2.0**power)
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("model", [*FORESTS, TREES[0], GradientBoostingRegressor(n_estimators=2)], ids=name)
def test_targets_whose_squares_are_lost_are_refused(model: Any, size: float) -> None:
    with pytest.raises(DataError, match=r"The target y has (values as large as|no value above) .* rescale y first\."):
        clone(model).fit(X, Y * size)


@pytest.mark.parametrize(("size", "message"), [(1e150, "as large as"), (1e-150, "no value above")])
def test_targets_whose_gradients_are_lost_are_refused(size: float, message: str) -> None:
    with pytest.raises(DataError, match=rf"The target y has .*{message}.* rescale it first\."):
        HistGradientBoostingRegressor(max_iter=2).fit(X, Y * size)
    # Its gradients are signs, in any unit.
    assert HistGradientBoostingRegressor(loss="absolute_error", max_iter=2).fit(X, Y * 1e-150).score(X, Y * 1e-150) > 0


@pytest.mark.parametrize("model", [TREES[0], GradientBoostingRegressor(n_estimators=2)], ids=name)
@pytest.mark.parametrize("power", [80, -80])
def test_trees_do_not_depend_on_the_unit_of_the_target(model: Any, power: int) -> None:
    """Targets near 1e-24 and near 1e24: powers of two change no digit."""
    plain, other = clone(model).fit(X, Y), clone(model).fit(X, Y * 2.0**power)
    np.testing.assert_array_equal(other.predict(X), plain.predict(X) * 2.0**power)


@pytest.mark.parametrize("scale", [False, True])
def test_axes_of_huge_weights_are_certified(scale: bool) -> None:
    weight = np.full(150, 1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = PCA(2, scale=scale).fit(X, sample_weight=weight)
        assert model.certificate_.verify(X, sample_weight=weight)
    np.testing.assert_allclose(np.abs(model.components_), np.abs(PCA(2, scale=scale).fit(X).components_), rtol=1e-9)


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("model", [*TREES, EXTRA], ids=name)
def test_weights_whose_squares_are_lost_are_refused(model: Any, size: float) -> None:
    with pytest.raises(DataError, match=r"sample_weight has .* rescale the weights first\."):
        clone(model).fit(X, LABELS, np.full(150, size))


@pytest.mark.parametrize(
    "model",
    [
        PCA(2),
        FactorAnalysis(1),
        GaussianNB(),
        MixedNB(),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        GaussianMixture(2),
        KMeans(2),
    ],
    ids=name,
)
def test_columns_whose_squares_overflow_are_named(model: Any) -> None:
    with pytest.raises(DataError, match="Column 1 contains values so large that their squares overflow"):
        clone(model).fit(X * [1.0, 1e300, 1.0], LABELS)


@pytest.mark.parametrize("init", ["k-means++", "k-means||"])
def test_clusters_do_not_depend_on_the_unit_of_the_weights(init: str) -> None:
    plain, other = (
        KMeans(3, init=init, random_state=0).fit(X, sample_weight=np.full(150, unit)) for unit in (1.0, 2.0**-990)
    )
    np.testing.assert_allclose(other.inertia_ * 2.0**990, plain.inertia_, rtol=0.2)
    assert np.isfinite(other.cluster_centers_).all()


@pytest.mark.parametrize("model", [LogisticRegression(), PoissonRegressor()], ids=str)
def test_huge_weights_leak_no_warning_about_overflow(model: Any) -> None:
    weight = np.full(150, 1e300)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = clone(model).fit(X, LABELS, sample_weight=weight)
        assert np.isfinite(fitted.coef_).all()
        assert fitted.certificate_.verify(X, LABELS, weight)


# Powers of two: squares of the values have fewer digits, or are 0.
UNDERFLOWING = (-520, -531, -600, -1000)
UNDERFLOWS = r"Column 1 contains values so small that their squares underflow float64; rescale it first\."
# Each column is put in units of its own.
IN_OWN_UNITS = [
    StandardScaler(),
    PCA(2, scale=True),
    FactorAnalysis(1),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(shrinkage="auto"),
    QuadraticDiscriminantAnalysis(),
    NearestCentroid(),
    GaussianMixture(2, random_state=0),
    LogisticRegression(C=np.inf),
    linear_model.GeneralizedLinearRegressor(family="binomial"),
]
# Only the largest columns count.
IN_ONE_UNIT = [PCA(2), KMeans(2, random_state=0), GaussianNB(), SVC(), linear_model.Ridge(), LogisticRegression()]


def scaled(power: int, columns: Any = 1) -> Any:
    Z = X.copy()
    Z[:, columns] *= 2.0**power
    return Z


@pytest.mark.parametrize("power", UNDERFLOWING)
@pytest.mark.parametrize("model", IN_OWN_UNITS, ids=str)
def test_columns_whose_squares_underflow_are_named(model: Any, power: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(DataError, match=UNDERFLOWS):
            clone(model).fit(scaled(power), LABELS)


@pytest.mark.parametrize("model", [one for one in IN_OWN_UNITS if hasattr(one, "decision_function")], ids=str)
def test_columns_whose_squares_are_small_are_as_good_as_others(model: Any) -> None:
    plain, other = clone(model).fit(X, LABELS), clone(model).fit(scaled(-480), LABELS)
    expected = plain.predict_proba(X)
    np.testing.assert_allclose(other.predict_proba(scaled(-480)), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("power", UNDERFLOWING)
@pytest.mark.parametrize("model", IN_ONE_UNIT, ids=str)
def test_small_columns_beside_others_are_harmless(model: Any, power: int) -> None:
    plain, other = clone(model).fit(scaled(-300), LABELS), clone(model).fit(scaled(power), LABELS)
    method = "transform" if isinstance(model, PCA) else "predict"
    expected = getattr(plain, method)(scaled(-300))
    np.testing.assert_allclose(getattr(other, method)(scaled(power)), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("power", UNDERFLOWING)
@pytest.mark.parametrize("model", IN_ONE_UNIT[:4], ids=str)
def test_small_columns_alone_are_refused(model: Any, power: int) -> None:
    with pytest.raises(DataError, match="underflow"):
        clone(model).fit(X * 2.0**power, LABELS)


@pytest.mark.parametrize("power", UNDERFLOWING)
@pytest.mark.parametrize("rows", [150, 20_000])
def test_least_squares_do_not_depend_on_the_unit_of_a_column(power: int, rows: int) -> None:
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(rows, 3))
    y = Z @ [1.0, -2.0, 0.5] + rng.normal(size=rows)
    plain = linear_model.LinearRegression().fit(Z, y)
    other = linear_model.LinearRegression().fit(Z * [1.0, 2.0**power, 1.0], y)
    np.testing.assert_allclose(other.coef_ * [1.0, 2.0**power, 1.0], plain.coef_, rtol=1e-11)
    np.testing.assert_allclose(other.intercept_, plain.intercept_, rtol=1e-9)


def test_columns_whose_spread_is_lost_have_no_polynomials() -> None:
    with pytest.raises(DataError, match=UNDERFLOWS):
        linear_model.PolynomialRegression().fit(scaled(-600), Y)
    np.testing.assert_allclose(
        linear_model.PolynomialRegression().fit(scaled(-531), Y).predict(scaled(-531)),
        linear_model.PolynomialRegression().fit(X, Y).predict(X), rtol=1e-9, atol=1e-12,
    )  # fmt: skip


def test_values_that_cancel_in_the_sums_are_found_in_the_rows() -> None:
    Z = np.array([[-1e-200, 1.0], [1e-200, 2.0]])
    with pytest.raises(DataError, match="Column 0 contains values so small"):
        StandardScaler().fit(Z)


def test_constant_columns_are_not_taken_for_small_ones() -> None:
    Z = np.column_stack([X[:, 0], np.full(150, 3.0), LABELS])  # the last one is constant within each class
    Z[7, 1] = np.nan
    StandardScaler().fit(Z)
    Z[7, 1] = 3.0
    NearestCentroid().fit(Z, LABELS)
    Z[7, 1] = 4.0
    StandardScaler().fit(Z, sample_weight=np.arange(150) != 7)


def test_small_values_in_single_precision_are_squared_in_double() -> None:
    Z = (X * 1e-22).astype(np.float32)
    np.testing.assert_allclose(StandardScaler().fit(Z).scale_, Z.astype(float).std(axis=0), rtol=1e-6)
    with pytest.raises(DataError, match="underflow float32"):
        PCA(2).fit(Z)


@pytest.mark.parametrize(
    "model",
    [
        linear_model.LinearRegression(),
        linear_model.LinearRegression(positive=True),
        linear_model.RidgeCV(),
        linear_model.RidgeCV(cv=4),
    ],
    ids=name,
)
@pytest.mark.filterwarnings("error")
def test_values_whose_differences_overflow_are_refused(model: Any) -> None:
    with pytest.raises(DataError, match=r"overflow; rescale the columns first\.$"):
        clone(model).fit(np.where(X > 0, 1.7e308, -1.7e308), Y)


@pytest.mark.filterwarnings("error")
def test_variances_that_overflow_are_refused() -> None:
    for model, Z in (
        (GaussianNB(), X + 1e308),
        (MixedNB(families={0: "bernoulli"}), np.column_stack([LABELS, X * 1e155])),
    ):
        with pytest.raises(DataError, match="squares overflow float64"):
            model.fit(Z, LABELS)


def test_a_nonnegative_fit_names_a_target_whose_squares_overflow() -> None:
    with pytest.raises(DataError, match="y has values so large"):
        linear_model.LinearRegression(positive=True).fit(X, Y / np.abs(Y).max() * 1.7e308)


@pytest.mark.filterwarnings("error")
def test_a_perceptron_of_huge_weights_has_a_margin() -> None:
    weight = np.ones(len(X))
    weight[0] = 1e300
    plain = linear_model.Perceptron(max_iter=20, random_state=0).fit(X, LABELS, sample_weight=weight)
    assert np.isfinite(plain.certificate_.geometric_margin).all()
    assert plain.certificate_.verify(X, LABELS, weight)


def test_objectives_that_underflow_are_confirmed() -> None:
    small = Y * 1e-160
    assert linear_model.LinearRegression().fit(X, small).certificate_.verify(X, small)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVC(gamma=0.5),
        SVR(gamma=0.5),
        OneClassSVM(gamma=0.5),
        KernelRidge(kernel="rbf", gamma=0.5),
        Nystroem(gamma=0.5, n_components=5),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [1e160, 1e308])
def test_rows_whose_squared_distances_overflow_are_refused(model: Any, size: float) -> None:
    with pytest.raises(DataError, match=r"overflow.*; scale the columns\.$"):
        clone(model).fit(X / np.abs(X).max() * size, LABELS)


@pytest.mark.filterwarnings("error")
def test_distances_of_huge_rows_without_squares_are_kernel_values() -> None:
    rows = X / np.abs(X).max() * 1e308
    for model in (KernelRidge(kernel="laplacian", gamma=0.5), SVC(kernel="laplacian", gamma=0.5)):
        fitted = model.fit(rows, LABELS)
        assert fitted.certificate_.verify(rows, LABELS)
        assert np.isfinite(fitted.predict(rows)).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [SVR(), LinearSVR(loss="squared_epsilon_insensitive")], ids=name)
def test_machines_name_targets_whose_losses_overflow(model: Any) -> None:
    with pytest.raises(DataError, match="overflow.* target|overflow.* y,"):
        clone(model).fit(X, Y / np.abs(Y).max() * 1e308)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVC(loss="hinge")], ids=str)
def test_linear_machines_of_a_huge_column_are_confirmed(model: Any) -> None:
    rows = X * ([1e160] + [1.0] * (X.shape[1] - 1))
    assert clone(model).fit(rows, LABELS).certificate_.verify(rows, LABELS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [MultinomialNB(), ComplementNB(), ComplementNB(norm=True)], ids=str)
def test_counts_whose_sums_overflow_are_refused(model: Any) -> None:
    with pytest.raises(DataError, match="divide the counts"):
        clone(model).fit(np.abs(X) / np.abs(X).max() * 1e308, LABELS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_rows_of_huge_values_have_a_centre() -> None:
    rows = np.full((150, 2), 1.7e308)
    fitted = KMeans(2, random_state=0).fit(rows)
    np.testing.assert_array_equal(fitted.predict(rows), fitted.labels_)
