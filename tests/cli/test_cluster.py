"""`summula cluster`: labels in row order, a report, and one-sentence error messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

pytest.importorskip("typer")

from tests.cli.commands import document, failure, run, write


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    truth = np.arange(300) % 3
    columns = {
        "height": np.array([0.0, 8.0, 16.0])[truth] + rng.normal(size=300),
        "width": np.array([0.0, 100.0, 0.0])[truth] + rng.normal(size=300),
        "kind": np.array(["a", "b", "c"])[truth],
    }
    return write(pa.table(columns), tmp_path_factory.mktemp("cluster") / "rows.csv")


@pytest.mark.parametrize("how", [("--k", 3), ("--select",)])
def test_labels_and_report(table: Path, tmp_path: Path, how: tuple[object, ...]) -> None:
    labels, report = tmp_path / "labels.parquet", tmp_path / "report.html"
    output = document("cluster", table, *how, "-o", labels, "--report", report)
    assert output["clusters"] == 3
    assert output["rows"] == [100, 100, 100]
    assert output["lower bound"] <= output["inertia"]
    found = parquet.read_table(labels)["cluster"].to_numpy()
    assert len(set(zip(np.arange(300) % 3, found.tolist(), strict=True))) == 3
    page = report.read_text()
    assert "300 rows in 3 clusters" in page
    assert [page.count(f'class="point s{k}"') for k in range(4)] == [100, 100, 100, 0]
    assert "indicators are fractions of the rows of a cluster" in page  # (they are not scaled)
    assert ("Number of clusters" in page) == (how == ("--select",))


def test_columns_can_be_left_out(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "labels.csv"
    document("cluster", table, "--k", 2, "--drop", "kind,width", "-o", out, "--report", tmp_path / "r.html")
    assert csv.read_csv(out).num_rows == 300


def test_errors_are_one_sentence(table: Path) -> None:
    assert "either the number of clusters" in failure(3, "cluster", table)
    assert "either the number of clusters" in failure(3, "cluster", table, "--k", 3, "--select")
    assert "--k 301 is more than the 300 rows of the table; give fewer" in failure(3, "cluster", table, "--k", 301)
    assert "'depth'" in failure(3, "cluster", table, "--k", 2, "--drop", "depth")


def test_the_report_is_called_as_the_labels(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "two.csv"
    assert document("cluster", table, "--k", 2, "-o", out)["report"] == str(tmp_path / "two.html")
    out.unlink()
    message = failure(5, "cluster", table, "--k", 3, "-o", out)
    assert "two.html exists already; give another name with --report, or overwrite it with --force" in message
    assert not out.exists()


def test_labels_and_report_have_two_names(table: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.csv"
    assert "pass different names" in failure(5, "cluster", table, "--k", 2, "-o", both, "--report", both)
    assert not both.exists()


def test_few_rows(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "labels.csv"
    path.write_text("a,b\n1,2\n")
    assert "Clustering needs at least 2 rows, and the table has 1" in failure(3, "cluster", path, "--k", 1, "-o", out)
    path.write_text("a,b\n1,2\n3,5\n")
    assert "--select needs at least 3 rows, and the table has 2" in failure(3, "cluster", path, "--select", "-o", out)
    assert "2 rows in 1 cluster: inertia 4," in run("cluster", path, "--k", 1, "-o", out).stdout
