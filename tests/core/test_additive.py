"""Adding, merging and forgetting rows gives the model of the union or difference, up to rounding, or warns."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError

import summula
from summula.core.data.readers.table import Table
from summula.features import PolynomialLift
from summula.linear_model import LinearRegression, PolynomialRegression, Ridge
from summula.preprocessing import StandardScaler
from tests.contract.compare import assert_close, assert_same_bits, fitted_attributes, without_names
from tests.faults.sentences import one_sentence

Make = Callable[[], Any]

MODELS: dict[str, Make] = {
    "LinearRegression": LinearRegression,
    "no intercept": lambda: LinearRegression(fit_intercept=False),
    "positive": lambda: LinearRegression(positive=True),
    "Ridge": lambda: Ridge(alpha=2.5),
    "PolynomialRegression": PolynomialRegression,
    "StandardScaler": StandardScaler,
    "StandardScaler, about 0": lambda: StandardScaler(with_mean=False),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())

# Sums of products have a relative error of about eps (2e-16), and lose kappa^2 of it in the solution; the condition
# number kappa of the columns below (monomials of degree 2 included) is at most some 50, and the sums of n rows in
# another order differ by about sqrt(n) eps.
ROUNDING = 1e-10


def data(n: int = 600, d: int = 3, targets: int = 0, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(1.0, 1.0, (n, d)) * np.logspace(-2, 2, d)
    slopes = rng.normal(size=(d, max(targets, 1))) / np.logspace(-2, 2, d)[:, None]
    Y = X @ slopes + rng.normal(size=(n, max(targets, 1))) + 3.0
    return X, Y if targets else Y[:, 0], rng.integers(1, 4, n).astype(float)


def comparable(model: Any) -> dict[str, Any]:
    """Return the attributes that do not depend on the solver."""
    left_out = {"certificate_", "solver_", "n_iter_", "trace_"}
    return {k: v for k, v in without_names(fitted_attributes(model)).items() if k not in left_out}


def assert_same_model(expected: Any, model: Any, rounding: float = ROUNDING) -> None:
    assert_close(comparable(expected), comparable(model), rounding=rounding)
    if hasattr(expected, "certificate_"):
        assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=rounding)


def cut(rows: Any, *places: int) -> list[tuple[Any, ...]]:
    """The rows between the places, of each of some arrays."""
    lines = [0, *places, rows[0].shape[0]]
    return [tuple(a[i:j] for a in rows) for i, j in pairwise(lines)]


# --------------------------------------------------------------------------------------------------------- the algebra


@settings(max_examples=25)
@given(places=st.lists(st.integers(60, 540), min_size=1, max_size=4, unique=True), targets=st.integers(0, 2))
@every_model
def test_any_split_adds_up(make: Make, places: list[int], targets: int) -> None:
    rows = data(targets=targets)
    expected = make().fit(*rows)
    parts = cut(rows, *sorted(places))
    by_rows = make()
    for part in parts:
        by_rows.partial_fit(*part)
    assert_same_model(expected, by_rows)
    assert_same_model(expected, summula.combine([make().fit(*part) for part in parts]))
    chain = make().fit(*parts[0])
    for part in parts[1:]:
        chain.merge(make().fit(*part))
    assert_same_model(expected, chain)


@settings(max_examples=25)
@given(place=st.integers(60, 540), weighted=st.booleans())
@every_model
def test_what_is_added_can_be_forgotten(make: Make, place: int, weighted: bool) -> None:
    X, y, weight = data()
    rows = (X, y, weight) if weighted else (X, y)
    first, rest = cut(rows, place)
    # Subtracting multiplies the rounding by the ratio of all rows to those that stay, at most ten.
    assert_same_model(make().fit(*rest), make().fit(*rows).forget(*first), 10 * ROUNDING)
    assert_same_model(make().fit(*first), make().fit(*first).partial_fit(*rest).forget(*rest), 10 * ROUNDING)
    assert_same_model(make().fit(*first), make().fit(*first).merge(make().fit(*rest)).forget(*rest), 10 * ROUNDING)


@settings(max_examples=25)
@given(rows=st.permutations(range(40)), place=st.integers(1, 39))
def test_few_rows_add_up_whatever_the_rank(rows: list[int], place: int) -> None:
    """As many rows as columns or fewer: the shortest answer, as of one fit."""
    X, y, _ = data(40, 5)
    X = X / X.std(axis=0)
    for n in range(place + 1, min(place + 9, 40)):
        chosen = rows[:n]
        model = LinearRegression().fit(X[chosen[:place]], y[chosen[:place]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", summula.AccuracyWarning)  # a random square matrix may be anything
            model.partial_fit(X[chosen[place:]], y[chosen[place:]])
        expected = LinearRegression().fit(X[chosen], y[chosen])
        assert model.rank_ == expected.rank_
        singular = expected.singular_[expected.singular_ > 0]
        kappa = (singular[0] / singular[-1]) if len(singular) else 1.0
        assert_close(expected.coef_, model.coef_, rounding=100 * kappa**2 * 2e-16 * len(X))


def test_the_order_of_merging_changes_results_only_by_rounding() -> None:
    parts = cut(data(), 100, 400)
    a, b, c = (LinearRegression().fit(*part) for part in parts)
    left = copy.deepcopy(a).merge(b).merge(c)
    right = copy.deepcopy(a).merge(copy.deepcopy(b).merge(c))
    back = copy.deepcopy(c).merge(b).merge(a)
    assert_same_model(left, right)
    assert_same_model(left, back)


def test_a_model_may_be_merged_with_itself() -> None:
    X, y, _ = data()
    model = Ridge(alpha=1.0).fit(X, y)
    assert_same_model(Ridge(alpha=1.0).fit(np.vstack([X, X]), np.concatenate([y, y])), model.merge(model))


@every_model
def test_a_sliding_window_stays_accurate(make: Make) -> None:
    """A sliding window of seven of forty days: errors of additions and subtractions accumulate to about forty roundings."""
    days = cut(data(2_000), *range(50, 2_000, 50))
    model = summula.combine([make().fit(*day) for day in days[:7]])
    for old, new in zip(days, days[7:], strict=False):
        model.partial_fit(*new).forget(*old)
    last = [np.concatenate(some) for some in zip(*days[-7:], strict=True)]
    assert_same_model(make().fit(*last), model, 100 * ROUNDING)


# ---------------------------------------------------------------------------------------------------------- storage


@pytest.mark.parametrize("targets", [0, 1, 2])
def test_several_targets_and_penalties(targets: int) -> None:
    rows = data(targets=targets)
    alpha = np.array([0.5, 30.0])[:targets] if targets else 0.5
    first, rest = cut(rows, 200)
    model = Ridge(alpha=alpha).fit(*first).partial_fit(*rest)
    assert_same_model(Ridge(alpha=alpha).fit(*rows), model)


@pytest.mark.parametrize("make", [LinearRegression, Ridge, lambda: StandardScaler(with_mean=False)])
@pytest.mark.parametrize("mixed", [False, True], ids=["all sparse", "dense rows added"])
def test_sparse_rows_add_up(make: Make, mixed: bool) -> None:
    X, y, weight = data()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, X, 0.0)
    model = make().fit(sparse.csr_array(X[:250]), y[:250], weight[:250])
    rest = X[250:] if mixed else sparse.csr_array(X[250:])
    model.partial_fit(rest, y[250:], weight[250:])
    assert_same_model(make().fit(X, y, weight), model)
    model.forget(sparse.csr_array(X[:250]), y[:250], weight[:250])
    assert_same_model(make().fit(X[250:], y[250:], weight[250:]), model, 10 * ROUNDING)


def test_frames_add_up_and_keep_their_names(constructor: Any) -> None:
    X, y, weight = data()
    names = ["a", "b", "c"]
    parts = [
        constructor(dict(zip(names, part[0].T, strict=True)) | {"y": part[1], "w": part[2]})
        for part in cut((X, y, weight), 222)
    ]
    model = LinearRegression().fit(parts[0], "y", "w").partial_fit(parts[1], "y", "w")
    assert model.feature_names_in_.tolist() == names
    assert_same_model(LinearRegression().fit(X, y, weight), model)
    assert len(model.predict(parts[0])) == 222, "target and weight among the columns are passed over"


def test_rows_may_come_from_anywhere(tmp_path: Path) -> None:
    """A frame, a file with the columns in another order, and a named frame without target."""
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    frame[200:400][["y", "c", "a", "b"]].to_parquet(tmp_path / "rows.parquet")
    model = LinearRegression().fit(frame[:200], "y")
    model.partial_fit(summula.scan(tmp_path / "rows.parquet"), "y")
    model.partial_fit(frame[400:][["a", "b", "c"]], y[400:])
    assert_same_model(LinearRegression().fit(X, y), model)
    assert len(model.predict(frame)) == 600, "the target is still known not to be a feature"


@every_model
def test_sums_about_far_origins_are_brought_together(make: Make) -> None:
    """The parts lie some 30 standard deviations apart: moving the origin costs the square of that in rounding."""
    X, y, _ = data()
    X = X / X.std(axis=0)
    X[300:] += 30.0
    first, rest = cut((X, y), 300)
    assert_same_model(make().fit(X, y), make().fit(*first).merge(make().fit(*rest)), 1e3 * ROUNDING)
    assert_same_model(make().fit(X, y), make().fit(*rest).partial_fit(*first), 1e3 * ROUNDING)


def test_single_precision_adds_up_as_far_as_it_goes() -> None:
    X, y, _ = data()
    X = X.astype(np.float32)
    model = LinearRegression().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert model.coef_.dtype == np.float32
    # Products in float32 have an error of 6e-8, times the squared condition number (2 for these columns).
    assert_same_model(LinearRegression().fit(X, y), model, 1e-5)


def test_gaps_are_passed_over_when_scaling() -> None:
    X, _, _ = data()
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    model = StandardScaler().fit(X[:200]).partial_fit(X[200:])
    assert_same_model(StandardScaler().fit(X), model)
    assert_same_model(StandardScaler().fit(X[200:]), model.forget(X[:200]))
    X[:, 1] = np.nan
    model = StandardScaler().fit(X).forget(X[:200])
    np.testing.assert_allclose(model.mean_, StandardScaler().fit(X[200:]).mean_, rtol=ROUNDING)


# ------------------------------------------------------------------------------------------------ what follows from it


@pytest.mark.parametrize("weights", [None, "frequency", "precision"])
@pytest.mark.parametrize("how", ["merge", "partial_fit", "combine", "forget"])
def test_a_summary_is_that_of_one_fit(how: str, weights: str | None) -> None:
    X, y, weight = data()
    rows = (X, y) if weights is None else (X, y, weight)
    first, rest = cut(rows, 250)
    expected = LinearRegression().fit(*(rest if how == "forget" else rows))
    models = {
        "merge": lambda: LinearRegression().fit(*first).merge(LinearRegression().fit(*rest)),
        "partial_fit": lambda: LinearRegression().fit(*first).partial_fit(*rest),
        "combine": lambda: summula.combine([LinearRegression().fit(*part) for part in (first, rest)]),
        "forget": lambda: LinearRegression().fit(*rows).forget(*first),
    }
    options = {} if weights is None else {"weights": weights}
    a, b = (model.summary(**options).to_frame() for model in (expected, models[how]()))
    assert list(a.columns) == list(b.columns)
    for name in a.columns:
        if a[name].dtype.kind == "f":
            np.testing.assert_allclose(a[name], b[name], rtol=1e-8, atol=1e-12, err_msg=name)
    assert str(expected.summary(**options)).splitlines()[:9] == str(models[how]().summary(**options)).splitlines()[:9]


def test_weights_of_one_of_two_models_are_weights_of_both() -> None:
    X, y, weight = data()
    one = LinearRegression().fit(X[:200], y[:200])
    other = LinearRegression().fit(X[200:], y[200:], weight[200:])
    weight[:200] = 1.0
    expected = LinearRegression().fit(X, y, weight).summary(weights="precision")
    for merged in (copy.deepcopy(one).merge(other), copy.deepcopy(other).merge(one)):
        found = merged.summary(weights="precision")
        np.testing.assert_allclose(expected.std_error, found.std_error, rtol=1e-9)
        assert "precision" in str(found)


def test_robust_errors_need_the_rows_again() -> None:
    X, y, _ = data()
    model = LinearRegression().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    with pytest.raises(summula.DataError, match="needs the training rows"):
        model.summary(cov="HC3")
    expected = LinearRegression().fit(X, y).summary(cov="HC3").std_error
    np.testing.assert_allclose(model.summary(X, y, cov="HC3").std_error, expected, rtol=1e-9)


def test_the_certificate_is_true() -> None:
    X, y, _ = data()
    model = Ridge().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X[:200], y[:200])
    assert model.forget(X[:200], y[:200]).certificate_.verify(X[200:], y[200:])


@every_model
def test_partial_fit_of_an_unfitted_model_is_fit(make: Make) -> None:
    rows = data()
    assert_same_bits(fitted_attributes(make().fit(*rows)), fitted_attributes(make().partial_fit(*rows)))


@every_model
def test_fit_forgets_everything(make: Make) -> None:
    X, y, weight = data()
    model = make().fit(X[:200], y[:200], weight[:200]).partial_fit(X[200:], y[200:], weight[200:])
    model.forget(X[:100], y[:100], weight[:100])
    assert_same_bits(fitted_attributes(make().fit(X[:50], y[:50])), fitted_attributes(model.fit(X[:50], y[:50])))
    assert_same_bits(
        fitted_attributes(make().fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])),
        fitted_attributes(model.partial_fit(X[50:], y[50:])),
    )


@every_model
def test_copies_and_pickles_add_up_alike(make: Make) -> None:
    first, rest = cut(data(), 200)
    model, other = make().fit(*first), make().fit(*rest)
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    expected = fitted_attributes(model.merge(other))
    for twin in twins:
        assert_same_bits(expected, fitted_attributes(twin.merge(other)))


@every_model
def test_combine_leaves_the_models_as_they_were(make: Make) -> None:
    models = [make().fit(*part) for part in cut(data(), 200, 400)]
    before = [dict(vars(model)) for model in models]
    for given_ in (models, iter(models), tuple(models)):
        summula.combine(given_)
    assert all(vars(m)[k] is v for m, state in zip(models, before, strict=True) for k, v in state.items())
    assert_same_bits(fitted_attributes(models[0]), fitted_attributes(summula.combine(models[:1])))


def test_progress_is_shown_while_rows_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    X, y, _ = data()
    model = LinearRegression().set_callbacks(ProgressBar()).partial_fit(X[:200], y[:200])
    model.partial_fit(X[200:], y[200:]).forget(X[:50], y[:50])
    assert_same_model(LinearRegression().fit(X[50:], y[50:]), model, 10 * ROUNDING)
    assert "LinearRegression" in capsys.readouterr().out


def test_a_file_added_and_taken_away_again_is_the_only_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = data(900)
    for day, (x, t) in enumerate(cut((X, y), 300, 600)):
        parquet.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": t}), tmp_path / f"{day}.parquet")
    days = [summula.scan(tmp_path / f"{day}.parquet") for day in range(3)]
    model = LinearRegression().fit(summula.scan([tmp_path / "0.parquet", tmp_path / "1.parquet"]), "y")
    seen: list[tuple[str, int, int]] = []
    read = Table.read

    def noted(self: Any, start: int, stop: int, columns: Any) -> Any:
        seen.append((Path(self.path).name, start, stop))
        return read(self, start, stop, columns)

    monkeypatch.setattr(Table, "read", noted)
    model.partial_fit(days[2], "y")
    assert seen == [("2.parquet", 0, 300)], "once, and nothing else"
    assert_same_model(LinearRegression().fit(X[:, :2], y), model)
    seen.clear()
    model.forget(days[0], "y")
    assert seen == [("0.parquet", 0, 300)]
    assert_same_model(LinearRegression().fit(X[300:, :2], y[300:]), model, 10 * ROUNDING)


# --------------------------------------------------------------------------------------------------------- lost digits


def nearly_dependent(kappa: float, n: int = 3_000) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[:, 3] = X[:, 2] + X[:, 3] / kappa
    return X, X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=n)


@pytest.mark.parametrize("how", ["partial_fit", "merge", "combine"])
def test_nearly_dependent_columns_are_warned_of(how: str) -> None:
    X, y = nearly_dependent(1e6)
    first, rest = cut((X, y), 1_000)
    model, other = LinearRegression().fit(*first), LinearRegression().fit(*rest)
    acts = {
        "partial_fit": lambda: model.partial_fit(*rest),
        "merge": lambda: model.merge(other),
        "combine": lambda: summula.combine([model, other]),
    }
    with pytest.warns(summula.AccuracyWarning) as caught:
        acts[how]()
    output = one_sentence(str(caught[0].message), "LinearRegression", "digits", "condition", "fit on all rows at once")
    assert any(f"about {digits} accurate digits" in output for digits in (2, 3, 4)), output


def test_a_warning_is_no_exaggeration() -> None:
    """The number of accurate digits stated in the warning is correct."""
    for kappa in (1e3, 1e4, 1e6):
        X, y = nearly_dependent(kappa)
        expected = LinearRegression().fit(X, y).coef_
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = LinearRegression().fit(X[:1_000], y[:1_000]).partial_fit(X[1_000:], y[1_000:])
        promised = 6 if not caught else int(str(caught[0].message).partition("about ")[2].split()[0])
        assert np.abs(model.coef_ / expected - 1).max() < 10.0 ** -max(promised - 1, 0)
        assert bool(caught) == (kappa > 1e5)


def test_a_penalty_makes_up_for_dependent_columns() -> None:
    X, y = nearly_dependent(1e6)
    model = Ridge(alpha=1.0).fit(X[:1_000], y[:1_000]).partial_fit(X[1_000:], y[1_000:])
    assert_close(Ridge(alpha=1.0).fit(X, y).predict(X), model.predict(X), rounding=1e-9)


def test_exactly_dependent_columns_give_the_shortest_answer() -> None:
    X, y, _ = data()
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(summula.CollinearityWarning):
        expected, model = LinearRegression().fit(X, y), LinearRegression().fit(X[:200], y[:200])
    model.partial_fit(X[200:], y[200:])
    assert model.rank_ == expected.rank_ == 3
    assert_close(expected.coef_, model.coef_, rounding=1e-8)


def test_a_column_that_is_constant_in_each_part_is_not_in_all() -> None:
    X, y, _ = data()
    X[:, 0] = np.arange(600) // 200  # the number of the day
    parts = cut((X, y), 200, 400)
    with pytest.warns(summula.CollinearityWarning, match="constant"):
        models = [LinearRegression().fit(*part) for part in parts]
    assert_same_model(LinearRegression().fit(X, y), summula.combine(models))


def test_single_precision_warns_earlier() -> None:
    X, y = nearly_dependent(1e3)
    X = X.astype(np.float32)
    model = LinearRegression().fit(X[:1_000], y[:1_000])
    with pytest.warns(summula.AccuracyWarning, match="digits"):
        model.partial_fit(X[1_000:], y[1_000:])


def test_forgetting_nearly_everything_warns() -> None:
    """A billionth of the data remains, and accordingly few digits."""
    X, y, _ = data()
    X = X / X.std(axis=0)
    X[:590] *= 1e6
    model = LinearRegression().fit(X, y)
    with pytest.warns(summula.AccuracyWarning, match="digits"):
        model.forget(X[:590], y[:590])


def test_forgetting_nearly_everything_in_small_steps_warns_too() -> None:
    X, y, _ = data()
    X = X / X.std(axis=0) * np.repeat(np.logspace(5.3, 0, 6), 100)[:, None]
    model = LinearRegression().fit(X, y)
    for a in range(0, 400, 100):
        model.forget(X[a : a + 100], y[a : a + 100])
    with pytest.warns(summula.AccuracyWarning, match="digits"):
        model.forget(X[400:500], y[400:500])


def test_rows_that_leave_a_constant_column_behind() -> None:
    X, y, _ = data()
    X[300:, 0] = 5.0
    with pytest.warns(summula.CollinearityWarning):
        expected = LinearRegression().fit(X[300:], y[300:])
    model = LinearRegression().fit(X, y).forget(X[:300], y[:300])
    assert model.rank_ == expected.rank_ == 2
    assert_close(expected.predict(X[300:]), model.predict(X[300:]), rounding=1e-8)


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_few_rows_that_stay_give_the_shortest_answer(left: int) -> None:
    X, y, _ = data()
    X = X / X.std(axis=0)
    model = LinearRegression().fit(X, y).forget(X[left:], y[left:])
    expected = LinearRegression().fit(X[:left], y[:left])
    assert model.rank_ == expected.rank_ == left - 1
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-8)


# ------------------------------------------------------------------------------------------------------------ refusals


def refusal(act: Callable[[], Any], *words: str, kind: type[Exception] = ValueError) -> None:
    with pytest.raises(kind) as caught:
        act()
    one_sentence(caught.value, *words)


def test_models_of_another_kind_are_refused() -> None:
    X, y, _ = data()
    model = Ridge().fit(X, y)
    refusal(lambda: model.merge(LinearRegression().fit(X, y)), "one class", "Ridge and LinearRegression")
    refusal(lambda: model.merge(None), "one class", "NoneType")
    refusal(lambda: model.merge(Ridge(alpha=2.0).fit(X, y)), "the same alpha", "one has 1.0, the other 2.0")
    refusal(lambda: model.merge(Ridge(fit_intercept=False).fit(X, y)), "the same fit_intercept")
    refusal(lambda: model.merge(Ridge(alpha=[1.0, 2.0]).fit(X, np.column_stack([y, y]))), "the same alpha")
    refusal(lambda: StandardScaler().fit(X).merge(StandardScaler(with_std=False).fit(X)), "the same with_std")
    polynomials = PolynomialRegression(degree=2).fit(X, y), PolynomialRegression(degree=3).fit(X, y)
    refusal(lambda: polynomials[0].merge(polynomials[1]), "the same degree", "2", "3")


def test_models_with_other_columns_or_targets_are_refused() -> None:
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, z=-y)
    model = LinearRegression().fit(frame[["a", "b", "c", "y"]], "y")
    refusal(lambda: model.merge(LinearRegression().fit(X[:, :2], y)), "the same columns")
    refusal(lambda: model.merge(LinearRegression().fit(frame[["a", "c", "b"]], y)), "the same columns", "'a', 'c', 'b'")
    refusal(
        lambda: model.merge(LinearRegression().fit(frame[["a", "b", "c", "z"]], "z")),
        "has the targets y",
        "new rows have z",
    )
    refusal(lambda: model.merge(LinearRegression().fit(frame[["a", "b", "c"]], X)), "1 target", "3")
    refusal(lambda: model.partial_fit(frame[["a", "b", "c", "z"]], "z"), "has the targets y", "new rows have z")
    refusal(lambda: LinearRegression().fit(X, y).partial_fit(X, X), "1 target", "3")
    with pytest.raises(ValueError, match="features"):
        LinearRegression().fit(X, y).partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["a", "b", "z"]], y)


def test_hints_may_differ() -> None:
    X, y, _ = data()
    model, other = Ridge(1.0, solver="svd", tol=1e-3), Ridge(1, copy_X=False)
    model.fit(X[:200], y[:200]).merge(other.fit(X[200:], y[200:]))
    assert_close(Ridge().fit(X, y).coef_, model.coef_, rounding=ROUNDING)


def test_unfitted_models_are_refused() -> None:
    X, y, _ = data()
    for act in (
        lambda: Ridge().merge(Ridge().fit(X, y)),
        lambda: Ridge().fit(X, y).merge(Ridge()),
        lambda: Ridge().forget(X, y),
        lambda: summula.combine([Ridge().fit(X, y), Ridge()]),
    ):
        with pytest.raises(NotFittedError):
            act()


def test_combine_wants_a_list_of_models_that_add_up() -> None:
    X, y, _ = data()
    refusal(lambda: summula.combine([]), "empty", kind=summula.ParameterError)
    refusal(lambda: summula.combine(Ridge().fit(X, y)), "list of models", "Ridge", kind=summula.ParameterError)
    refusal(lambda: summula.combine([PolynomialLift().fit(X)]), "PolynomialLift", kind=summula.ParameterError)
    refusal(lambda: summula.combine([3]), "int", kind=summula.ParameterError)


@every_model
def test_no_more_rows_can_be_forgotten_than_were_added(make: Make) -> None:
    X, y, _ = data()
    model = make().fit(X[:300], y[:300])
    before = copy.deepcopy(fitted_attributes(model))
    name = type(model).__name__
    refusal(lambda: model.forget(X[:300], y[:300]), f"{name} was fitted to 300 rows and cannot forget 300")
    refusal(lambda: model.forget(X, y), f"{name} was fitted to 300 rows and cannot forget 600")
    assert_same_bits(before, fitted_attributes(model))


@every_model
def test_forgetting_unseen_rows_raises_where_the_sums_are_impossible(make: Make) -> None:
    X, y, _ = data()
    model = make().fit(X[:300], y[:300])
    before = copy.deepcopy(fitted_attributes(model))
    refusal(
        lambda: model.forget(40.0 * X[300:400] + 9.0, y[300:400]), "it was not fitted to all of them", "would have a"
    )
    assert_same_bits(before, fitted_attributes(model))


@pytest.mark.parametrize("n", [1, 40, 290, 299])
def test_rows_that_were_added_can_always_be_forgotten(n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(1e6, 1.0, (300, 5)) * [1.0, 1e-6, 1e6, 1.0, 1.0]
    X[:, 4] = X[:, 3]  # a singular matrix, before and after
    y = X @ rng.normal(size=5) + rng.normal(size=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (Ridge(), StandardScaler(), LinearRegression()):
            model.fit(X, y).forget(X[:n], y[:n])


def test_wide_sparse_fits_do_not_keep_their_sums() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((3_000, 2_100), density=0.01, rng=rng, format="csr")
    model = Ridge().fit(X, rng.normal(size=3_000))
    for what in ("partial_fit", "forget"):
        act = getattr(model, what)
        refusal(lambda act=act: act(X, np.ones(3_000)), what, "2100 columns", "fit again on all rows")
    refusal(lambda: model.merge(model), "merge", "2100 columns")


def test_values_too_large_to_be_squared_are_refused() -> None:
    X, y, _ = data()
    refusal(lambda: LinearRegression().fit(X, y).partial_fit(X * 1e200, y), "squares overflow")
    refusal(lambda: LinearRegression().fit(X * 1e200, y).partial_fit(X, y), "sums", "fit again on all rows")


@every_model
@pytest.mark.parametrize("act", ["partial_fit", "forget"])
def test_a_failure_leaves_the_model_as_it_was(act: str, make: Make) -> None:
    X, y, _ = data()
    model = make().fit(X, y)
    state, attributes = dict(vars(model)), copy.deepcopy(fitted_attributes(model))
    bad = X.copy()
    bad[17, 1] = np.inf
    refusal(lambda: getattr(model, act)(bad, y), "Column 1", "row 17")
    assert_same_bits(attributes, fitted_attributes(model))
    assert vars(model).keys() == state.keys()
    assert_same_model(make().fit(np.vstack([X, X]), np.concatenate([y, y])), model.partial_fit(X, y))


def test_a_gap_in_a_frame_is_named_by_its_column() -> None:
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    for make in (LinearRegression, PolynomialRegression):
        model = make().fit(frame, y)
        bad = frame.copy()
        bad.loc[17, "height"] = np.nan
        refusal(lambda model=model, bad=bad: model.partial_fit(bad, y), "Column 'height' has 1 missing value", "row 17")


def test_a_warning_that_is_an_error_leaves_the_model_as_it_was() -> None:
    X, y = nearly_dependent(1e6)
    model = LinearRegression().fit(X[:1_000], y[:1_000])
    attributes = copy.deepcopy(fitted_attributes(model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(summula.AccuracyWarning):
            model.partial_fit(X[1_000:], y[1_000:])
        with pytest.raises(summula.AccuracyWarning):
            model.merge(LinearRegression().fit(X[1_000:], y[1_000:]))
    assert_same_bits(attributes, fitted_attributes(model))
