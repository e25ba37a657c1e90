"""A model of a whole table: from Python, saved, with costs, and as scikit-learn sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

import summula
from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression, LogisticRegression
from summula.preprocessing import TableEncoder, TableModel


def species() -> TableModel:
    return TableModel(TableEncoder(standardize=True), LogisticRegression(), "species")


def test_it_finds_its_target_in_the_frame() -> None:
    penguins = summula.datasets.load("penguins")
    model = species().fit(penguins)
    assert model.classes_.tolist() == ["Adelie", "Chinstrap", "Gentoo"]
    assert "species" not in model.feature_names_in_
    right = model.predict(penguins) == penguins["species"].to_numpy()
    assert right.mean() > 0.98
    apart = species().fit(penguins.drop_columns(["species"]), penguins["species"].to_numpy())
    assert np.array_equal(apart.predict_proba(penguins), model.predict_proba(penguins))
    with pytest.raises(DataError, match="pass a frame, or the target as y"):
        species().fit(np.zeros((3, 2)))


def test_files_are_predicted_block_by_block(tmp_path: Path) -> None:
    penguins = summula.datasets.load("penguins")
    model = species().fit(penguins)
    parquet.write_table(penguins, tmp_path / "p.parquet")
    blocks = list(model.predict_proba(summula.scan(tmp_path / "p.parquet")))
    assert np.array_equal(np.concatenate(blocks), model.predict_proba(penguins))


def test_saved_it_is_the_same_model(tmp_path: Path) -> None:
    penguins = summula.datasets.load("penguins")
    model = species().fit(penguins)
    summula.save(model, tmp_path / "model.summula")
    again = summula.load(tmp_path / "model.summula")
    assert again.target == "species"
    assert np.array_equal(again.predict_proba(penguins), model.predict_proba(penguins))
    assert (
        summula.certify(again, penguins, "species").model_hash
        == summula.certify(summula.load(tmp_path / "model.summula"), penguins, "species").model_hash
    )


def test_costs_choose_the_class_of_the_smallest_expected_cost() -> None:
    penguins = summula.datasets.load("penguins")
    model = species().fit(penguins)
    costs = [[0.0, 50.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    p = model.predict_proba(penguins)
    model.set_params(costs=costs)
    by_hand = [min(range(3), key=lambda k: sum(row[j] * costs[k][j] for j in range(3))) for row in p]
    assert model.predict(penguins).tolist() == model.classes_[by_hand].tolist()


@pytest.mark.parametrize("as_stored", [lambda costs: costs, np.array])
def test_costs_are_saved_in_the_order_of_the_first_files(as_stored: Any, tmp_path: Path) -> None:
    penguins = summula.datasets.load("penguins")
    costs = [[0.0, 50.0, 1.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
    model = species().fit(penguins).set_params(costs=as_stored(costs))
    summula.save(model, tmp_path / "model.summula")
    again = summula.load(tmp_path / "model.summula")
    assert np.array_equal(again.costs, costs)
    assert again.predict(penguins).tolist() == model.predict(penguins).tolist()
    # Files of the first version hold costs[true class, predicted class]: this one was written with [[0, 1], [5, 0]].
    old = summula.load(Path(__file__).parents[1] / "data" / "golden" / "format1-TableModel.safetensors")
    assert old.costs == [[0.0, 5.0], [1.0, 0.0]]


def test_numbers_are_held_within_a_range() -> None:
    table = pa.table({"x": [0.0, 1.0, 2.0, 3.5], "y": [0.0, 1.0, 2.0, 3.5]})
    model = TableModel(TableEncoder(), LinearRegression(), "y", low=0.0, high=3.5).fit(table)
    assert model.predict(pa.table({"x": [-5.0, 1.0, 9.0]})) == pytest.approx([0.0, 1.0, 3.5])
    assert not hasattr(model, "predict_proba")


def test_scikit_learn_knows_what_it_is() -> None:
    assert is_classifier(species())
    assert is_regressor(TableModel(TableEncoder(), LinearRegression(), "y"))
    assert repr(clone(species())) == repr(species())
    with pytest.raises(NotFittedError):
        species().predict(summula.datasets.load("penguins"))


def test_scores_and_written_predictions(tmp_path: Path) -> None:
    penguins = summula.datasets.load("penguins")
    model = species().fit(penguins)
    parquet.write_table(penguins, tmp_path / "p.parquet")
    files = summula.scan(tmp_path / "p.parquet")
    right = model.predict(penguins) == penguins["species"].to_numpy()
    assert model.score(penguins) == model.score(files) == right.mean()
    assert model.score(penguins, penguins["species"].to_numpy()[::-1]) < 0.7
    assert model.predict_to(files, tmp_path / "out.parquet") == len(penguins)
    assert parquet.read_table(tmp_path / "out.parquet").column_names == ["species"]
    model.predict_to(files, tmp_path / "out.parquet", proba=True)
    names = ["species", "species[Adelie]", "species[Chinstrap]", "species[Gentoo]"]
    assert parquet.read_table(tmp_path / "out.parquet").column_names == names
    table = pa.table({"x": [0.0, 1.0, 2.0, 3.5], "y": [0.0, 1.0, 2.0, 3.0]})
    numbers = TableModel(TableEncoder(), LinearRegression(), "y").fit(table)
    assert numbers.score(table) == pytest.approx(np.corrcoef(table["x"], table["y"])[0, 1] ** 2)
    with pytest.raises(ParameterError, match="'y' is numeric"):
        numbers.predict_to(table, tmp_path / "out.csv", proba=True)
