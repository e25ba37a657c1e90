"""Columns of text and formulas in linear models: statsmodels, columns written out by hand, saved models, bad formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.formula.api as smf
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import summula
from summula.core.errors import DataError, ParameterError
from summula.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression, PoissonRegressor

RNG = np.random.default_rng(0)
N = 240
TABLE = pd.DataFrame(
    {
        "educ": RNG.normal(12.0, 2.0, N),
        "exper": RNG.gamma(3.0, 4.0, N) + 0.1,
        "region": RNG.choice(["east", "north", "south"], N),
        "married": RNG.integers(0, 2, N).astype(bool),
        "weight": RNG.integers(1, 4, N),
    }
)
TABLE["lwage"] = 0.1 * TABLE.educ + 0.02 * TABLE.exper * (TABLE.region == "south") + RNG.normal(0.0, 0.3, N)
TABLE["high"] = np.where(TABLE.lwage + RNG.normal(0.0, 0.5, N) > 1.2, "yes", "no")
TABLE["visits"] = RNG.poisson(np.exp(0.1 * TABLE.educ - 1.0))
FORMULAS = [
    "lwage ~ educ + C(region) * exper",
    "lwage ~ region:exper + np.log(exper) + I(educ**2)",
    "np.log(exper) ~ (educ + married + region)**2",
    "lwage ~ C(weight) + region * married * educ",
    "lwage ~ np.sqrt(exper) / region",
]


def indicators(frame: pd.DataFrame) -> pd.DataFrame:
    """Text written out, all levels but the first."""
    return pd.get_dummies(frame, columns=["region"], drop_first=True, dtype=float)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_means_what_it_means_to_statsmodels(formula: str) -> None:
    model, peer = LinearRegression(formula=formula).fit(TABLE), smf.ols(formula, TABLE).fit()
    np.testing.assert_allclose(model.predict(TABLE), peer.fittedvalues, atol=1e-9)
    assert len(model.coef_) == len(peer.params) - 1
    np.testing.assert_allclose(np.sort(model.summary().std_error), np.sort(peer.bse), rtol=1e-7)
    assert model.score(TABLE) == pytest.approx(peer.rsquared)


def test_names_are_those_of_the_terms() -> None:
    model = LinearRegression(formula=FORMULAS[0]).fit(TABLE)
    assert model.coef_names_ == tuple(model.feature_names_in_) == model.formula_.names
    assert model.coef_names_ == (
        "educ",
        "C(region)[T.north]",
        "C(region)[T.south]",
        "exper",
        "C(region)[T.north]:exper",
        "C(region)[T.south]:exper",
    )
    assert "C(region)[T.south]:exper" in str(model.summary(cov="HC3"))


def test_without_an_intercept_the_first_factor_has_all_its_levels() -> None:
    formula = "lwage ~ region + married - 1"
    model = LinearRegression(formula=formula, fit_intercept=False).fit(TABLE)
    peer = smf.ols(formula, TABLE).fit()
    np.testing.assert_allclose(np.sort(model.coef_), np.sort(peer.params), rtol=1e-9)
    with pytest.raises(ParameterError, match="set fit_intercept=False"):
        LinearRegression(formula=formula).fit(TABLE)


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas])
def test_any_frame_will_do(make: Any) -> None:
    one, other = (LinearRegression(formula=FORMULAS[0]).fit(frame) for frame in (TABLE, make(TABLE)))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.predict(make(TABLE)), one.predict(TABLE))


def test_the_certificate_is_checked_on_the_columns_of_the_formula() -> None:
    model = LinearRegression(formula=FORMULAS[0]).fit(TABLE)
    assert model.certificate_.verify(model.formula_.table(TABLE), TABLE.lwage)
    assert not model.certificate_.verify(model.formula_.table(TABLE), TABLE.lwage + TABLE.educ)


def test_weights_and_groups_are_named() -> None:
    model = LinearRegression(formula="lwage ~ educ + region").fit(TABLE, sample_weight="weight")
    plain = LinearRegression().fit(indicators(TABLE[["educ", "region"]]), TABLE.lwage, TABLE.weight)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_allclose(
        model.summary(cov="cluster", groups=TABLE.married).std_error,
        plain.summary(cov="cluster", groups=TABLE.married).std_error,
        rtol=1e-8,
    )


def test_classes_and_counts() -> None:
    logistic = LogisticRegression(C=np.inf, tol=1e-8, formula="high ~ educ * region").fit(TABLE)
    peer = smf.logit("high ~ educ * region", TABLE.assign(high=(TABLE.high == "yes").astype(int))).fit(
        disp=0, tol=1e-12
    )
    np.testing.assert_allclose(logistic.predict_proba(TABLE)[:, 1], peer.predict(TABLE), atol=1e-6)
    assert logistic.score(TABLE) == np.mean(logistic.predict(TABLE) == TABLE.high)
    poisson = PoissonRegressor(alpha=0.0, tol=1e-8, formula="visits ~ educ + C(region)")
    poisson.fit(TABLE, exposure="exper")
    plain = PoissonRegressor(alpha=0.0, tol=1e-8)
    plain.fit(indicators(TABLE[["educ", "region"]]), TABLE.visits, exposure=TABLE.exper)
    np.testing.assert_allclose(poisson.coef_, plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(
        poisson.predict(TABLE, exposure="exper"),
        plain.predict(indicators(TABLE[["educ", "region"]]), exposure=TABLE.exper),
        rtol=1e-7,
    )
    assert poisson.score(TABLE, exposure="exper") == pytest.approx(
        plain.score(indicators(TABLE[["educ", "region"]]), TABLE.visits, exposure=TABLE.exper)
    )
    gamma = GeneralizedLinearRegressor("gamma", "log", formula="exper ~ region").fit(TABLE)
    means = TABLE.groupby("region").exper.mean()
    np.testing.assert_allclose(gamma.predict(TABLE), means[TABLE.region], rtol=1e-6)


def test_clones_grids_and_refits() -> None:
    model = LinearRegression(formula=FORMULAS[0]).fit(TABLE)
    assert clone(model).formula == FORMULAS[0]
    chosen = GridSearchCV(LinearRegression(), {"formula": ["lwage ~ married", FORMULAS[0]]}, cv=3).fit(TABLE)
    assert chosen.best_params_ == {"formula": FORMULAS[0]}
    model.set_params(formula=None).fit(TABLE[["educ"]], TABLE.lwage)
    assert not hasattr(model, "formula_")
    assert model.predict(TABLE[["educ"]]).shape == (N,)


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize(
    ("model", "target", "scoring"),
    [
        (LinearRegression(formula="lwage ~ educ + C(region)"), "lwage", "neg_mean_absolute_error"),
        (LogisticRegression(formula="high ~ educ + C(region)"), "high", "roc_auc"),
        (PoissonRegressor(formula="visits ~ educ + C(region)"), "visits", "neg_mean_poisson_deviance"),
    ],
)
def test_cross_validation_may_pass_the_target_too(model: Any, target: str, scoring: str, make: Any) -> None:
    frame, folds = make(TABLE), KFold(4)
    right = clone(model).set_params(formula="~ educ + C(region)")
    for rule in (None, scoring):
        with_left = cross_val_score(model, frame, frame[target], cv=folds, scoring=rule)
        np.testing.assert_array_equal(
            with_left, cross_val_score(right, frame, frame[target], cv=folds, scoring=rule), strict=True
        )
        without_column = make(TABLE.drop(columns=target))
        np.testing.assert_array_equal(
            with_left, cross_val_score(model, without_column, frame[target], cv=folds, scoring=rule), strict=True
        )
    np.testing.assert_array_equal(
        cross_val_score(model, frame, cv=folds), cross_val_score(right, frame, frame[target], cv=folds)
    )
    grid = GridSearchCV(model, {"fit_intercept": [True]}, cv=folds, scoring=scoring).fit(frame, frame[target])
    assert grid.best_score_ == pytest.approx(with_left.mean())


def test_a_target_that_is_not_that_of_the_formula_is_refused() -> None:
    model = LinearRegression(formula="log(exper) ~ educ + region")
    with pytest.raises(
        ParameterError, match=r"differs from 'log\(exper\)'.* or use formula='~ educ \+ region' to fit to y"
    ):
        model.fit(TABLE, TABLE.exper)
    with pytest.raises(DataError, match=r"no column 'exper'.* To fit to y, use formula='~ educ \+ region'"):
        model.fit(TABLE.drop(columns="exper"), np.log(TABLE.exper))
    with pytest.raises(ParameterError, match="differs from"):
        model.fit(TABLE, "lwage")
    with pytest.raises(ParameterError, match="differs from 'high'"):
        LogisticRegression(formula="high ~ educ").fit(TABLE, TABLE.high == "yes")
    plain = model.fit(TABLE).coef_
    np.testing.assert_array_equal(model.fit(TABLE, np.log(TABLE.exper)).coef_, plain)
    np.testing.assert_array_equal(
        model.set_params(formula="~ educ + region").fit(TABLE, np.log(TABLE.exper)).coef_, plain
    )


def test_a_dot_is_every_column_that_has_no_other_part() -> None:
    frame = TABLE[["educ", "exper", "weight", "lwage"]]
    for formula, y in (("lwage ~ .", None), ("lwage ~ .", "lwage"), ("~ .", "lwage")):
        model = LinearRegression(formula=formula).fit(frame, y, sample_weight="weight")
        assert model.coef_names_ == ("educ", "exper")


def test_a_saved_model_needs_the_frame_only(tmp_path: Path) -> None:
    for model in (LinearRegression(formula=FORMULAS[0]), LogisticRegression(formula="high ~ educ * region")):
        summula.save(model.fit(TABLE), tmp_path / "model.safetensors")
        loaded = summula.load(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(loaded.predict(TABLE.drop(columns=["lwage", "high"])), model.predict(TABLE))


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("lwage ~ nothing", "no column 'nothing'"),
        ("lwage ~ educ +", "cannot be read"),
        ("lwage ~ 1", "names no columns"),
        ("lwage ~ open(educ)", "neither a column nor arithmetic"),
        ("lwage ~ educ.sum()", "neither a column nor arithmetic"),
        ("lwage + exper ~ educ", "several targets"),
        ("region ~ educ", "for class labels use a classifier"),
        ("lwage ~ log(region)", "could not convert it to a number"),
        (3, "an instance of 'str'"),
    ],
)
def test_a_bad_formula_is_refused(formula: Any, words: str) -> None:
    with pytest.raises((DataError, ParameterError), match=words):
        LinearRegression(formula=formula).fit(TABLE)


def test_what_does_not_fit_a_formula_is_refused() -> None:
    model = LinearRegression(formula="lwage ~ educ + region").fit(TABLE)
    with pytest.raises(DataError, match="not one of its 3 levels"):
        model.predict(TABLE.assign(region="west"))
    with pytest.raises(DataError, match="no column 'educ'"):
        model.predict(TABLE.drop(columns="educ"))
    with pytest.raises(DataError, match="needs a frame in memory"):
        model.predict(TABLE[["educ", "exper"]].to_numpy())
    for formula in ("educ + region", "~ educ + region"):
        with pytest.raises(ParameterError, match=r"requires y: write 'target ~ educ \+ region' with the name"):
            LinearRegression(formula=formula).fit(TABLE)
    gaps = TABLE.assign(educ=np.where(np.arange(N) == 7, np.nan, TABLE.educ))
    with pytest.raises(DataError, match="Column 'educ' has 1 missing value"):
        LinearRegression(formula="lwage ~ educ").fit(gaps)


# -------------------------------------------------------------------------------------------------------- text columns


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression(C=np.inf)])
def test_text_is_a_factor(model: Any, tmp_path: Path) -> None:
    X, y = TABLE[["educ", "region"]], TABLE.lwage if isinstance(model, LinearRegression) else TABLE.high
    fitted, plain = clone(model).fit(X, y), clone(model).fit(indicators(X), y)
    assert fitted.coef_names_ == ("educ", "region[north]", "region[south]")
    assert fitted.factor_levels_ == {"region": ("east", "north", "south")}
    np.testing.assert_allclose(fitted.coef_, plain.coef_, rtol=1e-9)
    assert fitted.score(X, y) == pytest.approx(plain.score(indicators(X), y))
    assert "region[south]" in str(fitted.summary(cov="HC1"))
    assert fitted.certificate_.verify(X, y)
    summula.save(fitted, tmp_path / "model.safetensors")
    np.testing.assert_array_equal(summula.load(tmp_path / "model.safetensors").predict(X), fitted.predict(X))
    with pytest.raises(DataError, match="not one of its 3 levels"):
        fitted.predict(X.assign(region="west"))


def test_factors_of_files_parts_and_left_out_rows(tmp_path: Path) -> None:
    X = TABLE[["educ", "region", "lwage"]]
    X.to_parquet(tmp_path / "rows.parquet")
    model, plain = LinearRegression().fit(X, "lwage"), LinearRegression().fit(indicators(X), "lwage")
    streamed = LinearRegression().fit(summula.scan(tmp_path / "rows.parquet"), "lwage")
    np.testing.assert_allclose(streamed.coef_, model.coef_, rtol=1e-9)
    parts = LinearRegression().fit(X[:120], "lwage").partial_fit(X[120:], "lwage")
    np.testing.assert_allclose(parts.coef_, model.coef_, rtol=1e-8)
    np.testing.assert_allclose(
        LinearRegression().loo(X, "lwage").residuals,
        LinearRegression().loo(indicators(X), "lwage").residuals,
        rtol=1e-8,
    )
    np.testing.assert_allclose(model.predict(X, interval=0.9), plain.predict(indicators(X), interval=0.9), rtol=1e-9)
    other = LinearRegression().fit(X[X.region != "south"], "lwage")
    with pytest.raises(DataError, match="same levels of their factors"):
        model.merge(other)
