"""Promises 7 and 8: after an error an estimator is unchanged: unfitted, or the previous model bit for bit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import summula
from summula.core.data import chunks
from summula.core.estimator.run import Run
from summula.linear_model.l1.column_quadratic import ColumnQuadratic
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes
from tests.contract.registry import SIZES, Case, Data, over, over_ways


class Crash(Exception):
    """Raised to simulate an error in the middle of a pass."""


# ---------------------------------------------------------------------------------------------- ways for a fit to fail


def infinite_value(case: Case, data: Data) -> tuple[Any, ...]:
    X = data.X.copy()
    X[3, 1] = np.inf
    return X, data.y


def text(case: Case, data: Data) -> tuple[Any, ...]:
    X = data.X.astype(object)
    X[3, 1] = "three"
    return X, data.y


def no_rows(case: Case, data: Data) -> tuple[Any, ...]:
    return data.X[:0], None if data.y is None else data.y[:0]


def three_dimensions(case: Case, data: Data) -> tuple[Any, ...]:
    return data.X[None], data.y


def short_target(case: Case, data: Data) -> tuple[Any, ...]:
    return data.X, data.y[:-1]


def missing_target(case: Case, data: Data) -> tuple[Any, ...]:
    return data.X, case.missing_target(data.y)


def negative_weight(case: Case, data: Data) -> tuple[Any, ...]:
    return data.X, data.y, -data.weight


FAULTS: list[tuple[Callable[[Case, Data], tuple[Any, ...]], tuple[str, ...]]] = [
    (infinite_value, ("finite",)),
    (text, ()),
    (no_rows, ()),
    (three_dimensions, ("flat",)),
    (short_target, ("supervised",)),
    (missing_target, ("supervised",)),
    (negative_weight, ("weighted",)),
]


def faults_of(case: Case) -> list[Callable[[Case, Data], tuple[Any, ...]]]:
    return [fault for fault, needs in FAULTS if all(getattr(case, name) for name in needs)]


# ---------------------------------------------------------------------------------------------------------- promises


@over()
def test_after_a_failed_first_fit_there_is_no_model(case: Case) -> None:
    for fault in faults_of(case):
        model = clone(case.estimator)
        before = copy.deepcopy(vars(model))
        with pytest.raises(ValueError):  # noqa: PT011  the words are tested elsewhere
            model.fit(*fault(case, case.data()))
        assert not fitted_attributes(model), fault.__name__
        assert_same_bits(before, vars(model))
        with pytest.raises(NotFittedError):
            case.output(model, case.data().X)


@over()
def test_after_a_failed_refit_the_old_model_is_there_to_the_bit(case: Case) -> None:
    X = case.data("large").X
    model = copy.copy(case.model("large"))
    state, attributes, out = dict(vars(model)), copy.deepcopy(fitted_attributes(model)), case.output(model, X)
    for fault in faults_of(case):
        with pytest.raises(ValueError):  # noqa: PT011
            model.fit(*fault(case, case.data()))  # another number of columns, too
        assert vars(model).keys() == state.keys(), fault.__name__
        assert_same_bits(attributes, fitted_attributes(model))
        assert_same_bits(out, case.output(model, X))


@over()
def test_after_a_failed_refit_with_a_bad_parameter_the_old_model_is_there(case: Case) -> None:
    X, y, _ = case.data()
    model = copy.copy(case.model())
    attributes = copy.deepcopy(fitted_attributes(model))
    name = next(iter(case.estimator.get_params()))
    with pytest.raises(ValueError, match=f"The '{name}' parameter"):
        model.set_params(**{name: object()}).fit(X, y)
    model.set_params(**{name: case.estimator.get_params()[name]})
    assert_same_bits(attributes, fitted_attributes(model))


CrashAt = Callable[[BaseException, int], AbstractContextManager[None]]


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> CrashAt:
    """A context in which the n-th access to the rows (to a part of them, or along all columns) raises."""
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)

    @contextmanager
    def crash(error: BaseException, nth: int) -> Iterator[None]:
        calls = iter(range(10**9))

        def counted(method: Callable[..., Any]) -> Callable[..., Any]:
            def look(*given: Any) -> Any:
                if next(calls) == nth:
                    raise error
                return method(*given)

            return look

        with monkeypatch.context() as patch:
            patch.setattr(chunks.Part, "chunks", counted(chunks.Part.chunks))
            patch.setattr(Run, "_only_chunk", counted(Run._only_chunk))
            patch.setattr(ColumnQuadratic, "slope", counted(ColumnQuadratic.slope))
            yield

    return crash


ERRORS = {type(error).__name__: error for error in (Crash("in the middle"), KeyboardInterrupt(), MemoryError())}


@over_ways("error", ERRORS, "passes", third="engine", values=("threads", "serial"))
def test_an_error_in_the_middle_of_the_first_pass_leaves_nothing(
    case: Case, engine: str, error: BaseException, crash_at: CrashAt
) -> None:
    X, y, _ = case.data("large")
    with summula.engine(engine, chunk_rows=300):
        expected = fitted_attributes(case.model("large"))
        model = clone(case.estimator)
        with crash_at(error, 2), pytest.raises(type(error)):
            model.fit(X, y)
        assert not fitted_attributes(model)
        # The same estimator can be fitted again, and the pool still works.
        assert_same_bits(expected, fitted_attributes(model.fit(X, y)))


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
@over("passes")
def test_an_error_in_the_middle_of_a_refit_leaves_the_old_model(
    case: Case, error: BaseException, crash_at: CrashAt
) -> None:
    other = case.data(seed=1)
    model = copy.copy(case.model("large"))
    attributes = copy.deepcopy(fitted_attributes(model))
    with crash_at(error, 0), pytest.raises(type(error)):
        model.fit(other.X, other.y)
    assert_same_bits(attributes, fitted_attributes(model))


@over("passes", "wide_sparse")
def test_an_interrupted_iteration_keeps_the_best_model_so_far(case: Case, crash_at: CrashAt) -> None:
    X, y = case.wide_data()
    model = clone(case.estimator)
    nth = 15 if case.likelihood else 3 if case.l1 else 30  # in the middle
    with crash_at(KeyboardInterrupt(), nth), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert case.loss(y, case.output(model, X)) < case.loss(y, case.constant(y))
    assert model.certificate_.verify(X, y)
    assert_same_bits(fitted_attributes(case.wide_model()), fitted_attributes(model.fit(X, y)))


@pytest.mark.parametrize("size", SIZES)
@over("passes")
def test_an_interruption_anywhere_leaves_a_whole_model_or_none(case: Case, size: str, crash_at: CrashAt) -> None:
    X, y, _ = case.data(size)
    names = fitted_attributes(case.model(size)).keys()
    for nth in range(0, 40, 3):
        model, whole = clone(case.estimator), False
        with summula.engine("threads", chunk_rows=len(X) // 5):
            with crash_at(KeyboardInterrupt(), nth), suppress(KeyboardInterrupt):
                model.fit(X, y)
                whole = True
            if fitted_attributes(model):
                assert names - set(case.late) <= fitted_attributes(model).keys() <= names
                assert len(case.output(model, X)) == len(X)
                assert not case.certified or model.certificate_.verify(X, y)
        if whole:  # finished before the n-th access
            break


@over("additive")
def test_a_failed_partial_fit_keeps_the_rows_so_far(case: Case) -> None:
    data = case.data()
    first, rest = data.rows(slice(50)), data.rows(slice(50, None))
    model = case.first_part(first)
    attributes = copy.deepcopy(fitted_attributes(model))
    for fault in (infinite_value, text, three_dimensions):
        with pytest.raises(ValueError):  # noqa: PT011
            model.partial_fit(*fault(case, data))
        assert_same_bits(attributes, fitted_attributes(model))
    whole, added = case.model(), model.partial_fit(rest.X, rest.y)
    # Sums of products cost as many digits again as the condition number of the columns (below 100 here).
    assert_close(case.output(whole, data.X), case.output(added, data.X), rounding=1e-10)
