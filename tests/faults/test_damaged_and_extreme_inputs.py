"""Damaged sparse matrices outside of estimators, and targets and weights that overflow: one sentence each."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import sparse

import summula
from summula import kernels, mdp, model_selection
from summula.core.errors import DataError, ParameterError
from summula.ensemble import AdaBoostClassifier, RandomForestRegressor
from summula.feature_selection import SequentialFeatureSelector
from summula.kernel_ridge import KernelRidge
from summula.linear_model import (
    ElasticNet,
    ElasticNetCV,
    Lasso,
    LassoCV,
    LinearRegression,
    Perceptron,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from summula.mixture import BernoulliMixture, BinomialMixture, GaussianMixture
from summula.naive_bayes import GaussianNB
from summula.preprocessing import KBinsDiscretizer
from summula.svm import SVR, LinearSVC, LinearSVR, OneClassSVM
from tests.faults.rows import linear_rows

X, Y, CLASSES = linear_rows(np.random.default_rng(0), 40, [1.0, 2.0, 0.0], noise=0.3)


def damaged(rows, columns, kind="csr"):
    """A matrix whose index arrays were written to after it was built."""
    A = sparse.random(rows, columns, 0.8, format=kind, random_state=0)
    A.indices[3] = 10**6
    return A


@pytest.mark.parametrize(
    "kernel", [kernels.Linear(), kernels.Gaussian(1.0), kernels.Laplacian(1.0), kernels.Polynomial(), kernels.Sigmoid()]
)
def test_kernels_refuse_damaged_rows(kernel):
    with pytest.raises(DataError, match="damaged: stored value 3 has the column index 1000000"):
        kernel(damaged(40, 3), damaged(40, 3))


def test_decision_processes_refuse_damaged_transitions_and_rewards():
    P = sparse.csr_matrix(np.full((4, 4), 0.25))
    with pytest.raises(DataError, match="matrix transitions is damaged"):
        mdp.MDP([P, damaged(4, 4)], np.zeros((4, 2)), 0.9)
    with pytest.raises(DataError, match="matrix rewards is damaged"):
        mdp.MDP([P, P], [P, damaged(4, 4)], 0.9)


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_selection_refuses_damaged_rows(kind):
    with pytest.raises(DataError, match="damaged"):
        SequentialFeatureSelector(Ridge()).fit(damaged(40, 3, kind), Y)
    with pytest.raises(DataError, match="damaged"):
        model_selection.cross_val_score(Lasso(), damaged(40, 3, kind), Y)
    with pytest.raises(DataError, match="damaged"):
        model_selection.learning_curve(Ridge(), damaged(40, 3, kind), Y)


@pytest.mark.parametrize("weight", [1e307, 1.7e308, 1e-310, 5e-324])
@pytest.mark.parametrize("model", [Ridge(), PoissonRegressor(), RandomForestRegressor(2), GaussianNB(), LinearSVR()])
def test_weights_whose_sums_overflow_or_vanish_are_refused(model, weight):
    with pytest.raises(DataError, match=r"sample weights sum to .*; divide them by their mean"):
        model.fit(X, CLASSES, sample_weight=np.full(40, weight))


def test_boosting_refuses_them_too():
    with pytest.raises(DataError, match="divide them by their mean"):
        AdaBoostClassifier(n_estimators=2).fit(X, CLASSES, sample_weight=np.full(40, 1e307))


@pytest.mark.parametrize("model", [OneClassSVM(), SVR()])
def test_kernel_machines_refuse_weights_whose_squares_overflow(model):
    with pytest.raises(DataError, match="overflows in squares; divide the weights by their mean"):
        model.fit(X, Y, sample_weight=np.full(40, 1e300))


@pytest.mark.parametrize(("model", "y"), [(LinearSVR(), Y * 1e307), (LinearSVR(), Y * 1e-300)])
def test_linear_machines_name_what_overflows(model, y):
    with pytest.raises(DataError, match="overflow; scale the columns and y"):
        model.fit(X, y)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge(), RidgeCV()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_a_target_whose_squares_overflow_is_named(model):
    with pytest.raises(DataError, match="y has values so large that their squares overflow"):
        model.fit(X, Y * 2.8e307)


@pytest.mark.parametrize("seed", [2**32, -1, 1.5, "a", None, True])
def test_training_takes_seeds_that_numpy_takes(seed):
    with pytest.raises(ParameterError, match=r"random_state must be an int from 0 to 4294967295"):
        summula.train(summula.datasets.load("penguins"), "species", random_state=seed)


HEAVY = np.where(np.arange(40) == 7, 1e300, 1.0)


def is_finite(model):
    values = [value for value in vars(model).values() if isinstance(value, float | np.ndarray)]
    return all(np.isfinite(value).all() for value in values if np.asarray(value).dtype.kind == "f")


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("model", "A", "y"),
    [
        (GaussianMixture(2, random_state=0), X, None),
        (GaussianMixture(3, covariance_type="diag", init_params="k-means++", random_state=0), X, None),
        (LassoCV(), X, Y),
        (ElasticNetCV(), X, Y),
        (LassoCV(fit_intercept=False), X, Y),
        (Perceptron(), X, CLASSES),
        (LinearSVC(), X, CLASSES),
        (BernoulliMixture(2, random_state=0), (X > 0) * 1.0, None),
        (BinomialMixture(2, random_state=0), (X > 0) * 1.0, None),
        (KBinsDiscretizer(strategy="kmeans", encode="ordinal"), X, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_one_overwhelming_weight_gives_no_numpy_warnings(model, A, y):
    assert is_finite(model.fit(A, y, sample_weight=HEAVY))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_folds_without_an_overwhelming_row_keep_their_digits():
    model = LassoCV(cv=[(np.arange(8, 40), np.arange(8))], alphas=[0.1], tol=1e-12).fit(X, Y, sample_weight=HEAVY)
    alone = Lasso(0.1, tol=1e-12).fit(X[8:], Y[8:])
    np.testing.assert_allclose(float(model.mse_path_), (Y[7] - alone.predict(X[7:8])[0]) ** 2, rtol=1e-6)


@pytest.mark.parametrize(("kind", "zero"), [("training", slice(8, 40)), ("test", slice(8))])
@pytest.mark.parametrize("columns", [3, 60])
def test_folds_without_weight_are_refused(kind, zero, columns):
    weight = np.ones(40)
    weight[zero] = 0.0
    with pytest.raises(DataError, match=f"In split 0 every {kind} row has weight 0"):
        LassoCV().fit(np.random.default_rng(0).normal(size=(40, columns)), Y, sample_weight=weight)


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::scipy.linalg.LinAlgWarning")
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scale", [1e100, 1e155, 1e300])
def test_kernel_ridge_is_finite_or_names_what_overflows(kernel, scale):
    refused = pytest.raises(DataError, match="y has values so large that their squares, times the sample weights")
    with refused if scale > 1e154 else nullcontext():
        KernelRidge(kernel=kernel).fit(X, Y * scale)
    assert is_finite(KernelRidge(kernel=kernel).fit(X, Y, sample_weight=np.full(40, scale)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("columns", [3, 60])
@pytest.mark.parametrize("model", [Lasso(), ElasticNet(), LassoCV()])
def test_sparse_linear_models_name_what_overflows(model, columns):
    A = np.random.default_rng(0).normal(size=(40, columns))
    with pytest.raises(DataError, match="y has values so large that their squares overflow; rescale the target"):
        model.fit(A, Y * 1e155)
    with pytest.raises(DataError, match="Some values are so large that their squares overflow; rescale the columns"):
        model.fit(A * 1e155, Y)
