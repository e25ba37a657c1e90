"""Blocks with more columns than rows are encoded at once; the result is that of column by column, bit for bit."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from summula.certification.fingerprints import row_hashes
from summula.core.errors import DataError
from summula.preprocessing import TableEncoder

RNG = np.random.default_rng(0)
COLUMNS = {f"v{j}": np.where(RNG.random(200) < 0.1 * (j % 3), np.nan, RNG.normal(j, 2, 200)) for j in range(40)}
TABLE = pa.table({**COLUMNS, "kind": RNG.choice(["a", "b"], 200), "n": RNG.integers(0, 9, 200)})


@pytest.mark.parametrize("options", [{"standardize": True}, {}, {"categories": "codes"}])
def test_few_rows_are_encoded_as_many_are(options: dict) -> None:
    encoder = TableEncoder(**options).fit(TABLE)
    many, few = encoder.transform(TABLE), encoder.transform(TABLE.slice(0, 7))
    np.testing.assert_array_equal(few, many[:7])
    places = encoder.places()
    assert list(places) == TABLE.column_names
    for name in ("v2", "kind"):
        np.testing.assert_array_equal(encoder.encode_column(name, TABLE[name]), many[:, places[name]])


def test_an_infinite_value_is_located() -> None:
    encoder = TableEncoder().fit(TABLE)
    few = TABLE.slice(0, 5)
    values = few["v3"].to_numpy().copy()
    values[4] = np.inf
    with pytest.raises(DataError, match=r"Column 'v3' is infinite at row 4"):
        encoder.transform(few.set_column(3, "v3", pa.array(values)))


def test_hashes_of_doubles_do_not_depend_on_the_library() -> None:
    numbers = pa.table(COLUMNS)
    np.testing.assert_array_equal(row_hashes(numbers), row_hashes(numbers.to_pandas()))
    np.testing.assert_array_equal(row_hashes(numbers), row_hashes(np.column_stack(list(COLUMNS.values()))))
