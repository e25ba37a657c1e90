"""Saving and loading models: one safetensors file, no code in it.

The arrays of a model are safetensors tensors; everything else is one JSON text in the file's metadata
(`encoding.py` says how values become JSON, `model_file.py` how the file is written and checked).
Loading builds only classes that are declared savable (`classes.py`), from plain data: nothing is unpickled, evaluated,
or imported by a name the file chose. A SHA-256 digest over the text and every tensor finds a damaged or edited
file; it guards against accidents, it is not a signature. So the state of every class is checked against the schema
it declares (`core/model_files/schema.py`), when it is saved and when it is loaded. `docs/persistence.md` describes the
format.
"""

from __future__ import annotations

import os
from typing import Any

from summula._version import __version__
from summula.core.errors import ModelFileError
from summula.core.model_files.classes import ForeignClassError, name_of
from summula.core.model_files.encoding import FAULTS, Reader, Tensor, Writer, refusal
from summula.core.model_files.model_file import FORMAT, canonical, digest, invalid, read_header, read_tensors, write
from summula.core.model_files.schema import Fault, check_state

__all__ = ["load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to one safetensors file, whole or not at all.

    Parameters
    ----------
    model : estimator
        A Summula estimator, fitted or not. All it holds must be plain values, arrays or Summula objects.
    path : str or path
        Where to write. An existing file is replaced only once the new one is complete on disk.
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
            f"{cls.__name__} cannot be saved, since it could not be loaded: {fault}; set that back, or fit again."
        ) from None
    header["digest"] = digest(header, writer.tensors)
    write(os.fsdecode(path), writer.tensors, canonical(header))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : estimator
        With the same class, parameters and fitted attributes, so the same predictions to the last bit.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ModelFileError
        The file is damaged, edited, foreign, a pickle, or written by a newer Summula.
    """
    name = os.fsdecode(path)
    header = read_header(name)
    tensors = read_tensors(name)
    try:
        intact = header.pop("digest", None) == digest(header, tensors)
    except FAULTS as error:
        raise invalid(name, error) from error
    if not intact:
        raise ModelFileError(
            f"'{name}' was edited or damaged after it was saved (its digest does not match): "
            "restore a copy or save the model again."
        )
    return _rebuild(name, header, tensors)


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
            f"'{path}' names the class {error.args[0]!r}, which Summula {__version__} does not load: "
            f"upgrade summula if a newer one wrote the file (it says {version!r}), else do not trust it."
        ) from None
    except FAULTS as error:
        raise invalid(path, error) from error
