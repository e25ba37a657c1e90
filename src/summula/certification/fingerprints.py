"""Fingerprints of models and rows: what a certificate is bound to, and the order in which rows are bet on.

The hash of a model is taken over its class and, recursively, everything pickle would write, arrays by dtype, shape and
bytes: over parameters and fitted attributes. A fit to other rows, or a changed parameter, changes it.

The hash of a row (x, y) is a number of 64 bits, the same for arrays, frames, sparse matrices and files. With a mixing
function M (that of the generator SplitMix64),

    h = M(sum over x_j != 0 of M(bits of x_j + j g) + sum over targets k of M(bits of y_k - k g))              (1)

Rows are bet on in the order of M(h + salt + c g), where c counts the rows equal to this one that came before it and the
salt comes from model and data. That order is as good as drawn by lot: it does not depend on the order in which rows
were given, and nobody can choose it. (Without c equal rows would stand together, and the order would tell the losses.)
"""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.frames import is_frame, opened, plain_doubles
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

SAMPLE_SIZE = 65_536  # hashes of training rows that a model keeps at most: the smallest, a fair sample

Hashes = NDArray[np.uint64]

_ROWS = 1 << 16
# What scikit-learn keeps with an estimator that says nothing about the fit.
_NOT_FITTED = ("_sklearn_version", "_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown")


# ------------------------------------------------------------------------------------------------------------ models


def model_hash(model: Any) -> str:
    """The SHA-256 of a fitted model, as text; the same after pickling, and after saving and loading."""
    sha = hashlib.sha256()
    try:
        _feed(sha, model, ())
    except (TypeError, AttributeError, RecursionError, pickle.PickleError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ParameterError(
            f"{type(model).__name__} holds what cannot be pickled ({reason}), so nothing can be bound to it: "
            "remove that from the model first."
        ) from error
    return sha.hexdigest()


def _feed(sha: Any, value: Any, inside: tuple[int, ...]) -> None:
    """Add a value to a hash: plain values by their text, arrays by their bytes, objects by what pickle would write."""
    kind = type(value)
    sha.update(_kind_name(kind))
    if kind in _PLAIN:
        sha.update(repr(value).encode())
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind != "O":
        sha.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif id(value) in inside:  # it holds itself
        sha.update(f"up {inside[::-1].index(id(value))}".encode())
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        sha.update(f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}".encode())
        if code := getattr(value, "__code__", None):
            constants = [constant for constant in code.co_consts if not hasattr(constant, "co_code")]
            cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
            _feed(sha, [code.co_code, constants, code.co_names, cells, value.__defaults__], (*inside, id(value)))
    else:
        parts = _parts(value)
        sha.update(f"{len(parts)}".encode())
        inside = (*inside, id(value))
        for part in parts:
            if type(part) in _PLAIN:  # (most parts are, and models of wide tables have many)
                sha.update(_PLAIN[type(part)] + repr(part).encode())
            else:
                _feed(sha, part, inside)


def _kind_name(kind: type) -> bytes:
    return f"<{kind.__module__}.{kind.__qualname__}>".encode()


_PLAIN = {kind: _kind_name(kind) for kind in (type(None), bool, int, float, complex, str, bytes, range, slice)}


def _parts(value: Any) -> list[Any]:
    """What an object consists of, in an order that does not depend on how it came about."""
    if isinstance(value, dict) and type(value) is dict:
        kept = sorted((key for key in value if key not in _NOT_FITTED), key=repr)
        return [item for key in kept for item in (key, value[key])]
    if isinstance(value, set | frozenset):
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
    """Equation (1) for every row of an array, a frame or a sparse matrix."""
    if hasattr(X, "tocsr"):
        check_sparse(X)
        total = _sparse(X.tocsr())
    else:
        columns = _columns(X)
        total = np.zeros(len(columns[0]) if columns else len(X), np.uint64)
        for j, column in enumerate(columns):
            _add(total, column, (j + 1) * GOLDEN)
    if y is not None:
        targets = array_of(y)
        for k in range(1 if targets.ndim == 1 else targets.shape[1]):
            _add(total, targets if targets.ndim == 1 else targets[:, k], -(k + 1) * GOLDEN, zeros=True)
    return np.asarray(mix64(total))


def _columns(X: Any) -> list[Any]:
    if is_frame(X):
        plain = plain_doubles(X)
        if plain and len(plain) == X.num_columns:
            return list(plain.values())
        return [column_values(column) for column in opened(X).iter_columns()]
    values = np.asarray(X)
    return [values] if values.ndim == 1 else [values[:, j] for j in range(values.shape[1])]


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
    """Numbers as the bits of their float64, so that 1, 1.0 and True are one; other values by a hash of their text."""
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
    for i, value in enumerate(values.tolist()):
        # (A date is text in a CSV file: 2024-12-31, not 2024-12-31 00:00:00.)
        text = str(value).removesuffix(" 00:00:00") if is_moment else str(value)
        if text not in known:
            known[text] = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        out[i] = known[text]
    return out


def _of_numbers(values: Any) -> Hashes:
    return np.asarray((values.astype(np.float64) + 0.0).view(np.uint64))  # adding 0 turns -0 into 0


def data_hash(rows: Hashes) -> str:
    """One hash of all rows, in whatever order they come."""
    return hashlib.sha256(np.sort(rows).tobytes()).hexdigest()


def betting_order(rows: Hashes, *bound_to: str) -> NDArray[np.intp]:
    """The order in which rows are bet on, from their hashes and those of models and data."""
    salt = int.from_bytes(hashlib.sha256(" ".join(bound_to).encode()).digest()[:8], "little")
    order = np.argsort(rows, kind="stable")
    place = np.arange(len(rows))
    first = np.concatenate([[True], rows[order][1:] != rows[order][:-1]])
    copies = np.empty(len(rows), np.uint64)
    copies[order] = place - np.maximum.accumulate(np.where(first, place, 0))
    return np.argsort(mix64(rows + np.uint64(salt) + copies * np.uint64(GOLDEN)), kind="stable")


# ------------------------------------------------------------------------------------------------------------ re-use


def repeated(rows: Hashes) -> float:
    """The share of rows that have a twin among the others."""
    _, counts = np.unique(rows, return_counts=True)
    return float(1 - np.sum(counts == 1) / max(len(rows), 1))


def share_seen(rows: Hashes, earlier: Hashes) -> float:
    """The share of rows that stand among earlier ones, where that cannot be chance; 0 when it can.

    Tables of few different values have equal rows without being the same data: a row that is equal to an earlier one
    is then no surprise. How often it happens by chance is read off the twins within each set.
    """
    if not len(rows) or not len(earlier):
        return 0.0
    share = float(np.isin(rows, earlier).mean())
    twins = max(repeated(rows), repeated(earlier))
    return share if share > (twins + 0.05 if twins else 0.0) else 0.0


_FEW_TWINS = 0.05  # share of training rows that have a twin, below which equal rows are the same rows


def in_training(rows: Hashes, trained: Hashes) -> NDArray[np.bool_]:
    """Which rows were among those a model was trained on, by hashes of these (all, or a sample of the smallest).

    In tables of few different values rows are equal by chance: matches count only where there are more of them than
    training rows have twins among themselves.

    Raises
    ------
    DataError
        Rows of the training data are among these, and the model has kept too few hashes to tell which.
    """
    found = np.isin(rows, trained)
    sampled = len(trained) >= SAMPLE_SIZE
    comparable = rows <= trained.max() if sampled else np.ones(len(rows), bool)
    if not found.any():
        return found
    share, twins = float(found[comparable].mean()), repeated(trained)
    if twins >= _FEW_TWINS and share <= twins + _FEW_TWINS:
        return np.zeros(len(rows), bool)
    if sampled and share > 0.01:
        raise DataError(
            f"About {share:.0%} of these rows were in the training data of this model, on which its error says nothing "
            "about new rows: certify on rows that it was not trained on."
        )
    return found
