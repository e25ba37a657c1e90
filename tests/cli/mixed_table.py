"""A realistic table: numbers, categories, a boolean, a date, and a tenth of the cells missing.

`python -m tests.cli.mixed_table 300000 mixed.parquet` writes one; the target is the class `bought`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

LEVELS = (5, 8, 12, 20, 50, 100, 200)
NUMBERS = 11
MISSING = 0.1


def mixed_table(rows: int, seed: int = 0) -> pa.Table:
    """Return a table of 20 columns and a target that depends on most of them and on interactions of some."""
    rng = np.random.default_rng([seed, rows])
    score, columns = np.zeros(rows), {}
    numbers = rng.normal(size=(rows, NUMBERS))
    for j in range(NUMBERS):
        columns[f"amount_{j}"] = _with_gaps(np.exp(numbers[:, j]) if j % 3 == 0 else numbers[:, j] * 10.0**j, rng)
    score += numbers[:, 0] * numbers[:, 1] + np.sin(2 * numbers[:, 2]) + 0.5 * numbers[:, 3] - np.abs(numbers[:, 4])
    for levels in LEVELS:
        share = rng.dirichlet(np.full(levels, 2.0))
        codes = rng.choice(levels, rows, p=share)
        effect = rng.normal(0.0, 0.7, levels)
        score += effect[codes] * (1.0 if levels % 20 else 0.5 + (numbers[:, 5] > 0))
        columns[f"kind_{levels}"] = _with_gaps(np.array([f"k{levels}-{k}" for k in range(levels)], object)[codes], rng)
    member = rng.random(rows) < 0.3
    columns["member"] = _with_gaps(member.astype(object), rng, pa.bool_())
    days = rng.integers(0, 1_500, rows)
    moments = np.datetime64("2020-01-01", "D") + days
    columns["since"] = _with_gaps(moments, rng)
    score += 0.8 * member * numbers[:, 6] + np.cos(days / 365.25 * 2 * np.pi)
    bought = score - np.median(score) + rng.logistic(size=rows) > 0
    columns["bought"] = pa.array(np.where(bought, "yes", "no"))
    return pa.table(columns)


def _with_gaps(values: Any, rng: np.random.Generator, kind: Any = None) -> pa.Array:
    return pa.array(values, kind, mask=rng.random(len(values)) < MISSING)


if __name__ == "__main__":
    table, path = mixed_table(int(sys.argv[1])), sys.argv[2]
    (csv.write_csv if path.endswith(".csv") else parquet.write_table)(table, path)
