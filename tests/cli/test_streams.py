"""`predict` and `certify` on tables of many blocks: read once, in order, for any row groups, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from summula.core.data.readers.binary_tables import ParquetTable
from summula.preprocessing.table_encoder_blocks import BLOCK_ROWS
from tests.cli.commands import document, run
from tests.cli.mixed_table import mixed_table
from tests.processes import TIMEOUT, environment

ROWS = 3 * BLOCK_ROWS + 321


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a mixed table, and fresh rows in files; a tenth of the answers is missing."""
    home = tmp_path_factory.mktemp("streams")
    parquet.write_table(mixed_table(4_000), home / "table.parquet")
    run("train", home / "table.parquet", "-t", "bought", "-o", home / "out", "--models", "logistic")
    fresh = mixed_table(ROWS, seed=1)
    gaps = np.random.default_rng(0).random(ROWS) < 0.1
    answers = pa.array(fresh["bought"].to_numpy(), mask=gaps)
    fresh = fresh.set_column(fresh.column_names.index("bought"), "bought", answers)
    parquet.write_table(fresh, home / "one group.parquet")
    parquet.write_table(fresh, home / "many groups.parquet", row_group_size=10_007)
    csv.write_csv(fresh, home / "fresh.csv")
    return home


@pytest.fixture(scope="module")
def certified(home: Path) -> tuple[int, Any]:
    """The number of new rows with a target, and the library's results for them as a frame."""
    model = summula.load(home / "out" / "model.summula")
    fresh = parquet.read_table(home / "one group.parquet")
    fresh = fresh.filter(fresh["bought"].is_valid())
    return fresh.num_rows, summula.certify(model, fresh, "bought")


@pytest.mark.parametrize("name", ["one group.parquet", "many groups.parquet", "fresh.csv"])
def test_certify_of_files_agrees_with_the_library_on_the_frame(
    name: str, home: Path, certified: tuple[int, Any]
) -> None:
    result, (rows, certificate) = run("certify", home / "out", home / name, "--json"), certified
    output = json.loads(result.stdout)
    assert output["rows"] == rows
    assert (output["estimate"], output["lower"], output["upper"]) == (
        certificate.estimate,
        certificate.lower,
        certificate.upper,
    )
    assert f"{ROWS - rows:,} rows without a value of 'bought' are left out." in result.stderr


def test_training_rows_are_recognised_in_any_file(home: Path, tmp_path: Path) -> None:
    table = parquet.read_table(home / "table.parquet")
    csv.write_csv(table, tmp_path / "table.csv")
    for path in (home / "table.parquet", tmp_path / "table.csv"):
        assert document("certify", home / "out", path)["rows of the training data dropped"] == 3_200


@pytest.mark.parametrize("command", ["predict", "certify"])
def test_every_row_is_decoded_once(command: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    read = ParquetTable._read

    def counted(self: ParquetTable, start: int, stop: int, columns: Any) -> Any:
        if len(columns) > 1:
            decoded.append(stop - start)
            assert start in self.starts, "a row group is decoded from its beginning"
        return read(self, start, stop, columns)

    monkeypatch.setattr(ParquetTable, "_read", counted)
    out = ("-o", tmp_path / "p.parquet") if command == "predict" else ()
    run(command, home / "out", home / "one group.parquet", *out)
    assert sum(decoded) == ROWS


def test_predictions_come_in_the_order_of_the_rows(home: Path, tmp_path: Path) -> None:
    run("predict", home / "out", home / "many groups.parquet", "-o", tmp_path / "p.parquet")
    model = summula.load(home / "out" / "model.summula")
    expected = model.predict(parquet.read_table(home / "one group.parquet"))
    assert parquet.read_table(tmp_path / "p.parquet")["bought"].to_pylist() == expected.tolist()
    # Blocks are joined before they are written.
    assert parquet.ParquetFile(tmp_path / "p.parquet").num_row_groups == 1


PEAK = """
import sys
from benchmarks.memory import PeakMemory
from summula.cli.app import main
sys.argv = ["summula", *sys.argv[1:]]
peak = PeakMemory()
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print("peak", peak.bytes())
"""


def peak(*words: Any) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT,
        env=environment(SUMMULA_NUM_THREADS="2"),
    )
    return int(done.stdout.split()[-1])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs the peak of memory")
def test_memory_does_not_grow_with_the_table(tmp_path: Path) -> None:
    """A table of 160 MB against a limit of a quarter of it; blocks, results and per-row data are far smaller."""
    rng, rows = np.random.default_rng(0), 1_000_000
    names = [f"x{j}" for j in range(20)]
    X = rng.normal(size=(rows + 2_000, 20))
    table = pa.table([*X.T, np.where(X[:, 0] + rng.normal(size=len(X)) > 0, "yes", "no")], [*names, "y"])
    for name, part in (("train", table[rows:]), ("small", table[: rows // 4]), ("large", table[:rows])):
        parquet.write_table(part, tmp_path / f"{name}.parquet", row_group_size=50_000, use_dictionary=["y"])
    run("train", tmp_path / "train.parquet", "-t", "y", "-o", tmp_path / "out", "--models", "logistic")
    for command in ("predict", "certify"):
        more = ("-o", tmp_path / "p.parquet", "--force") if command == "predict" else ()
        small, large = (
            peak(command, tmp_path / "out", tmp_path / f"{name}.parquet", *more) for name in ("small", "large")
        )
        # certify keeps a loss and a hash per row, and sorts them: some 50 bytes. Peaks vary by 15 MB from run to run, with
        # the blocks in use by threads at the same time; a table held in memory would add at least 120 MB.
        assert large - small < (45e6 if command == "predict" else 80e6)
