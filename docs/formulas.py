r"""Formulas as MathML, made when the documentation is built, so that pages need no script and no network.

A fence of kind "math" is a displayed formula in LaTeX; a `\tag{1}` at its end is its number. Between $` and `$ there
is a formula within a sentence. (GitHub shows both notations, too.)
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["as_html", "on_page_markdown"]

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\$`([^`]+)`\$")
_TAG = re.compile(r"\\tag\{([^}]*)\}\s*$")


def as_html(latex: str, *, display: bool) -> str:
    """A formula as MathML in one line of HTML.

    Parameters
    ----------
    latex : str
    display : bool
        Whether it stands by itself.

    Returns
    -------
    str
    """
    from latex2mathml.converter import convert

    latex = " ".join(latex.split())
    if not display:
        return str(convert(latex))
    tag = _TAG.search(latex)
    body = convert(_TAG.sub("", latex), display="block")
    number = f'<span class="number">({tag[1]})</span>' if tag else ""
    return f'<div class="formula">{body}{number}</div>'


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What MkDocs calls for every page: formulas outside other fences become MathML."""
    pieces, end = [], 0
    for fence in _FENCE.finditer(markdown):
        pieces.append(_with_formulas(markdown[end : fence.start()]))
        pieces.append(as_html(fence[2], display=True) if fence[1] == "math" else fence[0])
        end = fence.end()
    return "".join([*pieces, _with_formulas(markdown[end:])])


def _with_formulas(text: str) -> str:
    return _INLINE.sub(lambda found: as_html(found[1], display=False), text)
