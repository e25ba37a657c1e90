"""The tables of the package: whole, with a licence, and as their sources describe them."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

from summula.core.errors import ParameterError
from summula.datasets import TABLES, load, longley


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_its_target_and_a_free_licence(name: str) -> None:
    table = load(name)
    assert TABLES[name].target in table.column_names
    assert TABLES[name].licence in ("CC0 1.0", "public domain")
    assert table.num_rows
    assert TABLES[name].source


def test_penguins_are_those_of_palmer_station() -> None:
    penguins = load("penguins")
    # Gorman, Williams, Fraser (2014): 152 Adelie, 68 chinstrap, 124 gentoo; eleven have no recorded sex.
    counts = {row["values"]: row["counts"] for row in pc.value_counts(penguins["species"]).to_pylist()}
    assert counts == {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}
    assert penguins["sex"].null_count == 11
    assert penguins["body_mass_g"].null_count == 2


def test_votes_and_visits() -> None:
    votes = {row["values"]: row["counts"] for row in pc.value_counts(load("election")["vote"]).to_pylist()}
    assert votes == {"Clinton": 551, "Dole": 393}
    visits = load("doctor_visits")["visits"].to_numpy()
    assert len(visits) == 2_019
    assert visits.min() == 0
    # The mean of all 20,190 rows is 2.86 (Cameron and Trivedi 2005, page 671); its standard error here is 0.1.
    assert abs(visits.mean() - 2.86) < 0.3


def test_longley_is_the_table_of_longley() -> None:
    X, y = longley()
    table = load("longley")
    assert np.array_equal(table["employed"].to_numpy(), y)
    assert table.drop_columns(["employed"]).equals(X)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"There is no table 'penguin'; did you mean 'penguins'\?"):
        load("penguin")
    with pytest.raises(ParameterError, match="there are 'penguins', 'election'"):
        load("xyz")
