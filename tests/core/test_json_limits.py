"""JSON texts are measured before parsing: depth, values and containers, ignoring the contents of strings."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from summula.core.model_files import json_limits
from summula.core.model_files.json_limits import _counted, _Counts, check_json
from tests.processes import environment

texts = st.text(st.sampled_from('[]{},:"\\ab\u00e9'), max_size=6)
trees = st.recursive(
    st.none() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=15,
)


def measured(tree: Any) -> tuple[int, int, int]:
    """Values, containers and depth of a tree, counted in Python; an empty container counts as one value more."""
    if not isinstance(tree, list | dict):
        return 1, 0, 0
    inner = [measured(item) for item in (tree.values() if isinstance(tree, dict) else tree)]
    values = 1 + max(sum(one[0] for one in inner), 1)
    return values, 1 + sum(one[1] for one in inner), 1 + max((one[2] for one in inner), default=0)


def counted(text: bytes) -> _Counts:
    """As `check_json` counts, block by block."""
    counts, start = _Counts(), 0
    while start < len(text):
        stop = json_limits._block_end(text, start)
        counts, start = _counted(text[start:stop], counts), stop
    return counts


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 18])
@settings(deadline=None, max_examples=60)
@given(tree=trees, ascii=st.booleans())
def test_counts_are_those_of_the_tree(block: int, tree: Any, ascii: bool) -> None:
    text = json.dumps([tree], ensure_ascii=ascii).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_limits, "_BLOCK", block)
        counts = counted(text)
    values, containers, depth = measured([tree])
    assert (counts.containers, counts.deepest, counts.depth, counts.in_string) == (containers, depth, 0, False)
    assert counts.values == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 151 + b"]" * 151, "nested more than 150 levels"),
        (b'{"a":' * 151 + b"1" + b"}" * 151, "nested more than 150 levels"),
        (b"[" + b"[]," * 400_000 + b"1]", "more than 400,000 lists"),
        (b"[" + b"1," * 2_000_000 + b"1]", "or 2,000,000 values"),
        (b'"' + b"x" * 50_000_000 + b'"', "has 50,000,002 bytes; the maximum is 50,000,000"),
    ],
    ids=["deep", "deep objects", "lists", "values", "long"],
)
def test_too_large_texts_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_json(text)


def test_texts_at_the_limits_pass() -> None:
    check_json(b"[" * 150 + b"]" * 150)
    check_json(json.dumps(["[{" * 500_000, 'a"\\' * 10_000]).encode())


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory as Linux counts it")
@pytest.mark.parametrize("kind", ["outer", "inner", "past the limit", "one long text"])
def test_memory_stays_bounded_while_a_hostile_header_is_refused(kind: str, tmp_path: Path) -> None:
    """A header of 60 MB of brackets took 1.4 GB; now the text itself is most of what is needed."""
    brackets = b"[]," * (20_000_000 if kind == "past the limit" else 12_000_000) + b"1]"
    if kind == "inner":
        header = json.dumps({"__metadata__": {"summula": '{"format":1,"a":[' + brackets.decode() + "}"}}).encode()
    elif kind == "one long text":
        header = b'{"__metadata__":{"summula":"' + b"x" * 40_000_000 + b'"}}'
    else:
        header = b'{"a":[' + brackets + b"}"
    (tmp_path / "m").write_bytes(struct.pack("<Q", len(header)) + header)
    code = """
    import summula
    from benchmarks.memory import PeakMemory
    try:
        summula.load("nothing")
    except FileNotFoundError:
        peak = PeakMemory()
    try:
        summula.load("m")
    except ValueError as error:
        print(type(error).__name__, peak.bytes() / 2**20)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    name, megabytes = done.stdout.split()
    assert name == "ModelFileError"
    assert float(megabytes) < 250
