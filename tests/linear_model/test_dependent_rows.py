"""Standard errors of least squares for dependent rows, and prediction intervals: statsmodels, definitions, coverage."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import summula
from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression, Ridge
from tests.data.make_dependent_rows import FILE, rows

PUBLISHED = json.loads(FILE.read_text(encoding="utf-8"))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X @ [1.0, 2.0, -1.0] + np.repeat(RNG.normal(size=9), 10) + RNG.normal(size=90)
GROUPS = np.repeat(np.array(list("abcdefghi")), 10)


def test_the_errors_of_groups_are_those_of_statsmodels() -> None:
    x, y, week = rows()
    table = LinearRegression().fit(x, y).summary(cov="cluster", groups=week)
    np.testing.assert_allclose(table.std_error, PUBLISHED["cluster"]["bse"], rtol=1e-9)
    np.testing.assert_allclose(table.p_value, PUBLISHED["cluster"]["p"], rtol=1e-8)
    assert table.facts["f_p_value"] == pytest.approx(PUBLISHED["cluster"]["f_p"], rel=1e-6)
    assert table.facts["groups"] == 5
    assert "t with 4 degrees of freedom" in str(table)


@pytest.mark.parametrize("lags", [0, 1, 4])
def test_the_errors_of_a_series_are_those_of_statsmodels(lags: int) -> None:
    x, y, _ = rows()
    table = LinearRegression().fit(x, y).summary(cov="HAC", lags=lags)
    np.testing.assert_allclose(table.std_error, PUBLISHED["HAC"][str(lags)], rtol=1e-9)
    assert f"HAC with {lags} lags" in str(table)


def test_prediction_intervals_are_those_of_statsmodels() -> None:
    x, y, _ = rows()
    found = LinearRegression().fit(x, y).predict(x[:3] + 1.0, interval=0.9)
    np.testing.assert_allclose(found, PUBLISHED["interval"], rtol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_series_is_summed_by_its_definition_in_any_chunking(intercept: bool) -> None:
    model = LinearRegression(fit_intercept=intercept).fit(X, Y)
    A = np.column_stack([np.ones(90), X]) if intercept else X
    scores = A * (Y - model.predict(X))[:, None]
    middle = sum(max(0.0, 1 - abs(i - j) / 6) * np.outer(scores[i], scores[j]) for i in range(90) for j in range(90))
    bread = np.linalg.inv(A.T @ A)
    expected = np.sqrt(np.diag(bread @ middle @ bread))
    for chunk in (1, 2, 7, 90):
        with summula.engine("threads", chunk_rows=chunk):
            np.testing.assert_allclose(model.summary(X, Y, cov="HAC", lags=5).std_error, expected, rtol=1e-10)


def test_groups_of_one_row_are_the_usual_robust_errors() -> None:
    """HC1 has the factor N / (N - p), groups of one row N / (N - 1) (N - 1) / (N - p)."""
    model = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(
        model.summary(cov="cluster", groups=np.arange(90)).std_error, model.summary(cov="HC1").std_error, rtol=1e-12
    )


def test_several_targets_have_the_errors_of_each() -> None:
    both = LinearRegression().fit(X, np.column_stack([Y, Y**2]))
    for options in ({"cov": "cluster", "groups": GROUPS}, {"cov": "HAC"}):
        alone = [LinearRegression().fit(X, y).summary(**options).std_error for y in (Y, Y**2)]
        np.testing.assert_allclose(both.summary(**options).std_error, np.concatenate(alone), rtol=1e-10)


def test_groups_may_be_a_column_of_the_frame() -> None:
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y, site=GROUPS)
    model = LinearRegression().fit(frame.drop(columns="site"), "y")
    expected = LinearRegression().fit(X, Y).summary(cov="cluster", groups=GROUPS).std_error
    np.testing.assert_allclose(model.summary(frame, "y", cov="cluster", groups="site").std_error, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cov": "cluster"}, "need both"),
        ({"groups": GROUPS}, "need both"),
        ({"cov": "HC1", "lags": 3}, "lags=3"),
        ({"cov": "HAC", "lags": -1}, "lags=-1"),
        ({"cov": "cluster", "groups": np.zeros(90)}, "at least 2 groups"),
        ({"cov": "cluster", "groups": np.zeros(89)}, "pass one label per row"),
    ],
)
def test_inconsistent_options_raise(options: dict[str, Any], words: str) -> None:
    with pytest.raises((DataError, ParameterError), match=words):
        LinearRegression().fit(X, Y).summary(**options)


def test_repeated_rows_are_no_series() -> None:
    model = LinearRegression().fit(X, Y, np.full(90, 2.0))
    with pytest.raises(ParameterError, match="uses the order of the rows"):
        model.summary(cov="HAC")


def test_prediction_intervals_have_nominal_coverage() -> None:
    rng, covered = np.random.default_rng(1), []
    for _ in range(400):
        x = rng.normal(size=(12, 2))
        y = x @ [1.0, -1.0] + rng.normal(size=12)
        new = rng.normal(size=(5, 2)) * 2
        _, low, high = LinearRegression().fit(x, y).predict(new, interval=0.8).T
        truth = new @ [1.0, -1.0] + rng.normal(size=5)
        covered.append((low < truth) & (truth < high))
    assert np.mean(covered) == pytest.approx(0.8, abs=0.04)  # four standard errors


def test_intervals_need_one_unpenalised_target() -> None:
    with pytest.raises(ParameterError, match="one target"):
        LinearRegression().fit(X, np.column_stack([Y, Y])).predict(X, interval=0.9)
    with pytest.raises(ParameterError, match="interval=95"):
        LinearRegression().fit(X, Y).predict(X, interval=95)
    with pytest.raises(ParameterError, match="degrees of freedom"):
        LinearRegression().fit(X[:3], Y[:3]).predict(X, interval=0.9)


@pytest.mark.parametrize("model", [LinearRegression(), Ridge()])
def test_labels_are_for_classifiers(model: Any) -> None:
    labels = np.where(Y > 0, "yes", "no")
    for given in ((X, labels), (X, labels.tolist()), (pd.DataFrame({"a": Y, "y": labels}), "y")):
        with pytest.raises(DataError, match="for class labels use a classifier"):
            model.fit(*given)
