"""Forged model files: one or more changes to a saved model, with a recomputed digest.

A change is made at a site, an array or a node of the JSON text, by a mutation. All pairs of site and mutation are
tried in an order drawn once; when they are used up, several of them are combined.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from summula.core.model_files import model_file
from summula.core.model_files.classes import saved_classes

Array = NDArray[Any]
Random = np.random.Generator
Place = tuple[Any, ...]

# ---------------------------------------------------------------------------------------------------------- of arrays


def _limit(a: Array, sign: int) -> Any:
    if a.dtype.kind == "f":
        return a.dtype.type(sign * np.finfo(a.dtype).max)
    if a.dtype.kind == "b":
        return np.bool_(sign > 0)
    return np.iinfo(a.dtype).max if sign > 0 else np.iinfo(a.dtype).min


def _with_one(value: Callable[[Array, Any], Any]) -> Callable[[Array, Random], Array]:
    """Change one entry."""

    def change(a: Array, rng: Random) -> Array:
        out = a.copy()
        if out.size:
            k = int(rng.integers(out.size))
            with np.errstate(all="ignore"):
                out.reshape(-1)[k] = value(a, a.reshape(-1)[k])
        return out

    return change


def _filled(value: Callable[[Array], Any]) -> Callable[[Array, Random], Array]:
    return lambda a, _: np.full_like(a, value(a))


def _nan(a: Array) -> Any:
    return np.nan if a.dtype.kind == "f" else 0


def _as(dtype: str) -> Callable[[Array, Random], Array]:
    def change(a: Array, rng: Random) -> Array:
        with np.errstate(all="ignore"):
            return np.nan_to_num(a).astype(dtype) if a.dtype.kind == "f" else a.astype(dtype)

    return change


def _random_bytes(a: Array, rng: Random) -> Array:
    raw = rng.integers(0, 2 if a.dtype.kind == "b" else 256, a.nbytes, dtype=np.uint8)
    return raw.view(a.dtype).reshape(a.shape)


def _cyclic(a: Array, step: int) -> Array:
    return np.roll(a.reshape(-1), step).reshape(a.shape)


ARRAY_MUTATIONS: dict[str, Callable[[Array, Random], Array]] = {
    "huge": _filled(lambda a: _limit(a, 1)),
    "lowest": _filled(lambda a: _limit(a, -1)),
    "zero": _filled(lambda a: 0),
    "one": _filled(lambda a: 1),
    "a million": _filled(lambda a: min(1_000_000, _limit(a, 1)) if a.dtype.kind in "iu" else 1e6),
    "all NaN": _filled(_nan),
    "one huge": _with_one(lambda a, _: _limit(a, 1)),
    "one lowest": _with_one(lambda a, _: _limit(a, -1)),
    "one NaN": _with_one(lambda a, _: _nan(a)),
    "one zero": _with_one(lambda a, _: 0),
    "one more": _with_one(lambda a, x: x if x == _limit(a, 1) else x + 1),
    "one less": _with_one(lambda a, x: x if x == _limit(a, -1) else x - x.dtype.type(1) if a.dtype.kind != "b" else 0),
    "float32": _as("float32"),
    "float64": _as("float64"),
    "float16": _as("float16"),
    "int64": _as("int64"),
    "int32": _as("int32"),
    "uint8": _as("uint8"),
    "bool": _as("bool"),
    "shorter": lambda a, _: a[:-1] if a.ndim else a,
    "narrower": lambda a, _: np.ascontiguousarray(a[..., :-1]) if a.ndim else a,
    "empty": lambda a, _: a[:0] if a.ndim else a.reshape(1)[:0],
    "twice": lambda a, _: np.concatenate([a, a]) if a.ndim else np.stack([a, a]),
    "wider": lambda a, _: np.concatenate([a, a], axis=-1) if a.ndim else a.reshape(1, 1),
    "longer": lambda a, _: np.concatenate([a, a[-1:]]) if a.ndim else a.reshape(1),
    "flat": lambda a, _: a.reshape(-1),
    "deeper": lambda a, _: a[None],
    "column": lambda a, _: a.reshape(-1, 1),
    "scalar": lambda a, _: a.reshape(-1)[0].reshape(()) if a.size else np.zeros((), a.dtype),
    "transposed": lambda a, _: np.ascontiguousarray(a.T),
    "reversed": lambda a, _: np.ascontiguousarray(a[::-1]) if a.ndim else a,
    "shuffled": lambda a, rng: rng.permutation(a.reshape(-1)).reshape(a.shape),
    "moved on": lambda a, _: _cyclic(a, 1),
    "moved back": lambda a, _: _cyclic(a, -1),
    "noise": _random_bytes,
}

# ------------------------------------------------------------------------------------------------------------ of JSON

_DEEP: Any = 1
for _ in range(40):
    _DEEP = [_DEEP]

VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "0": 0,
    "1": 1,
    "-1": -1,
    "2": 2,
    "7": 7,
    "2**31": 2**31,
    "2**53": 2**53,
    "2**63": 2**63,
    "10**30": 10**30,
    "-10**300": -(10**300),
    "0.5": 0.5,
    "-1.5": -1.5,
    "1e308": 1e308,
    "-1e308": -1e308,
    "5e-324": 5e-324,
    "nan": {"float": "nan"},
    "inf": {"float": "inf"},
    "-inf": {"float": "-inf"},
    "no text": "",
    "text": "x",
    "long text": "x\n" * 5_000,
    "surrogate": "\ud800",
    "list": [],
    "list of lists": [[], [1]],
    "tuple": {"tuple": []},
    "tuple of several kinds": {"tuple": [1, "a", None]},
    "dict": {"dict": []},
    "dict of one": {"dict": [["a", 1]]},
    "deep": _DEEP,
    "bytes": {"bytes": "00ff"},
    "objects": {"objects": {"shape": [2], "items": ["a", None]}},
    "empty objects": {"objects": {"shape": [0, 2**40], "items": []}},
    "certificate": {"value": {"class": "losses.Squared", "fields": {}}},
    "estimator": {"estimator": {"class": "features.PolynomialLift", "params": {"degree": 10**9}, "state": {}}},
}
_OTHERS = ("deleted", "added", "renamed", "more", "less", "negated", "larger", "array", "scalar", "of elsewhere", "class",
           "swapped", "one item less", "one item more")  # fmt: skip
JSON_MUTATIONS = (*(f"= {name}" for name in VALUES), *_OTHERS)
_SHOWN = 4  # of the items of long lists


def places(node: Any, here: Place = ()) -> Iterator[Place]:
    """Every node of a JSON tree below the top; of long lists the first items and the last."""
    if isinstance(node, dict):
        items: list[tuple[Any, Any]] = list(node.items())
    elif isinstance(node, list):
        numbered = list(enumerate(node))
        items = numbered if len(numbered) <= _SHOWN else [*numbered[: _SHOWN - 1], numbered[-1]]
    else:
        return
    for key, value in items:
        yield (*here, key)
        yield from places(value, (*here, key))


def _at(tree: Any, place: Place) -> Any:
    for key in place:
        tree = tree[key]
    return tree


def change_json(header: dict[str, Any], place: Place, mutation: str, rng: Random, tensors: list[str]) -> None:
    """Change one node of a header."""
    parent, key = _at(header, place[:-1]), place[-1]
    node = parent[key]
    if mutation.startswith("= "):
        parent[key] = copy.deepcopy(VALUES[mutation[2:]])
    elif mutation == "deleted":
        del parent[key]
    elif mutation == "added":
        parent["extra_"] = 1
    elif mutation == "renamed" and isinstance(parent, dict):
        parent[f"{key}_"] = parent.pop(key)
    elif mutation in ("more", "less", "negated", "larger"):
        number = node if isinstance(node, int | float) else len(node or ())
        new = {"more": number + 1, "less": number - 1, "negated": -number, "larger": number * 1_000}[mutation]
        parent[key] = {"float": "inf" if new > 0 else "-inf"} if new in (np.inf, -np.inf) else new
    elif mutation == "array" and tensors:
        parent[key] = {"array": {"tensor": str(rng.choice(tensors)), "order": str(rng.choice(["C", "F"]))}}
    elif mutation == "scalar" and tensors:
        parent[key] = {"scalar": str(rng.choice(tensors))}
    elif mutation == "of elsewhere":
        known = [one for one in places(header) if one != ("digest",)]
        parent[key] = copy.deepcopy(_at(header, known[int(rng.integers(len(known)))]))
    elif mutation == "class":
        parent[key] = str(rng.choice(sorted(saved_classes())))
    elif mutation == "swapped":
        keys = list(parent) if isinstance(parent, dict) else list(range(len(parent)))
        other = keys[int(rng.integers(len(keys)))]
        parent[key], parent[other] = parent[other], parent[key]
    elif mutation == "one item less" and isinstance(node, list):
        parent[key] = node[:-1]
    elif mutation == "one item more" and isinstance(node, list):
        parent[key] = [*node, copy.deepcopy(node[-1])] if node else [1]


def _named(node: Any) -> Iterator[str]:
    """The tensors a header refers to."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("tensor", "scalar", "data", "indices", "indptr") and isinstance(value, str):
                yield value
            yield from _named(value)
    elif isinstance(node, list):
        for value in node:
            yield from _named(value)


# ------------------------------------------------------------------------------------------------------------- forging


class Forger:
    """Forged versions of one model file, by number.

    Parameters
    ----------
    path : Path
        A file that `save` wrote.
    seed : int
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.header = model_file.read_header(str(path))
        self.tensors = model_file.read_tensors(str(path))
        del self.header["digest"]
        self.seed = seed
        arrays = [(name, mutation) for name in sorted(self.tensors) for mutation in ARRAY_MUTATIONS]
        nodes = [(place, mutation) for place in places(self.header) for mutation in JSON_MUTATIONS]
        rng = np.random.default_rng(seed)
        self.arrays: list[Any] = [arrays[k] for k in rng.permutation(len(arrays))]
        self.nodes: list[Any] = [nodes[k] for k in rng.permutation(len(nodes))]

    def __len__(self) -> int:
        """Return the number of pairs of site and mutation."""
        return len(self.arrays) + len(self.nodes)

    def changes(self, number: int) -> list[Any]:
        """What a forgery changes: arrays and nodes in turn, then whatever is left, then several at once."""
        turns = min(len(self.arrays), len(self.nodes))
        rest = (self.arrays if len(self.arrays) > turns else self.nodes)[turns:]
        if number < 2 * turns:
            return [(self.arrays if number % 2 else self.nodes)[number // 2]]
        if number < len(self):
            return [rest[number - 2 * turns]]
        rng = np.random.default_rng([self.seed, number])
        both = [*self.arrays, *self.nodes]
        return [both[int(k)] for k in rng.integers(len(both), size=int(rng.integers(2, 5)))]

    def write(self, number: int, path: Path) -> None:
        """Write a forgery, with the digest it needs."""
        rng = np.random.default_rng([self.seed, number, 1])
        header, tensors = copy.deepcopy(self.header), dict(self.tensors)
        for site, mutation in self.changes(number):
            if isinstance(site, str):
                tensors[site] = np.ascontiguousarray(ARRAY_MUTATIONS[mutation](tensors[site], rng))
                continue
            try:
                change_json(header, site, mutation, rng, sorted(tensors))
            except (LookupError, TypeError):  # an earlier change took the node away
                continue
        used = set(_named(header))
        tensors = {name: array for name, array in tensors.items() if name in used}
        header["digest"] = model_file.digest(header, tensors)
        save_file(tensors, path, metadata={"summula": json.dumps(header, sort_keys=True, separators=(",", ":"))})
