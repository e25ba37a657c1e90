"""Truncated, edited, foreign or hostile model files: one clear sentence each, and no code is executed."""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from sklearn.linear_model import Ridge as ForeignRidge

from summula.core.errors import ModelFileError
from summula.core.model_files import model_file
from summula.core.model_files.commits import MANIFEST, STAGE, pending_commit
from summula.core.model_files.persistence import load, save
from tests.core.fake_models import Point, made, same


def raw(path: Path, header: Any, data: bytes = b"") -> Path:
    """A file with any header, right or wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def edit(path: Path, change: Any, sign: bool = True) -> Path:
    """Change a header and recompute its digest, as an attacker who knows the format could."""
    header = model_file.read_header(str(path))
    tensors = model_file.read_tensors(str(path))
    header.pop("digest") if sign else None
    change(header)
    if sign:
        header["digest"] = model_file.digest(header, tensors)
    save_file(tensors, path, metadata={"summula": model_file.canonical(header)})
    return path


def refused(path: Path, message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    names = np.array(["age", "<b>"], dtype=object)
    save(made(coef_=np.arange(6.0).reshape(2, 3), t_=(1, 2.5), names_=names), tmp_path / "m")
    return tmp_path / "m"


def test_missing(saved: Path) -> None:
    os.rename(saved, saved.parent / "house.model")
    with pytest.raises(FileNotFoundError, match=r"no model file '.*huose.model': did you mean '.*house.model'\?"):
        load(saved.parent / "huose.model")
    with pytest.raises(FileNotFoundError, match=r"no model file '.*q': check the path"):
        load(saved.parent / "q")
    with pytest.raises(FileNotFoundError, match=r"The folder '.*nowhere' of the model file 'm' does not exist"):
        load(saved.parent / "nowhere" / "m")


def test_every_cut_is_noticed(saved: Path) -> None:
    whole = saved.read_bytes()
    for size in range(len(whole)):
        saved.write_bytes(whole[:size])
        refused(saved, "is empty" if size == 0 else "is truncated")
    saved.write_bytes(whole + b"\0")
    refused(saved, "does not contain a valid model")


def test_every_flipped_bit_is_noticed_or_harmless(saved: Path) -> None:
    whole = saved.read_bytes()
    model = load(saved)
    rng = np.random.default_rng(0)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(damaged)
        try:
            again = load(saved)
        except ModelFileError:
            continue
        assert same(vars(again), vars(model)), position


def test_edited(saved: Path) -> None:
    refused(edit(saved, lambda h: h["params"].update(alpha=2.0), sign=False), "was edited or damaged")


def test_edited_tensor(saved: Path) -> None:
    whole = bytearray(saved.read_bytes())
    whole[-1] ^= 1
    saved.write_bytes(whole)
    refused(saved, "its digest does not match")


def test_without_a_digest(saved: Path) -> None:
    refused(edit(saved, lambda h: h.pop("digest"), sign=False), "was edited or damaged")


def test_newer_format(saved: Path) -> None:
    message = r"written by a newer Summula \(format 2\); this one reads up to 1: upgrade summula\."
    refused(edit(saved, lambda h: h.update(format=2)), message)


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, True])
def test_no_format(version: Any, saved: Path) -> None:
    refused(edit(saved, lambda h: h.update(format=version)), "does not contain a valid model")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_named_and_never_opened(protocol: int, tmp_path: Path) -> None:
    bomb = Bomb(str(tmp_path / "exploded"))
    for value in (ForeignRidge(), [bomb], {"a": bomb}, bomb):
        (tmp_path / "m").write_bytes(pickle.dumps(value, protocol))
        refused(tmp_path / "m", "is a pickle; Summula never unpickles: load it with the library that wrote it")
    assert not os.path.exists(bomb.path)


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("compress", [0, ("zlib", 3), ("gzip", 3), ("bz2", 3), ("lzma", 3), ("xz", 3)])
def test_joblib_files_are_named(compress: Any, tmp_path: Path) -> None:
    joblib.dump(ForeignRidge().fit(np.eye(30), np.ones(30)), tmp_path / "m", compress=compress)
    refused(tmp_path / "m", "is a pickle; Summula never unpickles")


def test_other_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.ones(3))
    refused(tmp_path / "a.npz", "is a zip archive")
    (tmp_path / "text").write_text('{"format": 1, "class": "linear_model.Ridge"}')
    refused(tmp_path / "text", "is not a model saved by Summula")
    save_file({"a": np.ones(3)}, tmp_path / "st", metadata={"format": "pt"})
    refused(tmp_path / "st", "is a safetensors file, but not a Summula model")
    save_file({"a": np.ones(3)}, tmp_path / "st")
    refused(tmp_path / "st", "is a safetensors file, but not a Summula model")
    (tmp_path / "zeros").write_bytes(bytes(1000))
    refused(tmp_path / "zeros", "is not a model saved by Summula")


@pytest.mark.parametrize("name", ["os.system", "builtins:eval", "sklearn.linear_model.Ridge", "", None, 3, ["a"]])
def test_foreign_classes_are_not_imported(name: Any, saved: Path) -> None:
    message = r"contains the class .*, which Summula .* cannot load: upgrade summula if"
    inner = {"estimator": {"class": name, "params": {}, "state": {}}}
    value = {"value": {"class": name, "fields": {}}}
    for change in (
        lambda h: h.update({"class": name}),
        lambda h: h["params"].update(alpha=inner),
        lambda h: h["state"].update(t_=[value]),
    ):
        whole = saved.read_bytes()
        refused(edit(saved, change), message)
        saved.write_bytes(whole)


@pytest.mark.parametrize(
    "change", [{"class": "linear_model." + "x" * 10_000}, {"class": "x.X", "version": "9" * 10_000}]
)
def test_long_names_in_a_file_are_shortened(change: dict[str, str], saved: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot load: upgrade summula") as caught:
        load(edit(saved, lambda h: h.update(change)))
    assert len(str(caught.value)) < 600


def test_no_module_outside_the_table_is_imported(saved: Path) -> None:
    edit(saved, lambda h: h.update({"class": "this.Ridge"}))
    refused(saved, "contains the class 'this.Ridge'")
    assert "this" not in sys.modules


def deep(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = [tree]
    return tree


HOSTILE = {
    "unknown parameter": lambda h: h["params"].update(gamma=1),
    "parameter self": lambda h: h["params"].update(self=1),
    "dunder attribute": lambda h: h["state"].update(__class__=1),
    "dunder dict": lambda h: h["state"].update(__dict__={"dict": []}),
    "odd attribute": lambda h: h["state"].update({"a b": 1}),
    "hidden method": lambda h: h["state"].update(predict=1),
    "no params": lambda h: h.pop("params"),
    "state a list": lambda h: h.update(state=[]),
    "extra key": lambda h: h.update(code="import os"),
    "a value as the model": lambda h: h.update({"class": "test.Point"}),
    "an estimator as a value": lambda h: h["state"].update(t_={"value": {"class": "test.Model", "fields": {}}}),
    "unknown field": lambda h: h["state"].update(t_={"value": {"class": "test.Point", "fields": {"z": 1}}}),
    "missing field": lambda h: h["state"].update(t_={"value": {"class": "test.Point", "fields": {}}}),
    "unknown kind": lambda h: h["state"].update(t_={"reduce": ["os.system", "ls"]}),
    "two kinds": lambda h: h["state"].update(t_={"tuple": [], "float": "nan"}),
    "no kind": lambda h: h["state"].update(t_={}),
    "tuple of text": lambda h: h["state"].update(t_={"tuple": "abc"}),
    "bad float": lambda h: h["state"].update(t_={"float": "1e5"}),
    "bad bytes": lambda h: h["state"].update(t_={"bytes": "zz"}),
    "bad pairs": lambda h: h["state"].update(t_={"dict": [[1]]}),
    "list as key": lambda h: h["state"].update(t_={"dict": [[[1], 2]]}),
    "missing tensor": lambda h: h["state"].update(t_={"array": {"tensor": "q", "order": "C"}}),
    "unused tensor": lambda h: h["state"].pop("coef_"),
    "bad order": lambda h: h["state"]["coef_"]["array"].update(order="K"),
    "two orders": lambda h: h["state"].update(t_={"array": {"tensor": "coef_", "order": "F"}}),
    "odd key": lambda h: h["state"]["coef_"]["array"].update(self=1),
    "array as scalar": lambda h: h["state"].update(coef_={"scalar": "coef_"}),
    "array as text": lambda h: h["state"].update(coef_={"text": {"tensor": "coef_", "order": "C"}}),
    "huge shape": lambda h: h["state"]["names_"]["objects"].update(shape=[10**30, 0]),
    "negative shape": lambda h: h["state"]["names_"]["objects"].update(shape=[-1]),
    "odd object": lambda h: h["state"]["names_"]["objects"].update(items=[[1], [2]]),
    "sparse of one tensor": lambda h: h["state"].update(
        coef_={"sparse": {"kind": "csr_array", "shape": [2, 3], **dict.fromkeys(PARTS, "coef_")}}
    ),
    "deep": lambda h: h["state"].update(t_=deep(100)),
    "requests": lambda h: h.update(requests={"fit": {"sample_weight": {"a": 1}}}),
    "requests of nothing": lambda h: h.update(requests={"score": {"a": True}}),
}
PARTS = ("data", "indices", "indptr")


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_content_with_a_right_digest(change: Any, saved: Path) -> None:
    refused(edit(saved, change), "does not contain a valid model")


def test_a_property_is_not_called(saved: Path) -> None:
    model = load(edit(saved, lambda h: h["state"].update(trick=5)))
    assert model.trick == 1
    assert vars(model)["trick"] == 5


@pytest.mark.parametrize("fault", ["index", "negative", "indptr", "shape", "kind"])
def test_hostile_sparse_matrices(fault: str, tmp_path: Path) -> None:
    """Indices out of range would make compiled code read other memory."""
    matrix = scipy.sparse.csr_array(np.eye(3))
    if fault == "index":
        matrix.indices[1] = 1000
    if fault == "negative":
        matrix.indices[1] = -5
    if fault == "indptr":
        matrix.indptr[1] = 1000
    save(made(coef_=matrix), tmp_path / "m")
    if fault == "shape":
        edit(tmp_path / "m", lambda h: h["state"]["coef_"]["sparse"].update(shape=[3, 10**40]))
    if fault == "kind":
        edit(tmp_path / "m", lambda h: h["state"]["coef_"]["sparse"].update(kind="load_npz"))
    refused(tmp_path / "m", "does not contain a valid model")


def test_hostile_text(tmp_path: Path) -> None:
    save(made(a_=np.array(["abc"])), tmp_path / "m")
    tensors = model_file.read_tensors(str(tmp_path / "m"))
    header = model_file.read_header(str(tmp_path / "m"))
    header.pop("digest")
    tensors["a_"][0, 0] = 0xFFFFFFFF
    header["digest"] = model_file.digest(header, tensors)
    save_file(tensors, tmp_path / "m", metadata={"summula": model_file.canonical(header)})
    refused(tmp_path / "m", "the tensor 'a_' is not text")


def tensor(**change: Any) -> dict[str, Any]:
    return {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]} | change


META = {"__metadata__": {"summula": "{}"}}
HEADERS = {
    "huge length": struct.pack("<Q", 2**63) + b"{}",
    "length past the end": struct.pack("<Q", 90_000_000) + b"{}",
    "deep": b"[" * 10**6,
    "deep objects": b'{"a":' * 10**5,
    "not JSON": b"{]",
    "not text": b'{"\xff\xfe": 1}',
    "list": b"{} []",
    "huge number": b'{"a": ' + b"9" * 10**5 + b"}",
    "duplicate key": b'{"__metadata__":{"summula":"{}","summula":"{}"}}',
    "metadata twice": b'{"__metadata__":{"summula":"{}"},"__metadata__":{}}',
    "metadata number": {"__metadata__": {"summula": 1}},
    "metadata text": {"__metadata__": "summula"},
    "metadata list": {"__metadata__": ["summula"]},
    "empty text": {"__metadata__": {"summula": ""}},
    "text is a list": {"__metadata__": {"summula": "[]"}},
    "text has NaN": {"__metadata__": {"summula": '{"format": 1, "a": NaN}'}},
    "text has 1e999": {"__metadata__": {"summula": '{"format": 1, "a": 1e999}'}},
    "text has a duplicate key": {"__metadata__": {"summula": '{"format": 1, "format": 1}'}},
    "text is deep": {"__metadata__": {"summula": '{"format": 1, "a":' + "[" * 10**6}},
    "text is deep and whole": {"__metadata__": {"summula": '{"format": 1, "a":' + "[" * 50_000 + "]" * 50_000 + "}"}},
    "tensor past the end": META | {"a": tensor(data_offsets=[0, 80])},
    "negative offset": META | {"a": tensor(data_offsets=[-8, 0])},
    "offsets swapped": META | {"a": tensor(data_offsets=[8, 0])},
    "offsets text": META | {"a": tensor(data_offsets="ab")},
    "hole": META | {"a": tensor(data_offsets=[8, 16])},
    "overlap": META | {"a": tensor(), "b": tensor()},
    "shape too large": META | {"a": tensor(shape=[2**62, 4])},
    "shape overflows": META | {"a": tensor(shape=[2**64])},
    "many dimensions": {"__metadata__": {"summula": '{"format": 1}'}, "a": tensor(shape=[1] * 100)},
    "empty but huge": {
        "__metadata__": {"summula": '{"format": 1}'},
        "a": tensor(shape=[0, 2**62], data_offsets=[0, 0]),
        "b": tensor(),
    },
    "strange dtype": {"__metadata__": {"summula": '{"format": 1}'}, "a": tensor(dtype="F8_E5M2", shape=[8])},
    "unknown dtype": {"__metadata__": {"summula": '{"format": 1}'}, "a": tensor(dtype="PICKLE")},
    "tensor is a number": META | {"a": 1},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS.keys())
def test_hostile_headers(header: Any, tmp_path: Path) -> None:
    refused(raw(tmp_path / "m", header, bytes(8)), ".")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(content=st.binary(max_size=300))
def test_noise(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")
    with pytest.raises(ModelFileError):
        load(raw(tmp_path / "m", b"{" + content))


def test_a_parameter_or_field_added_later_takes_its_default(tmp_path: Path) -> None:
    def older(header: Any) -> None:
        header["params"].pop("inner")
        header["state"]["p_"]["value"]["fields"].pop("label")

    save(made(alpha=3.0, p_=Point(1)), tmp_path / "m")
    again = load(edit(tmp_path / "m", older))
    assert (again.alpha, again.inner, again.p_) == (3.0, None, Point(1))


@pytest.mark.parametrize(
    ("stage", "name"),
    [
        ("a", ""),
        ("a", "a\0b"),
        ("a", "\ud800"),
        ("a", "../x"),
        ("a", ".x"),
        ("a\0", "m"),
        ("\ud800", "m"),
        ("/../a", "m"),
    ],
)
def test_manifests_with_impossible_names_commit_nothing(stage: str, name: str, tmp_path: Path) -> None:
    """They raised errors of the operating system in every command that used the folder."""
    (tmp_path / MANIFEST).write_text(json.dumps({"stage": STAGE + stage, "files": [name]}))
    assert pending_commit(str(tmp_path)) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_manifest_that_is_a_pipe_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MANIFEST)
    assert pending_commit(str(tmp_path)) is None
