"""Scaling, polynomial features and histograms of oriented gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workload import Contender, FitWorkload, Quality

Matrix = np.ndarray


def table(rows: int, columns: int) -> Matrix:
    """Normal columns of unequal mean and scale."""
    X = np.random.default_rng(0).standard_normal((rows, columns))
    X *= np.linspace(0.5, 2.0, columns)
    X += np.linspace(-1.0, 3.0, columns)
    return X


def standardisation_error(X: Matrix, Z: Matrix) -> float:
    """The largest deviation of the columns of Z from mean 0 and variance 1."""
    return float(max(np.abs(Z.mean(axis=0)).max(), np.abs(Z.var(axis=0) - 1.0).max()))


def quadratic_sum_error(X: Matrix, Z: Matrix) -> float:
    """The largest deviation of the row sums of Z from the sum of all monomials of degree 1 and 2, s + (s^2 + q) / 2.

    Here s is the sum and q the sum of squares of the row; the order of the columns does not matter.
    """
    s, q = X.sum(axis=1), np.einsum("ij,ij->i", X, X)
    size = np.abs(X).sum(axis=1)
    return float((np.abs(Z.sum(axis=1) - (s + (s**2 + q) / 2)) / (size + size**2)).max())


def _summula_scaler() -> Callable[[Matrix], Matrix]:
    from summula.preprocessing import StandardScaler

    return lambda X: np.asarray(StandardScaler().fit_transform(X))


def _sklearn_scaler() -> Callable[[Matrix], Matrix]:
    from sklearn.preprocessing import StandardScaler

    return lambda X: np.asarray(StandardScaler().fit_transform(X))


def _summula_lift() -> Callable[[Matrix], Matrix]:
    from summula.features import PolynomialLift

    return lambda X: np.asarray(PolynomialLift(degree=2).fit_transform(X))


def _sklearn_lift() -> Callable[[Matrix], Matrix]:
    from sklearn.preprocessing import PolynomialFeatures

    return lambda X: np.asarray(PolynomialFeatures(degree=2, include_bias=False).fit_transform(X))


def _summula_histograms() -> Callable[[Matrix], Matrix]:
    from summula.features import HOG

    return lambda X: np.asarray(HOG((32, 32), norm="l2").fit_transform(X))


def _scipy_histograms() -> Callable[[Matrix], Matrix]:
    """Process images one by one with SciPy's filters; scikit-image is not a dependency."""
    from scipy import ndimage

    def histograms(image: Matrix) -> Matrix:
        dx, dy = (ndimage.correlate1d(image, [-0.5, 0.0, 0.5], axis=axis) for axis in (1, 0))
        t = 12 * np.arctan2(dy, dx) / np.pi
        low, size = np.floor(t), np.hypot(dx, dy)
        rows, columns = np.mgrid[:32, :32] // 8
        cells = np.zeros((4, 4, 12))
        np.add.at(cells, (rows, columns, low.astype(int) % 12), size * (1 - (t - low)))
        np.add.at(cells, (rows, columns, (low.astype(int) + 1) % 12), size * (t - low))
        blocks = [cells[a : a + 2, b : b + 2].ravel() for a in range(3) for b in range(3)]
        return np.concatenate([block / np.linalg.norm(block) for block in blocks])

    return lambda X: np.stack([histograms(row.reshape(32, 32)) for row in X])


def block_norm_error(X: Matrix, Z: Matrix) -> float:
    """The largest deviation of the norms of the 9 blocks of each image from 1."""
    return float(np.abs(np.linalg.norm(Z.reshape(len(Z), 9, -1), axis=2) - 1.0).max())


def _workload(
    name: str,
    title: str,
    shape: tuple[int, int],
    quick_rows: int,
    own: Any,
    other: Any,
    error: Quality,
    peer: str = "scikit-learn",
) -> FitWorkload:
    contenders = (Contender("summula", own), Contender(peer, other))
    return FitWorkload(name, title, shape, (quick_rows, shape[1]), table, contenders, error)


WORKLOADS = (
    _workload(
        "standard-scaler",
        "StandardScaler, fit and transform",
        (1_000_000, 50),
        10_000,
        _summula_scaler,
        _sklearn_scaler,
        Quality(standardisation_error, "error", tolerance=1e-9),
    ),
    _workload(
        "polynomial-lift",
        "PolynomialLift, degree 2",
        (100_000, 20),
        1_000,
        _summula_lift,
        _sklearn_lift,
        Quality(quadratic_sum_error, "error", tolerance=1e-12),
    ),
    _workload(
        "hog",
        "HOG, images of 32 x 32",
        (20_000, 1_024),
        500,
        _summula_histograms,
        _scipy_histograms,
        Quality(block_norm_error, "error", tolerance=1e-12),
        peer="scipy, image by image",
    ),
)
