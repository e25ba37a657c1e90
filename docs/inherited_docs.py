"""Docstrings and signatures on the pages of the API: those of the imported objects, with what they inherit.

See `summula.core.docstrings`, which completes docstrings when a class or function is defined.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe

__all__ = ["InheritedDocs"]


class InheritedDocs(griffe.Extension):
    """Take docstrings of classes and functions from the imported objects instead of the source."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Set the docstring of a class, and the defaults of an `__init__` made by `with_defaults`."""
        self._set_docstring(cls)
        init = cls.members.get("__init__")
        if init is not None and not init.is_function:
            signature = inspect.signature(griffe.dynamic_import(cls.path).__init__)
            inherited = next(base.members["__init__"] for base in cls.mro() if "__init__" in base.members)
            parameters = [_with_default(one, signature.parameters[one.name].default) for one in inherited.parameters]
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Set the docstring of a function or method."""
        self._set_docstring(func)

    def _set_docstring(self, documented: griffe.Class | griffe.Function) -> None:
        if documented.docstring is None or "inherit_docs" not in documented.module.source:
            return
        found = inspect.getdoc(griffe.dynamic_import(documented.path))
        documented.docstring.value = found or documented.docstring.value


def _with_default(parameter: griffe.Parameter, default: Any) -> griffe.Parameter:
    text = None if default is inspect.Parameter.empty else repr(default)
    return griffe.Parameter(parameter.name, kind=parameter.kind, annotation=parameter.annotation, default=text)
