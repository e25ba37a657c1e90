"""Tables, and models of the same rows in memory and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import summula
from summula.core.data.scan import Scan
from summula.neighbors import KNeighborsRegressor

QUERIES = 120


def table(name: str = "ties", rows: int = 700) -> pd.DataFrame:
    """Features a, b, ..., of which many rows are equal, with a target y and labels c."""
    rng = np.random.default_rng(5)
    X = {
        "ties": rng.integers(0, 3, (rows, 4)).astype(float),
        "normal": rng.normal(size=(rows, 4)),
        "many columns": rng.normal(size=(rows, 20)),
        "single": rng.normal(size=(rows, 20)).astype(np.float32),
        "two columns": rng.uniform(-1.5, 1.5, (rows, 2)),
        # The square of the largest value overflows, so all rows are scaled: those of blocks without it, too.
        "magnitudes": rng.normal(size=(rows, 3)) * np.where(np.arange(rows) == rows - 2, 1e200, 1e-3)[:, None],
        "missing": np.where(rng.uniform(size=(rows, 4)) < 0.3, np.nan, rng.normal(size=(rows, 4))),
    }[name]
    frame = pd.DataFrame(X, columns=list("abdefghijklmnopqrstu")[: X.shape[1]])
    return frame.assign(y=rng.normal(size=rows), c=rng.choice(["blue", "green", "red"], rows))


def scanned(frame: pd.DataFrame, folder: Path, group: int = 97) -> Scan:
    frame.to_parquet(folder / "rows.parquet", row_group_size=group)
    return summula.scan(folder / "rows.parquet")


def pair(
    frame: pd.DataFrame, folder: Path, kind: Any = KNeighborsRegressor, k: int = 5, **options: Any
) -> tuple[Any, Any]:
    """The same model of rows in memory and in a file."""
    target, other = ("y", "c") if kind is KNeighborsRegressor else ("c", "y")
    rows = frame.drop(columns=other)
    return kind(k, **options).fit(rows, target), kind(k, **options).fit(scanned(rows, folder), target)


def features(frame: pd.DataFrame, rows: int | None = QUERIES) -> pd.DataFrame:
    return frame.drop(columns=["y", "c"])[:rows]


def assert_same(a: Any, b: Any) -> None:
    for one, other in zip(a, b, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
