"""Damaged sparse matrices outside of estimators, and targets and weights that overflow: one sentence each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import summula
from summula import kernels, mdp, model_selection
from summula.core.errors import DataError, ParameterError
from summula.ensemble import AdaBoostClassifier, RandomForestRegressor
from summula.feature_selection import SequentialFeatureSelector
from summula.linear_model import Lasso, LinearRegression, PoissonRegressor, Ridge, RidgeCV
from summula.naive_bayes import GaussianNB
from summula.svm import SVR, LinearSVR, OneClassSVM

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, 2.0, 0.0] + 0.3 * RNG.normal(size=40)
CLASSES = (Y > 0).astype(int)


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
    with pytest.raises(ParameterError, match=r"random_state=.* is not a seed"):
        summula.train(summula.datasets.load("penguins"), "species", random_state=seed)
