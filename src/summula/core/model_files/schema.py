"""What the state of a saved class may be: declared beside the class, checked by `save` and by `load`.

    @schema.saved(
        coef_=schema.Array("float", "n_targets", "n_features"),
        intercept_=schema.Array("float", "n_targets"),
        certificate_=schema.Maybe(schema.Object(Certificate, n_features="n_features")),
    )
    class Model(Estimator): ...

Kernels and matrix products trust the fitted attributes of a model. A file may come from anybody, so whatever a class
can be saved with is declared: dtype, shape, range and order of every array, type and range of every number. Dimensions
have names; the first field that has one says how long it is, and the others have to agree. Relations between fields
that these words cannot say are rules: functions of the object and the sizes, which return what is wrong, or None.

A subclass inherits the declarations of its bases and adds its own; `@schema.state` declares for subclasses alone. The
decorator is also what makes a class savable (`classes.py`). The words are in `fields.py` and `array_fields.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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
    "register",
    "saved",
    "saved_attributes",
    "schema_of",
    "state",
]

Rule = Callable[[Any, Sizes], str | None]
Class = TypeVar("Class", bound=type[Any])

# What scikit-learn keeps on an estimator that says how to fit, not what was fitted.
_NOT_SAVED = ("_sklearn_version", "_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown")
# What it keeps on any estimator, and on any that was fitted.
_SETTINGS: dict[str, Field] = {
    "_sklearn_output_config": Maybe(Dict(Text("transform"), Text("default", "pandas", "polars")))
}
_SCIKIT_LEARN: dict[str, Field] = {
    "n_features_in_": Maybe(Integer(1, size="n_features")),
    "feature_names_in_": Maybe(Names("n_features")),
    **_SETTINGS,
}

_DECLARED: dict[type[Any], Schema] = {}


@dataclass(frozen=True)
class Schema:
    """The fields of a class by name, and the rules between them."""

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
        known = {**_SCIKIT_LEARN, **self.fields}
        for name in sorted(attributes.keys() - known.keys()):
            _check_unknown(type(model), name, attributes[name], _join(path, name))
        fitted = any(name in known or name.endswith("_") for name in attributes.keys() - _SETTINGS.keys())
        needed = {name for name, one in self.fields.items() if not isinstance(one, Maybe)}
        if fitted or needed <= params.keys():
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
    """An object of one of some classes that are saved themselves.

    Parameters
    ----------
    *classes : type
    **sizes : str
        Which dimension of the object (the keyword) is which dimension outside of it.
    """

    def __init__(self, *classes: type[Any], **sizes: str) -> None:
        self.classes, self.sizes = classes, sizes

    def words(self, sizes: Sizes) -> str:
        """Name the classes."""
        return " or ".join(f"a {cls.__name__}" for cls in self.classes)

    def check(self, value: Any, path: str, sizes: Sizes) -> None:
        """Check the object by its own declaration."""
        if not isinstance(value, self.classes):
            raise self.wrong(value, path, sizes)
        inner = {name: sizes[outer] for name, outer in self.sizes.items() if outer in sizes}
        schema_of(type(value)).check(value, path, inner)
        sizes.update({outer: inner[name] for name, outer in self.sizes.items() if name in inner})


def saved(*given: str | Rule, **fields: Field) -> Callable[[Class], Class]:
    """Make a class savable, and declare the state its objects are saved with; see the module's docstring.

    Parameters
    ----------
    *given : str or function
        The name of the class in files, unless it is that of its folder and its own; rules.
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
    """Declare state for the classes derived from this one, which cannot be saved itself."""

    def declare(cls: Class) -> Class:
        register(cls, Schema(fields, rules))
        return cls

    return declare


def register(cls: type[Any], schema: Schema) -> None:
    """Note what a class declares beside what its bases do."""
    _DECLARED[cls] = schema


def schema_of(cls: type[Any]) -> Schema:
    """What a class and its bases declare; of fields of one name that of the class nearest to it."""
    found = [_DECLARED[base] for base in cls.__mro__ if base in _DECLARED]
    if not found:
        raise TypeError(f"{cls.__name__} declares no state to be saved (see summula.core.model_files.schema)")
    if len(found) == 1:
        return found[0]
    fields = {name: one for schema in reversed(found) for name, one in schema.fields.items()}
    return Schema(fields, tuple(dict.fromkeys(rule for schema in reversed(found) for rule in schema.rules)))


def check_state(model: Any) -> None:
    """Raise `Fault` if the state of a model is not as its class declares it."""
    schema_of(type(model)).check(model, "", {})


def saved_attributes(model: Any) -> dict[str, Any]:
    """The attributes of an estimator that are saved beside its parameters."""
    params = model.get_params(deep=False)
    kept = {*params, *_NOT_SAVED, "_metadata_request"}
    return {name: value for name, value in model.__getstate__().items() if name not in kept}


def _check_params(model: Any, params: Mapping[str, Any], fields: Iterable[str], path: str) -> None:
    """Raise for parameters the class would refuse in `fit`, and for objects inside them that are not as declared."""
    from summula.core.estimator.parameters import check_parameters

    try:
        check_parameters(model, getattr(model, "_parameters", {}))
    except ValueError as error:
        raise Fault(f"{path}: {error}" if path else str(error)) from None
    for name in params.keys() - set(fields):
        _check_inside(params[name], _join(path, name))


def _check_inside(value: Any, path: str) -> None:
    """Check the saved objects in a parameter, wherever they are."""
    if is_container(value):
        for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _check_inside(item, f"{path}[...]")
    elif any(base in _DECLARED for base in type(value).__mro__) or hasattr(value, "get_params"):
        schema_of(type(value)).check(value, path, {})


def _check_unknown(cls: type[Any], name: str, value: Any, path: str) -> None:
    """An attribute that nobody declared may be plain data of a name that means nothing to the class."""
    if name.startswith("_") or inspect.getattr_static(cls, name, None) is not None:
        raise Fault(f"{path} is not an attribute that {cls.__name__} has")
    Plain().check(value, path, {})


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
