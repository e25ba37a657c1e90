"""Hashes of models and rows, which identify the model and data of a certificate and determine the betting order.

The hash of a model covers its class and, recursively, everything pickle would write (parameters and fitted attributes),
arrays by dtype, shape and bytes. Fitting to other rows, or changing a parameter, changes it.

The hash of a row (x, y) is a 64-bit integer, the same for arrays, frames, sparse matrices and files. With the mixing
function M of SplitMix64,

    h = M(sum over x_j != 0 of M(bits of x_j + j g) + sum over targets k of M(bits of y_k - k g))              (1)

Rows are bet on in the order of M(h + salt + c g), where c is the number of equal rows before this one and the salt is
derived from model and data. This order is effectively random: it does not depend on the order in which rows were
passed, and cannot be chosen. (Without c equal rows would be adjacent, and the order would depend on the losses.)
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import is_frame, opened, plain_doubles, plain_texts
from summula.core.data.joined_texts import joined_texts
from summula.core.data.numbers import array_of, column_values
from summula.core.data.sparse_format import check_sparse
from summula.core.engine.random import GOLDEN, mix64
from summula.core.errors import DataError, ParameterError

__all__ = [
    "SAMPLE_SIZE",
    "betting_order",
    "data_hash",
    "in_training",
    "model_hash",
    "repeated",
    "row_hashes",
    "share_seen",
]

SAMPLE_SIZE = 65_536  # maximum number of training row hashes stored by a model: the smallest, a random sample

Hashes = NDArray[np.uint64]

_ROWS = 1 << 16
_MANY = 100  # number of keys above which a dictionary is unlikely to be the state of an object
_MISSING = frozenset(("None", "nan", "NaT", "<NA>"))  # missing values as text
_NAN = int(np.float64("nan").view(np.uint64))
_NEW_OBJECT = copyreg.__newobj__  # type: ignore[attr-defined]  # a pickled part of every plain object
# Attributes set by scikit-learn that are not part of the fitted state.
_NOT_FITTED = ("_sklearn_version", "_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown")


# ------------------------------------------------------------------------------------------------------------ models


def model_hash(model: Any) -> str:
    """Return the SHA-256 of a fitted model, which is unchanged by pickling, and by saving and loading."""
    sha = hashlib.sha256()
    try:
        _feed(sha, model, ())
    except (TypeError, AttributeError, RecursionError, pickle.PickleError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ParameterError(
            f"{type(model).__name__} cannot be pickled ({reason}), so its hash cannot be computed: remove the "
            "unpicklable attribute first."
        ) from error
    return sha.hexdigest()


def _feed(sha: Any, value: Any, inside: tuple[int, ...]) -> None:
    """Add a value to a hash: plain values by repr, arrays by their bytes, objects by their pickled parts."""
    kind: Any = type(value)
    sha.update(_kind_name(kind))
    if kind in _PLAIN:
        sha.update(repr(value).encode())
    elif isinstance(value, _ARRAYS) and value.dtype.kind != "O":
        sha.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif id(value) in inside:  # a reference cycle
        sha.update(f"up {inside[::-1].index(id(value))}".encode())
    elif value is _NEW_OBJECT:
        sha.update(_new_object())
    elif kind is tuple and len(value) == 1 and isinstance(value[0], type):
        sha.update(_of_class(value[0]))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        _feed_callable(sha, value, inside)
    elif (begin := _of_instances(kind)) and value.__dict__:
        sha.update(begin)
        _feed(sha, value.__dict__, (*inside, id(value)))
        sha.update(_NO_ITEMS)
    else:
        parts = _parts(value)
        sha.update(f"{len(parts)}".encode())
        inside = (*inside, id(value))
        plain: list[str] = []  # consecutive parts, added at once: models of wide tables have a million
        for part in parts:
            if name := _PLAIN.get(type(part)):
                plain += name, repr(part)
                continue
            sha.update("".join(plain).encode())
            plain.clear()
            _feed(sha, part, inside)
        sha.update("".join(plain).encode())


def _feed_callable(sha: Any, value: Any, inside: tuple[int, ...]) -> None:
    """Add a class or function to a hash: its name, and its code."""
    sha.update(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".encode())
    if code := getattr(value, "__code__", None):
        constants = [constant for constant in code.co_consts if not hasattr(constant, "co_code")]
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        _feed(sha, [code.co_code, constants, code.co_names, cells, value.__defaults__], (*inside, id(value)))


class _Recorder:
    """Records what would be added to a hash."""

    def __init__(self) -> None:
        self.taken = b""

    def update(self, more: bytes) -> None:
        self.taken += more


@functools.cache
def _new_object() -> bytes:
    """Return what `_NEW_OBJECT` adds to a hash, computed once: models of wide tables have many plain objects."""
    recorder = _Recorder()
    _feed_callable(recorder, _NEW_OBJECT, ())
    return recorder.taken


@functools.cache
def _of_class(kind: type) -> bytes:
    """Return what the arguments of `_NEW_OBJECT` for a class add to a hash, after the name of their type."""
    recorder = _Recorder()
    recorder.update(b"1")
    _feed(recorder, kind, ())
    return recorder.taken


@functools.cache
def _of_instances(kind: type) -> bytes:
    """Return what instances of a class add to a hash before their attributes; nothing if it defines pickling.

    They are pickled as `_NEW_OBJECT`, its arguments, the attributes, and no items of a list or a dictionary.
    """
    own = ("__reduce_ex__", "__reduce__", "__getstate__")
    plain = all(getattr(kind, name) is getattr(object, name) for name in own) and kind.__dictoffset__ != 0
    plain = plain and kind.__basicsize__ <= _Recorder.__basicsize__  # no fields of a C type, which are not pickled
    more = ("__getnewargs__", "__getnewargs_ex__", "__slots__", "__next__")
    if not plain or any(hasattr(kind, name) for name in more) or issubclass(kind, _BUILT_IN):
        return b""
    recorder = _Recorder()
    recorder.update(b"5")
    _feed(recorder, _NEW_OBJECT, ())
    _feed(recorder, (kind,), ())
    return recorder.taken


def _kind_name(kind: type) -> bytes:
    return f"<{kind.__module__}.{kind.__qualname__}>".encode()


_ARRAYS, _SETS = (np.ndarray, np.generic), (set, frozenset)
_BUILT_IN = (int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, *_ARRAYS, BaseException)
_PLAIN = {kind: _kind_name(kind).decode() for kind in (type(None), bool, int, float, complex, str, bytes, range, slice)}
_NO_ITEMS = f"{_PLAIN[type(None)]}None".encode() * 2


@functools.lru_cache(maxsize=256)
def _sorted_names(names: tuple[str, ...]) -> list[str]:
    """Attribute names in the order in which they are added to a hash; many objects have the same."""
    return sorted((name for name in names if name not in _NOT_FITTED), key=repr)


def _parts(value: Any) -> list[Any]:
    """Return the parts of an object, in an order independent of how it was created."""
    if isinstance(value, dict) and type(value) is dict:
        names = tuple(value)
        if len(names) <= _MANY and all(type(name) is str for name in names):
            kept: list[Any] = _sorted_names(names)
        else:
            kept = sorted((key for key in names if key not in _NOT_FITTED), key=repr)
        return [item for key in kept for item in (key, value[key])]
    if isinstance(value, _SETS):
        return sorted(value, key=repr)
    if type(value) in (list, tuple):
        return list(value)
    if isinstance(value, np.ndarray):
        return [*value.shape, *value.ravel().tolist()]
    reduced = value.__reduce_ex__(4)
    parts = reduced if isinstance(reduced, tuple) else (reduced,)
    return [list(part) if hasattr(part, "__next__") else part for part in parts]


# -------------------------------------------------------------------------------------------------------------- rows


def row_hashes(X: Any, y: Any = None) -> Hashes:
    """Compute the hash (1) of each row of an array, a frame or a sparse matrix."""
    if hasattr(X, "tocsr"):
        check_sparse(X)
        total = _sparse(X.tocsr())
    else:
        columns = _columns(X)
        total = np.zeros(len(columns[0]) if columns else len(X), np.uint64)
        if len(columns) > len(total):
            total += _of_wide_rows(columns)
            columns = []
        for j, column in enumerate(columns):
            _add(total, column, (j + 1) * GOLDEN)
    if y is not None:
        targets = array_of(y)
        for k in range(1 if targets.ndim == 1 else targets.shape[1]):
            _add(total, targets if targets.ndim == 1 else targets[:, k], -(k + 1) * GOLDEN, zeros=True)
    return np.asarray(mix64(total))


def _columns(X: Any) -> list[Any]:
    if is_frame(X):
        frame = opened(X)
        plain = plain_doubles(X) | (plain_texts(X) if len(frame.columns) > len(frame) else {})
        return [plain[name] if name in plain else column_values(frame.get_column(name)) for name in frame.columns]
    values = np.asarray(X)
    return [values] if values.ndim == 1 else [values[:, j] for j in range(values.shape[1])]


def _of_wide_rows(columns: list[Any]) -> Hashes:
    """Return the sums of (1) over columns, for fewer rows than columns, with numbers and texts each at once."""
    bits = np.empty((len(columns[0]), len(columns)), np.uint64)
    doubles = [j for j, one in enumerate(columns) if isinstance(one, np.ndarray) and one.dtype == np.float64]
    texts = [j for j, one in enumerate(columns) if not isinstance(one, np.ndarray)]
    if doubles:
        bits[:, doubles] = _of_numbers(np.column_stack([columns[j] for j in doubles]))
    if texts:
        found = joined_texts([columns[j] for j in texts])
        bits[:, texts] = _bits(np.array([*found.words, None], object))[found.cells()].T
    for j in set(range(len(columns))).difference(doubles, texts):
        bits[:, j] = _bits(columns[j])
    steps = np.arange(1, len(columns) + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return np.asarray(np.where(bits == 0, np.uint64(0), mix64(bits + steps)).sum(axis=1, dtype=np.uint64))


def _add(total: Hashes, column: Any, offset: int, zeros: bool = False) -> None:
    step = np.uint64(offset % 2**64)
    for start in range(0, len(total), _ROWS):
        rows = slice(start, start + _ROWS)
        bits = _bits(np.asarray(column[rows]))
        here = mix64(bits + step)
        total[rows] += here if zeros else np.where(bits == 0, np.uint64(0), here)


def _sparse(X: Any) -> Hashes:
    X = X.copy() if not X.has_canonical_format else X
    X.sum_duplicates()
    bits = _bits(X.data)
    steps = (X.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(np.where(bits == 0, np.uint64(0), mix64(bits + steps)))])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _bits(values: Any) -> Hashes:
    """Return numbers as the bits of their float64, so that 1, 1.0 and True agree; hash other values by their text.

    Missing values of any kind, in columns of any type, have the bits of NaN.
    """
    if values.dtype.kind in "biuf":
        return _of_numbers(values)
    try:
        if values.dtype.kind == "O" and not any(isinstance(value, str) for value in values):
            return _of_numbers(values)
    except (TypeError, ValueError):
        pass
    known: dict[Any, int] = {}
    out = np.empty(len(values), np.uint64)
    is_moment = values.dtype.kind == "M"
    if is_moment:  # (NumPy gives nanoseconds as integers)
        values = values.astype("datetime64[us]")
    for i, value in enumerate(values.tolist()):
        # In CSV files dates are written as 2024-12-31, not as 2024-12-31 00:00:00.
        text = str(value).removesuffix(" 00:00:00") if is_moment else str(value)
        if text in _MISSING and not isinstance(value, str):
            out[i] = _NAN
            continue
        if text not in known:
            known[text] = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        out[i] = known[text]
    return out


def _of_numbers(values: Any) -> Hashes:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # adding 0 turns -0 into 0


def data_hash(rows: Hashes) -> str:
    """Return a hash of all rows that does not depend on their order."""
    return hashlib.sha256(np.sort(rows).tobytes()).hexdigest()


def betting_order(rows: Hashes, *bound_to: str) -> NDArray[np.intp]:
    """Return the order in which rows are bet on, derived from their hashes and those of models and data."""
    salt = int.from_bytes(hashlib.sha256(" ".join(bound_to).encode()).digest()[:8], "little")
    order = np.argsort(rows, kind="stable")
    place = np.arange(len(rows))
    first = np.concatenate([[True], rows[order][1:] != rows[order][:-1]])
    copies = np.empty(len(rows), np.uint64)
    copies[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return np.argsort(mix64(rows + np.uint64(salt) + copies * np.uint64(GOLDEN)), kind="stable")


# ------------------------------------------------------------------------------------------------------------ re-use


def repeated(rows: Hashes) -> float:
    """Return the fraction of rows with duplicates."""
    _, counts = np.unique(rows, return_counts=True)
    return float(1 - np.sum(counts == 1) / max(len(rows), 1))


def share_seen(rows: Hashes, earlier: Hashes) -> float:
    """Return the fraction of rows that occur among earlier ones, or 0 if that may be due to chance.

    Tables with few distinct values have equal rows without being the same data. The rate of equal rows by chance is
    estimated from the duplicates within each set.
    """
    if not len(rows) or not len(earlier):
        return 0.0
    share = float(np.isin(rows, earlier).mean())
    duplicates = max(repeated(rows), repeated(earlier))
    return share if share > (duplicates + 0.05 if duplicates else 0.0) else 0.0


_FEW_DUPLICATES = 0.05  # fraction of duplicated training rows below which equal rows are considered the same row


def in_training(rows: Hashes, trained: Hashes) -> NDArray[np.bool_]:
    """Return which rows were training rows of a model, given their hashes (all, or a sample of the smallest).

    In tables with few distinct values rows may be equal by chance: matches count only if they are more frequent than
    duplicates among the training rows.

    Raises
    ------
    DataError
        Some rows are training rows, but the model has stored too few hashes to identify them.
    """
    found = np.isin(rows, trained)
    sampled = len(trained) >= SAMPLE_SIZE
    comparable = rows <= trained.max() if sampled else np.ones(len(rows), bool)
    if not found.any():
        return found
    share, duplicates = float(found[comparable].mean()), repeated(trained)
    if duplicates >= _FEW_DUPLICATES and share <= duplicates + _FEW_DUPLICATES:
        return np.zeros(len(rows), bool)
    if sampled and share > 0.01:
        raise DataError(
            f"About {share:.0%} of these rows were in the training data of this model, so their errors say nothing "
            "about new rows: certify on rows that were not used for training."
        )
    return found
