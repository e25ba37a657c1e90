"""Naive Bayes and discriminant analysis: fits in one pass, evaluated by the log loss."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.streams import BLOCK_ROWS, Files, decode
from benchmarks.workload import Contender, FitWorkload, Quality

CHECKED_ROWS = 5_000
STREAM_CLASSES = 5


class Labelled(NamedTuple):
    """Rows and their classes."""

    X: Any
    y: np.ndarray


def _clusters(classes: int) -> Callable[[int, int], Labelled]:
    def make(rows: int, columns: int) -> Labelled:
        rng = np.random.default_rng(0)
        y = rng.integers(0, classes, rows)
        return Labelled(rng.standard_normal((rows, columns)) + rng.normal(0.0, 0.3, (classes, columns))[y], y)

    return make


def texts(rows: int, columns: int) -> Labelled:
    """Word counts: 50 distinct words per text, in 20 classes."""
    rng = np.random.default_rng(0)
    words = np.minimum(rng.zipf(1.3, rows * 50) - 1, columns - 1) + 0
    shift = np.repeat(rng.integers(0, 20, rows), 50)
    words = (words + shift * 37) % columns
    X = sparse.csr_matrix((np.ones(len(words)), words, np.arange(0, len(words) + 1, 50)), shape=(rows, columns))
    X.sum_duplicates()
    return Labelled(X, shift[::50])


def log_loss(data: Labelled, model: Any) -> float:
    """The negative mean log-probability of the true class over the leading rows."""
    p = model.predict_log_proba(data.X[:CHECKED_ROWS])
    return -float(np.mean(p[np.arange(len(p)), np.searchsorted(model.classes_, data.y[:CHECKED_ROWS])])) + 1.0


def _fit(module: str, name: str, **options: Any) -> Callable[[], Callable[[Labelled], Any]]:
    def load() -> Callable[[Labelled], Any]:
        found = getattr(import_module(module), name)
        return lambda data: found(**options).fit(data.X, data.y)

    return load


def _workload(
    name: str, title: str, shape: tuple[int, int], make: Any, module: str, model: str, **options: Any
) -> FitWorkload:
    return FitWorkload(
        name=name,
        title=title,
        shape=shape,
        quick_shape=(2_000, min(shape[1], 200)),
        make_data=make,
        contenders=(
            Contender("summula", _fit(f"summula.{module}", model, **options)),
            Contender("scikit-learn", _fit(f"sklearn.{module}", model, **options)),
        ),
        quality=Quality(log_loss, "objective", tolerance=1e-9),
    )


# -------------------------------------------------------------------------------------------------------------- streams


def _write(folder: Path, rows: int, columns: int) -> None:
    """Five normal classes, uncompressed; the class is the column `y`."""
    import pyarrow as pa
    from pyarrow import parquet

    means, writer = np.random.default_rng(0).normal(0.0, 0.5, (STREAM_CLASSES, columns)), None
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng([1, number])
        n = min(BLOCK_ROWS, rows - start)
        y = rng.integers(0, STREAM_CLASSES, n)
        X = means[y] + rng.standard_normal((n, columns))
        table = pa.table({**{f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)}, "y": y})
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema, compression="none")
        writer.write_table(table, row_group_size=BLOCK_ROWS // 4)
    assert writer is not None
    writer.close()


def _stream() -> Callable[[Files], Any]:
    import summula
    from summula.naive_bayes import GaussianNB

    return lambda files: GaussianNB().fit(summula.scan(files.paths), "y")


def distance_of_means(files: Files, model: Any) -> float:
    """The largest distance of a class mean from that of the distribution, in standard errors of it."""
    if isinstance(model, int):  # number of decoded rows
        return 0.0
    truth = np.random.default_rng(0).normal(0.0, 0.5, model.theta_.shape)
    return float(np.abs((model.theta_ - truth) * np.sqrt(model.class_count_)[:, None]).max())


WORKLOADS = (
    FitWorkload(
        name="nb-stream",
        title="GaussianNB, 5 classes, from Parquet, uncompressed",
        shape=(20_000_000, 20),
        quick_shape=(20_000, 20),
        make_data=lambda rows, columns: Files("naive-bayes", rows, columns, _write, products=False),
        contenders=(
            Contender("summula", _stream),
            Contender("pyarrow, decoding alone", decode(lambda files: files.paths)),
        ),
        quality=Quality(distance_of_means, "error", tolerance=6.0),
        rounds=3,
    ),
    _workload("nb-gaussian", "GaussianNB, 5 classes", (1_000_000, 50), _clusters(5), "naive_bayes", "GaussianNB"),
    _workload(
        "nb-multinomial", "MultinomialNB, sparse, 20 classes", (200_000, 50_000), texts, "naive_bayes", "MultinomialNB"
    ),
    _workload(
        "lda",
        "LinearDiscriminantAnalysis, 10 classes",
        (500_000, 50),
        _clusters(10),
        "discriminant_analysis",
        "LinearDiscriminantAnalysis",
        solver="lsqr",
    ),
    _workload(
        "qda",
        "QuadraticDiscriminantAnalysis, 5 classes",
        (300_000, 40),
        _clusters(5),
        "discriminant_analysis",
        "QuadraticDiscriminantAnalysis",
    ),
)
