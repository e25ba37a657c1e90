"""The report page: complete, escaped, without network requests; drawings within their frames."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jinja2")

from summula.report import Content, Figure, Gallery, Table, render
from summula.report.axes import SMALL, Axis, date_ticks, level_ticks, number_text
from summula.report.charts import Line, Scale, bars, histogram, intervals, lines, points, waterfall
from summula.report.matrix_charts import matrix

VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """Parser that records elements, whether all are closed, and their references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.refers: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)
        self.refers += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(*items: Any, **more: Any) -> str:
    given = {"title": "T", "verdict": "V.", "promises": [], "facts": [], "command": "c", "versions": {"python": "3"}}
    return render(Content(**{**given, "sections": [("S", items)], **more}))


def test_the_page_is_whole_and_asks_nothing_of_the_network() -> None:
    text = page(Table("t", ["a", "b"], [["x", 1.5], ["y", None]]), Figure("f", bars(["a"], [1.0], "l")))
    parsed = Page(text)
    assert {"html", "title", "table", "svg", "script", "style", "figure"} <= set(parsed.seen)
    assert not parsed.refers
    assert not re.search(r"https?:|@import|url\(", text)


def test_names_of_all_kinds_are_escaped() -> None:
    evil = "<script>alert('x')</script>&\""
    drawn = [
        bars([evil], [1.0], evil),
        intervals([evil], [1.0], [0.0], [2.0], evil),
        lines([Line(evil, np.arange(3.0), np.arange(3.0))] * 2, Scale(evil), Scale(evil)),
        points(np.arange(3.0), np.arange(3.0), evil, evil),
        histogram(np.arange(9.0), evil),
        histogram([np.arange(9.0), np.arange(3.0)], evil, names=[evil, evil]),
        waterfall([evil, evil], [1.0, -2.0], 3.0, evil),
        matrix(np.eye(2), [evil] * 2, [evil] * 2, evil, texts=[[evil] * 2] * 2, titles=(evil, evil)),
    ]
    text = page(
        *(Figure(evil, one, evil) for one in drawn),
        Gallery(evil, [Figure(evil, drawn[0], evil)], evil),
        Table(evil, [evil], [[evil]], evil),
        title=evil,
        verdict=evil,
        command=evil,
        facts=[(evil, evil)],
        promises=[evil],
        versions={evil: evil},
    )
    assert Page(text).seen.count("script") == 1  # the report's own script


def test_cells_are_shown_for_people_and_sorted_by_value() -> None:
    text = page(Table("", ["a"], [[1234567], [0.123456], [float("nan")], [None], [True], ["word"]]))
    assert 'data-value="1234567">1,234,567<' in text
    assert 'data-value="0.123456">0.1235<' in text
    assert text.count("data-value=") == 2
    assert "nan" not in text


def coordinates(svg: str) -> np.ndarray:
    """Return all coordinates in a drawing, x and y."""
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())  # type: ignore[union-attr]
    x = re.findall(r'\b(?:x|x1|x2|cx)="([^"]*)"', svg)
    y = re.findall(r'\b(?:y|y1|y2|cy)="([^"]*)"', svg)
    for pair in re.findall(r'points="([^"]*)"', svg):
        x += [one.split(",")[0] for one in pair.split()]
        y += [one.split(",")[1] for one in pair.split()]
    return np.concatenate([np.array(x, float) / width, np.array(y, float) / height])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_drawings_stay_within_their_frame(scale: float) -> None:
    rng = np.random.default_rng(0)
    x, y = scale * rng.normal(size=5_000), scale * rng.normal(size=5_000)
    for svg in (
        points(x, y, "x", "y", diagonal=True, level=0.0),
        lines([Line("a", np.sort(x[:50]), y[:50])], Scale("x"), Scale("y"), dots=True),
        histogram(x, "x"),
        bars(["a", "b"], [-scale, 2 * scale], "l"),
        intervals(["a"], [scale], [0.5 * scale], [3 * scale], "l"),
        points(np.full(3, scale), np.full(3, scale), "x", "y"),
        waterfall(["a", "b"], [2 * scale, -3 * scale], scale, "l"),
        histogram([x[:100], x[100:]], "x", names=["a" * 30, "b" * 30]),
        lines([Line("c" * 40, np.sort(x[:9]), y[:9])] * 7, Scale("x"), Scale("y")),
        matrix(np.array([[1.0, -0.5, np.nan]]), ["r" * 30], ["c" * 30] * 3, "l"),
    ):
        places = coordinates(svg)
        assert np.isfinite(places).all()
        assert places.min() >= 0.0
        assert places.max() <= 1.0
    assert points(x, y, "x", "y").count("<circle") <= 1_500


def test_a_waterfall_ends_at_the_total() -> None:
    svg = waterfall(["up", "down"], [4.0, -1.0], 10.0, "l")
    (left, width), (second, narrow) = (
        map(float, one) for one in re.findall(r'<rect class="bar s\d" x="(\S+)" .*?width="(\S+)"', svg)
    )
    assert narrow == pytest.approx(width / 4, abs=0.2)
    assert second + narrow == pytest.approx(left + width, abs=0.2)
    assert re.findall(r'class="bar (s\d)"', svg) == ["s0", "s1"]


def test_stacked_histograms_count_every_row() -> None:
    values = np.array([0.0, 0, 0, 1, 2, 2, 5])
    svg = histogram([values[:4], values[4:]], "x", names=["a", "b"], whole=True)
    heights = np.array(re.findall(r'<rect class="bar.*?height="(\S+)"', svg), float)
    assert heights.sum() / heights.min() == pytest.approx(len(values), rel=0.02)


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1e-14, "0"), (1234.0, "1234"), (12_000.0, "12k"), (2.5e6, "2.5M"), (-3e9, "-3G")]
)
def test_tick_labels(value: float, text: str) -> None:
    assert number_text(value) == text


def test_axes_of_levels_and_dates_are_labelled_by_them() -> None:
    levels = level_ticks(["Biscoe", "Dream", "an island with a long name"], SMALL)
    drawn = [Line("", np.arange(3.0), np.arange(3.0))]
    drawing = lines(drawn, Scale("island", (-0.5, 2.5), levels), Scale(""), box=SMALL)
    assert ">Biscoe</text>" in drawing
    assert ">an islan…</text>" in drawing
    days = np.datetime64("2024-01-01").astype(int) + np.arange(100.0)
    assert ">2024-02-19</text>" in histogram(days, "day", whole=True, dates=True)


def test_labels_of_small_charts_do_not_overlap() -> None:
    width = SMALL.width - SMALL.left - SMALL.right
    for ticks in (
        level_ticks(["New York", "São Paulo", "Berlin", "München", "Paris"], SMALL),
        date_ticks(0.0, 900.0, SMALL),
    ):
        assert sum(7.7 * (len(text) + 1) for _, text in ticks) <= width
    long = lines([Line("", np.arange(3.0), np.arange(3.0))], Scale("a" * 60), Scale(""), box=SMALL)
    assert "a" * 29 + "…</text>" in long


def test_names_above_narrow_cells_are_slanted() -> None:
    for count, slanted in ((8, False), (16, True)):
        names = [f"x{j}" for j in range(count)]
        assert ("rotate(-45)" in matrix(np.eye(count), names, names, "correlations")) == slanted


def test_tables_with_long_words_have_the_whole_width() -> None:
    rows = [["a_really_long_column_name_that_goes_on[missing]", 0.5, -0.25], ["intercept", 1.0, 2.0]]
    assert '<div class="wide">' in page(Table("t", ["term", "neutral", "satisfied"], rows))
    assert '<div class="wide">' not in page(Table("t", ["term", "neutral", "satisfied"], rows[1:]))
    assert '<div class="wide">' not in page(Table("t", ["name", "value"], [["model", "0123456789abcdef" * 4]]))


def test_columns_without_values_are_left_out() -> None:
    text = page(Table("t", ["a", "note", "b"], [["x", "", 1.5], ["y", None, float("nan")]]))
    assert re.findall(r'<button type="button">(.*?)</button>', text) == ["a", "b"]


def test_hashes_may_be_broken_and_percent_signs_stay_with_their_numbers() -> None:
    text = page(Table("t", ["", "97.5 %"], [["model", "0123456789abcdef" * 4], ["short", "abc"]]))
    assert re.findall(r'<td class="hash">(.*?)</td>', text) == ["0123456789abcdef" * 4]
    assert "97.5&nbsp;%" in text
    assert "a &lt;b&gt;&nbsp;%" in page(Table("t", ["a <b> %"], [[1.0]]))


@pytest.mark.parametrize(("low", "high"), [(0.25, 0.95), (0.51, 0.99), (-3.0, 4.0), (0.0, 1.0), (99.0, 1301.0)])
def test_an_axis_has_two_ticks_or_more(low: float, high: float) -> None:
    for most in (3, 4, 5):
        ticks = Axis(low, high, 0.0, 1.0).ticks(most)
        assert 2 <= len(ticks) <= most + 1
        assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


@pytest.mark.parametrize("low", [0.26, 0.9851, 12_340.1])
@pytest.mark.parametrize("width", [40.0, 80.0, 150.0, 400.0])
def test_labels_of_ticks_do_not_overlap(low: float, width: float) -> None:
    axis = Axis(low, low + 0.2651, 100.0, 100.0 + width)
    found = axis.labelled_ticks(4)
    assert found
    ends = [(axis(value) - 3.3 * len(text), axis(value) + 3.3 * len(text)) for value, text in found]
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ends))
    assert len({text for _, text in found}) == len(found)
    upright = Axis(2007.0, 2009.0, 200.0, 0.0).labelled_ticks(5, across=False)
    assert [text for _, text in upright] == ["2007", "2007.5", "2008", "2008.5", "2009"]
