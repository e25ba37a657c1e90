"""Categories: the same model from arrays, frames, files and Dask, as text, category dtype or numbers, some missing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import summula
from summula.core.errors import DataError
from summula.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

pandas = pytest.importorskip("pandas")

OPTIONS = {"max_iter": 4, "max_leaf_nodes": 8, "random_state": 0}


def table(n=1_200):
    """A number, then text, categories of text, of numbers and of truth values, and plain numbers; some of each missing."""
    rng = np.random.default_rng(0)
    k = np.arange(n) * 7 % 5
    frame = pandas.DataFrame(
        {
            "x": rng.normal(size=n),
            "word": np.array(["d", "c", "b", "a", "é"], dtype=object)[k],
            "kind": pandas.Categorical(np.array(list("vwxyz"))[k], categories=list("zyxwvu")),
            "code": pandas.Categorical(k * 10 - 15),
            "flag": pandas.Categorical(k > 2),
            "plain": k * 3 % 5 * 1.0,
            "y": rng.normal(size=n) + k % 2,
        }
    )
    for step, name in enumerate(("word", "kind", "code", "flag", "plain"), 6):
        frame.loc[::step, name] = None
    return frame


def same(a, b):
    for part in ("_nodes", "_bins"):
        for name, values in getattr(a, part)._asdict().items():
            np.testing.assert_array_equal(getattr(getattr(b, part), name), values, err_msg=name)
    np.testing.assert_array_equal(a.is_categorical_, b.is_categorical_)
    assert a.category_levels_ == b.category_levels_


# ------------------------------------------------------------------------------------------------ one model, any way

NAMED = [
    ("from_dtype", [False, True, True, True, True, False]),
    (["word", "kind", "code", "flag", "plain"], [False, True, True, True, True, True]),
    ([1, 2, 3, 4, 5], [False, True, True, True, True, True]),
    ([False, True, True, False, True, True], [False, True, True, False, True, True]),
]


@pytest.mark.parametrize(("given", "mask"), NAMED, ids=["dtype", "names", "numbers", "mask"])
def test_frames_files_and_dask_give_the_same_model(given, mask, tmp_path):
    dataframe, pyarrow = pytest.importorskip("dask.dataframe"), pytest.importorskip("pyarrow")
    frame = table()
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=500)
    scan, lazy = summula.scan(tmp_path / "rows.parquet"), dataframe.from_pandas(frame, npartitions=3)
    model = HistGradientBoostingRegressor(categorical_features=given, **OPTIONS)
    expected = pickle.loads(pickle.dumps(model.fit(frame, "y")))
    assert expected.is_categorical_.tolist() == mask
    assert expected.category_levels_ == {"word": ("a", "b", "c", "d", "é"), "kind": tuple("vwxyz")}
    for other in (pyarrow.Table.from_pandas(frame), scan, lazy):
        same(expected, model.fit(other, "y"))
    out = expected.predict(frame)
    np.testing.assert_array_equal(np.concatenate(list(expected.predict(scan))), out)
    np.testing.assert_array_equal(np.asarray(expected.predict(lazy)), out)
    assert expected.score(lazy, "y") == pytest.approx(expected.score(frame, "y"))


def test_an_arrow_file_calls_numbers_categories_by_their_type(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    frame = table()[["x", "code", "y"]]
    whole = pyarrow.Table.from_pandas(frame, preserve_index=False)
    assert pyarrow.types.is_dictionary(whole.schema.field("code").type)
    with pyarrow.ipc.new_file(tmp_path / "rows.arrow", whole.schema) as file:
        file.write_table(whole, max_chunksize=500)
    model = HistGradientBoostingRegressor(**OPTIONS)
    expected = pickle.loads(pickle.dumps(model.fit(frame, "y")))
    same(expected, model.fit(summula.scan(tmp_path / "rows.arrow"), "y"))
    assert expected.is_categorical_.tolist() == [False, True]


def test_an_array_of_objects_may_contain_text_in_declared_columns():
    frame = table()
    columns = ["x", "word", "code"]
    cells = frame[columns].astype(object).to_numpy()
    expected = HistGradientBoostingRegressor(categorical_features=[1, 2], **OPTIONS).fit(frame[columns], frame["y"])
    for rows in (cells, cells.tolist()):
        model = HistGradientBoostingRegressor(categorical_features=[1, 2], **OPTIONS).fit(rows, frame["y"])
        assert model.category_levels_ == {"x1": ("a", "b", "c", "d", "é")}
        np.testing.assert_array_equal(model.predict(rows), expected.predict(frame[columns]))
    with pytest.raises(DataError, match="Column 1 contains 'b' at row 1"):
        HistGradientBoostingRegressor(categorical_features=[2]).fit(cells, frame["y"])


def test_the_order_of_listed_categories_is_nothing():
    frame = table()
    turned = frame.assign(kind=frame["kind"].cat.reorder_categories(list("uvwxyz")))
    model = HistGradientBoostingRegressor(**OPTIONS)
    expected = pickle.loads(pickle.dumps(model.fit(frame, "y")))
    same(expected, model.fit(turned, "y"))


def test_text_as_objects_or_as_categories_is_the_same():
    frame = table()
    model = HistGradientBoostingRegressor(**OPTIONS)
    expected = pickle.loads(pickle.dumps(model.fit(frame, "y")))
    same(expected, model.fit(frame.assign(word=frame["word"].astype("category")), "y"))


def test_a_frame_gives_what_its_codes_give():
    frame = table()
    cells = np.column_stack([frame["x"], frame["word"].astype("category").cat.codes]).astype(float)
    cells[cells == -1] = np.nan
    by_name = HistGradientBoostingRegressor(**OPTIONS).fit(frame[["x", "word"]], frame["y"])
    by_code = HistGradientBoostingRegressor(categorical_features=[1], **OPTIONS).fit(cells, frame["y"])
    np.testing.assert_array_equal(by_name.predict(frame[["x", "word"]]), by_code.predict(cells))


# ----------------------------------------------------------------------------------------- missing, unseen, too many


def test_unseen_levels_are_missing_values():
    frame = table().drop(columns="y")
    model = HistGradientBoostingRegressor(**OPTIONS).fit(frame, table()["y"])
    unseen = frame.assign(word="zebra", kind="q", code=1_000, flag=None, plain=0.0)
    missing = frame.assign(word=None, kind=np.nan, code=np.nan, flag=np.nan, plain=0.0)
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


def test_a_column_of_nothing_is_no_harm(tmp_path):
    frame = table()[["x", "word", "y"]]
    empty = frame.assign(word=pandas.Series([None] * len(frame), dtype="string"))
    empty.to_parquet(tmp_path / "rows.parquet")
    for rows in (empty, summula.scan(tmp_path / "rows.parquet")):
        model = HistGradientBoostingRegressor(**OPTIONS).fit(rows, "y")
        assert model.feature_importances_[1] == 0.0
        assert model.category_levels_.get("word", ()) == ()


@pytest.mark.parametrize("levels", [254, 255, 256, 900])
@pytest.mark.parametrize("kind", ["text", "category", "number"])
def test_beyond_max_bins_the_rarer_levels_share_a_bin(levels, kind):
    rng = np.random.default_rng(1)
    codes = np.concatenate([np.arange(levels), rng.integers(0, 40, 4_000)])
    text = np.array([f"level {k:03d}" for k in range(levels)], dtype=object)[codes]
    column = {"text": text, "category": pandas.Categorical(text), "number": codes}[kind]
    y = (codes < 40) * (codes % 2) + (codes >= 40) * 5.0
    model = HistGradientBoostingRegressor(
        categorical_features=["c"], max_iter=40, learning_rate=0.5, min_samples_leaf=5
    )
    model.fit(frame := pandas.DataFrame({"c": column}), y)
    assert model._bins.n_bins[0] == min(levels, 255)
    frequent = codes < 40
    np.testing.assert_allclose(model.predict(frame)[frequent], y[frequent], atol=0.1)
    if levels > 255:  # those that share a bin share a prediction
        assert len(set(model.predict(frame.iloc[levels - 5 : levels]))) == 1


# ---------------------------------------------------------------------------------------------- columns change kind


def test_numbers_where_text_was_and_text_where_numbers_were_are_named():
    frame = table().drop(columns="y")
    model = HistGradientBoostingRegressor(**OPTIONS).fit(frame, table()["y"])
    with pytest.raises(DataError, match="Column 'word' contains numbers, but was text such as 'a' .* same kind"):
        model.predict(frame.assign(word=1.0))
    with (
        pytest.warns(UserWarning, match="feature names"),
        pytest.raises(DataError, match="Column 'word' contains numbers"),
    ):
        model.predict(np.zeros((3, 6)))
    with pytest.raises(DataError, match="Column 'code' contains 'q' at row 0, but was numeric .* same kind"):
        model.predict(frame.assign(code="q"))
    assert len(model.predict(frame.assign(word=np.nan))) == len(frame)  # a column without values has no kind


def test_text_that_is_not_listed_is_named(tmp_path):
    dataframe = pytest.importorskip("dask.dataframe")
    frame = table()
    frame.to_parquet(tmp_path / "rows.parquet")
    for listed in (None, ["kind", "code"]):
        model = HistGradientBoostingRegressor(categorical_features=listed)
        with pytest.raises(DataError, match="Column 'word' contains 'b' at row 1.* list the column there"):
            model.fit(frame, "y")
        for rows in (dataframe.from_pandas(frame, npartitions=2), summula.scan(tmp_path / "rows.parquet")):
            with pytest.raises(DataError, match="Column 'word' contains 'a', .*not among the categorical_features"):
                model.fit(rows, "y")


def test_a_column_of_several_kinds_is_named():
    dataframe = pytest.importorskip("dask.dataframe")
    frame = table()[["x", "word", "y"]]
    frame["word"] = pandas.Series([*frame["word"][:600], *range(600)], dtype=object)
    with pytest.raises(DataError, match="Column 'word' contains values of several types"):
        HistGradientBoostingRegressor().fit(frame, "y")
    import dask

    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(DataError, match="Column 'word' contains values of several types"):
        HistGradientBoostingRegressor().fit(lazy, "y")


def test_a_warm_start_keeps_levels_and_columns():
    frame = table()
    model = HistGradientBoostingRegressor(warm_start=True, **OPTIONS).fit(frame, "y")
    levels = model.category_levels_
    model.set_params(max_iter=6).fit(frame[frame["word"] != "a"], "y")
    assert model.category_levels_ == levels
    assert model.n_iter_ == 6
    with pytest.raises(ValueError, match="feature names should match"):
        model.set_params(max_iter=7).fit(frame.drop(columns="x"), "y")
    bare = HistGradientBoostingRegressor(warm_start=True, **OPTIONS).fit(frame[["x", "plain"]].to_numpy(), frame["y"])
    with pytest.raises(ValueError, match="X has 1 features, but HistGradientBoostingRegressor is expecting 2"):
        bare.set_params(max_iter=7).fit(frame[["x"]].to_numpy(), frame["y"])


def test_a_classifier_knows_them_too():
    frame = table().drop(columns="y")
    labels = np.where(table()["word"].isin(["a", "d"]), "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=30).fit(frame[["x", "word"]], labels)
    known = frame["word"].notna()
    assert model.score(frame.loc[known, ["x", "word"]], labels[known]) == 1.0
