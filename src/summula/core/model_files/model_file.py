"""The model file: written atomically, validated when read.

A model file is a safetensors file: eight bytes with the length of the header, the header (JSON), the tensors.
The model is described by the entry "summula" of the header's metadata. `write` replaces the file atomically; the
`read_` functions raise ModelFileError, with the reason, for files that `write` did not produce.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import stat
import uuid
from typing import Any, BinaryIO

import numpy as np

from summula.core.errors import ModelFileError
from summula.core.model_files.encoding import FAULTS, Tensor
from summula.core.model_files.json_limits import MAX_BYTES, check_json

__all__ = ["FORMAT", "canonical", "digest", "invalid", "read_header", "read_tensors", "write"]

FORMAT = 1

_KEY = "summula"
_TENSOR_LIMIT = 100_000
_CURE = "restore a backup or save the model again"

# First bytes of other model files.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(?c[\w.]+\n[\w.]+\n|\([ld]p0\n|[\]}]q\x00")
_COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b|BZh|\xfd7zXZ|\x5d\x00\x00|\x04\x22\x4d\x18")
_ARCHIVE = re.compile(rb"PK\x03\x04")


def canonical(tree: Any) -> str:
    """Return the canonical JSON text of a tree: sorted keys, no spaces, ASCII only."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(header: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    """Return the SHA-256 of the header and of name, dtype, shape and bytes of each tensor, sorted by name."""
    sha = hashlib.sha256(canonical(header).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        sha.update(canonical([name, tensor.dtype.str, list(tensor.shape)]).encode())
        sha.update(tensor.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def invalid(path: str, error: BaseException) -> ModelFileError:
    """Return the error for a file with invalid content."""
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return ModelFileError(f"'{path}' does not contain a valid model ({reason}): {_CURE}.")


def write(path: str, tensors: dict[str, Tensor], text: str) -> None:
    """Write a temporary file in the same folder and rename it once it is complete on disk."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"The folder '{folder}' does not exist: create it, then save '{path}'.")
    if os.path.exists(target) and not os.path.isfile(target):
        raise IsADirectoryError(f"'{path}' is a folder or a device: pass the path of a file to write.")
    temporary = os.path.join(folder, f".summula-{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            mode = stat.S_IMODE(os.stat(target if os.path.exists(target) else temporary).st_mode)
        save_file(tensors, temporary, metadata={_KEY: text})
        with open(temporary, "rb+") as file:
            _raise_if_too_large(len(tensors), file.read(int.from_bytes(file.read(8), "little")), text)
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except SafetensorError as error:
        raise OSError(f"'{path}' could not be written ({error}); nothing was changed.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
    _sync_folder(folder)


def _raise_if_too_large(tensors: int, header: bytes, text: str) -> None:
    """Raise ModelFileError for a model that exceeds the limits checked by `load`."""
    try:
        _check_count(tensors)
        check_json(header)
        check_json(text.encode())
    except ValueError as error:
        raise ModelFileError(
            f"The model cannot be saved ({error}): convert lists and dicts among its attributes to arrays."
        ) from None


def _check_count(tensors: int) -> None:
    if tensors > _TENSOR_LIMIT:
        raise ValueError(f"it contains {tensors:,} arrays; the maximum is {_TENSOR_LIMIT:,}")


def _sync_folder(folder: str) -> None:
    """Flush the rename to disk, if the system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_header(path: str) -> dict[str, Any]:
    """Return Summula's part of the header; raise for files of any other kind or of a newer format."""
    if not os.path.exists(path):
        raise FileNotFoundError(_missing(path))
    if not os.path.isfile(path):
        raise IsADirectoryError(f"'{path}' is a folder or a device, not a model file: check the path.")
    with open(path, "rb") as file:
        text = _metadata(path, file, os.fstat(file.fileno()).st_size)
    try:
        header = _parse(text.encode())
        version = header["format"]
        if type(version) is not int or version < 1:
            raise ValueError("its format is not a number")
    except FAULTS as error:
        raise invalid(path, error) from error
    if version > FORMAT:
        raise ModelFileError(
            f"'{path}' was written by a newer Summula (format {version}); this one reads up to {FORMAT}: "
            "upgrade summula."
        )
    return header


def _metadata(path: str, file: BinaryIO, size: int) -> str:
    """Return Summula's text in the safetensors metadata, after checking that the file is complete."""
    start = file.read(256)
    length = int.from_bytes(start[:8], "little")
    if size == 0:
        raise ModelFileError(f"'{path}' is empty: {_CURE}.")
    if size > 8 and start[8:9] != b"{":
        raise ModelFileError(_other_kind(path, start))
    if length > MAX_BYTES:
        raise ModelFileError(
            f"'{path}' declares a header of {length:,} bytes, but a model has at most {MAX_BYTES:,}: {_CURE}."
        )
    if size < 8 + max(length, 2):
        raise ModelFileError(f"'{path}' is truncated ({size:,} bytes): {_CURE}.")
    file.seek(8)
    try:
        header = _parse(file.read(length))
        metadata = header.pop("__metadata__", {})
        _check_count(len(header))
        end = 8 + length + max((int(tensor["data_offsets"][1]) for tensor in header.values()), default=0)
        if _KEY in metadata and not isinstance(metadata[_KEY], str):
            raise ValueError("its metadata are not text")
    except FAULTS as error:
        raise invalid(path, error) from error
    if _KEY not in metadata:
        raise ModelFileError(f"'{path}' is a safetensors file, but not a Summula model: check the path.")
    if size < end:
        raise ModelFileError(f"'{path}' is truncated ({size:,} of {end:,} bytes): {_CURE}.")
    text: str = metadata[_KEY]
    return text


def read_tensors(path: str) -> dict[str, Tensor]:
    """Return all tensors of the file as arrays."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, *FAULTS) as error:
        raise invalid(path, error) from error


def _parse(text: bytes) -> dict[str, Any]:
    """Parse a JSON object strictly: bounded size and depth, no duplicate keys, no NaN."""
    check_json(text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(tree := dict(pairs)) != len(pairs):
            raise ValueError("its header has a duplicate key")
        return tree

    def refuse(constant: str) -> Any:
        raise ValueError(f"its header contains {constant}")

    tree = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=refuse)
    if not isinstance(tree, dict):
        raise ValueError("its header is not an object")
    return tree


def _missing(path: str) -> str:
    folder, name = os.path.split(path)
    if not os.path.isdir(folder or "."):
        return f"The folder '{folder}' of the model file '{name}' does not exist: check the path."
    near = difflib.get_close_matches(name, os.listdir(folder or "."), n=1)
    hint = f"did you mean '{os.path.join(folder, near[0])}'?" if near else "check the path."
    return f"There is no model file '{path}': {hint}"


def _other_kind(path: str, start: bytes) -> str:
    cure = "load it with the library that wrote it if you trust it, and save the model with summula.save"
    suffix = os.path.splitext(path)[1].lower()
    if _PICKLE.match(start):
        return f"'{path}' is a pickle; Summula never unpickles: {cure}."
    if _COMPRESSED.match(start) or suffix in (".joblib", ".pkl", ".pickle"):
        return f"'{path}' looks like a joblib file, which is a pickle; Summula never unpickles: {cure}."
    if _ARCHIVE.match(start):
        return f"'{path}' is a zip archive (skops, torch or npz), not a model saved by Summula: {cure}."
    return f"'{path}' is not a model saved by Summula: check the path, or {_CURE}."
