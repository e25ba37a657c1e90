"""Results computed row by row: arrays for data in memory, batches for files, lazy collections for Dask.

Estimators supply one function of a chunk. NaN and infinity are checked for in the input rows, not in the results: a
class with prior probability 0 correctly has a joint log probability of minus infinity.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk, Part
from summula.core.data.layout.blocks import load_kernel
from summula.core.data.output import write_batches
from summula.core.data.sources import MemorySource, Source
from summula.core.engine.engine import SerialEngine, ThreadEngine, current_engine, local_engine, map_batches
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import DataError
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.input.finiteness import has_bad_values, raise_if_not_finite
from summula.core.estimator.input.validation import check_fitted, collection_reader

__all__ = [
    "DENSE_ROWS",
    "ROWS",
    "UNLABELLED_ROWS",
    "PredictionWriter",
    "ProbabilityWriter",
    "RowFunction",
    "RowwiseEstimator",
    "composed",
    "concatenated",
    "map_chunks",
    "map_part",
]

Array = NDArray[Any]
RowFunction = Callable[[Chunk], Array]

_BY_ROW = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "predict_joint_log_proba",
    "decision_function",
    "score_samples",
    "transform",
    "inverse_transform",
)

# Documentation of X shared by the methods that go through rows: see `summula.core.docstrings`.
ROWS = """
Parameters
----------
X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
"""
DENSE_ROWS = ROWS.replace(" sparse matrix,", "")
UNLABELLED_ROWS = f"""{ROWS.rstrip()}
y : ignored
sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
"""


def composed(finish: Callable[[Array], Array], compute: RowFunction) -> RowFunction:
    """Return the picklable function chunk -> finish(compute(chunk))."""
    return functools.partial(_composed, finish, compute)


def _composed(finish: Callable[[Array], Array], compute: RowFunction, chunk: Chunk) -> Array:
    return finish(compute(chunk))


def _lazy_on_collections(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method so that it is evaluated lazily when X is a collection of a cluster library."""

    @functools.wraps(method)
    def by_row(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        reader = collection_reader(X)
        if reader is None:
            return method(self, X, *args, **options)
        return reader.lazily(self, method.__name__, X, *args, **options)

    return by_row


def map_part(
    compute: RowFunction, finish: Callable[[Array], Array] | None, nan: bool, part: Part
) -> tuple[list[Array], bool]:
    """Return the results for the chunks of a part, and whether its rows contain invalid values."""
    return map_chunks(compute, finish, nan, part.chunks())


def map_chunks(
    compute: RowFunction, finish: Callable[[Array], Array] | None, nan: bool, chunks: Iterable[Chunk]
) -> tuple[list[Array], bool]:
    """Return the results for chunks, and whether their rows contain invalid values."""
    results, refused = [], False
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for chunk in chunks:
            values = compute(chunk)
            suspect = np.isnan(values).any() if nan else not np.isfinite(values).all()
            refused = refused or bool(suspect and has_bad_values(chunk, allow_nan=nan))
            results.append(values if finish is None else finish(values))
    return results, refused


def concatenated(values: list[Array]) -> Array:
    """Return results for consecutive rows as one array; a single one is not copied."""
    return values[0] if len(values) == 1 else np.concatenate(values)


class RowwiseEstimator(Estimator):
    """Base class of estimators with results for each row."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _BY_ROW:
            method: Any = vars(cls).get(name)
            if hasattr(method, "fn"):  # scikit-learn's available_if around the method
                method.fn = _lazy_on_collections(method.fn)
            elif method is not None:
                setattr(cls, name, _lazy_on_collections(method))

    def _by_row(self, X: Any, compute: RowFunction, finish: Callable[[Array], Array] | None = None) -> Any:
        """Apply `compute` to the rows of X; `finish` converts its results, once checked, to the return value."""
        return self._map_rows(compute, self._reading(X), finish)

    def _example_model(self) -> Any:
        """Return a model whose results have the same form, and are fast to compute."""
        return self

    def _in_memory(self, X: Any, what: str) -> Source:
        """Return X as a source; raise an error if its rows are in files or a Dask collection."""
        check_fitted(self)
        source = self._reading(X)
        if source.streams:
            raise DataError(f"{what} needs rows in memory: pass an array or a frame with a subset of the rows.")
        return source

    def _map_rows(self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None = None) -> Any:
        """Apply `compute`, then `finish`, to the rows of a source."""
        if source.streams:
            return self._batches(compute, source, finish)
        engine = current_engine()
        here = isinstance(source, MemorySource) and type(engine) in (SerialEngine, ThreadEngine)
        if here and (chunk := source.only_chunk(engine.chunk_rows)) is not None:  # type: ignore[attr-defined]
            if not source.is_sparse:
                load_kernel(4 * source.n_rows * source.n_features)
            with one_blas_thread():  # without the engine: submitting a few rows takes longer than computing them
                return concatenated(self._accepted(map_chunks(compute, finish, self._allows_nan, (chunk,)), source))
        task, parts = self._row_tasks(compute, source, finish, engine.chunk_rows)
        if len(parts) == 1 and here:
            with one_blas_thread():
                results = [task(parts[0])]
        else:
            with closing(engine.map_ordered(task, parts, n_jobs=getattr(self, "n_jobs", None))) as values:
                results = list(values)
        return concatenated([value for part in results for value in self._accepted(part, source)])

    def _row_tasks(
        self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None, chunk_rows: int | None
    ) -> tuple[Callable[[Part], tuple[list[Array], bool]], list[Part]]:
        """Return the function of a part, and the parts."""
        if not source.is_sparse:
            load_kernel(4 * source.n_rows * source.n_features)  # products with a vector are slow without it
        return functools.partial(map_part, compute, finish, self._allows_nan), source.plan(chunk_rows)

    def _accepted(self, results: tuple[list[Array], bool], source: Source) -> list[Array]:
        """Return the values of a part, unless its rows contain invalid ones."""
        values, refused = results
        if refused:
            raise_if_not_finite(source, type(self).__name__, allow_nan=self._allows_nan)
        return values

    def _batches(
        self, compute: RowFunction, source: Source, finish: Callable[[Array], Array] | None
    ) -> Iterator[Array]:
        """Yield the values of one part after the other to the user's code."""
        engine = current_engine()
        task, parts = self._row_tasks(compute, source, finish, engine.chunk_rows)
        with closing(map_batches(engine, task, parts, n_jobs=getattr(self, "n_jobs", None))) as results:
            for part in results:
                yield concatenated(self._accepted(part, source))

    def _fill_batches(self, fill: Callable[[Chunk, Array], None], source: Source, width: int) -> Iterator[Array]:
        """Yield a block of results for each chunk of rows read from files."""
        for part in source.plan(current_engine().chunk_rows):
            for chunk in part.chunks():
                out = chunk.blank(width)
                with one_blas_thread():  # the bits of products may depend on the number of threads
                    fill(chunk, out)
                yield out

    def _fill_rows(self, fill: Callable[[Chunk, Array], None], source: Source, out: Array) -> Array:
        """Let `fill` write the results for each chunk into the corresponding rows of `out`."""
        engine = local_engine()

        def write(part: Part) -> None:
            for chunk in part.chunks():
                fill(chunk, out[chunk.start : chunk.stop])

        for _ in engine.map_ordered(write, source.plan(engine.chunk_rows), n_jobs=getattr(self, "n_jobs", None)):
            pass
        return out


class PredictionWriter:
    """Mixin that adds `predict_to` to estimators with `predict`."""

    def _output_names(self) -> tuple[str, ...]:
        """Return the names of the columns that predictions are written to."""
        return ("prediction",)

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Output file, ending in .parquet or .csv. Columns are named after the targets, or "prediction" if the targets
            have no names.
        raw_text : bool, default=False
            Whether to write text to CSV unchanged. By default, text that a spreadsheet would interpret as a formula (it
            starts with =, +, -, @, a tab or a line break, and is not a number) is prefixed with an apostrophe.

        Returns
        -------
        int
            Number of rows written.
        """
        return _written(self.predict(X), self._output_names(), path, raw_text)  # type: ignore[attr-defined]


class ProbabilityWriter(PredictionWriter):
    """Mixin that adds `predict_to` to estimators with `predict` and `predict_proba`."""

    def _class_names(self) -> tuple[str, ...]:
        """Return the names of the columns that probabilities are written to."""
        return tuple(str(label) for label in self.classes_)  # type: ignore[attr-defined]

    def predict_to(self, X: Any, path: str | os.PathLike[str], *, proba: bool = False, raw_text: bool = False) -> int:
        """Predict and write the results to a Parquet or CSV file, batch by batch; the file appears whole or not at all.

        Parameters
        ----------
        X : scan, or anything `predict` takes
        path : path
            Output file, ending in .parquet or .csv. The column is named "prediction"; with `proba` there is one column
            per class.
        proba : bool, default=False
            Whether to write probabilities instead of labels.
        raw_text : bool, default=False
            Whether to write text to CSV unchanged, even if a spreadsheet would interpret it as a formula.

        Returns
        -------
        int
            Number of rows written.
        """
        if not proba:
            return super().predict_to(X, path, raw_text=raw_text)
        return _written(self.predict_proba(X), self._class_names(), path, raw_text)  # type: ignore[attr-defined]


def _written(results: Any, names: tuple[str, ...], path: str | os.PathLike[str], raw_text: bool) -> int:
    """Write predictions batch by batch and return the number of rows."""
    if (reader := collection_reader(results)) is not None:
        results = reader.batches(results)
    batches = [results] if isinstance(results, np.ndarray) else results
    return write_batches(batches, names, path, raw_text=raw_text)
