"""Gaussian mixtures with equal starting values, number of EM steps and likelihood."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from benchmarks.streams import BLOCK_ROWS, Files
from benchmarks.workload import Contender, FitWorkload, Quality

COMPONENTS = 10
STEPS = 20
STREAM_COMPONENTS = 5
STREAM_STEPS = 5
CHECKED_ROWS = 20_000


class Rows(NamedTuple):
    """Rows, and the starting values of all contenders."""

    X: np.ndarray
    start: dict[str, Any]


def _start(means: np.ndarray, kind: str) -> dict[str, Any]:
    k, d = means.shape
    unit = {"full": np.tile(np.eye(d), (k, 1, 1)), "tied": np.eye(d), "diag": np.ones((k, d)), "spherical": np.ones(k)}
    return {"weights_init": np.full(k, 1 / k), "means_init": means, "precisions_init": unit[kind]}


def overlapping(rows: int, columns: int, kind: str, holes: float = 0.0) -> Rows:
    """Ten overlapping normal clusters, with some missing values."""
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 2.0, (COMPONENTS, columns))
    X = means[rng.integers(0, COMPONENTS, rows)] + rng.standard_normal((rows, columns))
    start = X[rng.choice(rows, COMPONENTS, replace=False)]
    if holes:
        X[rng.random(X.shape) < holes] = np.nan
    return Rows(X, _start(start, kind))


def _matrices(model: Any) -> np.ndarray:
    k, d = model.means_.shape
    C = np.asarray(model.covariances_)
    if model.covariance_type in ("full", "tied"):
        return np.broadcast_to(C, (k, d, d))
    return np.eye(d) * C.reshape(k, -1, 1)


def negative_log_likelihood(X: np.ndarray, model: Any) -> float:
    """The negative log-likelihood per row of the leading rows, from SciPy's densities."""
    X = X[:CHECKED_ROWS]
    parts = zip(model.weights_, model.means_, _matrices(model), strict=True)
    joint = [np.log(weight) + stats.multivariate_normal(mean, S).logpdf(X) for weight, mean, S in parts]
    return -float(special.logsumexp(joint, axis=0).mean())


def _fit(module: str, kind: str) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        from importlib import import_module

        found = import_module(module).GaussianMixture

        def work(data: Rows) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # with tolerance 0, twenty steps do not converge
                return found(COMPONENTS, covariance_type=kind, tol=0.0, max_iter=STEPS, **data.start).fit(data.X)

        return work

    return load


def _in_memory(kind: str) -> FitWorkload:
    return FitWorkload(
        name=f"mixture-{kind}",
        title=f"GaussianMixture, {kind}, {COMPONENTS} components, {STEPS} steps",
        shape=(200_000, 15),
        quick_shape=(2_000, 5),
        make_data=partial(overlapping, kind=kind),
        contenders=(
            Contender("summula", _fit("summula.mixture", kind)),
            Contender("scikit-learn", _fit("sklearn.mixture", kind)),
        ),
        quality=Quality(lambda data, model: negative_log_likelihood(data.X, model), "objective", tolerance=1e-9),
        rounds=3,
    )


# -------------------------------------------------------------------------------------------------------------- streams


def _write(folder: Path, rows: int, columns: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    means = np.random.default_rng(0).normal(0.0, 2.0, (STREAM_COMPONENTS, columns))
    writer = None
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng([1, number])
        n = min(BLOCK_ROWS, rows - start)
        X = means[rng.integers(0, STREAM_COMPONENTS, n)] + rng.standard_normal((n, columns))
        table = pa.table({f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)})
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema, compression="none")
        writer.write_table(table, row_group_size=BLOCK_ROWS // 4)
    assert writer is not None
    writer.close()


def rows_in_memory(files: Files) -> np.ndarray:
    """The rows in memory, read once, before the timing."""
    if files.model is None:
        from pyarrow import parquet

        table = parquet.read_table(files.paths[0])
        files.model = np.empty((table.num_rows, table.num_columns))
        for j in range(table.num_columns):
            files.model[:, j] = table.column(j).to_numpy()
    X: np.ndarray = files.model
    return X


def fit_files(in_memory: bool, centres: int, make: Callable[[np.ndarray], Any]) -> Callable[[], Callable[[Files], Any]]:
    """A fit to files, or to their rows in memory; `make` returns the model with given initial centres."""

    def load() -> Callable[[Files], Any]:
        import summula

        def work(files: Files) -> Any:
            columns = len(summula.scan(files.paths).columns)
            start = np.random.default_rng(2).normal(0.0, 2.0, (centres, columns))
            rows = rows_in_memory(files) if in_memory else summula.scan(files.paths)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return make(start).fit(rows)

        return work

    return load


def _from_means(means: np.ndarray) -> Any:
    from summula.mixture import GaussianMixture

    return GaussianMixture(STREAM_COMPONENTS, tol=0.0, max_iter=STREAM_STEPS, **_start(means, "full"))


def stream_workload(name: str, title: str, fit: Callable[[bool], Any], value: Callable[..., float]) -> FitWorkload:
    """A fit to Parquet files, compared with the same rows in memory."""
    contenders = (Contender("summula", fit(False)), Contender("summula, in memory", fit(True)))
    return FitWorkload(
        f"{name}-stream",
        f"{title}, from Parquet",
        (10_000_000, 10),
        (20_000, 5),
        lambda rows, columns: Files(name, rows, columns, _write, products=False),
        contenders,
        Quality(value, "objective", tolerance=1e-12),
        rounds=3,
    )


WORKLOADS = (
    *(_in_memory(kind) for kind in ("full", "tied", "diag", "spherical")),
    stream_workload(
        "mixture",
        f"GaussianMixture, full, {STREAM_COMPONENTS} components, {STREAM_STEPS} steps",
        partial(fit_files, centres=STREAM_COMPONENTS, make=_from_means),
        lambda files, model: -model.lower_bound_,
    ),
)
