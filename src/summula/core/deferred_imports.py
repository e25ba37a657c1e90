"""Import scikit-learn in half the time: without `scipy.stats` and pandas, which it needs for a few functions only.

`sklearn.utils.fixes` imports both when scikit-learn itself is imported: about 1.2 of 2 seconds of every new process.
While that one module is executed, the two names stand for modules that are imported when an attribute of them is first
used. Nothing else sees the stand-ins: once the module has been executed, `import scipy.stats` and `import pandas` work
as ever. A version of scikit-learn without that module is imported unchanged.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

__all__ = ["register"]

_IMPORTER = "sklearn.utils.fixes"
_DEFERRED = ("scipy.stats", "pandas")


class _DeferredModule(ModuleType):
    """Passes attributes on to the module of the same name, which is imported when the first of them is used."""

    def __getattr__(self, name: str) -> Any:
        _remove(self)
        return getattr(importlib.import_module(self.__name__), name)


def _remove(stand_in: ModuleType) -> None:
    """Delete a stand-in from the imported modules, so that the next import loads the module itself."""
    if sys.modules.get(stand_in.__name__) is stand_in:
        del sys.modules[stand_in.__name__]


@contextmanager
def _stand_ins() -> Iterator[None]:
    """Let stand-ins be imported in place of the deferred modules that are installed and not imported yet."""
    missing = [name for name in _DEFERRED if name not in sys.modules and importlib.util.find_spec(name) is not None]
    modules = [_DeferredModule(name) for name in missing]
    sys.modules.update(zip(missing, modules, strict=True))
    try:
        yield
    finally:
        for module in modules:
            _remove(module)


class _Loader(importlib.abc.Loader):
    """Executes a module with the stand-ins, then leaves it to its own loader."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        with _stand_ins():
            self.loader.exec_module(module)


class _DeferringFinder(importlib.abc.MetaPathFinder):
    """Finds the module that imports what is deferred, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _IMPORTER:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def register() -> None:
    """Defer the imports in this process, unless scikit-learn has been imported already."""
    if _IMPORTER not in sys.modules and not any(isinstance(finder, _DeferringFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DeferringFinder())
