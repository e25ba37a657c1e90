"""Fit every case of the contract suite on the same numbers in several containers, and compare; a program that prints JSON.

    python -m tests.products.compare_containers operands       BLAS operands (shape, strides, dtype, alignment), and fitted
                                                               attributes, of products that depend on the layout
    python -m tests.products.compare_containers bits           fitted attributes, with the BLAS of this process

It runs in a process of its own: modules are instrumented while they are imported, and OPENBLAS_CORETYPE, which chooses
the kernels of OpenBLAS, is read when NumPy is.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.products.instrument import PRODUCTS, Product, install

if __name__ == "__main__":
    install()  # before anything of summula is imported

import numpy as np
import threadpoolctl

import summula
from summula.linear_model import ElasticNet, Lasso, LogisticRegression
from tests.contract import storage
from tests.contract.compare import assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import CASES, Case, Data
from tests.contract.test_streams import named, target

IN_MEMORY = {
    "Fortran order": storage.ARRAYS["Fortran order"],
    "slice": storage.ARRAYS["slice"],
    "pandas": storage.FRAMES["pandas"],
    "polars": storage.FRAMES["polars"],
    "pyarrow": storage.FRAMES["pyarrow, in pieces"],
}
DASK = {"Dask array": storage.DASK["dask array"], "Dask dataframe": storage.DASK["dask dataframe"]}


class Found(NamedTuple):
    """Observations of one fit, without outputs of Dask collections, which are computed lazily per block."""

    fit_products: Any
    output_products: Any
    fit: Any
    output: Any


# More columns than rows: solved column by column on the matrix as it lies in memory.
WIDE = {
    "Lasso": Lasso(alpha=0.1, tol=1e-8),
    "ElasticNet, positive": ElasticNet(alpha=0.1, positive=True, tol=1e-8),
    "L1 logistic": LogisticRegression(l1_ratio=1.0, C=0.2, tol=1e-8),
}


def _observed(case: Case, X: Any, y: Any, weight: Any) -> Found:
    PRODUCTS.recorded = []
    model = case.fit(X, y, weight)
    of_fit = sorted(PRODUCTS.recorded, key=repr)  # threads that solve splits run in any order
    PRODUCTS.recorded = []
    output = case.output(model, X)
    values = np.concatenate(list(output)) if isinstance(output, Iterator) else None if _lazy(output) else output
    of_output = None if values is None else sorted(PRODUCTS.recorded, key=repr)
    return Found(of_fit, of_output, without_names(fitted_attributes(model)), values)


def _lazy(output: Any) -> bool:
    return hasattr(output, "dask")


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


def differences(case: Case, mode: str, size: str, folder: Path) -> Iterator[str]:
    """Return the differences from an array in C order.

    With `mode` "bits" every other container in turn is compared: bits follow from the operands.
    """
    data = case.data(size)
    expected = _observed(case, np.ascontiguousarray(data.X), data.y, data.weight if case.weighted else None)
    sources = list(_sources(data, case.weighted, case.streams, folder).items())
    for name, make in sources if mode == "operands" else sources[CASES.index(case) % 2 :: 2]:
        found = _observed(case, *make())
        for part in Found._fields:
            if getattr(found, part) is not None and (
                what := _difference(getattr(expected, part), getattr(found, part))
            ):
                yield f"{case}, {size}, {name}, {part}: {what}"


def wide_differences() -> Iterator[str]:
    """The same for rows in memory with more columns than rows."""
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(150, 800)), rng.integers(1, 3, 150).astype(float)
    score = X[:, :5].sum(axis=1) + rng.normal(size=150)
    for name, estimator in WIDE.items():
        classes = isinstance(estimator, LogisticRegression)
        case = Case(estimator, "classifier" if classes else "regressor")
        y = (score > 0).astype(int) if classes else score
        expected = _observed(case, X, y, weight)
        for container, keep in IN_MEMORY.items():
            found = _observed(case, keep(X), y, weight)
            for part in Found._fields:
                if what := _difference(getattr(expected, part), getattr(found, part)):
                    yield f"{name}, {container}, {part}: {what}"


def main(mode: str, only: str = "") -> None:
    """Compare all cases, and print what differs, how many products there were, and which BLAS computed them."""
    PRODUCTS.mode = {"operands": "by layout", "bits": "plain"}[mode]
    found: list[str] = []
    with summula.engine("serial"), tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if only in str(case):
                for size in ("small", "large") if mode == "operands" else ("large",):
                    found += differences(case, mode, size, Path(folder))
        if not only:
            found += wide_differences()
    blas = sorted({str(library.get("architecture")) for library in threadpoolctl.threadpool_info()})
    sys.stdout.write(json.dumps({"differences": found, "products": PRODUCTS.count, "blas": blas}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
