"""Principal components and factor analysis."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.workload import Contender, FitWorkload, Quality

Shape = tuple[int, int]

COMPONENTS = 10
STORED = 50  # values per sparse row
TOPICS = 20


def table(rows: int, columns: int) -> np.ndarray:
    """Normal columns, the first twenty with more variance."""
    X = np.random.default_rng(0).standard_normal((rows, columns))
    X[:, :20] *= np.linspace(5.0, 2.0, min(20, columns))
    return X


def factors(rows: int, columns: int) -> np.ndarray:
    """Columns with ten common factors and independent noise."""
    rng = np.random.default_rng(0)
    L = rng.normal(size=(COMPONENTS, columns))
    noise = np.sqrt(rng.uniform(0.5, 3.0, columns))
    return rng.normal(size=(rows, COMPONENTS)) @ L + rng.normal(size=(rows, columns)) * noise


def words(rows: int, columns: int) -> Any:
    """Sparse rows: columns with frequencies like those of words, and five columns for each of twenty topics."""
    rng = np.random.default_rng(0)
    where = (columns * rng.random(rows * STORED) ** 3).astype(np.int64)
    X = sparse.csr_matrix((rng.random(rows * STORED), (np.repeat(np.arange(rows), STORED), where)), (rows, columns))
    topic = rng.integers(0, TOPICS, rows)
    own = (37 * topic[:, None] + np.arange(5)).ravel() + columns // 7
    return (X + sparse.csr_matrix((np.ones(5 * rows), (np.repeat(np.arange(rows), 5), own)), (rows, columns))).tocsr()


def noise(rows: int, columns: int) -> Any:
    """Sparse rows without any structure: the hardest spectrum."""
    rng = np.random.default_rng(0)
    where = rng.integers(0, columns, rows * STORED)
    return sparse.csr_matrix((rng.random(rows * STORED), (np.repeat(np.arange(rows), STORED), where)), (rows, columns))


def lost_variance(X: Any, model: Any) -> float:
    """The variance that the components do not explain."""
    return float(1.0 - model.explained_variance_ratio_.sum())


def negative_log_likelihood(X: np.ndarray, model: Any) -> float:
    """Per row, from the covariance matrix of the model."""
    S, Sigma = np.cov(X.T, bias=True), model.components_.T @ model.components_ + np.diag(model.noise_variance_)
    return float(np.linalg.slogdet(2 * np.pi * Sigma)[1] + np.trace(np.linalg.solve(Sigma, S))) / 2


def _fit(module: str, name: str, **options: Any) -> Callable[[], Callable[[Any], Any]]:
    def load() -> Callable[[Any], Any]:
        from importlib import import_module

        found = getattr(import_module(module), name)

        def work(X: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return found(n_components=COMPONENTS, random_state=0, **options).fit(X)

        return work

    return load


def _contenders(name: str, **options: Any) -> tuple[Contender, ...]:
    own, other = (
        Contender(title, _fit(module, name, **options))
        for title, module in (("summula", "summula.decomposition"), ("scikit-learn", "sklearn.decomposition"))
    )
    return own, other


def _pca(name: str, title: str, shape: Shape, quick_shape: Shape, data: Any, rounds: int = 7) -> FitWorkload:
    quality = Quality(lost_variance, "objective", tolerance=1e-10)
    return FitWorkload(
        name, f"PCA, 10 components{title}", shape, quick_shape, data, _contenders("PCA"), quality, rounds
    )


WORKLOADS = (
    _pca("pca", "", (200_000, 200), (2_000, 50), table),
    _pca("pca-sparse", ", sparse, topics", (100_000, 20_000), (3_000, 2_500), words, rounds=3),
    _pca("pca-sparse-noise", ", sparse, no structure", (100_000, 20_000), (3_000, 2_500), noise, rounds=1),
    FitWorkload(
        name="factor-analysis",
        title="FactorAnalysis, 10 factors, tol 1e-4",
        shape=(50_000, 100),
        quick_shape=(1_000, 30),
        make_data=factors,
        contenders=_contenders("FactorAnalysis", tol=1e-4),
        quality=Quality(negative_log_likelihood, "objective", tolerance=1e-9),
        rounds=3,
    ),
)
