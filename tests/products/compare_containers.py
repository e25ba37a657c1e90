"""Fit every case of the contract suite on the same numbers in several containers, and compare; a program that prints JSON.

    python -m tests.products.compare_containers operands       BLAS operands (shape, strides, dtype, alignment), and fitted
                                                               attributes, of products that depend on the layout
    python -m tests.products.compare_containers bits           fitted attributes, with the BLAS of this process

Products are compared in the order in which they are computed: on one thread (SUMMULA_NUM_THREADS=1), since threads that
solve splits come in any order.

It runs in a process of its own: modules are instrumented while they are imported, and OPENBLAS_CORETYPE, which chooses the
kernels of OpenBLAS, is read when NumPy is.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.products.instrument import PRODUCTS, Product, install

if __name__ == "__main__":
    install()  # before anything of summula is imported

import numpy as np
import threadpoolctl

import summula
from summula.core.data import chunks
from summula.core.data.chunks import Chunk
from summula.core.data.layout import blocks
from summula.linear_model import ElasticNet, Lasso, LogisticRegression
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import CASES, Case, Data
from tests.contract.test_streams import named, target


def _misaligned(X: Any) -> Any:
    """X in C order, 16 bytes past a multiple of 64, as NumPy may allocate it."""
    block = blocks.empty_block(1, X.size + 2, X.dtype)[0, 2:].reshape(X.shape)
    block[...] = X
    return block


IN_MEMORY = {
    "C order, misaligned": _misaligned,
    "Fortran order": storage.ARRAYS["Fortran order"],
    "slice": storage.ARRAYS["slice"],
    "pandas": storage.FRAMES["pandas"],
    "polars": storage.FRAMES["polars"],
    "pyarrow": storage.FRAMES["pyarrow, in pieces"],
}
DASK = {"Dask array": storage.DASK["dask array"], "Dask dataframe": storage.DASK["dask dataframe"]}


def _hand_out_views() -> None:
    """Multiply rows as they lie in memory."""
    Chunk.block = lambda self, dtype=None, origin=None: (
        self.dense(dtype or self.dtype) - (0 if origin is None else origin)
    )  # type: ignore[method-assign]


def _ignore_alignment() -> None:
    """Multiply rows in C order where they are, wherever they begin."""
    for module in (blocks, chunks):
        module.is_canonical = lambda array, dtype=None: array.flags.c_contiguous and dtype in (None, array.dtype)  # type: ignore[attr-defined]


class _Allocation:
    """How many bytes after a multiple of 64 the blocks begin that `_allocate_elsewhere` has allocated."""

    offset = 0


def _allocate_elsewhere() -> None:
    """Allocate blocks of every module at another place than for an array in C order (see `mistaken`)."""

    def allocate(rows: int, width: int, dtype: Any = np.float64) -> Any:
        size = rows * width * np.dtype(dtype).itemsize
        return np.ndarray((rows, width), dtype, empty(1, size + 64, np.uint8)[0, _Allocation.offset :])

    def is_there(array: Any, dtype: Any = None) -> bool:
        right_dtype = array.dtype.isnative and dtype in (None, array.dtype)
        return right_dtype and array.flags.c_contiguous and array.ctypes.data % 64 == _Allocation.offset

    empty = blocks.empty_block
    replaced = {
        "empty_block": (empty, allocate),
        "scratch_block": (blocks.scratch_block, lambda use, *given: allocate(*given)),
        "is_canonical": (blocks.is_canonical, is_there),
    }
    for name in [name for name in sys.modules if name.startswith("summula.")]:
        for function, (before, after) in replaced.items():
            if vars(sys.modules[name]).get(function) is before:
                setattr(sys.modules[name], function, after)


# Mistakes in the layout that the comparison has to find.
MISTAKES = {"views": _hand_out_views, "alignment": _ignore_alignment, "allocation": _allocate_elsewhere}


class Found(NamedTuple):
    """What one fit shows: its products, in the order in which they are computed, and the results."""

    fit_products: list[Product]
    output_products: list[Product]
    fit: Any
    output: Any
    of_blocks: Found | None = None  # the same fit and the output of arrays, one for each block of a Dask collection


# More columns than rows: solved column by column on the matrix as it lies in memory.
WIDE = {
    "Lasso": Lasso(alpha=0.1, tol=1e-8),
    "ElasticNet, positive": ElasticNet(alpha=0.1, positive=True, tol=1e-8),
    "L1 logistic": LogisticRegression(l1_ratio=1.0, C=0.2, tol=1e-8),
}


def _recorded(compute: Callable[[], Any]) -> tuple[Any, list[Product]]:
    """What a function returns, and the products in it."""
    products: list[Product] = []
    PRODUCTS.recorded = products
    try:
        return compute(), products
    finally:
        PRODUCTS.recorded = None


def _observed(case: Case, X: Any, y: Any, weight: Any) -> Found:
    model, of_fit = _recorded(lambda: case.fit(X, y, weight))
    attributes = without_names(fitted_attributes(model))
    if not _lazy(X) or not _lazy(lazy := case.output(model, X)):
        output, of_output = _recorded(lambda: _whole(case.output(model, X)))
        return Found(of_fit, of_output, attributes, output)
    output, of_output = _recorded(lambda: np.concatenate(_blocks(lazy)))
    arrays = [np.ascontiguousarray(block, np.float64) for block in _blocks(X)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # arrays have no names of columns
        again, of_arrays = _recorded(lambda: np.concatenate([case.output(model, array) for array in arrays]))
    return Found(of_fit, of_output, attributes, output, Found(of_fit, of_arrays, attributes, again))


def _whole(output: Any) -> Any:
    return np.concatenate(list(output)) if isinstance(output, Iterator) else output


def _lazy(values: Any) -> bool:
    return hasattr(values, "dask")


def _blocks(collection: Any) -> list[Any]:
    """The blocks of a Dask collection, computed in order in this thread."""
    return [block.compute(scheduler="synchronous") for block in np.ravel(collection.to_delayed())]


def _difference(expected: Any, found: Any) -> str:
    """Return a description of the difference of two observations; empty if they are equal."""
    if isinstance(expected, list) and all(isinstance(one, Product) for one in expected):
        pairs = [(a, b) for a, b in zip(expected, found, strict=False) if a != b]
        if pairs:
            return f"{pairs[0][0]} became {pairs[0][1]}"
        return "" if len(expected) == len(found) else f"{len(expected)} products became {len(found)}"
    try:
        assert_same_bits(expected, found)
    except AssertionError as error:
        return str(error)
    return ""


def _differing(expected: Found, found: Found) -> Iterator[str]:
    """In what a fit differs from that of an array in C order.

    Results of a Dask collection are computed block by block: each has the products and the bits of an array with the
    rows of the block, and agrees with the array of all rows to rounding.
    """
    of_rows = found.of_blocks or expected
    for part in ("fit_products", "output_products", "fit", "output"):
        if what := _difference(getattr(expected if part.startswith("fit") else of_rows, part), getattr(found, part)):
            yield f"{part}: {what}"
    if found.of_blocks is not None:
        try:
            assert_close(expected.output, found.output)
        except AssertionError as error:
            yield f"output to rounding: {error}"


def _sources(data: Data, weighted: bool, streams: bool, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return functions that create features, target and weight for each container."""
    weight = data.weight if weighted else None

    def in_memory(keep: Any) -> Callable[[], Any]:
        return lambda: (keep(data.X), data.y, weight)

    def on_disk() -> Any:
        kept = storage.STREAMS["Parquet, small row groups"](named(data, weighted), folder)
        return kept, target(data), "weight" if weighted else None

    made = {name: in_memory(keep) for name, keep in (IN_MEMORY | DASK if streams else IN_MEMORY).items()}
    return made | ({"scan": on_disk} if streams else {})


def mistaken(case: Case, size: str) -> Iterator[tuple[str, str]]:
    """Return which sequences of products of a case contain rows, and how those of Fortran order differ, if they do."""
    data = case.data(size)
    weight = data.weight if case.weighted else None
    expected = _observed(case, blocks.aligned(data.X), data.y, weight)
    _Allocation.offset = 16
    found = _observed(case, IN_MEMORY["Fortran order"](data.X), data.y, weight)
    _Allocation.offset = 0
    for part in ("fit_products", "output_products"):
        if any(one.has_rows for one in getattr(expected, part)):
            yield f"{case}, {size}, {part}", _difference(getattr(expected, part), getattr(found, part))


def differences(case: Case, mode: str, size: str, folder: Path) -> Iterator[str]:
    """Return the differences from an array in C order.

    With `mode` "bits" every other container in turn is compared: bits follow from the operands.
    """
    data = case.data(size)
    expected = _observed(case, blocks.aligned(data.X), data.y, data.weight if case.weighted else None)
    sources = list(_sources(data, case.weighted, case.streams, folder).items())
    for name, make in sources if mode == "operands" else sources[CASES.index(case) % 2 :: 2]:
        for what in _differing(expected, _observed(case, *make())):
            yield f"{case}, {size}, {name}, {what}"


def wide_differences() -> Iterator[str]:
    """The same for rows in memory with more columns than rows."""
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(150, 800)), rng.integers(1, 3, 150).astype(float)
    score = X[:, :5].sum(axis=1) + rng.normal(size=150)
    for name, estimator in WIDE.items():
        classes = isinstance(estimator, LogisticRegression)
        case = Case(estimator, "classifier" if classes else "regressor")
        y = (score > 0).astype(int) if classes else score
        expected = _observed(case, blocks.aligned(X), y, weight)
        for container, keep in IN_MEMORY.items():
            for what in _differing(expected, _observed(case, keep(X), y, weight)):
                yield f"{name}, {container}, {what}"


def main(mode: str, only: str = "", mistake: str = "") -> None:
    """Compare all cases, and print what differs, how many products there were, and which BLAS computed them.

    `only` is part of the names of some cases; `mistake` is made in the layout on purpose: what differs is then printed
    for each sequence of products with rows.
    """
    if mistake:
        MISTAKES[mistake]()
    PRODUCTS.mode = {"operands": "by layout", "bits": "plain"}[mode]
    found: list[str] = []
    mistakes: dict[str, str] = {}
    with summula.engine("serial"), tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if only in str(case):
                for size in ("small", "large") if mode == "operands" else ("large",):
                    if mistake:
                        mistakes.update(mistaken(case, size))
                    else:
                        found += differences(case, mode, size, Path(folder))
        if not only and not mistake:
            found += wide_differences()
    blas = sorted({str(library.get("architecture")) for library in threadpoolctl.threadpool_info()})
    result = {"differences": found, "mistakes": mistakes, "products": PRODUCTS.count, "blas": blas}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
