"""Whether BLAS is handed the same operands for every container: run as a program, prints what differs as JSON.

Each case of the contract suite is fitted on, and predicts for, the same numbers in several containers. The sequences of
operands (shape, strides, dtype, alignment) of all matrix products have to be equal.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.products.instrument import PRODUCTS, Product  # isort: skip  (before anything of summula is imported)

import numpy as np

import summula
from tests.contract import storage
from tests.contract.registry import CASES, Case
from tests.contract.test_streams import named, target

CONTAINERS = {
    "Fortran order": storage.ARRAYS["Fortran order"],
    "slice": storage.ARRAYS["slice"],
    "pandas": storage.FRAMES["pandas"],
    "polars": storage.FRAMES["polars"],
    "pyarrow": storage.FRAMES["pyarrow, in pieces"],
    "Dask array": storage.DASK["dask array"],
    "Dask dataframe": storage.DASK["dask dataframe"],
}


def _products(case: Case, X: Any, y: Any, weight: Any) -> tuple[list[Product], list[Product]]:
    """The products of a fit and of its outputs; sorted, since threads that solve splits come in any order."""
    PRODUCTS.recorded = []
    model = case.fit(X, y, weight)
    fit, PRODUCTS.recorded = PRODUCTS.recorded, []
    output = case.output(model, X)
    if isinstance(output, Iterator):
        list(output)
    return sorted(fit, key=repr), sorted(PRODUCTS.recorded, key=repr)


def differences(case: Case, size: str, folder: Path) -> Iterator[str]:
    """What differs from the operands for an array in C order, one sentence for each container."""
    data = case.data(size)
    weight = data.weight if case.weighted else None
    expected, outputs = _products(case, np.ascontiguousarray(data.X), data.y, weight)
    sources = {name: (keep(data.X), data.y, weight) for name, keep in CONTAINERS.items()}
    kept = storage.STREAMS["Parquet, small row groups"](named(data, case.weighted), folder)
    sources["scan"] = kept, target(data), "weight" if case.weighted else None
    for name, given in sources.items():
        fit, output = _products(case, *given)
        lazy = name.startswith("Dask")  # outputs are computed later, block by block of the collection
        for before, after in ((expected, fit), ([] if lazy else outputs, [] if lazy else output)):
            pairs = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
            if pairs:
                yield f"{case}, {size}, {name}: {pairs[0][0]} became {pairs[0][1]}"
            elif len(before) != len(after):
                yield f"{case}, {size}, {name}: {len(before)} products became {len(after)}"


def main(only: str = "") -> None:
    """Compare all cases; print a JSON list of sentences, empty when nothing differs, and the number of products."""
    PRODUCTS.mode = "record"
    found: list[str] = []
    with summula.engine("serial"), tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if only in str(case):
                for size in ("small", "large"):
                    found += differences(case, size, Path(folder))
    sys.stdout.write(json.dumps({"differences": found, "products": PRODUCTS.count}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
