"""Commands on tables of every kind: several files, standard input, headers, copied columns, remarks on drift."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import summula
from tests.cli.commands import RUNNER, app, document, failure, run, write
from tests.cli.conftest import Trained


def rows_of(path: Path) -> pa.Table:
    return csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))


def predicted(path: Path) -> Any:
    return csv.read_csv(path) if path.suffix == ".csv" else parquet.read_table(path)


# -------------------------------------------------------------------------------------------------------- several tables


def test_several_files(species: Trained, tmp_path: Path) -> None:
    output = document("inspect", species.table, species.fresh)
    assert output["rows"] == 344
    run("predict", species.folder, species.table, species.fresh, "-o", tmp_path / "p.csv")
    assert predicted(tmp_path / "p.csv").num_rows == 344


def test_standard_input(species: Trained) -> None:
    result = RUNNER.invoke(app, ["inspect", "-", "--json"], input=species.table.read_bytes())
    assert result.exit_code == 0, result.output
    assert '"rows": 172' in result.stdout


def test_a_database(species: Trained, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "birds.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE penguins AS SELECT * FROM read_csv('{species.fresh}', nullstr='')")
    query = "SELECT * FROM penguins WHERE island = 'Biscoe'"
    message = document("predict", species.folder, f"duckdb:{path}", "--query", query, "-o", tmp_path / "p.parquet")
    assert message["rows"] == sum(one == "Biscoe" for one in rows_of(species.fresh)["island"].to_pylist())
    assert "There is no DuckDB file" in failure(3, "inspect", f"duckdb:{tmp_path / 'none'}")


def test_a_missing_header_gets_a_remark(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "t.csv"
    path.write_text("".join(f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}\n" for a, b in rng.normal(size=(60, 2))))
    message = run("train", path, "-t", "x2", "-o", tmp_path / "out", "--models", "logistic")
    assert f"{path} seems to have no header line (its first line begins with" in message.stderr
    assert f"{path}: 60 rows;" in message.stderr
    one = tmp_path / "one.csv"
    one.write_text("1.5,0.5\n")
    run("predict", tmp_path / "out", one, "--no-header", "-o", tmp_path / "p.csv")
    assert predicted(tmp_path / "p.csv")["x2"].to_pylist() == ["yes"]


# ---------------------------------------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("stored", [".csv", ".parquet"])
def test_columns_are_kept_beside_predictions(stored: str, ending: str, species: Trained, tmp_path: Path) -> None:
    fresh = rows_of(species.fresh)
    ids, codes = [10**6 * i + 1 for i in range(172)], [f"{i:05}" for i in range(172)]
    rows = fresh.append_column("id", pa.array(ids)).append_column("code", pa.array(codes))
    path = tmp_path / f"t{stored}"
    parquet.write_table(rows, path) if stored == ".parquet" else csv.write_csv(rows, path)
    out = tmp_path / f"p{ending}"
    output = RUNNER.invoke(
        app, ["predict", str(species.folder), str(path), "-o", str(out), "--keep", "id,code", "--proba"]
    )
    assert output.exit_code == 0, output.output
    assert "Not used" not in output.stderr
    options = csv.ConvertOptions(column_types={"code": pa.string()})
    found = csv.read_csv(out, convert_options=options) if ending == ".csv" else parquet.read_table(out)
    classes = [f"species[{name}]" for name in ("Adelie", "Chinstrap", "Gentoo")]
    assert found.column_names == ["id", "code", "species", *classes]
    assert found["id"].to_pylist() == ids
    assert found["code"].to_pylist() == codes
    chances = np.column_stack([found[name].to_numpy() for name in classes])
    names = np.array(["Adelie", "Chinstrap", "Gentoo"])
    assert found["species"].to_pylist() == names[chances.argmax(axis=1)].tolist()
    model = summula.load(species.folder / "model.summula")
    np.testing.assert_allclose(chances, model.predict_proba(fresh), rtol=1e-12)


def test_columns_that_cannot_be_kept(species: Trained, tmp_path: Path) -> None:
    out = ("-o", tmp_path / "p.csv", "--keep")
    assert "no column 'idd'" in failure(3, "predict", species.folder, species.fresh, *out, "idd")
    table = rows_of(species.fresh)
    path = write(table.append_column("species[Adelie]", table["year"]), tmp_path / "t.csv")
    message = failure(3, "predict", species.folder, path, *out, "species[Adelie]", "--proba")
    assert "is the name of a column of predictions" in message
    assert "rename it in the table" in message
    assert not (tmp_path / "p.csv").exists()


def test_true_values_are_kept_beside_predictions(species: Trained, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    output = document("predict", species.folder, species.fresh, "-o", out, "--keep", "species")
    found = csv.read_csv(out)
    assert output["columns"] == found.column_names == ["species", "predicted species"]
    assert found["species"].to_pylist() == rows_of(species.fresh)["species"].to_pylist()
    model = summula.load(species.folder / "model.summula")
    assert found["predicted species"].to_pylist() == model.predict(rows_of(species.fresh)).tolist()


def test_columns_of_a_frame_are_kept(species: Trained, constructor: Any, tmp_path: Path) -> None:
    model = summula.load(species.folder / "model.summula")
    fresh = rows_of(species.fresh)
    columns = {name: fresh[name].to_pylist() for name in fresh.column_names} | {"id": list(range(172))}
    assert model.predict_to(constructor(columns), tmp_path / "p.parquet", keep="id") == 172
    assert parquet.read_table(tmp_path / "p.parquet")["id"].to_pylist() == list(range(172))


# ----------------------------------------------------------------------------------------------------------------- drift


def test_rows_unlike_the_training_rows_get_a_remark(species: Trained, tmp_path: Path) -> None:
    fresh = rows_of(species.fresh)
    mass = fresh["body_mass_g"].to_pylist()
    island = fresh["island"].to_pylist()
    mass[3], mass[9], island[5] = 90_000, -7_000, "Mars"
    fresh = fresh.set_column(fresh.column_names.index("body_mass_g"), "body_mass_g", pa.array(mass))
    fresh = fresh.set_column(fresh.column_names.index("island"), "island", pa.array(island))
    output = run("predict", species.folder, write(fresh, tmp_path / "t.csv"), "-o", tmp_path / "p.csv")
    assert (
        "1 of 172 rows have a category of 'island' that was not in the training data (the first is 'Mars')."
        in output.stderr
    )
    trained = rows_of(species.table)["body_mass_g"].to_numpy()
    assert "2 of 172 rows have a value of 'body_mass_g' far outside the training range" in output.stderr
    assert f" to {np.nanmax(trained):g} (the first is 90000)." in output.stderr
    assert "summula.RiskMonitor watches whether errors grow" in output.stderr
    quiet = run("predict", species.folder, species.fresh, "-o", tmp_path / "q.csv")
    assert "RiskMonitor" not in quiet.stderr
    assert len(document("predict", species.folder, tmp_path / "t.csv", "-o", tmp_path / "r.csv")["drift"]) == 2


# ---------------------------------------------------------------------------------------------------- errors, exit codes


def test_outputs_in_folders_that_are_not_there(species: Trained, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for words in (
        ("predict", species.folder, species.fresh, "-o", nowhere / "p.csv"),
        ("certify", species.folder, species.fresh, "-o", nowhere / "c.json"),
        ("cluster", species.fresh, "--k", 2, "-o", nowhere / "c.csv", "--report", tmp_path / "c.html"),
    ):
        assert f"The folder {nowhere} for" in failure(5, *words)
    assert not list(tmp_path.iterdir())


def test_a_class_of_one_row_is_one_sentence(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{x:.3f},{'b' if i == 3 else 'a'}" for i, x in enumerate(rng.normal(size=60))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,y", *rows]) + "\n")
    sentences = {failure(3, "train", path, "-t", "y", "-o", tmp_path / "out", "--seed", seed) for seed in range(8)}
    assert len(sentences) == 2  # that row is held out, or not
    assert any(one.startswith("The class 'b' of 'y' has a single row among the training rows") for one in sentences)
    assert not (tmp_path / "out").exists()


def test_passwords_are_not_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    from summula.cli.app import _command

    monkeypatch.setattr(sys, "argv", ["summula", "train", "postgresql://me:secret@host/db", "--query", "t"])
    assert _command() == "summula train postgresql://me:***@host/db --query t"


BARE = """
import sys
for name in ("typer", "rich"):
    sys.modules[name] = None
sys.argv = ["summula", "train"]
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name in ("typer", "rich") else find(name)
from summula.cli.entry import main
main()
"""


def test_without_the_packages_of_the_command_line_one_sentence_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: the command line needs typer, rich: pip install typer rich\n"


def test_extras_are_used() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = "\n".join(path.read_text() for path in (root / "src").rglob("*.py"))
    for extra, packages in extras.items():
        if extra in ("all", "dev", "bench"):
            continue
        for package in packages:
            module = package.split(">")[0].split("[")[0].replace("-", "_")
            assert f"import {module}" in sources or f"from {module}" in sources, package
