"""Limits on a JSON text, checked before it is parsed: a few bytes of JSON can become hundreds of bytes of objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["MAX_BYTES", "check_json"]

MAX_BYTES = 50_000_000
MAX_VALUES = 2_000_000  # numbers, texts, lists and objects; about 60 bytes each
MAX_CONTAINERS = 400_000  # lists and objects; up to 250 bytes each
MAX_DEPTH = 150  # nested lists and objects; one level of a model uses at most four

_BLOCK = 1 << 18


class _Counts(NamedTuple):
    """Counts so far: values, containers, current and maximum nesting depth, and whether inside a string."""

    values: int = 1
    containers: int = 0
    depth: int = 0
    deepest: int = 0
    in_string: bool = False


def check_json(text: bytes) -> None:
    """Raise ValueError if a JSON text is too long, too deeply nested or has too many values, in constant memory."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"its header has {len(text):,} bytes; the maximum is {MAX_BYTES:,}")
    counts, start = _Counts(), 0
    while start < len(text):
        stop = _block_end(text, start)
        counts = _counted(text[start:stop], counts)
        if counts.deepest > MAX_DEPTH:
            raise ValueError(f"its header is nested more than {MAX_DEPTH} levels deep")
        if counts.containers > MAX_CONTAINERS or counts.values > MAX_VALUES:
            raise ValueError(f"its header contains more than {MAX_CONTAINERS:,} lists or {MAX_VALUES:,} values")
        start = stop


def _block_end(text: bytes, start: int) -> int:
    """Return the end of a block that does not split an escape sequence."""
    stop = min(start + _BLOCK, len(text))
    if text[stop - 1 : stop] != b"\\":
        return stop
    while stop < len(text) and text[stop - 1 : stop] == b"\\":
        stop += 1
    return stop


def _counted(block: bytes, before: _Counts) -> _Counts:
    """Return the counts after one more block; the content of strings is ignored."""
    plain = np.frombuffer(block.replace(b"\\\\", b"__").replace(b'\\"', b"__"), np.uint8)
    quotes = plain == ord('"')
    outside = (np.cumsum(quotes, dtype=np.int32) + before.in_string) % 2 == 0
    opens = outside & ((plain == ord("[")) | (plain == ord("{")))
    closes = outside & ((plain == ord("]")) | (plain == ord("}")))
    commas = outside & (plain == ord(","))
    depth = before.depth + np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int32)
    n_opens = int(opens.sum())
    return _Counts(
        before.values + n_opens + int(commas.sum()),
        before.containers + n_opens,
        int(depth[-1]),
        max(before.deepest, int(depth.max())),
        bool((int(quotes.sum()) + before.in_string) % 2),
    )
