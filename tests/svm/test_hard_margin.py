"""Hard margins with any kernel, and their errors: closed forms, linear programs, no endless loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV

import summula
from summula.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from summula.svm import SVC, SVR, dual_ascent, margins


def overlapping(n: int = 200, d: int = 3) -> tuple[Any, Any]:
    draws = np.random.default_rng(3)
    X = draws.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.5 * draws.normal(size=n) > 0, 1, -1)


def linear_function(A: Any, B: Any) -> Any:
    return A @ B.T


def name_of(kernel: Any) -> str:
    return getattr(kernel, "__name__", str(kernel))


KERNELS = (
    linear_function,
    Linear() + Linear(),
    0.5 * Polynomial(2),
    Linear() * Linear(),
    Linear() + 0.0 * Gaussian(),
)


def conflicting_rows(message: str) -> list[int]:
    return [int(word) for word in message.partition("hulls of the rows ")[2].partition(" intersect")[0].split(",")[:8]]


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@pytest.mark.parametrize("given", [False, True], ids=["kernel", "matrix"])
def test_a_hard_margin_that_does_not_exist_is_refused_for_any_kernel(kernel: Any, given: bool) -> None:
    X, y = overlapping()
    K = kernel(X, X)
    with pytest.raises(summula.DataError, match=r"hulls of the rows \d+, .* intersect"):
        SVC(C=np.inf, kernel="precomputed").fit(K, y) if given else SVC(C=np.inf, kernel=kernel).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", linear_function], ids=name_of)
def test_the_rows_in_conflict_cannot_be_separated_by_themselves(kernel: Any) -> None:
    X, y = overlapping()
    with pytest.raises(summula.DataError, match="hulls of the rows") as refused:
        SVC(C=np.inf, kernel=kernel).fit(X, y)
    rows = conflicting_rows(str(refused.value))
    assert len(rows) <= X.shape[1] + 2  # Radon and Caratheodory
    assert not summula.optimize.is_linearly_separable(X[rows], y[rows])


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.0) + Linear(), 2.0 * Laplacian(1.0), Linear() + 3.0 * Gaussian(0.5)], ids=str
)
def test_kernels_of_full_rank_separate_any_labels(kernel: Any) -> None:
    X, y = overlapping(80)
    model = SVC(C=np.inf, kernel=kernel, tol=1e-6).fit(X, y)
    assert (y * model.decision_function(X)).min() >= 1 - 1e-5
    assert model.certificate_.verify(X, y)


def test_a_function_has_the_hard_margin_of_three_points() -> None:
    # As in the closed form for kernel="linear": w = (1, 1), b = -1.
    X, y = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), [0, 1, 1]
    for model, rows in ((SVC(kernel=linear_function), X), (SVC(kernel="precomputed"), X @ X.T)):
        model.set_params(C=np.inf, tol=1e-12).fit(rows, y)
        np.testing.assert_allclose(model.dual_coef_, [[-1.0, 0.5, 0.5]], rtol=1e-9)
        np.testing.assert_allclose(model.intercept_, [-1.0], rtol=1e-9)


def test_kernels_without_features_have_no_hard_margin() -> None:
    X, y = overlapping()
    with pytest.raises(summula.DataError, match="not positive semidefinite"):
        SVC(C=np.inf, kernel=Sigmoid(2.0, -3.0)).fit(X, y)
    with pytest.raises(summula.DataError, match="not positive semidefinite"):
        SVC(C=np.inf, kernel="precomputed").fit(-X @ X.T, y)


def test_kernels_that_are_not_symmetric_are_refused() -> None:
    X, y = overlapping(50)
    K = np.random.default_rng(0).normal(size=(50, 50))
    with pytest.raises(summula.DataError, match=r"not symmetric.*\(K \+ K.T\) / 2"):
        SVC(kernel="precomputed").fit(K, y)
    with pytest.raises(summula.DataError, match="not symmetric"):
        SVR(kernel=lambda A, B: A[:, :1] @ B[:, 1:2].T).fit(X, y)


def test_a_kernel_function_may_return_a_sparse_matrix() -> None:
    X, y = overlapping()
    S = sparse.csr_array(X)
    as_function, as_name = SVC(kernel=linear_function).fit(S, y), SVC(kernel="linear").fit(S, y)
    np.testing.assert_allclose(as_function.decision_function(S), as_name.decision_function(S), atol=1e-3)


def test_probabilities_are_refused_with_what_to_use_instead() -> None:
    X, y = overlapping()
    with pytest.raises(summula.ParameterError, match=r"CalibratedClassifierCV\(SVC\(\), ensemble=False\)"):
        SVC(probability=True).fit(X, y)
    SVC(probability=False).fit(X, y)
    proba = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_ascent_to_a_hard_margin_ends_by_its_gap() -> None:
    # Rows 1 and -1 without an intercept: w = 1, so the value is 1/2.
    X = np.array([[1.0], [-1.0], [3.0]])
    found = dual_ascent(X @ X.T, [1, -1, 1], C=np.inf, tol=1e-9)
    assert found.converged
    assert found.value == pytest.approx(0.5)
    assert abs(0.5 - found.value) <= found.gap + 1e-15 <= 1e-9 + 1e-15  # the tolerance
    with pytest.raises(summula.DataError, match="not finite"):
        dual_ascent([[np.nan, 0.0], [0.0, 1.0]], [1, -1])
    with pytest.raises(summula.DataError, match="K has the negative eigenvalue -1, so it is not a kernel matrix"):
        dual_ascent([[1.0, 2.0], [2.0, 1.0]], [1, -1])
    with pytest.raises(summula.DataError, match="not symmetric"):
        dual_ascent([[1.0, 0.5], [0.0, 1.0]], [1, -1])
    with pytest.raises(summula.DataError, match="X has 1 rows and y has 2 labels"):
        margins([1.0, 0.0], 0.0, [[1.0, 2.0]], [1, -1])
    with pytest.raises(summula.DataError, match="one intercept; got 2"):
        margins([1.0, 0.0], [0.0, 1.0], [[1.0, 2.0]], [1])
    with pytest.raises(summula.ParameterError, match="coef contains 'a'"):
        margins(["a", 0.0], 0.0, [[1.0, 2.0]], [1])
    with pytest.raises(summula.ParameterError, match="sigma of a Gaussian kernel must be positive, .*got 'a'"):
        Gaussian(sigma="a")
    with pytest.raises(summula.ParameterError, match="positive integer, got 'a'"):
        Polynomial("a")
    with pytest.raises(summula.ParameterError, match="step must be positive, got 0"):
        dual_ascent(np.eye(2), [1, -1], step=0)


def test_margins_of_one_row() -> None:
    found = margins([3.0, 4.0], 1.0, [[1.0, 1.0]], [-1])
    assert found.functional.tolist() == [-8.0]
    assert found.geometric.tolist() == [-1.6]
