"""Declared schemas of saved state are validated, with errors that name the field; every savable class has one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

import summula
from summula.core.errors import ModelFileError
from summula.core.estimator.parameters import integer
from summula.core.model_files import schema
from summula.core.model_files.classes import saved_classes
from summula.linear_model import LinearRegression, LogisticRegression

HOLDS: list[tuple[schema.Field, Any]] = [
    (schema.Array("float", "n"), np.zeros(3, np.float32)),
    (schema.Array("float64", "n", "n"), np.zeros((4, 4))),
    (schema.Array("int64", "n + 1"), np.zeros(1, np.int64)),
    (schema.Array("float64", "..."), np.zeros((1, 2, 3))),
    (schema.Array("float64", "n", finite=False), np.array([np.nan, np.inf])),
    (schema.Array("int32", "n", low=-1, high=5), np.array([-1, 5], np.int32)),
    (schema.Array("float64", "n", ascending=True, finite=False), np.array([1.0, 1.0, np.inf, np.inf])),
    (schema.Integer(0, 3), np.int64(3)),
    (schema.Real(0.0), 0),
    (schema.Real(finite=False), np.float32("nan")),
    (schema.Flag(), np.True_),
    (schema.Text("a", "b"), np.str_("b")),
    (schema.Items(schema.Real(), low=1), [1.0, 2]),
    (schema.Items(schema.Text()), ()),
    (schema.Dict(schema.Text(), schema.Integer()), {"a": 1}),
    (schema.Labels("n"), np.array(["a", "b"], dtype=object)),
    (schema.Labels("n"), np.array(["a", "b"])),
    (schema.Names("n"), np.array(["a", "b"], dtype=object)),
    (schema.Sparse("m", "n"), sparse.csr_array(np.eye(3))),
    (schema.Sparse("n"), sparse.csr_array(np.ones(3))),
    (schema.Plain(), {"a": [np.ones(2), (None, b"x")]}),
    (schema.Real() | schema.Text() | None, None),
    (schema.Maybe(schema.Real()), 1.0),
]

BREAKS: list[tuple[schema.Field, Any, str]] = [
    (schema.Array("float", "n"), [1.0], "x is a list of 1 entries, not an array of float64 or float32 of shape (n,)"),
    (schema.Array("float", "n"), np.zeros(2, int), "x is an array of int64 of shape (2,), not an array of float64"),
    (schema.Array("float", "n"), np.zeros((2, 2)), "x is an array of float64 of shape (2, 2), not"),
    (schema.Array("float64", "n", "n"), np.zeros((2, 3)), "not an array of float64 of shape (n, n) = (2, 2)"),
    (schema.Array("float64", "d"), np.zeros(4), "not an array of float64 of shape (d,) = (3,)"),
    (schema.Array("float64", "d + 1"), np.zeros(3), "of shape (d + 1,) = (4,)"),
    (schema.Array("float64", "n + 1"), np.zeros(0), "of shape (n + 1,)"),
    (schema.Array("float64", "n", 2), np.zeros((2, 2, 1)), "of shape (n, 2)"),
    (schema.Array("float64", "n"), np.array([0.0, np.nan]), "x[1] = nan must be finite"),
    (schema.Array("float64", "n", low=0.0), np.array([0.0, -2.0]), "x[1] = -2.0 must be at least 0"),
    (schema.Array("float64", "n", low=0.0, finite=False), np.array([np.nan]), "x[0] = nan must be at least 0"),
    (schema.Array("int64", "n", high=7), np.array([8]), "x[0] = 8 must be at most 7"),
    (schema.Array("int64", "m", "n", below="d"), np.array([[0, 3]]), "x[0, 1] = 3 must be below d = 3"),
    (schema.Array("int64", "n", below="k"), np.array([0]), "x indexes k, whose size is unknown"),
    (schema.Array("float64", "n", ascending=True), np.array([1.0, 3.0, 2.0]), "x[2] = 2.0 must not decrease"),
    (
        schema.Array("float64", "n", ascending=True, finite=False),
        np.array([1.0, np.nan]),
        "x[1] = nan must not decrease",
    ),
    (schema.Array("float64", "m", "n", row_major=True), np.zeros((3, 2)).T, "x is not C-contiguous"),
    (schema.Integer(), True, "x is True, not an integer"),
    (schema.Integer(), 1.0, "x is 1.0, not an integer"),
    (schema.Integer(), 2**63, "not an integer"),
    (schema.Integer(1), 0, "x is 0, not an integer of at least 1"),
    (schema.Integer(size="d"), 5, "x is 5, not d = 3"),
    (schema.Real(), float("nan"), "x is nan, not a finite number"),
    (schema.Real(), 10**400, "not a finite number"),
    (schema.Real(0.0, 1.0, finite=False), float("nan"), "x is nan, not a number from 0 to 1"),
    (schema.Real(), "1", "x is '1', not a finite number"),
    (schema.Flag(), 1, "x is 1, not True or False"),
    (schema.Text("a", "b"), "c", "x is 'c', not one of 'a', 'b'"),
    (schema.Text(), None, "x is None, not text"),
    (schema.Items(schema.Integer(), low=2), (1,), "x is a tuple of 1 entries, not a tuple or list of at least 2"),
    (schema.Items(schema.Integer(), "d"), (1,), "not a tuple or list of 3 entries"),
    (schema.Items(schema.Integer()), [0, "a"], "x[1] is 'a', not an integer"),
    (schema.Dict(schema.Text(), schema.Integer()), {"a": "b"}, "x['a'] is 'b', not an integer"),
    (schema.Dict(schema.Text(), schema.Integer()), {1: 1}, "x (a key) is 1, not text"),
    (schema.Labels("n", low=2), np.array(["a"]), "not a vector of at least 2"),
    (schema.Labels("n"), np.array(["a", None], dtype=object), "x contains objects other than text"),
    (schema.Labels("n"), np.array([2, 1]), "x must be sorted, without duplicates"),
    (schema.Labels("n"), np.array(["a", "a"]), "x must be sorted, without duplicates"),
    (schema.Labels("n"), np.array([np.nan]), "x must be sorted, without duplicates"),
    (schema.Labels("n"), np.zeros((2, 2)), "not a vector of"),
    (schema.Names("d"), np.array(["a"], dtype=object), "not a vector of text of shape (d,) = (3,)"),
    (schema.Names("n"), np.array(["a", 1], dtype=object), "x contains values other than text"),
    (schema.Sparse("n", "d"), sparse.csr_array(np.eye(2)), "not a sparse matrix of shape (n, d)"),
    (schema.Sparse("n", "m"), sparse.csr_array(np.full((2, 2), np.inf)), "x.data[0] = inf must be finite"),
    (schema.Plain(), [object()], "x[...] is a object, not plain data"),
    (schema.Real() | schema.Array("float64", "d"), np.zeros(2), "x is an array of float64 of shape (2,), not a finite"),
    (schema.Real() | schema.Array("float64", "n"), np.full(2, np.nan), "x[0] = nan must be finite"),
    (schema.Object(LinearRegression), LogisticRegression(), "x is a LogisticRegression, not a LinearRegression"),
]


@pytest.mark.parametrize(("field", "value"), HOLDS)
def test_values_as_declared_pass(field: schema.Field, value: Any) -> None:
    field.check(value, "x", {"d": 3})


@pytest.mark.parametrize(("field", "value", "message"), BREAKS)
def test_other_values_are_named(field: schema.Field, value: Any, message: str) -> None:
    with pytest.raises(schema.Fault) as caught:
        field.check(value, "x", {"d": 3})
    assert message in str(caught.value)


def test_damaged_sparse_matrices_are_refused() -> None:
    matrix = sparse.csr_array(np.eye(3))
    matrix.indices[0] = 9
    with pytest.raises(schema.Fault, match="column index 9"):
        schema.Sparse("m", "n").check(matrix, "x", {})


def test_the_first_dimension_met_decides() -> None:
    sizes: dict[str, int] = {}
    schema.Array("float64", "m", "n").check(np.zeros((2, 5)), "x", sizes)
    assert sizes == {"m": 2, "n": 5}
    option = schema.Array("float64", "k", "k") | schema.Array("float64", "k", "n")
    option.check(np.zeros((3, 5)), "x", sizes)  # the first option fails after it has met k
    assert sizes == {"m": 2, "n": 5, "k": 3}


# ------------------------------------------------------------------------------------------------------------- classes


@schema.state(name=schema.Text(), slopes=schema.Array("float64", "n_slopes"))
class Line(NamedTuple):
    name: Any
    slopes: Any


def _sorted(model: Any, sizes: schema.Sizes) -> str | None:
    return None if sizes["n_slopes"] == model.k_ else f"line_ has {sizes['n_slopes']} slopes, not {model.k_}"


class Base(BaseEstimator):
    _parameters = {"alpha": (integer(0),)}

    def __init__(self, alpha: Any = 1, line: Any = None) -> None:
        self.alpha = alpha
        self.line = line


@schema.state(
    _sorted, k_=schema.Integer(0), line_=schema.Object(Line, n_slopes="n_slopes"), note_=schema.Maybe(schema.Text())
)
class Model(Base):
    @property
    def fixed(self) -> int:
        return 1


@schema.state(k_=schema.Integer(0, 2))
class Narrow(Model):
    pass


class Undeclared(Model):
    pass


def of(cls: type[Any] = Model, params: Any = None, **state: Any) -> Any:
    model = cls(**(params or {}))
    vars(model).update({"k_": 2, "line_": Line("a", np.zeros(2)), **state})
    return model


def test_models_as_declared_pass() -> None:
    for model in (Model(), of(), of(note_="x"), of(Narrow), of(Undeclared), of(free=[1, np.ones(2)])):
        schema.check_state(model)
    schema.check_state(of(feature_names_in_=np.array(["a", "b"], dtype=object), n_features_in_=2))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (of(k_=3), "line_ has 2 slopes, not 3"),
        (of(line_=Line(1, np.zeros(2))), "line_.name is 1, not text"),
        (of(note_=5), "note_ is 5, not text"),
        (of(Narrow, k_=3, line_=Line("a", np.zeros(3))), "k_ is 3, not an integer from 0 to 2"),
        (of(Undeclared, k_=-1), "k_ is -1, not an integer of at least 0"),
        (of(_hidden=1), "_hidden is not an attribute of Model"),
        (of(fixed=1), "fixed is not an attribute of Model"),
        (of(free=object()), "free is a object, not plain data"),
        (of(params={"alpha": -1}), "The 'alpha' parameter of Model must be an int in the range [0, inf). Got -1"),
        (of(params={"line": [Line("a", 1)]}), "line[...].slopes is 1, not an array"),
        (of(feature_names_in_=np.array(["a"], dtype=object), n_features_in_=2), "feature_names_in_ is an array"),
        (of(_sklearn_output_config={"transform": "x"}), "_sklearn_output_config['transform'] is 'x', not one of"),
    ],
)
def test_models_that_differ_are_refused(model: Any, message: str) -> None:
    with pytest.raises(schema.Fault) as caught:
        schema.check_state(model)
    assert message in str(caught.value)


def test_a_model_is_whole_or_not_fitted() -> None:
    for name in ("k_", "line_"):
        model = of()
        delattr(model, name)
        with pytest.raises(schema.Fault, match=f"^{name} is missing$"):
            schema.check_state(model)
    bare = Model()
    bare.other_ = 1  # scikit-learn would call this fitted
    with pytest.raises(schema.Fault, match="k_ is missing"):
        schema.check_state(bare)
    settings = Model()
    settings._sklearn_output_config = {"transform": 3}
    with pytest.raises(schema.Fault, match="_sklearn_output_config"):
        schema.check_state(settings)


def test_what_a_class_computes_is_not_part_of_its_state() -> None:
    class Computed(Model):
        @property
        def k_(self) -> int:
            return len(self.line_.slopes)

    model = Computed()
    vars(model)["line_"] = Line("a", np.zeros(5))
    schema.check_state(model)
    vars(model)["k_"] = 5
    with pytest.raises(schema.Fault, match="^k_ is not an attribute of Computed$"):
        schema.check_state(model)


def test_classes_without_a_declaration_are_refused() -> None:
    with pytest.raises(TypeError, match="Base declares no saved state"):
        schema.check_state(Base())


@pytest.mark.parametrize("name", saved_classes())
def test_every_class_that_can_be_saved_declares_all_its_fields(name: str) -> None:
    cls = saved_classes()[name]
    declared = schema.schema_of(cls).fields
    if dataclasses.is_dataclass(cls):
        assert {field.name for field in dataclasses.fields(cls)} == declared.keys()
    elif hasattr(cls, "_fields"):
        assert set(cls._fields) == declared.keys()
    else:
        assert declared


def test_save_refuses_what_load_would_refuse(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    model.coef_ = model.coef_[:2]
    message = r"LinearRegression cannot be saved because it could not be loaded again: certificate_\.coef is an array .*; undo"
    with pytest.raises(ModelFileError, match=message):
        summula.save(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_model_with_notes_of_the_user_is_saved(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    model.threshold, model.remarks_ = 0.3, ["checked", {"by": "A"}]
    summula.save(model, tmp_path / "m")
    again = summula.load(tmp_path / "m")
    assert (again.threshold, again.remarks_) == (0.3, ["checked", {"by": "A"}])
