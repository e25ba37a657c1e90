"""ID3 on the play-tennis table of Quinlan (1986) and Mitchell (1997, page 59), and on data with empty branches."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.utils.validation import NotFittedError

import summula
from summula.core.errors import DataError
from summula.tree import ID3Classifier

TABLE = """
sunny hot high weak no
sunny hot high strong no
overcast hot high weak yes
rain mild high weak yes
rain cool normal weak yes
rain cool normal strong no
overcast cool normal strong yes
sunny mild high weak no
sunny cool normal weak yes
rain mild normal weak yes
sunny mild normal strong yes
overcast mild high strong yes
overcast hot normal weak yes
rain mild high strong no
"""
TENNIS = pd.DataFrame(
    [line.split() for line in TABLE.strip().splitlines()],
    columns=["outlook", "temperature", "humidity", "wind", "play"],
)
X, PLAY = TENNIS.drop(columns="play"), TENNIS["play"].to_numpy()


def test_play_tennis():
    model = ID3Classifier().fit(X, PLAY)
    assert model.rules() == "\n".join(
        [
            "if outlook = 'overcast': yes (100% of 4 rows)",
            "if outlook = 'rain':",
            "    if wind = 'strong': no (100% of 2 rows)",
            "    if wind = 'weak': yes (100% of 3 rows)",
            "if outlook = 'sunny':",
            "    if humidity = 'high': no (100% of 3 rows)",
            "    if humidity = 'normal': yes (100% of 2 rows)",
        ]
    )
    assert model.score(X, PLAY) == 1.0


def test_gains_are_those_of_the_book():
    # Mitchell 1997, page 60: outlook 0.246, humidity 0.151, wind 0.048, temperature 0.029.
    def asked(columns, min_gain):
        return ID3Classifier(max_depth=1, min_gain=min_gain).fit(X[columns], PLAY)._feature[0] == 0

    for column, gain in (("outlook", 0.246), ("humidity", 0.151), ("wind", 0.048), ("temperature", 0.029)):
        assert asked([column], gain - 0.001)
        assert not asked([column], gain + 0.001)


def test_an_empty_branch_takes_the_majority_of_its_parent():
    # Below a = 1 no row has b = 2, most rows there are "p".
    a, b = [0] * 12 + [1] * 5, [0, 1, 2] * 4 + [0, 0, 1, 1, 1]
    y = ["q"] * 14 + ["p"] * 3
    model = ID3Classifier().fit(np.column_stack([a, b]).astype(float), y)
    assert model.predict([[1.0, 2.0]]).tolist() == ["p"]
    assert "p (no rows)" in model.rules()
    np.testing.assert_allclose(model.predict_proba([[1.0, 2.0]]), [[0.6, 0.4]])


def test_unknown_values_stay_at_the_node_and_missing_ones_have_a_branch():
    model = ID3Classifier().fit(X, PLAY)
    unknown = X.iloc[:1].assign(outlook="fog")
    np.testing.assert_allclose(model.predict_proba(unknown), [[5 / 14, 9 / 14]])
    holes = X.assign(outlook=X["outlook"].where(X["outlook"] != "rain"))
    assert "if outlook is missing:" in ID3Classifier().fit(holes, PLAY).rules()


def test_weights_are_repetitions():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = ID3Classifier(max_depth=2).fit(X, PLAY, weight)
    repeated = ID3Classifier(max_depth=2).fit(X.loc[X.index.repeat(weight)], np.repeat(PLAY, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))


def test_saved_models_predict_the_same(tmp_path):
    model = ID3Classifier().fit(X, PLAY)
    summula.save(model, tmp_path / "id3")
    np.testing.assert_array_equal(summula.load(tmp_path / "id3").predict_proba(X), model.predict_proba(X))


def test_bad_input_is_named():
    with pytest.raises(DataError, match="'length' contains non-integer numbers.*discretise"):
        ID3Classifier().fit(X.assign(length=np.linspace(0, 1, len(X))), PLAY)
    with pytest.raises(DataError, match="300 distinct values"):
        ID3Classifier().fit(np.arange(300.0)[:, None], np.arange(300) % 2)
    with pytest.raises(NotFittedError):
        ID3Classifier().predict(X)


def test_a_plot_shows_the_branches_of_each_node():
    ax = ID3Classifier().fit(X, PLAY).plot()
    texts = [text.get_text() for text in ax.texts]
    assert len(texts) == 8
    assert texts[0] == "entropy 0.94, n = 14\nvalue [5, 9]\nclass yes"
    assert "outlook = 'sunny'\nentropy 0.971, n = 5\nvalue [3, 2]\nclass no" in texts
    places = [text.get_position() for text in ax.texts]
    assert len(set(places)) == len(places)
    cut = [text.get_text() for text in ID3Classifier().fit(X, PLAY).plot(max_depth=1).texts]
    assert len(cut) == 4
    assert sum(text.endswith("...") for text in cut) == 2
    holes = X.assign(outlook=X["outlook"].where(X["outlook"] != "rain"))
    ax = summula.plot(ID3Classifier().fit(holes, PLAY))
    assert any(text.get_text().startswith("outlook is missing") for text in ax.texts)
    pyplot.close("all")


@pytest.mark.parametrize("form", [np.asarray, lambda X: X.to_numpy().astype(str), lambda X: X.to_numpy().tolist()])
def test_arrays_of_text_are_discrete(form):
    model, named = ID3Classifier().fit(form(X), PLAY), ID3Classifier().fit(X, PLAY)
    np.testing.assert_array_equal(model.predict_proba(form(X)), named.predict_proba(X))
    renamed = model.rules()
    for j, name in enumerate(X.columns):
        renamed = renamed.replace(f"x[{j}]", name)
    assert renamed == named.rules()
    with pytest.raises(DataError, match="Column 'x0' contains numbers, but was text such as 'overcast'"):
        model.predict(np.ones((1, 4)))
