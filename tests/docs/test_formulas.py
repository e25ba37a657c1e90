"""Formulas of the documentation: all are converted to MathML, and everything else is unchanged."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.formulas import as_html, on_page_markdown

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_of_a_page_is_converted(page: Path) -> None:
    written = page.read_text(encoding="utf-8")
    shown = on_page_markdown(written)
    assert "```math" not in shown
    formulas = re.findall(r"<math.*?</math>", shown)
    assert len(formulas) == written.count("```math") + len(re.findall(r"\$`", written))
    for formula in formulas:
        # Unknown commands remain as words with a backslash.
        assert "\\" not in "".join(ElementTree.fromstring(formula).itertext())
    others = re.compile(r"^```(?!math)\w+.*?^```$", re.MULTILINE | re.DOTALL)
    assert others.findall(shown) == others.findall(written)


def test_a_displayed_formula_has_its_number_beside_it() -> None:
    shown = as_html(r"x^2 \ge 0 \tag{7}", display=True)
    assert shown.startswith('<div class="formula"><math')
    assert '<span class="number">(7)</span>' in shown
    assert "tag" not in shown
    assert 'display="inline"' in as_html("x", display=False)


def test_fences_of_other_kinds_are_left_alone() -> None:
    text = "a $`x`$ b\n\n```text\n$`x`$\n```\n\n```math\ny\n```\n\n```python\n1\n```\n"
    shown = on_page_markdown(text)
    assert "```text\n$`x`$\n```" in shown
    assert "```python\n1\n```" in shown
    assert shown.count("<math") == 2


def test_the_chapters_have_formulas() -> None:
    with_formulas = {page.stem for page in PAGES if "```math" in page.read_text(encoding="utf-8")}
    assert {"least-squares", "generalised-linear-models", "lasso", "boosting", "mixtures"} <= with_formulas
