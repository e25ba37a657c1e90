"""k-means: the same first centres, the same number of passes, the same inertia."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mixtures import fit_files, stream_workload
from benchmarks.workload import Contender, FitWorkload, Quality

STREAM_CLUSTERS = 20
STREAM_PASSES = 5


class Rows(NamedTuple):
    """Rows, and the options of every contender."""

    X: np.ndarray
    options: dict[str, Any]


def overlapping(rows: int, columns: int, k: int, passes: int) -> Rows:
    """Overlapping clusters, and some of their rows as initial centres.

    The distance between clusters does not grow with the number of columns: if they are well separated some centre loses
    all its rows in the second pass, and the treatment of empty clusters would determine the inertia.
    """
    rng = np.random.default_rng(0)
    means = min(1.0, (20 / columns) ** 0.5) * rng.uniform(-10.0, 10.0, (k, columns))
    X = means[rng.integers(0, k, rows)] + 5.0 * rng.standard_normal((rows, columns))
    start = X[rng.choice(rows, k, replace=False)]
    return Rows(X, {"n_clusters": k, "init": start, "n_init": 1, "max_iter": passes, "tol": 0.0})


def seeded(rows: int, columns: int, k: int) -> Rows:
    """The same rows; three starts by k-means++."""
    data = overlapping(rows, columns, k, 1)
    return data._replace(options={"n_clusters": k, "n_init": 3, "random_state": 0})


def _fit(module: str) -> Callable[[], Callable[[Rows], Any]]:
    def load() -> Callable[[Rows], Any]:
        found = import_module(module).KMeans
        return lambda data: found(**data.options).fit(data.X)

    return load


def _faiss() -> Callable[[Rows], Any]:
    import faiss

    def work(data: Rows) -> Any:
        k, start = data.options["n_clusters"], data.options["init"].astype(np.float32)
        most = {"max_points_per_centroid": len(data.X), "min_points_per_centroid": 1}
        model = faiss.Kmeans(data.X.shape[1], k, niter=data.options["max_iter"], **most)
        model.train(data.X.astype(np.float32), init_centroids=start)
        return model

    return work


def inertia(data: Rows, model: Any) -> float:
    """The inertia of all rows, from the centres."""
    centres = np.asarray(getattr(model, "cluster_centers_", getattr(model, "centroids", None)), np.float64)
    total = 0.0
    for start in range(0, len(data.X), 10_000):
        some = data.X[start : start + 10_000]
        shares = (centres**2).sum(axis=1) - 2 * some @ centres.T
        total += float(((some**2).sum(axis=1) + shares.min(axis=1)).sum())
    return total


def noise(rows: int, columns: int, k: int, passes: int) -> Rows:
    """Rows without clusters, for which bounds on distances save the least."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    start = X[rng.choice(rows, k, replace=False)]
    return Rows(X, {"n_clusters": k, "init": start, "n_init": 1, "max_iter": passes, "tol": 0.0})


PEERS = (Contender("scikit-learn", _fit("sklearn.cluster")), Contender("intelex", _fit("sklearnex.cluster")))


def _in_memory(name: str, shape: tuple[int, int], k: int, passes: int, make: Callable[..., Rows]) -> FitWorkload:
    return FitWorkload(
        name=f"k-means-{name}",
        title=f"KMeans, {k} clusters, {passes} passes",
        shape=shape,
        quick_shape=(2_000, min(shape[1], 10)),
        make_data=partial(make, k=k, passes=passes),
        contenders=(Contender("summula", _fit("summula.cluster")), *PEERS, Contender("FAISS, float32", _faiss)),
        quality=Quality(inertia, "objective", tolerance=1e-5),  # FAISS has single precision
        rounds=3,
    )


def _from_centres(start: np.ndarray) -> Any:
    from summula.cluster import KMeans

    return KMeans(STREAM_CLUSTERS, init=start, tol=0.0, max_iter=STREAM_PASSES)


WORKLOADS = (
    _in_memory("many-rows", (500_000, 20), 50, 50, overlapping),
    _in_memory("many-rows-noise", (500_000, 20), 50, 50, noise),
    _in_memory("many-columns", (100_000, 300), 20, 30, overlapping),
    FitWorkload(
        name="k-means-starts",
        title="KMeans, 100 clusters, the best of 3 starts by k-means++",
        shape=(200_000, 10),
        quick_shape=(2_000, 5),
        make_data=partial(seeded, k=100),
        contenders=(Contender("summula", _fit("summula.cluster")), *PEERS),
        quality=Quality(inertia, "objective", tolerance=0.05),  # other random numbers
        rounds=3,
    ),
    stream_workload(
        "k-means",
        f"KMeans, {STREAM_CLUSTERS} clusters, {STREAM_PASSES} passes",
        partial(fit_files, centres=STREAM_CLUSTERS, make=_from_centres),
        lambda files, model: model.inertia_,
    ),
)
