"""Promise of additive models: adding, merging and forgetting rows gives the model of one fit, up to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import summula
from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.contract.registry import SIZES, Case, Data, over
from tests.contract.test_streams import named, target

sizes = pytest.mark.parametrize("size", SIZES)

# Sums of products lose twice as many digits as the columns' condition number has, which is below 100 here
# (monomials included), and as many as the share of rows that is left after forgetting: some two more.
FROM_SUMS = 1e-9


def halves(data: Data) -> tuple[Data, Data]:
    return data.rows(slice(len(data.X) // 3)), data.rows(slice(len(data.X) // 3, None))


def assert_same_model(case: Case, whole: Any, model: Any, data: Data) -> None:
    """Return the attributes to compare: the solver used, and its accuracy, may differ."""
    left, right = (without_names(fitted_attributes(m)) for m in (whole, model))
    assert left.keys() == right.keys()
    for name in left.keys() - {"certificate_", "solver_", "n_iter_"}:
        assert_close(left[name], right[name], rounding=FROM_SUMS, where=name)
    assert_close(case.output(whole, data.X), case.output(model, data.X), rounding=FROM_SUMS)
    if case.certified:
        assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=FROM_SUMS)


@sizes
@over("additive")
def test_rows_may_come_one_part_after_the_other(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = halves(data)
    model = case.first_part(first, weighted=True)
    whole = case.model(size, weighted=True)
    assert_same_model(case, whole, model.partial_fit(rest.X, rest.y, sample_weight=rest.weight), data)


@over("additive", "weighted")
def test_parts_with_and_without_weights_add_up(case: Case) -> None:
    data = case.data()
    first, rest = halves(data)
    for weighted in (True, False):  # the first part, or the second one
        weight = [part.weight if (part is first) is weighted else np.ones(len(part.X)) for part in (first, rest)]
        whole = case.fit(data.X, data.y, np.concatenate(weight))
        model = case.first_part(first, weighted=weighted)
        given = {} if weighted else {"sample_weight": rest.weight}
        assert_same_model(case, whole, model.partial_fit(rest.X, rest.y, **given), data)
        one = case.fit(first.X, first.y, first.weight if weighted else None)
        assert_same_model(case, whole, one.merge(case.fit(rest.X, rest.y, None if weighted else rest.weight)), data)


@sizes
@over("additive")
def test_models_of_two_sets_of_rows_merge(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = (case.fit(*part) for part in halves(data))
    before = dict(vars(rest))
    assert_same_model(case, case.model(size, weighted=True), first.merge(rest), data)
    assert all(vars(rest)[name] is value for name, value in before.items()), "the other model is left as it was"


@sizes
@over("additive")
def test_rows_can_be_forgotten(case: Case, size: str) -> None:
    data = case.data(size)
    first, rest = halves(data)
    assert_same_model(case, case.fit(*rest), case.fit(*data).forget(*first), rest)


@over("additive")
def test_many_models_combine(case: Case) -> None:
    data = case.data("large")
    models = [case.fit(*data.rows(slice(a, a + 600))) for a in range(0, 4_200, 600)]
    bits = [fitted_attributes(model) for model in models]
    assert_same_model(case, case.model("large", weighted=True), summula.combine(models), data)
    assert_same_bits(bits, [fitted_attributes(model) for model in models])


@over("additive")
def test_a_file_can_be_added_and_taken_away(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    kept = []
    for name, part in zip(("first", "rest"), halves(data), strict=True):
        (tmp_path / name).mkdir()
        kept.append(storage.STREAMS["Parquet, several files"](named(part, weighted=True), tmp_path / name))
    model = case.fit(kept[0], target(data), "weight")
    model.partial_fit(kept[1], target(data), sample_weight="weight")
    frame = storage.FRAMES["pyarrow"](data.X)
    expected = case.fit(frame, data.y, data.weight)
    assert_close(case.output(expected, frame), case.output(model, frame), rounding=FROM_SUMS)
    model.forget(kept[0], target(data), "weight")
    rest = halves(data)[1]
    frame = storage.FRAMES["pyarrow"](rest.X)
    expected = case.fit(frame, rest.y, rest.weight)
    assert_close(case.output(expected, frame), case.output(model, frame), rounding=FROM_SUMS)


@over("additive")
def test_a_saved_model_still_adds_up(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    first, rest = (case.fit(*part) for part in halves(data))
    summula.save(first, tmp_path / "first.summula")
    loaded = summula.load(tmp_path / "first.summula")
    assert_same_bits(fitted_attributes(first.merge(rest)), fitted_attributes(loaded.merge(rest)))


# ------------------------------------------------------------------------------------------------------------- classes


def of_classes(data: Data, *classes: Any) -> Data:
    return data.rows(np.isin(data.y, classes))


@over("additive_classes")
def test_models_of_different_classes_merge(case: Case) -> None:
    """Each class keeps its rows, for any position among the classes of either model."""
    data = case.data("large")
    labels = np.unique(data.y)
    first, last = of_classes(data, labels[-1]), of_classes(data, *labels[:-1])
    for one, other in ((first, last), (last, first), (of_classes(data, *labels[1:]), of_classes(data, labels[0]))):
        merged = case.fit(*one).merge(case.fit(*other))
        assert merged.classes_.tolist() == labels.tolist()
        assert_same_model(case, case.model("large", weighted=True), merged, data)


@over("additive", "classifier")
def test_a_failed_merge_leaves_both_models(case: Case) -> None:
    data = case.data()
    codes = np.unique(data.y, return_inverse=True)[1]
    model, other = case.fit(*data), case.fit(data.X, codes if data.y.dtype == object else codes.astype(str))
    before = [dict(vars(one)) for one in (model, other)]
    with pytest.raises(ValueError, match="The labels of one model are"):
        model.merge(other)
    for one, state in zip((model, other), before, strict=True):
        assert vars(one).keys() == state.keys()
        assert all(vars(one)[name] is value for name, value in state.items())


@over("in_parts")
def test_all_classes_are_named_before_their_rows_come(case: Case) -> None:
    data = case.data("large")
    labels = np.unique(data.y)
    rows = of_classes(data, *labels[:-1])
    model = clone(case.estimator)
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        model.partial_fit(rows.X, rows.y)
    model.partial_fit(rows.X, rows.y, classes=labels)
    assert model.classes_.tolist() == labels.tolist()
    if case.probable:
        assert model.predict_proba(data.X).shape == (len(data.X), len(labels))
    with pytest.raises(ValueError, match="not the same as on last call to partial_fit"):
        model.partial_fit(data.X, data.y, classes=labels[:-1])
    with pytest.raises(ValueError, match="not one of the" if len(labels) > 2 or case.additive else "greater than one"):
        clone(case.estimator).partial_fit(data.X, data.y, classes=labels[:-1])


@over("additive_classes")
def test_a_class_without_rows_is_never_predicted_and_changes_no_other(case: Case) -> None:
    data = case.data("large")
    labels = np.unique(data.y)
    for absent in labels:
        rows = of_classes(data, *labels[labels != absent])
        model = clone(case.estimator).partial_fit(rows.X, rows.y, classes=labels, sample_weight=rows.weight)
        P, k = model.predict_proba(data.X), int(np.flatnonzero(labels == absent)[0])
        assert not P[:, k].any()
        assert absent not in model.predict(data.X)
        assert_close(case.fit(*rows).predict_proba(data.X), np.delete(P, k, axis=1))
        assert_same_model(case, case.model("large", weighted=True), _with_rows(model, of_classes(data, absent)), data)


def _with_rows(model: Any, rows: Data) -> Any:
    return model.partial_fit(rows.X, rows.y, sample_weight=rows.weight)
