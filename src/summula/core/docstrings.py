"""Docstrings of related classes and functions: parameters and attributes documented by a base class are inherited.

A class docstring needs only the parameters and attributes that differ from those of its bases:

    @inherit_docs()
    class ExtraTreesClassifier(ForestClassifier):
        '''Classification by extremely randomised trees, with `bootstrap` as the only documented parameter.'''

The other parameters are inserted into `__doc__` in the order of the signature, so that `help` and the pages of the API
list them all; so are the parameters of methods that override a documented one, and common parameters of functions.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["inherit_docs", "with_defaults"]

Documented = TypeVar("Documented", bound=Callable[..., Any])
P = ParamSpec("P")

# Documentation of `fit` for classes without their own.
_FIT = """
Parameters
----------
X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
y : array-like of shape (n_samples,), or name of a column of X
sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

Returns
-------
self
"""
_UNSUPERVISED_FIT = _FIT.replace("array-like of shape (n_samples,), or name of a column of X\n", "ignored\n", 1)

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)


def inherit_docs(*sources: Any) -> Callable[[Documented], Documented]:
    """Complete the docstring of a class or function with the parameters and attributes that others document.

    Parameters
    ----------
    *sources : class, function or str
        Further sources of parameters, which neither the docstring nor a base class documents.

    Returns
    -------
    function
        A decorator.
    """

    def complete(documented: Documented) -> Documented:
        if not isinstance(documented, type):
            _complete(documented, (), sources)
            return documented
        bases = documented.__mro__[1:-1]
        for name, method in vars(documented).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                inherited = [getattr(base, name) for base in (*bases, *sources) if hasattr(base, name)]
                _complete(method, inherited, [_fit_docs(method)] if name in ("fit", "partial_fit") else [])
        _complete(documented, bases, sources)
        return documented

    return complete


def with_defaults(init: Callable[P, None], **defaults: Any) -> Callable[P, None]:
    """Return a copy of an `__init__` whose keyword-only parameters have other defaults."""
    function = cast(types.FunctionType, init)
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **defaults}
    copy.__annotations__ = function.__annotations__
    copy.__qualname__ = function.__qualname__
    return cast(Callable[P, None], copy)


def _fit_docs(method: Callable[..., Any]) -> str:
    y = inspect.signature(method).parameters.get("y")
    return _UNSUPERVISED_FIT if y is not None and y.default is None else _FIT


def _complete(documented: Any, bases: Iterable[Any], others: Iterable[Any] = ()) -> None:
    """Insert missing parameters into a docstring, in the order of the signature, and the attributes of the bases."""
    if documented.__doc__ is None:
        return
    sections = _sections(documented.__doc__)
    own, attributes = _entries(sections.get("Parameters", "")), _entries(sections.get("Attributes", ""))
    parameters = own
    for source in (*bases, *others):
        inherited = _sections(source if isinstance(source, str) else source.__doc__ or "")
        parameters = _entries(inherited.get("Parameters", "")) | parameters
        if source in bases:
            found = _entries(inherited.get("Attributes", ""))
            attributes |= {name: entry for name, entry in found.items() if name not in attributes}
        if "Returns" in inherited and not isinstance(documented, type):
            sections.setdefault("Returns", inherited["Returns"])
    in_order = [name for name in (*inspect.signature(documented).parameters, *own) if name in parameters]
    sections["Parameters"] = "\n".join(dict.fromkeys(parameters[name] for name in in_order))
    sections["Attributes"] = "\n".join(dict.fromkeys(attributes.values()))
    documented.__doc__ = _joined(sections)


def _sections(docstring: str) -> dict[str, str]:
    """Split a docstring at its headings; the text before the first one has the heading ""."""
    text, *rest = _HEADING.split(inspect.cleandoc(docstring))
    return {"": text.strip("\n")} | {
        heading: body.strip("\n") for heading, body in zip(rest[::2], rest[1::2], strict=True)
    }


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name; those with several names ("a, b : float") by each."""
    entries = [entry.rstrip("\n") for entry in _ENTRY.split(section) if entry.strip()]
    return {name.strip("* "): entry for entry in entries for name in entry.partition(" :")[0].split("\n")[0].split(",")}


def _joined(sections: dict[str, str]) -> str:
    """Write sections in the order of numpydoc."""
    order = ["", "Parameters", "Attributes", "Returns"]
    headings = [*order, *(heading for heading in sections if heading not in order)]
    written = [
        f"{heading}\n{'-' * len(heading)}\n{sections[heading]}" if heading else sections[heading]
        for heading in headings
        if sections.get(heading)
    ]
    return "\n\n".join(written) + "\n"
