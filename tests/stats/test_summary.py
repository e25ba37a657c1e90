"""The coefficient table: text, HTML, frames, attributes."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from summula.stats.summary import Summary

COLUMNS = ["term", "estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"]
FACTS = {
    "n": 1_234_567,
    "df_residual": 9,
    "r2": 0.995479004577296,
    "adjusted_r2": 0.992465007628826,
    "f_statistic": 330.285339234588,
    "f_p_value": 4.98403052872e-10,
    "residual_sd": 304.854073561965,
    "log_likelihood": -109.617434808,
    "aic": 233.234869615,
    "bic": 238.642991198,
}


def table(terms: int | tuple[str, ...] = 3, **change: Any) -> Summary:
    if isinstance(terms, int):
        terms = ("intercept", *(f"x{i}" for i in range(1, terms)))
    n = len(terms)
    numbers = np.linspace(-1, 1, n) * 1000 / 3
    values: dict[str, Any] = {
        "title": "LinearRegression: 16 rows, 6 columns",
        "terms": terms,
        "targets": None,
        "estimate": numbers,
        "std_error": np.abs(numbers) / 7 + 0.1,
        "statistic": numbers / 3,
        "p_value": 10.0 ** -np.arange(n) / 3,
        "ci_low": numbers - 1,
        "ci_high": numbers + 1,
        "facts": FACTS,
    }
    return Summary(**(values | change))


# Longley's data, NIST's certified values (../data/nist/Longley.dat): estimate and standard deviation.
LONGLEY = {
    "intercept": (-3482258.63459582, 890420.383607373),
    "deflator": (15.0618722713733, 84.9149257747669),
    "gnp": (-0.358191792925910e-01, 0.334910077722432e-01),
    "year": (1829.15146461355, 455.478499142212),
}


def test_the_printed_table() -> None:
    estimate, error = np.array(list(LONGLEY.values())).T
    s = table(
        tuple(LONGLEY),
        estimate=estimate,
        std_error=error,
        statistic=estimate / error,
        p_value=np.array([0.00356, 0.863, 0.3125, 3e-5]),
        ci_low=estimate - 2.262 * error,
        ci_high=estimate + 2.262 * error,
        facts={**FACTS, "n": 16},
        notes=("Standard errors: HC3.", "Weights taken as frequencies."),
    )
    expected = """\
LinearRegression: 16 rows, 6 columns

rows                         16    residual SD      304.854
residual df                   9    log-likelihood  -109.617
R2                     0.995479    AIC              233.235
adjusted R2            0.992465    BIC              238.643
F (p)        330.285 (4.98e-10)

term               estimate      std error          t        p           [0.025            0.975]
-------------------------------------------------------------------------------------------------
intercept  -3482259          890420         -3.9108    0.00356  -5496390         -1468128
deflator         15.0619         84.9149     0.177376  0.863        -177.016          207.139
gnp              -0.0358192       0.033491  -1.06952   0.312          -0.111576         0.0399375
year           1829.15          455.478      4.01589   3e-05         798.859         2859.44

Standard errors: HC3.
Weights taken as frequencies."""
    assert str(s) == expected
    assert repr(s) == expected


def test_facts_are_attributes() -> None:
    s = table()
    assert s.r2 == FACTS["r2"]
    assert s.n == 1_234_567
    assert "adjusted_r2" in dir(s)
    assert str(s).splitlines()[2].split()[:2] == ["rows", "1,234,567"]
    with pytest.raises(
        AttributeError, match=r"Summary has no attribute 'r_squared'; its facts are: n, df_residual, r2"
    ):
        _ = s.r_squared
    with pytest.raises(AttributeError, match="its facts are: none"):
        _ = table(facts={}).r2
    assert not hasattr(s, "__array__")


def test_frozen_copied_pickled() -> None:
    s = table()
    with pytest.raises(dataclasses.FrozenInstanceError):
        s.title = "x"  # type: ignore[misc]
    for again in (copy.copy(s), copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert str(again) == str(s)
        assert again.r2 == s.r2
    with pytest.raises(AttributeError, match="facts"):
        _ = object.__new__(Summary).facts  # as copy and pickle do: no endless recursion


def test_missing_infinite_and_tiny_numbers() -> None:
    nan = np.full(3, np.nan)
    s = table(std_error=nan, statistic=np.full(3, np.inf), p_value=np.array([1e-300, 0, 1]), ci_low=nan, ci_high=nan)
    rows = [line.split() for line in str(s).splitlines()[-3:]]
    assert rows[0] == ["intercept", "-333.333", "-", "inf", "1e-300", "-", "-"]
    assert rows[1] == ["x1", "0", "-", "inf", "0", "-", "-"]
    assert rows[2] == ["x2", "333.333", "-", "inf", "1", "-", "-"]
    assert "nan" not in str(s) + s._repr_html_()


def test_decimal_points_are_aligned() -> None:
    lines = str(table(12, estimate=10.0 ** np.arange(-3, 9) * 1.25)).splitlines()[-12:]
    assert len({line.index(".") for line in lines if "." in line.split()[1]}) == 1


@pytest.mark.parametrize(("level", "heads"), [(0.95, ["[0.025", "0.975]"]), (0.9, ["[0.05", "0.95]"])])
def test_headings(level: float, heads: list[str]) -> None:
    text = str(table(level=level, statistic_name="z"))
    assert f"term estimate std error z p {' '.join(heads)}" in " ".join(text.split())


def test_long_wide_and_unprintable_names() -> None:
    names = ("a" * 500 + "b", "two\nlines\t\x1b[31m", "身長", "e\u0301t\u00e9", "x")
    lines = str(table(names, estimate=np.full(5, 0.5))).splitlines()[-5:]
    assert "aaa…aaa" in lines[0]
    assert "aab " in lines[0]
    assert lines[1].startswith(r"two\nlines\t\x1b[31m  ")
    assert "\x1b" not in str(table(names))
    assert max(map(len, lines)) < 120
    # Two columns a character for the two Chinese ones, none for the combining accent.
    columns = [line.index(".") for line in lines]
    assert columns[2] == columns[4] - 2
    assert columns[3] == columns[4] + 1
    assert str(table(("intercept", "x"))).splitlines()[-1].startswith("x          ")


@pytest.mark.parametrize("n", [1, 40, 41, 42, 5000])
def test_many_terms(n: int) -> None:
    s = table(n, p_value=np.ones(n))
    text, page = str(s), s._repr_html_()
    shown = [line.split()[0] for line in text.splitlines()[text.splitlines().index("") :] if line][1:]
    if n <= 41:
        assert "more terms" not in text + page
        assert f"x{n - 1}" in shown or n == 1
    else:
        assert f"… {n - 40:,} more terms; see to_frame() for all …" in text
        assert f"… {n - 40:,} more terms" in page
        lines = text.splitlines()
        place = next(i for i, line in enumerate(lines) if "more terms" in line)
        assert lines[place - 1].startswith("x29 ")
        assert lines[place + 1].startswith(f"x{n - 10} ")
        assert len(lines) - place == 11
        assert "<td" in page
        assert page.count("<tr>") == 9 + 1 + 40 + 1
    assert len(s) == len(s.to_frame()) == n


# Several targets


def targets() -> Summary:
    several = {
        "r2": np.array([0.5, 0.25]),
        "f_statistic": np.array([5.0, 7.0]),
        "f_p_value": np.array([0.01, 1e-20]),
    }
    return table(
        ("intercept", "x", "intercept", "x"),
        targets=("a", "a", "b", "b"),
        facts={"n": 16, "df_residual": 14, **several},
    )


def test_several_targets_in_text() -> None:
    lines = str(targets()).splitlines()
    assert lines[2].split() == ["rows", "16", "residual", "df", "14"]
    assert [line.split() for line in lines[4:8] if "---" not in line] == [
        ["target", "R2", "F", "(p)"],
        ["a", "0.5", "5", "(0.01)"],
        ["b", "0.25", "7", "(1e-20)"],
    ]
    assert lines[9].split()[:3] == ["target", "term", "estimate"]
    assert [line[:8].split() for line in lines[11:]] == [["a"], [], ["b"], []]
    assert targets().r2.tolist() == [0.5, 0.25]


def test_many_targets() -> None:
    names = tuple(f"y{i}" for i in range(25))
    text = str(table(names, targets=names, facts={"r2": np.linspace(0, 1, 25)}))
    assert "… 15 more" in text


def test_several_targets_as_a_frame() -> None:
    frame = targets().to_frame()
    assert list(frame.columns) == ["target", *COLUMNS]
    assert frame["target"].tolist() == ["a", "a", "b", "b"]


# Frames


def block(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, None)


def test_pandas_first() -> None:
    for library in (None, "pandas", "polars", "pyarrow"):
        frame = table(frame_library=library).to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == COLUMNS
        assert frame["term"].tolist() == ["intercept", "x1", "x2"]
        assert (frame.dtypes.iloc[1:] == np.float64).all()
    np.testing.assert_array_equal(frame["ci_high"], table().ci_high)


@pytest.mark.parametrize(
    ("absent", "library", "kind"),
    [
        (["pandas"], "polars", pl.DataFrame),
        (["pandas"], "pyarrow", pa.Table),
        (["pandas"], None, pa.Table),
        (["pandas", "polars"], "polars", pa.Table),
    ],
)
def test_without_pandas(absent: list[str], library: str | None, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    block(monkeypatch, *absent)
    frame = table(frame_library=library).to_frame()
    assert isinstance(frame, kind)
    names = frame.columns if kind is pl.DataFrame else frame.column_names
    assert list(names) == COLUMNS
    assert len(frame) == 3


def test_numbers_in_the_frame_are_not_rounded() -> None:
    frame = table(std_error=np.array([np.nan, 1 / 3, 1e-300])).to_frame()
    np.testing.assert_array_equal(frame["std_error"], [np.nan, 1 / 3, 1e-300])


# HTML


class Page(HTMLParser):
    """Parser that requires tags to be closed in order, and records texts and tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("several", [False, True])
def test_html_is_escaped_and_well_formed(several: bool) -> None:
    evil = "<script>alert('x')</script>&"
    s = table(
        (evil, "b"),
        title=evil,
        notes=(evil,),
        statistic_name=evil,
        targets=(evil, "t") if several else None,
        facts={**FACTS, evil: evil, "both": np.array([1.0, 2.0])},
    )
    page = Page()
    page.feed(s._repr_html_())
    page.close()
    assert page.open == []
    assert page.tags <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.texts.count(evil) >= 5
    for text in ("adjusted R2", "330.285 (4.98e-10)", "std error", "[0.025"):
        assert text in page.texts


def test_other_facts_print_plainly() -> None:
    s = table(
        facts={
            "converged": True,
            "solver": "auto",
            "n_iter": np.int64(1200),
            "lambdas": np.arange(9.0),
            "x": None,
        }
    )
    words = str(s).split("\n\n")[1]
    for text in ("converged", "True", "auto", "n iter", "1,200", "0, 1, 2, 3, 4, …", "None"):
        assert text in words
