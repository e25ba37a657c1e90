"""Checks of error messages: one clear sentence that names the cause."""

from __future__ import annotations

import re
from typing import Any

import pytest

import summula


def one_sentence(error: BaseException | str, *names: str) -> str:
    """Return the message, after checking that it is one sentence on one line and contains all these words."""
    text = str(error)
    assert text.endswith((".", "?")), text
    assert "\n" not in text, text
    assert not re.search(r"[.?!] [A-Z]", text), f"more than one sentence: {text}"
    assert len(text) < 300, f"long: {text}"
    for name in names:
        assert name in text, f"{name!r} is not in: {text}"
    return text


def refused(*names: str, by: Any, X: Any, y: Any = None, **options: Any) -> str:
    """Fit and expect a one-sentence error that contains all these words."""
    with pytest.raises(summula.DataError) as caught:
        by.fit(X, y, **options)
    return one_sentence(caught.value, *names)
