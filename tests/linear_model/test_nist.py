"""The linear regression sets of the NIST Statistical Reference Datasets (tests/data/nist), certified to 17 digits."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from summula import engine
from summula.linear_model import LinearRegression, PolynomialRegression

FOLDER = Path(__file__).parents[1] / "data" / "nist"
CERTIFIED = json.loads((FOLDER / "certified.json").read_text())
SETS = sorted(CERTIFIED)
POLYNOMIALS = [name for name in SETS if CERTIFIED[name]["degree"] is not None]
COEFFICIENT_DIGITS = {"wampler4": 7, "wampler5": 7, "filip": 7}  # others 9
ERROR_DIGITS = {"filip": 6}  # others 8

# What a residual can be when data that lie on the curve are rounded: y itself times a few units in the last place.
ROUNDING = 1e-14


def read(name):
    with (FOLDER / f"{name}.csv").open() as file:
        head, *rows = csv.reader(file)
    table = np.array(rows, dtype=float)
    return head[1:], table[:, 1:], table[:, 0]


def powers(X, degree):
    return X if degree is None else np.hstack([X**k for k in range(1, degree + 1)])


def check(model, name, y):
    """Coefficients, standard errors, residual standard deviation and R2 against the certified values."""
    want, summary = CERTIFIED[name], model.summary()
    frame = summary.to_frame()
    assert list(frame.columns) == ["term", "estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]
    assert len(frame) == len(want["coef"])
    assert ("intercept" in list(frame["term"])) == want["intercept"]
    estimate, error = np.asarray(frame["estimate"]), np.asarray(frame["std_error"])
    np.testing.assert_allclose(estimate, want["coef"], rtol=10.0 ** -COEFFICIENT_DIGITS.get(name, 9))
    fitted = np.append(model.intercept_, model.coef_) if want["intercept"] else model.coef_
    np.testing.assert_array_equal(fitted, estimate)
    if want["residual_sd"]:
        np.testing.assert_allclose(error, want["se"], rtol=10.0 ** -ERROR_DIGITS.get(name, 8))
        np.testing.assert_allclose(summary.residual_sd, want["residual_sd"], rtol=1e-9)
    else:
        # Exact fits: zeros to within the rounding of y, and standard errors equally small relative to their coefficients.
        assert summary.residual_sd <= ROUNDING * np.abs(y).max()
        assert (error <= 1e-9 * np.abs(want["coef"])).all()
    np.testing.assert_allclose(summary.r2, want["r2"], rtol=1e-9)
    assert summary.df_residual == want["n"] - len(want["coef"])


def fit_and_check(model, name, X, y, chunk_rows):
    with engine("threads", chunk_rows=chunk_rows):
        model.fit(X, y)
    check(model, name, y)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize("chunk_rows", [None, 5, 1])
@pytest.mark.parametrize("name", SETS)
def test_power_columns(name, chunk_rows):
    _, X, y = read(name)
    want = CERTIFIED[name]
    model = LinearRegression(fit_intercept=want["intercept"])
    fit_and_check(model, name, powers(X, want["degree"]), y, chunk_rows)
    assert model.rank_ == len(want["coef"]) - want["intercept"], "no warning, no column dropped"


@pytest.mark.parametrize("chunk_rows", [None, 5, 1])
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name, chunk_rows):
    _, X, y = read(name)
    want = CERTIFIED[name]
    fit_and_check(PolynomialRegression(want["degree"], fit_intercept=want["intercept"]), name, X, y, chunk_rows)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", SETS)
def test_frames(name, library):
    names, X, y = read(name)
    want = CERTIFIED[name]
    Z = powers(X, want["degree"])
    names = names if want["degree"] is None else [f"x^{k}" for k in range(1, want["degree"] + 1)]
    frame = library({**dict(zip(names, Z.T.copy(), strict=True)), "y": y})
    model = LinearRegression(fit_intercept=want["intercept"]).fit(frame, "y")
    check(model, name, y)
    assert list(model.summary().to_frame()["term"])[-len(names) :] == names
    if want["degree"] is not None:
        curve = PolynomialRegression(want["degree"], fit_intercept=want["intercept"])
        check(curve.fit(library({"x": X[:, 0], "y": y}), "y"), name, y)
