"""Registry of the classes that can appear in model files.

A class can be saved if it is decorated with `@schema.saved(...)`; no other registration is needed. Its name in files is
the folder and the class, "linear_model.Ridge", unless the decorator gives another. Names are part of the file format:
they stay the same when a class moves. Files contain names of classes only; this module decides what is imported.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["ForeignClassError", "class_named", "name_of", "register_name", "saved_classes"]

_CLASSES: dict[str, type[Any]] = {}
_NAMES: dict[type[Any], str] = {}

# Modules that define the classes with a prefix; for other prefixes the folder itself, which imports its estimators.
_MODULES = {
    "cli": "summula.dummy",
    "core.certificates": "summula.core.estimator.certificates",
    "core.priors": "summula.core.numerics.priors",
    "core.solution": "summula.core.numerics.solution",
    "core.statistics": "summula.core.numerics.statistics",
    "core.sums": "summula.core.numerics.sums",
    "losses": "summula.losses",
    "training": "summula.training.models",
    "tree": "summula.ensemble",
}


class ForeignClassError(ValueError):
    """A file contains the name of a class that cannot be loaded; the argument is the name."""


def register_name(cls: type[Any], name: str | None = None) -> None:
    """Register a class to be saved under a name, by default its folder and class name."""
    if name is None:
        package, _, inner = cls.__module__.partition(".")
        if package != "summula":
            raise TypeError(f"{cls.__qualname__} is defined outside summula: pass the name it is saved under")
        name = f"{inner.partition('.')[0]}.{cls.__name__}"
    known = _CLASSES.get(name)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(f"{known.__qualname__} and {cls.__qualname__} would both be saved as {name!r}")
    _CLASSES[name], _NAMES[cls] = cls, name


def name_of(cls: type[Any]) -> str | None:
    """Return the name in files of exactly this class (not of its base classes), or None."""
    return _NAMES.get(cls)


def class_named(name: Any) -> type[Any]:
    """Return the class with a given name in files."""
    if not isinstance(name, str):
        raise ForeignClassError(name)
    if name not in _CLASSES:
        module = _module_of(name)
        if module is not None:
            _load(module)
    if name not in _CLASSES:
        raise ForeignClassError(name)
    return _CLASSES[name]


def saved_classes() -> dict[str, type[Any]]:
    """Return all classes of the library that can be saved, by name."""
    for module in (*_MODULES.values(), *(f"summula.{folder}" for folder in _folders())):
        _load(module)
    return {name: cls for name, cls in sorted(_CLASSES.items()) if cls.__module__.startswith("summula.")}


def _load(module: str) -> None:
    """Import a module with all its public names, which may be loaded on first use."""
    loaded = importlib.import_module(module)
    for name in getattr(loaded, "__all__", ()):
        getattr(loaded, name)


def _module_of(name: str) -> str | None:
    prefix = name.rpartition(".")[0]
    if prefix in _MODULES:
        return _MODULES[prefix]
    folder = prefix.partition(".")[0]
    return f"summula.{folder}" if folder in _folders() else None


def _folders() -> tuple[str, ...]:
    import summula

    return tuple(vars(summula)["_MODULES"])  # not declared in the stub of the package
