"""Joint tests of terms against statsmodels, from arrays, frames and files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import summula
from summula import DataError, ParameterError
from summula.linear_model import GeneralizedLinearRegressor


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    n = 800
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "region": rng.choice(["east", "north", "south", "west"], n),
            "noise": rng.standard_normal(n),
            "kind": rng.choice(["a", "b"], n),
        }
    )
    effect = frame["region"].map({"east": 0.0, "north": 0.3, "south": -0.1, "west": 0.0}).to_numpy(float)
    mean = np.exp(0.02 * (frame["age"] - 40) + effect)
    frame["count"] = rng.poisson(mean).astype(float)
    frame["amount"] = rng.gamma(2.0, mean / 2.0)
    return frame


CASES = [("poisson", "count"), ("gamma", "amount")]


def statsmodels_fit(table, family, target, without=()):
    sm = pytest.importorskip("statsmodels.api")
    features = table.drop(columns=["count", "amount", *without])
    text = [c for c in ("region", "kind") if c in features]
    design = sm.add_constant(pd.get_dummies(features, columns=text, drop_first=True).astype(float))
    families = {"poisson": sm.families.Poisson(), "gamma": sm.families.Gamma(sm.families.links.Log())}
    return sm.GLM(table[target], design, family=families[family]).fit(tol=1e-12), design


@pytest.mark.parametrize(("family", "target"), CASES)
def test_wald_and_likelihood_ratio(table, family, target):
    other = "amount" if target == "count" else "count"
    data = table.drop(columns=other)
    model = GeneralizedLinearRegressor(family, "log").fit(data, target)
    theirs, design = statsmodels_fit(table, family, target)
    wald, ratio = model.test_terms(), model.test_terms("likelihood_ratio")
    assert wald.terms == ratio.terms == ("age", "noise", "region", "kind")
    assert wald.df.tolist() == ratio.df.tolist() == [1, 1, 3, 1]
    for i, term in enumerate(wald.terms):
        rows = np.eye(design.shape[1])[[c == term or c.startswith(f"{term}_") for c in design.columns]]
        test = theirs.wald_test(rows, scalar=True, use_f=False)
        np.testing.assert_allclose(wald.statistic[i], float(test.statistic), rtol=1e-6)
        np.testing.assert_allclose(wald.p_value[i], float(test.pvalue), rtol=1e-5)
        smaller, _ = statsmodels_fit(table, family, target, without=[term])
        expected = (smaller.deviance - theirs.deviance) / theirs.scale
        np.testing.assert_allclose(ratio.statistic[i], expected, rtol=1e-6, atol=1e-9)


def test_one_column_is_the_square_of_its_z(table):
    X, y = table[["age", "noise"]].to_numpy(), table["count"].to_numpy()
    model = GeneralizedLinearRegressor("poisson").fit(X, y)
    np.testing.assert_allclose(model.test_terms().statistic, model.summary().statistic[1:] ** 2, rtol=1e-9)
    assert model.test_terms().terms == ("x0", "x1")


def test_files(table, tmp_path):
    data = table.drop(columns="amount")
    data.to_parquet(tmp_path / "rows.parquet")
    expected = GeneralizedLinearRegressor("poisson").fit(data, "count")
    model = GeneralizedLinearRegressor("poisson").fit(summula.scan(tmp_path / "rows.parquet"), "count")
    for kind in ("wald", "likelihood_ratio"):
        np.testing.assert_allclose(model.test_terms(kind).statistic, expected.test_terms(kind).statistic, rtol=1e-9)


def test_names_in_the_summary(table):
    model = GeneralizedLinearRegressor("poisson").fit(table.drop(columns="amount"), "count")
    levels = ("region[north]", "region[south]", "region[west]", "kind[b]")
    assert model.summary().terms == ("intercept", "age", "noise", *levels)


def test_table_and_errors(table):
    data = table.drop(columns="amount")
    model = GeneralizedLinearRegressor("poisson").fit(data, "count")
    tests = model.test_terms()
    assert "Wald tests" in str(tests)
    assert "region" in str(tests)
    assert list(tests.to_frame()["term"]) == ["age", "noise", "region", "kind"]
    with pytest.raises(ParameterError, match="'wald' or 'likelihood_ratio'"):
        model.test_terms("F")
    with pytest.raises(ParameterError, match="unpenalised"):
        GeneralizedLinearRegressor("poisson", alpha=1.0).fit(data, "count").test_terms()
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(other.test_terms().statistic, tests.statistic)
    with pytest.raises(DataError, match="give X and y"):
        other.test_terms("likelihood_ratio")
    np.testing.assert_allclose(
        other.test_terms("likelihood_ratio", data, "count").statistic, model.test_terms("likelihood_ratio").statistic
    )
