"""Fake estimators and result classes, for tests of saving that should not depend on the library's own."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from summula.core.model_files import schema
from summula.core.model_files.classes import register_name


class Unchecked(schema.Schema):
    """Schema for fakes, which accepts any state."""

    def check(self, value: Any, path: str, sizes: schema.Sizes) -> None:
        return


@dataclasses.dataclass(frozen=True)
class Point:
    x: Any
    label: str = "p"
    norm: float = dataclasses.field(init=False, default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: Any


class Pair(NamedTuple):
    left: Any
    right: Any = None


class Model(TransformerMixin, BaseEstimator):
    """A fake estimator with arbitrary fitted attributes."""

    def __init__(self, alpha: Any = 1.0, inner: Any = None) -> None:
        self.alpha = alpha
        self.inner = inner

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Model:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X) @ self.coef_

    def transform(self, X: Any) -> Any:
        return X

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        return input_features

    @property
    def trick(self) -> int:
        return 1

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_training"}


class Derived(Model):
    """A user-defined subclass, which cannot be saved."""


for cls in (Model, Point, Slotted, Pair):
    schema.register(cls, Unchecked())
    register_name(cls, f"test.{cls.__name__}")


def made(**state: Any) -> Model:
    model = Model()
    vars(model).update(state)
    return model


def same(a: Any, b: Any) -> bool:
    """Return whether values are equal in type, dtype, memory order and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.flags.f_contiguous != b.flags.f_contiguous:
            return False
        if a.dtype == object:
            return all(map(same, a.ravel(), b.ravel()))
        return a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return all(map(same, a.items(), b.items())) and len(a) == len(b)
    if isinstance(a, Slotted):
        return same(a.a, b.a)
    if isinstance(a, float):
        return repr(a) == repr(b)
    return bool(a == b)
