"""Schema of the saved state of a class: declared with the class, checked by `save` and `load`.

    @schema.saved(
        coef_=schema.Array("float", "n_targets", "n_features"),
        intercept_=schema.Array("float", "n_targets"),
        certificate_=schema.Maybe(schema.Object(Certificate, n_features="n_features")),
    )
    class Model(Estimator): ...

Kernels and matrix products rely on the fitted attributes of a model, and files may come from untrusted sources. So
everything that is saved is declared: dtype, shape, range and order of every array, type and range of every number.
Dimensions have names; the first field with a named dimension determines its size, and the others must agree. Relations
between fields that cannot be declared this way are rules: functions of the object and the sizes that return an error
message or None.

A subclass inherits the declarations of its bases and adds its own; `@schema.state` declares for subclasses only. An
attribute that a subclass computes (a property) is not part of its state, although a base may declare it. The
decorator also registers the class (`classes.py`). Fields are defined in `fields.py` and `array_fields.py`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from summula.core.model_files.array_fields import Array, Labels, Names, Sparse
from summula.core.model_files.classes import register_name
from summula.core.model_files.fields import (
    Dict,
    Either,
    Fault,
    Field,
    Flag,
    Integer,
    Items,
    Maybe,
    Plain,
    Real,
    Sizes,
    Text,
    is_container,
)

__all__ = [
    "Array",
    "Dict",
    "Either",
    "Fault",
    "Field",
    "Flag",
    "Integer",
    "Items",
    "Labels",
    "Maybe",
    "Names",
    "Object",
    "Plain",
    "Real",
    "Rule",
    "Schema",
    "Sizes",
    "Sparse",
    "Text",
    "check_state",
    "class_attribute",
    "nonempty",
    "register",
    "saved",
    "saved_attributes",
    "schema_of",
    "sizes_of",
    "state",
]

Rule = Callable[[Any, Sizes], str | None]
Class = TypeVar("Class", bound=type[Any])

# Attributes set by scikit-learn that are not part of the fitted state.
_NOT_SAVED = ("_sklearn_version", "_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown")
# Attributes set by scikit-learn on any estimator, and on fitted ones.
_SETTINGS: dict[str, Field] = {
    "_sklearn_output_config": Maybe(Dict(Text("transform"), Text("default", "pandas", "polars")))
}
_SCIKIT_LEARN: dict[str, Field] = {
    "n_features_in_": Maybe(Integer(1, size="n_features")),
    "feature_names_in_": Maybe(Names("n_features")),
    **_SETTINGS,
}

_DECLARED: dict[type[Any], Schema] = {}
_MERGED: dict[type[Any], Schema] = {}  # with the declarations of bases, once they are requested


@dataclass(frozen=True)
class Schema:
    """The fields of a class by name, and the rules that relate them."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Raise `Fault` for the first field that is missing, unknown or not as declared."""
        if hasattr(value, "get_params"):
            self._check_estimator(value, path, sizes)
        else:
            self._check_fields(value, {name: getattr(value, name) for name in self.fields}, path, sizes)

    def _check_estimator(self, model: Any, path: str, sizes: Sizes) -> None:
        params = model.get_params(deep=False)
        _check_params(model, params, self.fields, path)
        attributes = saved_attributes(model)
        known = _without_properties(type(model), {**_SCIKIT_LEARN, **self.fields})
        for name in sorted(attributes.keys() - known.keys()):
            _check_unknown(type(model), name, attributes[name], _join(path, name))
        if _is_fitted(model):
            self._check_fields(model, params | attributes, path, sizes, known)
        else:
            Schema(_SETTINGS)._check_fields(model, attributes, path, sizes)

    def _check_fields(
        self,
        value: Any,
        attributes: Mapping[str, Any],
        path: str,
        sizes: Sizes,
        fields: Mapping[str, Field] | None = None,
    ) -> None:
        for name, declared in (fields or self.fields).items():
            if name in attributes:
                declared.check(attributes[name], _join(path, name), sizes)
            elif not isinstance(declared, Maybe):
                raise Fault(f"{_join(path, name)} is missing")
        for rule in self.rules:
            if (fault := rule(value, sizes)) is not None:
                raise Fault(f"{path}: {fault}" if path else fault)


class Object(Field):
    """An instance of one of the given registered classes.

    Parameters
    ----------
    *classes : type
    **sizes : str
        Maps dimensions of the object (the keywords) to dimensions of the enclosing object.
    """

    def __init__(self, *classes: type[Any], **sizes: str) -> None:
        self.classes, self.sizes = classes, sizes

    def words(self, sizes: Sizes) -> str:
        """Name the classes."""
        return " or ".join(f"a {cls.__name__}" for cls in self.classes)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check the object against its own schema; an estimator must be fitted."""
        if not isinstance(value, self.classes):
            raise self.wrong(value, path, sizes)
        if hasattr(value, "get_params") and not _is_fitted(value):
            raise Fault(f"{path} is not fitted")
        inner = {name: sizes[outer] for name, outer in self.sizes.items() if outer in sizes}
        schema_of(type(value)).check(value, path, inner)
        sizes.update({outer: inner[name] for name, outer in self.sizes.items() if name in inner})


def saved(*given: str | Rule, **fields: Field) -> Callable[[Class], Class]:
    """Register a class to be saved, and declare its saved state; see the module's docstring.

    Parameters
    ----------
    *given : str or function
        Name of the class in files, by default the folder and class name; rules.
    **fields : Field
    """
    name = next((one for one in given if isinstance(one, str)), None)
    rules = tuple(one for one in given if not isinstance(one, str))

    def declare(cls: Class) -> Class:
        register(cls, Schema(fields, rules))
        register_name(cls, name)
        return cls

    return declare


def state(*rules: Rule, **fields: Field) -> Callable[[Class], Class]:
    """Declare saved state for subclasses of a class that cannot be saved itself."""

    def declare(cls: Class) -> Class:
        register(cls, Schema(fields, rules))
        return cls

    return declare


def nonempty(*dimensions: str) -> Rule:
    """Return a rule that the sizes of some named dimensions are not zero: kernels rely on a first entry."""

    def check(value: Any, sizes: Sizes) -> str | None:
        empty = [name for name in dimensions if sizes.get(name) == 0]
        return f"{empty[0]} is 0" if empty else None

    return check


def register(cls: type[Any], schema: Schema) -> None:
    """Store the declarations of a class, in addition to those of its bases."""
    _DECLARED[cls] = schema
    _MERGED.clear()


def schema_of(cls: type[Any]) -> Schema:
    """Return the schema of a class, including its bases; declarations in subclasses override those in bases."""
    if cls not in _MERGED:
        _MERGED[cls] = _merged(cls)
    return _MERGED[cls]


def _merged(cls: type[Any]) -> Schema:
    found = [_DECLARED[base] for base in cls.__mro__ if base in _DECLARED]
    if not found:
        raise TypeError(f"{cls.__name__} declares no saved state (see summula.core.model_files.schema)")
    fields = {name: one for schema in reversed(found) for name, one in schema.fields.items()}
    rules = tuple(dict.fromkeys(rule for schema in reversed(found) for rule in schema.rules))
    return replace(found[0], fields=_without_properties(cls, fields), rules=rules)


def _is_fitted(model: Any) -> bool:
    """Whether an estimator has fitted attributes, or needs none."""
    declared, params = schema_of(type(model)).fields, model.get_params(deep=False)
    known = _without_properties(type(model), {**_SCIKIT_LEARN, **declared})
    set_in_fit = saved_attributes(model).keys() - _SETTINGS.keys()
    needed = {name for name, one in declared.items() if not isinstance(one, Maybe)}
    return any(name in known or name.endswith("_") for name in set_in_fit) or needed <= params.keys()


def _without_properties(cls: type[Any], fields: Mapping[str, Field]) -> dict[str, Field]:
    """Leave out the attributes that a class computes from others."""
    return {name: one for name, one in fields.items() if not isinstance(class_attribute(cls, name), property)}


def class_attribute(cls: Any, name: str) -> Any:
    """Return what a class has under a name, without calling a descriptor; None if there is nothing."""
    return _class_attribute(cls, name)


@functools.lru_cache(maxsize=8_192)
def _class_attribute(cls: Any, name: str) -> Any:
    return inspect.getattr_static(cls, name, None)


def check_state(model: Any) -> None:
    """Raise `Fault` if the state of a model does not match the schema of its class."""
    schema_of(type(model)).check(model, "", {})


def sizes_of(value: Any) -> Sizes:
    """Return the sizes of the named dimensions of an object, up to the first field that does not match its schema."""
    sizes: Sizes = {}
    with contextlib.suppress(Fault):
        schema_of(type(value)).check(value, "", sizes)
    return sizes


def saved_attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of an estimator that are saved in addition to its parameters."""
    params = model.get_params(deep=False)
    kept = {*params, *_NOT_SAVED, "_metadata_request"}
    return {name: value for name, value in model.__getstate__().items() if name not in kept}


def _check_params(model: Any, params: Mapping[str, Any], fields: Iterable[str], path: str) -> None:
    """Raise for parameters that are invalid in `fit`, and for nested objects that do not match their schemas."""
    from summula.core.estimator.parameters import check_parameters

    try:
        check_parameters(model, getattr(model, "_parameters", {}))
    except ValueError as error:
        raise Fault(f"{path}: {error}" if path else str(error)) from None
    for name in params.keys() - set(fields):
        _check_inside(params[name], _join(path, name))


def _check_inside(value: Any, path: str) -> None:
    """Check the objects nested in a parameter."""
    if is_container(value):
        for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _check_inside(item, f"{path}[...]")
    elif any(base in _DECLARED for base in type(value).__mro__) or hasattr(value, "get_params"):
        schema_of(type(value)).check(value, path, {})


def _check_unknown(cls: type[Any], name: str, value: Any, path: str) -> None:
    """Allow an undeclared attribute only if it is plain data and its name is not used by the class."""
    if name.startswith("_") or class_attribute(cls, name) is not None:
        raise Fault(f"{path} is not an attribute of {cls.__name__}")
    Plain().check(value, path, {})


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
