"""Encoding of values as JSON and tensors, and decoding: the content of a model file.

None, bool, int, finite float, str and list are encoded as such in JSON. Everything else is an object with a
single key, its kind:

    float      "nan", "inf" or "-inf"
    tuple      [items]
    dict       [[key, value], ...]
    bytes      hexadecimal text
    str        the text of an np.str_
    scalar     the name of a tensor without dimensions: a NumPy scalar
    array      {tensor, order}; order "F" means that the tensor is the transpose
    text       {tensor, order}; one uint32 code point per character along the last axis
    objects    {shape, items}: an object array of text and numbers
    sparse     {kind, shape, data, indices, indptr}
    value      {class, fields}: a dataclass or NamedTuple that is saved
    estimator  {class, params, state, requests}

Classes are those registered in `classes.py`; reading a file imports and calls nothing else.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import ModelFileError
from summula.core.model_files.classes import class_named, name_of
from summula.core.model_files.schema import class_attribute, saved_attributes

__all__ = ["FAULTS", "Reader", "Tensor", "Writer", "refusal"]

# Exceptions that reading a malformed file can raise; the caller converts them to ModelFileError.
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)

_DEPTH_LIMIT = 32  # of nested lists, dicts and objects
_UNCHANGED = (type(None), bool, str)  # kinds of values that are the same in JSON
_NUMERIC = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_SPARSE = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")
# The methods whose metadata requests scikit-learn lets a user set.
_ROUTED = (
    *("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score"),
    *("transform", "inverse_transform"),
)

Tensor = NDArray[Any]


def _fields(cls: Any) -> Mapping[str, bool] | None:
    """Return the fields of a dataclass or NamedTuple and whether each is an argument of __init__; None otherwise."""
    return _cached_fields(cls)


@functools.cache
def _cached_fields(cls: Any) -> Mapping[str, bool] | None:
    if dataclasses.is_dataclass(cls):
        return {field.name: field.init for field in dataclasses.fields(cls)}
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return dict.fromkeys(cls._fields, True)
    return None


def _check_attribute(cls: type[Any], name: Any) -> None:
    if not isinstance(name, str) or not name.isidentifier() or (name[:2] == "__" and name[-2:] == "__"):
        raise ValueError(f"{name!r} is not a valid attribute name")
    if callable(class_attribute(cls, name)):
        raise ValueError(f"the attribute {name!r} would hide a method of {cls.__name__}")


def _as_in_files(cls: type[Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as files have them, or as the class has them: `_file_params`, its own inverse, translates."""
    translate = getattr(cls, "_file_params", None)
    return params if translate is None else dict(translate(params))


def _is_plain(item: Any) -> bool:
    """Return whether an object array may hold it."""
    return item is None or type(item) in (str, bool, int, float)


def refusal(owner: str, path: str, value: Any) -> str:
    """Return the error message for a value that cannot be saved; an empty path means the model itself."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if hasattr(value, "not_saved"):
        return f"{owner} cannot be saved: {value.not_saved}."
    if not path:
        cure = "pickle it" if kind.startswith("summula.") else "use the library the object comes from"
        return f"A {kind} cannot be saved: save() takes Summula estimators; {cure}."
    if "numpy.random" in kind:
        cure = "set it to an integer seed before saving"
    elif callable(value):
        cure = "files contain no code, so set it to None or to a named option before saving"
    elif hasattr(value, "get_params"):
        cure = "only Summula estimators can be saved, so use one of them or save the parts separately"
    else:
        cure = "replace it by plain values, arrays of numbers or text, or Summula objects before saving"
    return f"{owner} cannot be saved: its attribute '{path}' is a {kind}; {cure}."


class Writer:
    """Encode a model as JSON and named tensors; an array that occurs twice is stored once.

    Parameters
    ----------
    owner : str
        Class name used in error messages.
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.tensors: dict[str, Tensor] = {}
        # By id; the arrays are referenced so that no id is reused.
        self._encoded: dict[int, tuple[Tensor, dict[str, Any]]] = {}

    def estimator(self, model: Any, path: str, depth: int) -> dict[str, Any]:
        """Encode class, parameters, fitted attributes and metadata requests of an estimator."""
        cls = type(model)
        params, state = _as_in_files(cls, model.get_params(deep=False)), saved_attributes(model)
        node: dict[str, Any] = {"class": name_of(cls)}
        if vars(model).get("_metadata_request") is not None:
            routing = model.get_metadata_routing()
            node["requests"] = {m: dict(getattr(routing, m).requests) for m in _ROUTED if hasattr(cls, m)}
        for name in state:
            try:
                _check_attribute(cls, name)
            except ValueError as error:
                raise ModelFileError(f"{self.owner} cannot be saved: {error}; rename it.") from None
        node["params"] = {name: self.tree(params[name], _join(path, name), depth + 1) for name in params}
        node["state"] = {name: self.tree(state[name], _join(path, name), depth + 1) for name in state}
        return node

    def tree(self, value: Any, path: str, depth: int) -> Any:
        """Encode a value as JSON; `path` is its location in the model."""
        if depth > _DEPTH_LIMIT:
            raise ModelFileError(
                f"{self.owner} cannot be saved: its attribute '{path[:60]}…' contains itself or is nested "
                f"deeper than {_DEPTH_LIMIT} levels; flatten it."
            )
        kind = type(value)
        if value is None or kind in (bool, str) or (kind is int and value.bit_length() <= 4096):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in (list, tuple):
            items = [self.tree(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            return {"dict": [self._pair(key, item, path, depth + 1) for key, item in value.items()]}
        if kind is bytes:
            return {"bytes": value.hex()}
        if kind is np.str_:
            return {"str": str(value)}
        if isinstance(value, np.generic) and value.dtype.name in _NUMERIC:
            return {"scalar": self._tensor(np.asarray(value), path)}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if kind.__name__ in _SPARSE and kind.__module__.startswith("scipy.sparse"):
            return {"sparse": self._sparse(value, path)}
        return self._object(value, path, depth)

    def _pair(self, key: Any, item: Any, path: str, depth: int) -> list[Any]:
        label = repr(key) if _is_plain(key) else "..."
        return [self.tree(key, f"{path} (a key)", depth), self.tree(item, f"{path}[{label}]", depth)]

    def _object(self, value: Any, path: str, depth: int) -> dict[str, Any]:
        name = name_of(type(value))
        if name is None:
            raise ModelFileError(refusal(self.owner, path, value))
        fields = _fields(type(value))
        if fields is None:
            return {"estimator": self.estimator(value, path, depth)}
        content = {field: getattr(value, field) for field in fields}
        for field, one in content.items():
            if type(one) not in _UNCHANGED:  # (most are: encoders of wide tables have many plain fields)
                content[field] = self.tree(one, _join(path, field), depth + 1)
        return {"value": {"class": name, "fields": content}}

    def _array(self, array: Tensor, path: str) -> dict[str, Any]:
        if id(array) not in self._encoded:
            self._encoded[id(array)] = array, self._new_array(array, path)
        return self._encoded[id(array)][1]

    def _new_array(self, array: Tensor, path: str) -> dict[str, Any]:
        fortran = array.flags.f_contiguous and not array.flags.c_contiguous
        order = "F" if fortran else "C"
        stored = np.asarray(array.T if fortran else array, order="C")
        stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
        if array.dtype.name in _NUMERIC:
            return {"array": {"tensor": self._tensor(stored, path), "order": order}}
        if array.dtype.kind == "U":
            stored = stored if stored.itemsize else stored.astype("U1")
            codes = stored.reshape(-1).view(np.uint32).reshape(*stored.shape, stored.itemsize // 4)
            return {"text": {"tensor": self._tensor(codes, path), "order": order}}
        if array.dtype.kind != "O":
            raise ModelFileError(
                f"{self.owner} cannot be saved: its attribute '{path}' is an array of {array.dtype}; "
                "convert it to text or to numbers of at most 64 bits."
            )
        for item in (items := array.ravel().tolist()):
            if not _is_plain(item):
                raise ModelFileError(refusal(self.owner, f"{path}[...]", item))
        return {"objects": {"shape": list(array.shape), "items": self.tree(items, path, 0)}}

    def _sparse(self, matrix: Any, path: str) -> dict[str, Any]:
        node: dict[str, Any] = {"kind": type(matrix).__name__, "shape": [int(n) for n in matrix.shape]}
        for part in ("data", "indices", "indptr"):
            array = np.asarray(getattr(matrix, part), order="C")
            if array.dtype.name not in _NUMERIC:
                raise ModelFileError(refusal(self.owner, path, array.flat[0]))
            node[part] = self._tensor(array, _join(path, part))
        return node

    def _tensor(self, array: Tensor, path: str) -> str:
        while path in self.tensors:
            path += "'"
        self.tensors[path] = array
        return path


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class Reader:
    """Decode values from JSON and tensors. Malformed input raises one of `FAULTS`.

    Parameters
    ----------
    tensors : dict
        The tensors of the file by name.

    Attributes
    ----------
    used : set of str
        Names of the tensors that were used.
    """

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors = tensors
        self.used: set[str] = set()
        self._arrays: dict[str, tuple[str, Tensor]] = {}
        self._texts: dict[str, Tensor] = {}
        self._kinds: dict[str, Callable[[Any, int], Any]] = {
            "float": lambda text, _: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[text],
            "tuple": lambda items, depth: tuple(self.tree(_typed(items, list), depth)),
            "dict": lambda pairs, depth: {self.tree(k, depth + 1): self.tree(v, depth + 1) for k, v in pairs},
            "bytes": lambda text, _: bytes.fromhex(text),
            "str": lambda text, _: np.str_(_typed(text, str)),
            "scalar": lambda name, _: self._own(name).reshape(())[()],
            "array": lambda node, _: self._array(**node),
            "text": lambda node, _: self._text(**node),
            "objects": lambda node, depth: self._objects(node["shape"], self.tree(node["items"], depth)),
            "sparse": lambda node, _: self._sparse(**node),
            "value": lambda node, depth: self._value(node["class"], node["fields"], depth),
            "estimator": self.estimator,
        }

    def tree(self, node: Any, depth: int) -> Any:
        """Decode a JSON node."""
        if depth > _DEPTH_LIMIT:
            raise ValueError("it is nested too deeply")
        if isinstance(node, list):
            return [self.tree(item, depth + 1) for item in node]
        if not isinstance(node, dict):
            return node
        if len(node) != 1 or (kind := next(iter(node))) not in self._kinds:
            raise ValueError(f"it contains values of the unknown kind {', '.join(node)[:40]!r}")
        return self._kinds[kind](node[kind], depth)

    def estimator(self, node: Mapping[str, Any], depth: int) -> Any:
        """Decode an estimator from its class, parameters, fitted attributes and metadata requests."""
        cls = class_named(node["class"])
        if _fields(cls) is not None or node.keys() - {"class", "params", "state", "requests"}:
            raise ValueError(f"{node['class']!r} is not described as an estimator")
        params, state = _typed(node["params"], dict), _typed(node["state"], dict)
        if unknown := params.keys() - inspect.signature(cls).parameters.keys():
            raise ValueError(f"{min(unknown)!r} is not a parameter of {cls.__name__}")
        for name in state:
            _check_attribute(cls, name)
        model = cls(**_as_in_files(cls, {name: self.tree(value, depth + 1) for name, value in params.items()}))
        vars(model).update({name: self.tree(value, depth + 1) for name, value in state.items()})
        if unknown := state.keys() - saved_attributes(model).keys():
            raise ValueError(f"{min(unknown)!r} is not a saved attribute")
        _set_requests(model, node.get("requests", {}))
        return model

    def _value(self, name: str, content: Mapping[str, Any], depth: int) -> Any:
        cls = class_named(name)
        fields = _fields(cls)
        if fields is None or content.keys() - fields.keys():
            raise ValueError(f"the fields of {name!r} are not those of its class")
        values = {field: self.tree(node, depth + 1) for field, node in content.items()}
        made = cls(**{field: value for field, value in values.items() if fields[field]})
        for field, value in values.items():
            if not fields[field]:
                object.__setattr__(made, field, value)
        return made

    def _own(self, name: str) -> Tensor:
        """Return a tensor that may be used only once, so that reading is linear in the size of the file."""
        if name in self.used:
            raise ValueError(f"the tensor {name!r} is used twice")
        self.used.add(name)
        return self.tensors[name]

    def _array(self, tensor: str, order: str) -> Tensor:
        if tensor not in self._arrays:
            array = self._own(tensor)
            self._arrays[tensor] = order, {"C": array, "F": array.T}[order]
        known, array = self._arrays[tensor]
        if known != order:
            raise ValueError(f"the tensor {tensor!r} has two orders")
        return array

    def _text(self, tensor: str, order: str) -> Tensor:
        if tensor not in self._texts:  # labels are used in several places
            codes = self._own(tensor)
            if codes.dtype != np.uint32 or codes.shape[-1] < 1 or (codes.size and codes.max() > 0x10FFFF):
                raise ValueError(f"the tensor {tensor!r} is not text")
            self._texts[tensor] = codes.reshape(-1).view(f"U{codes.shape[-1]}").reshape(codes.shape[:-1])
        text = self._texts[tensor]
        return {"C": text, "F": text.T}[order]

    def _objects(self, shape: list[int], items: list[Any]) -> Tensor:
        if not all(map(_is_plain, items)) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("an array of objects contains values other than text and numbers")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)

    def _sparse(self, kind: str, shape: list[int], data: str, indices: str, indptr: str) -> Any:
        import scipy.sparse

        if kind not in _SPARSE:
            raise ValueError("a sparse matrix is neither CSR nor CSC")
        parts = tuple(self._own(name) for name in (data, indices, indptr))
        matrix = getattr(scipy.sparse, kind)(parts, shape=tuple(shape))
        matrix.check_format(full_check=True)  # compiled code relies on indices in range
        return matrix


def _typed(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"a {kind.__name__} is missing")
    return value


def _set_requests(model: Any, requests: Mapping[str, Mapping[str, Any]]) -> None:
    """Restore scikit-learn's metadata requests, such as `set_fit_request(sample_weight=True)`."""
    if not requests:
        return
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        for method in _ROUTED:
            if requests.get(method):
                getattr(model, f"set_{method}_request")(**requests[method])
