"""Files larger than memory: least squares from Parquet and CSV compared with reading alone; adding and removing a file.

Each workload writes its files to a temporary folder, which is removed afterwards. Reading alone is the baseline: a fit
that reads at 70 % of the speed of pyarrow's default decoder has a ratio of 1.43.
"""

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workload import Contender, FitWorkload, Quality

BLOCK_ROWS = 1 << 20  # also the rows per row group, pyarrow's default
DAYS = 10
TARGET = "y"


Writer = Callable[[Path, int, int], None]


def blocks(rows: int, columns: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Normal columns of unequal mean and scale, a linear signal, unit noise."""
    slopes = np.random.default_rng(0).standard_normal(columns)
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng([1, number])
        X = rng.standard_normal((min(BLOCK_ROWS, rows - start), columns))
        X = X * np.linspace(0.5, 2.0, columns) + np.linspace(-1.0, 3.0, columns)
        yield X, X @ slopes + rng.standard_normal(len(X))


class Files:
    """Rows in files of a temporary folder, and their mean products, from which any result can be verified.

    The processes that measure memory are children of the one that wrote the files: they find the folder in an
    environment variable, and only the parent removes it.
    """

    def __init__(self, name: str, rows: int, columns: int, write: Writer, *, products: bool = True) -> None:
        self.rows = rows
        variable = f"SUMMULA_BENCHMARK_{name}_{rows}_{columns}".upper().replace("-", "_")
        if variable in os.environ:
            self.folder = Path(os.environ[variable])
        else:
            self.folder = Path(tempfile.mkdtemp(prefix="summula-benchmark-"))
            weakref.finalize(self, _remove, self.folder, variable)  # also at the end of the process
            write(self.folder, rows, columns)
            np.save(self.folder / "products.npy", _products(rows, columns) if products else np.empty(0))
            os.environ[variable] = str(self.folder)
        self.products = np.load(self.folder / "products.npy")
        self.paths = sorted(str(path) for path in self.folder.iterdir() if path.name != "products.npy")
        self.model: Any = None  # a model fitted before the timing


def _remove(folder: Path, variable: str) -> None:
    os.environ.pop(variable, None)
    shutil.rmtree(folder, ignore_errors=True)


def _products(rows: int, columns: int) -> np.ndarray:
    """Mean products of [X, y, 1], from another pass over the blocks."""
    G = np.zeros((columns + 2, columns + 2))
    for X, y in blocks(rows, columns):
        Z = np.column_stack([X, y, np.ones(len(y))])
        G += Z.T @ Z
    return G / rows


def _table(X: np.ndarray, y: np.ndarray) -> Any:
    import pyarrow as pa

    return pa.table({f"x{j}": np.ascontiguousarray(column) for j, column in enumerate(X.T)} | {TARGET: y})


def _write_parquet(folder: Path, rows: int, columns: int, compression: str) -> None:
    from pyarrow import parquet

    writer = None
    for X, y in blocks(rows, columns):
        table = _table(X, y)
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema, compression=compression)
        writer.write_table(table, row_group_size=BLOCK_ROWS)
    assert writer is not None
    writer.close()


def _write_csv(folder: Path, rows: int, columns: int) -> None:
    from pyarrow import csv

    writer = None
    for X, y in blocks(rows, columns):
        table = _table(X, y)
        writer = writer or csv.CSVWriter(folder / "rows.csv", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _write_days(folder: Path, rows: int, columns: int) -> None:
    from pyarrow import parquet

    (block,) = blocks(rows, columns)  # the files are small enough
    for number in range(DAYS):
        day = slice(number * rows // DAYS, (number + 1) * rows // DAYS)
        parquet.write_table(_table(*(part[day] for part in block)), folder / f"day{number}.parquet")


# ---------------------------------------------------------------------------------------------------------- contenders


def _fit() -> Callable[[Files], Any]:
    import summula
    from summula.linear_model import LinearRegression

    return lambda files: LinearRegression().fit(summula.scan(files.paths), TARGET)


def _path() -> Callable[[Files], Any]:
    import summula
    from summula.linear_model import lasso_path

    return lambda files: lasso_path(summula.scan(files.paths), TARGET, alphas=100)


def _add_and_remove() -> Callable[[Files], Any]:
    import summula
    from summula.linear_model import LinearRegression

    def work(files: Files) -> Any:
        if files.model is None:
            files.model = LinearRegression().fit(summula.scan(files.paths), TARGET)
        day = summula.scan(files.paths[-1])
        return files.model.forget(day, TARGET).partial_fit(day, TARGET)

    return work


def _write_classes(folder: Path, rows: int, columns: int) -> None:
    """The same rows with a target of 0 and 1."""
    from pyarrow import parquet

    slopes = np.random.default_rng(2).standard_normal(columns) / np.sqrt(columns)
    middle = np.linspace(-1.0, 3.0, columns)
    writer = None
    for number, (X, _) in enumerate(blocks(rows, columns)):
        chance = 1 / (1 + np.exp(-(X - middle) @ slopes))
        table = _table(X, (np.random.default_rng([3, number]).random(len(X)) < chance).astype(float))
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema, compression="none")
        writer.write_table(table, row_group_size=BLOCK_ROWS // 4)
    assert writer is not None
    writer.close()


def _logistic(in_memory: bool) -> Callable[[], Callable[[Files], Any]]:
    def load() -> Callable[[Files], Any]:
        import summula
        from summula.linear_model import LogisticRegression

        def work(files: Files) -> Any:
            if not in_memory:
                return LogisticRegression().fit(summula.scan(files.paths), TARGET)
            if files.model is None:  # read once, before the timing
                from pyarrow import parquet

                table = parquet.read_table(files.paths[0])
                X = np.empty((table.num_rows, table.num_columns - 1))
                for j in range(X.shape[1]):
                    X[:, j] = table.column(j).to_numpy()
                files.model = X, table.column(TARGET).to_numpy()
            return LogisticRegression().fit(*files.model)

        return work

    return load


def objective(files: Files, model: Any) -> float:
    """The objective of the certificate, which bounds its distance from the optimum."""
    return float(model.certificate_.primal)


def decode(paths: Callable[[Files], list[str]], **options: Any) -> Callable[[], Callable[[Files], int]]:
    """Read only: decode and discard every batch of some files."""

    def load() -> Callable[[Files], int]:
        from pyarrow.parquet import ParquetFile

        def work(files: Files) -> int:
            return sum(b.num_rows for path in paths(files) for b in ParquetFile(path, **options).iter_batches())

        return work

    return load


def _read_csv() -> Callable[[Files], int]:
    from pyarrow import csv

    return lambda files: csv.read_csv(files.paths[0]).num_rows


def error(files: Files, result: Any) -> float:
    """The error of the slopes; for a reader, which returns the number of rows, the fraction of rows missed."""
    if isinstance(result, int):
        return max(0.0, 1 - result / files.rows)
    mean = files.products[-1, :-1]
    S = files.products[:-1, :-1] - np.outer(mean, mean)
    answer = np.linalg.solve(S[:-1, :-1], S[:-1, -1])
    return float(np.abs(result.coef_ - answer).max() / np.abs(answer).max())


def error_of_days(files: Files, result: Any) -> float:
    """The same, where the reader has read the last file twice."""
    return 0.0 if isinstance(result, int) else error(files, result)


def error_of_path(files: Files, result: Any) -> float:
    """The violation of the optimality conditions of the lasso along a path, relative to its largest alpha."""
    if isinstance(result, int):
        return error(files, result)
    alphas, coefs, _ = result
    S = files.products[:-1, :-1]  # a path has no intercept
    slopes = S[:-1, -1:] - S[:-1, :-1] @ coefs
    away = np.where(coefs != 0, np.abs(slopes - alphas * np.sign(coefs)), np.maximum(np.abs(slopes) - alphas, 0.0))
    return float(away.max() / alphas.max())


# ----------------------------------------------------------------------------------------------------------- workloads


def _stream(
    name: str,
    title: str,
    shape: tuple[int, int],
    write: Callable[..., Any],
    peers: dict[str, Callable[[], Callable[[Files], Any]]],
    quality: Quality,
    rounds: int = 7,
) -> FitWorkload:
    return FitWorkload(
        name=f"stream-{name}",
        title=title,
        shape=shape,
        quick_shape=(20_000, shape[1]),
        make_data=partial(Files, f"stream-{name}", write=write),
        contenders=tuple(Contender(peer, load) for peer, load in peers.items()),
        quality=quality,
        rounds=rounds,
    )


_write_plain = partial(_write_parquet, compression="none")
_write_zstd = partial(_write_parquet, compression="zstd")
_decode_all = decode(lambda files: files.paths)
_decode_buffered = decode(lambda files: files.paths, pre_buffer=False, buffer_size=1 << 16)
_decode_last_twice = decode(lambda files: 2 * files.paths[-1:])
_EXACT = Quality(error, "error", tolerance=1e-9)

WORKLOADS = (
    _stream(
        "parquet",
        "LinearRegression from Parquet, uncompressed",
        (10_000_000, 50),
        _write_plain,
        {"summula": _fit, "pyarrow, decoding alone": _decode_all},
        _EXACT,
    ),
    _stream(
        "parquet-zstd",
        "LinearRegression from Parquet, zstd",
        (10_000_000, 50),
        _write_zstd,
        {"summula": _fit, "pyarrow, decoding alone": _decode_all},
        _EXACT,
    ),
    _stream(
        "csv",
        "LinearRegression from CSV",
        (2_000_000, 20),
        _write_csv,
        {"summula": _fit, "pyarrow, reading it whole": _read_csv},
        _EXACT,
    ),
    _stream(
        "day",
        f"LinearRegression, one of {DAYS} files removed and added",
        (1_000_000, 50),
        _write_days,
        {
            "summula": _add_and_remove,
            "pyarrow, decoding it twice": _decode_last_twice,
            "summula, fit to all files": _fit,
        },
        Quality(error_of_days, "error", tolerance=1e-9),
    ),
    _stream(
        "lasso-path",
        "lasso_path of 100 alphas from Parquet, uncompressed",
        (10_000_000, 100),
        _write_plain,
        {
            "summula": _path,
            "pyarrow, decoding alone": _decode_all,
            "pyarrow, decoding in small buffers": _decode_buffered,
        },
        Quality(error_of_path, "error", tolerance=1e-6),
        rounds=3,
    ),
    _stream(
        "logistic",
        "LogisticRegression from Parquet, against the same rows in memory",
        (10_000_000, 30),
        _write_classes,
        {"summula": _logistic(in_memory=False), "summula, in memory": _logistic(in_memory=True)},
        Quality(objective, "objective", tolerance=1e-9),
        rounds=3,
    ),
)
