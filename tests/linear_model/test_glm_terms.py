"""Joint tests of terms against statsmodels, from arrays, frames and files."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

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
    with pytest.raises(DataError, match="pass X and y"):
        other.test_terms("likelihood_ratio")
    np.testing.assert_allclose(
        other.test_terms("likelihood_ratio", data, "count").statistic, model.test_terms("likelihood_ratio").statistic
    )


# ----------------------------------------------------------------------------- standard errors of groups, with factors


@pytest.fixture(scope="module")
def grouped(table):
    """The table with a column of groups, whose rows depend on each other."""
    who = np.random.default_rng(5).integers(0, 40, len(table))
    return table.assign(who=[f"g{k}" for k in who])


@pytest.mark.parametrize("cov", ["HC0", "cluster"])
@pytest.mark.parametrize(("family", "target"), CASES)
def test_robust_errors_with_factors_are_those_of_statsmodels(grouped, family, target, cov):
    data = grouped.drop(columns=["count", "amount", "who"])
    groups = grouped["who"].to_numpy() if cov == "cluster" else None
    model = GeneralizedLinearRegressor(family, "log").fit(data, grouped[target])
    summary = model.summary(cov=cov, groups=groups)
    theirs, design = statsmodels_fit(grouped.drop(columns="who"), family, target)
    options = {"cov_kwds": {"groups": pd.factorize(groups)[0]}} if cov == "cluster" else {}
    robust = theirs.model.fit(tol=1e-12, cov_type=cov, **options)
    names = ["const" if term == "intercept" else term.replace("[", "_").rstrip("]") for term in summary.terms]
    assert sorted(names) == sorted(design.columns)
    np.testing.assert_allclose(summary.estimate, robust.params[names], rtol=1e-6)
    np.testing.assert_allclose(summary.std_error, robust.bse[names], rtol=1e-6)


def dummies(table):
    """The features with written-out indicators, in the order of the terms."""
    return pd.get_dummies(table[["age", "noise", "region", "kind"]], columns=["region", "kind"], drop_first=True) * 1.0


def test_groups_and_factors_from_arrays_frames_and_files(grouped, constructor, tmp_path):
    model = GeneralizedLinearRegressor("poisson", "log")
    features, y = ["age", "region", "noise", "kind"], grouped["count"].to_numpy()
    plain = model.fit(dummies(grouped).to_numpy(), y).summary(cov="cluster", groups=grouped["who"].to_numpy())
    frame = constructor({name: grouped[name].tolist() for name in [*features, "count", "who"]})
    path = tmp_path / "rows.parquet"
    grouped[[*features, "count", "who"]].to_parquet(path)
    columns = constructor({name: grouped[name].tolist() for name in [*features, "count"]})
    by_name = clone(model).fit(columns, "count").summary(frame, "count", cov="cluster", groups="who")
    by_values = clone(model).fit(columns, "count").summary(cov="cluster", groups=frame["who"])
    with summula.engine(chunk_rows=64):
        streamed = clone(model).fit(summula.scan(path, columns=[*features, "count"]), "count")
        of_file = streamed.summary(summula.scan(path), "count", cov="cluster", groups="who")
    for summary in (by_name, by_values, of_file):
        assert summary.groups == 40
        assert summary.terms == (
            "intercept",
            "age",
            "noise",
            "region[north]",
            "region[south]",
            "region[west]",
            "kind[b]",
        )
        np.testing.assert_allclose(summary.std_error, plain.std_error, rtol=1e-7)
        np.testing.assert_allclose(summary.estimate, plain.estimate, rtol=1e-7, atol=1e-12)


def test_rows_may_be_grouped_by_a_factor_of_the_model(grouped, tmp_path):
    data = grouped[["age", "region", "count"]]
    model = GeneralizedLinearRegressor("poisson", "log").fit(data, "count")
    want = model.summary(data, "count", cov="cluster", groups=data["region"].to_numpy())
    assert want.groups == 4
    data.to_parquet(tmp_path / "rows.parquet")
    for given in (data, summula.scan(tmp_path / "rows.parquet")):
        summary = model.summary(given, "count", cov="cluster", groups="region")
        np.testing.assert_allclose(summary.std_error, want.std_error, rtol=1e-9)


def test_a_weighted_fit_with_groups_factors_and_an_offset(grouped):
    weight = np.arange(len(grouped)) % 3 + 1.0
    shift, groups, y = 0.1 * grouped["noise"].to_numpy(), grouped["who"].to_numpy(), grouped["count"].to_numpy()
    options = {"sample_weight": weight, "offset": shift}
    model = GeneralizedLinearRegressor("poisson", "log").fit(grouped[["age", "region"]], y, **options)
    written = pd.get_dummies(grouped[["age", "region"]], columns=["region"], drop_first=True) * 1.0
    plain = GeneralizedLinearRegressor("poisson", "log").fit(written.to_numpy(), y, **options)
    summary = model.summary(cov="cluster", groups=groups)
    np.testing.assert_allclose(summary.std_error, plain.summary(cov="cluster", groups=groups).std_error, rtol=1e-7)
