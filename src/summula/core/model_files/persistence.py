"""Saving and loading models: one safetensors file, no code in it.

The arrays of a model are safetensors tensors; everything else is one JSON text in the file's metadata
(`encoding.py` says how values become JSON, `model_file.py` how the file is written and checked).
Loading creates only registered classes (`classes.py`), from plain data: nothing is unpickled, evaluated, or imported by
a name from the file. A SHA-256 digest of the text and every tensor detects a damaged or edited file; it protects
against accidents and is not a signature. Therefore the state of every class is checked against the schema it declares
(`core/model_files/schema.py`), both when it is saved and when it is loaded. `docs/persistence.md` describes the format.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from summula._version import __version__
from summula.core.data.printable import shortened
from summula.core.errors import ModelFileError
from summula.core.model_files.classes import ForeignClassError, name_of
from summula.core.model_files.commits import committed_version
from summula.core.model_files.encoding import FAULTS, Reader, Tensor, Writer, refusal
from summula.core.model_files.model_file import FORMAT, canonical, digest, invalid, read_header, read_tensors, write
from summula.core.model_files.schema import Fault, check_state

__all__ = ["load", "save"]

_TRIES = 5  # to read a file that others replace


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model to one safetensors file, atomically.

    Parameters
    ----------
    model : estimator
        A Summula estimator, fitted or not. Its attributes must be plain values, arrays or Summula objects.
    path : str or path
        Output file. An existing file is replaced only once the new one is complete on disk.
    """
    cls = type(model)
    if not hasattr(cls, "get_params") or name_of(cls) is None:
        raise ModelFileError(refusal(cls.__name__, "", model))
    writer = Writer(cls.__name__)
    header: dict[str, Any] = {"format": FORMAT, "version": __version__, **writer.estimator(model, "", 0)}
    try:
        check_state(model)
    except Fault as fault:
        raise ModelFileError(
            f"{cls.__name__} cannot be saved because it could not be loaded again: {fault}; undo the change, or refit."
        ) from None
    header["digest"] = digest(header, writer.tensors)
    name = os.fsdecode(path)
    write(name, writer.tensors, canonical(header))
    if (older := committed_version(name)) != name:  # a version that a training run has not moved to its name yet
        with contextlib.suppress(FileNotFoundError):
            os.remove(older)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model written by `save`.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : estimator
        Model with the same class, parameters and fitted attributes, and bit-identical predictions.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    ModelFileError
        The file is damaged, edited, a pickle, not a Summula model, or was written by a newer version of Summula.
    """
    name, header, tensors = _read(os.fsdecode(path))
    try:
        intact = header.pop("digest", None) == digest(header, tensors)
    except FAULTS as error:
        raise invalid(name, error) from error
    if not intact:
        raise ModelFileError(
            f"'{name}' was edited or damaged after it was saved (its digest does not match): "
            "restore a backup or save the model again."
        )
    return _rebuild(name, header, tensors)


def _read(path: str) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """Return the committed version of a file, its header and its tensors, of one file if it is replaced meanwhile."""
    for _ in range(_TRIES):
        name = committed_version(path)
        try:
            before = os.stat(name)
            header, tensors = read_header(name), read_tensors(name)
            if os.path.samestat(before, os.stat(name)):
                return name, header, tensors
        except FileNotFoundError:  # it may have been moved to its name
            continue
    return path, read_header(path), read_tensors(path)


def _rebuild(path: str, header: dict[str, Any], tensors: dict[str, Tensor]) -> Any:
    reader = Reader(tensors)
    version = header.pop("version", None)
    try:
        model = reader.estimator({key: value for key, value in header.items() if key != "format"}, 0)
        if unused := tensors.keys() - reader.used:
            raise ValueError(f"nothing refers to the tensor {min(unused)!r}")
        check_state(model)
        return model
    except ForeignClassError as error:
        raise ModelFileError(
            f"'{path}' contains the class {shortened(repr(error.args[0]))}, which Summula {__version__} cannot load: "
            f"upgrade summula if a newer version wrote the file (it states {shortened(repr(version))}), else do not "
            "trust it."
        ) from None
    except FAULTS as error:
        raise invalid(path, error) from error
