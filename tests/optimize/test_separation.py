"""Separating hyperplanes: constructions with known results, a plain linear program on all rows, and invariances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from summula import DataError
from summula.optimize import Separation, is_linearly_separable, separating_hyperplane
from summula.optimize.separation import separation_of_rows

CORNERS = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])


def inequalities(X, y, intercept=True):
    """All rows of A, written out: (class of the row) - (other class), a block of columns per class."""
    classes = np.unique(y)
    Z = np.column_stack([X, np.ones(len(X))]) if intercept else np.asarray(X)
    rows = []
    for z, label in zip(Z, y, strict=True):
        for k, other in enumerate(classes):
            if other != label:
                row = np.zeros((len(classes), Z.shape[1]))
                row[np.searchsorted(classes, label)] += z
                row[k] -= z
                rows.append(row.ravel())
    return np.array(rows)


def by_brute_force(X, y, intercept=True):
    """The kind of separation by two linear programs on all rows, in a box."""
    A = inequalities(X, y, intercept)
    m, d = A.shape
    strict = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-A, np.ones(m)]),
        b_ub=np.zeros(m),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )
    if -strict.fun > 1e-8:
        return "complete"
    weak = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(m), bounds=[(-1, 1)] * d)
    return "quasi" if -weak.fun > 1e-8 else "overlap"


def check(found, X, y, intercept=True):
    """Check that the direction separates according to its kind, in the units of X."""
    classes, codes = np.unique(y, return_inverse=True)
    assert isinstance(found, Separation)
    assert bool(found) == (found.kind == "complete")
    assert np.array_equal(found.classes, classes)
    if found.kind == "overlap":
        assert found.coef is None
        assert found.intercept is None
        assert np.isnan(found.margin)
        assert not len(found.columns)
        return
    assert np.abs(found.coef).max() == 1
    assert np.array_equal(np.flatnonzero(np.atleast_2d(found.coef).any(axis=0)), found.columns)
    if not intercept:
        assert not np.any(found.intercept)
    X = np.asarray(X, dtype=float)
    two = len(classes) == 2
    assert found.coef.shape == ((X.shape[1],) if two else (len(classes), X.shape[1]))
    W = np.vstack([-found.coef, found.coef]) / 2 if two else found.coef
    b = np.array([-found.intercept, found.intercept]) / 2 if two else found.intercept
    score = X @ W.T + b
    others = np.arange(len(classes)) != codes[:, None]
    apart = np.take_along_axis(score, codes[:, None], 1) - score
    if found.kind == "complete":
        assert (apart[others] > 0).all()
        length = np.linalg.norm(W[codes][:, None, :] - W, axis=2)
        assert found.margin == pytest.approx((apart[others] / length[others]).min(), rel=1e-6)
    else:
        assert found.margin == 0
        room = 1e-10 * (np.abs(X).max(axis=0) @ np.abs(W).T + np.abs(b)).max()
        assert (apart[others] >= -room).all()
        assert (apart[others] > room).any()


# -------------------------------------------------------------------------------------------------------- constructions


def test_two_points():
    found = separating_hyperplane([[1.0], [3.0]], [0, 1])
    assert (found.kind, found.coef.tolist(), found.intercept, found.margin) == ("complete", [1.0], -2.0, 1.0)
    assert found.columns.tolist() == [0]
    found = separating_hyperplane([[1.0], [3.0]], [1, 0])
    assert (found.coef.tolist(), found.intercept) == ([-1.0], 2.0)


def test_and_is_separable_and_xor_is_not():
    found = separating_hyperplane(CORNERS, [0, 0, 0, 1])
    check(found, CORNERS, [0, 0, 0, 1])
    assert found.kind == "complete"
    assert found.columns.tolist() == [0, 1]
    assert found.margin == pytest.approx(np.sqrt(0.125)), "the widest: x1 + x2 = 1.5, half of sqrt(2) / 2 away"
    assert separating_hyperplane(CORNERS, [0, 1, 1, 0]).kind == "overlap"
    assert is_linearly_separable(CORNERS, [0, 0, 0, 1]) is True
    assert is_linearly_separable(CORNERS, [0, 1, 1, 0]) is False


def test_a_column_that_touches_is_quasi():
    X = np.array([[1.0], [2], [3], [3], [4], [5]])
    found = separating_hyperplane(X, [0, 0, 0, 1, 1, 1])
    assert (found.kind, found.coef.tolist(), found.intercept, found.margin) == ("quasi", [1.0], -3.0, 0.0)
    assert not found
    assert separating_hyperplane(X, [0, 0, 1, 0, 1, 1]).kind == "quasi"
    assert separating_hyperplane(X, [0, 1, 0, 1, 1, 1]).kind == "overlap"


def test_an_indicator_that_is_on_in_one_class_only_is_quasi():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.normal(size=200), np.zeros(200)])
    y = rng.integers(0, 2, 200)
    X[np.flatnonzero(y == 1)[:5], 2] = 1
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert (found.kind, found.columns.tolist()) == ("quasi", [2])
    assert separating_hyperplane(X[:, :2], y).kind == "overlap"


def test_an_indicator_that_is_the_class_is_complete():
    y = np.array(["b", "a", "b", "a"])
    X = np.column_stack([[5.0, 1, 2, 3], (y == "b").astype(float)])
    found = separating_hyperplane(X, y)
    assert (found.kind, found.columns.tolist(), found.margin) == ("complete", [1], 0.5)


def test_shared_points_on_a_slanted_boundary_are_quasi():
    """No single column separates: the tie is in x1 + 2 x2 = 1 only."""
    rng = np.random.default_rng(1)
    along = rng.integers(-20, 20, 12).astype(float)
    on = np.column_stack([1 - 2 * along, along])
    free = rng.uniform(-30, 30, (300, 2))
    score = free @ [1.0, 2.0] - 1
    free, score = free[np.abs(score) > 1], score[np.abs(score) > 1]
    X, y = np.vstack([on, on, free]), np.concatenate([np.zeros(12), np.ones(12), score > 0])
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert found.kind == "quasi"
    np.testing.assert_allclose(found.coef, [0.5, 1.0], rtol=1e-12)
    assert found.intercept == pytest.approx(-0.5, rel=1e-12)
    # One row on the wrong side, and classes overlap; without the shared points they are apart.
    assert separating_hyperplane(np.vstack([X, [0.0, 0.0]]), np.append(y, 1)).kind == "overlap"
    check(apart := separating_hyperplane(free, score > 0), free, score > 0)
    assert apart.kind == "complete"


def test_a_point_of_both_classes_is_never_complete():
    X = np.array([[0.0, 0], [1, 5], [2, 2], [2, 2], [3, 1], [4, 7]])
    found = separating_hyperplane(X, [0, 0, 0, 1, 1, 1])
    assert (found.kind, found.columns.tolist()) == ("quasi", [0])
    same = np.vstack([X, X])
    assert separating_hyperplane(same, np.repeat([0, 1], 6)).kind == "overlap"


def test_collinear_columns_are_no_separation():
    """A direction with margin 0 in every row is not a separation."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(100, 2))
    X = np.column_stack([x, x[:, 0] + x[:, 1], np.ones(100)])
    assert separating_hyperplane(X, rng.integers(0, 2, 100)).kind == "overlap"


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("wide", [np.asarray, sparse.csr_array])
def test_more_columns_than_rows_always_separate(classes, wide):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 40)), rng.integers(0, classes, 30)
    found = separating_hyperplane(wide(X), y)
    check(found, X, y)
    assert found.kind == "complete"
    assert len(found.columns) < 40


def test_few_columns_are_preferred():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(500, 10))
    y = X[:, 3] - X[:, 7] > 0
    X[:, 3] += 0.3 * np.where(y, 1, -1)
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert found.columns.tolist() == [3, 7]
    X[:, 9] = np.where(y, 1e-3, -1e-3)
    assert separating_hyperplane(X, y).columns.tolist() == [9]


# ------------------------------------------------------------------------------------------------------ several classes


def test_three_clusters():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 50)
    X = np.array([[0.0, 0], [10, 0], [5, 9]])[y] + rng.uniform(-1, 1, (150, 2))
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert found.kind == "complete"
    assert found.margin > 1


def test_three_classes_in_order_along_one_column():
    X = np.column_stack([[5.0, 5, 1, 0, 0, 0], [1.0, 2, 7, 6, 3, 4]])
    y = np.array(["low", "low", "top", "top", "mid", "mid"])
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert (found.kind, found.columns.tolist(), found.margin) == ("complete", [1], 0.5)


def test_a_class_that_lies_between_is_separated_from_neither_alone():
    """One class apart from two that overlap: no finite estimate of a multinomial model, so quasi-separated."""
    rng = np.random.default_rng(6)
    y = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 2)) + np.array([[0.0, 0], [0, 0], [20, 20]])[y]
    found = separating_hyperplane(X, y)
    check(found, X, y)
    assert found.kind == "quasi"
    X[-1] = 0.0
    assert separating_hyperplane(X, y).kind == "overlap"


def test_several_classes_with_ties():
    X = np.array([[0.0], [1], [1], [2], [2], [3]])
    found = separating_hyperplane(X, [0, 0, 1, 1, 2, 2])
    check(found, X, [0, 0, 1, 1, 2, 2])
    assert found.kind == "quasi"


# --------------------------------------------------------------------------------------------------- without an intercept


def test_through_the_origin():
    X = np.array([[1.0], [2], [3], [4]])
    y = [0, 0, 1, 1]
    assert separating_hyperplane(X, y).kind == "complete"
    assert separating_hyperplane(X, y, fit_intercept=False).kind == "overlap"
    found = separating_hyperplane(X - 2.5, y, fit_intercept=False)
    assert (found.kind, found.coef.tolist(), found.intercept, found.margin) == ("complete", [1.0], 0.0, 0.5)
    found = separating_hyperplane(X - 3, y, fit_intercept=False)
    assert (found.kind, found.coef.tolist()) == ("quasi", [1.0]), "a row of zeros is on every such hyperplane"
    found = separating_hyperplane([[0.0], [0.0], [2.0]], [1, 1, 0], fit_intercept=False)
    assert (found.kind, found.coef.tolist()) == ("quasi", [-1.0])


def test_through_the_origin_in_a_plane():
    X = np.array([[2.0, 1], [1, 2], [-1, 0.5], [0.5, -1]])
    y = [1, 1, 0, 0]
    found = separating_hyperplane(X - [0.0, 0.0], y, fit_intercept=False)
    check(found, X, y, intercept=False)
    assert found.kind == by_brute_force(X, y, False)
    up = np.array([[1.0, 1], [1, 2], [1, 3], [1, 4]])
    found = separating_hyperplane(up, [0, 0, 1, 1], fit_intercept=False)
    check(found, up, [0, 0, 1, 1], intercept=False)
    assert found.kind == "complete", "the first column is an intercept"


def test_signs_of_several_classes_through_the_origin():
    X = np.array([[1.0, 0.3], [2, -0.2], [-1, 0.1], [-2, -0.4], [0, 0.7], [0, -0.9]])
    y = np.array([0, 0, 1, 1, 2, 2])
    found = separating_hyperplane(X[:, :1], y, fit_intercept=False)
    check(found, X[:, :1], y, intercept=False)
    assert (found.kind, found.coef.ravel().tolist()) == ("quasi", [1.0, -1.0, 0.0])
    assert separating_hyperplane(X[:, 1:], y, fit_intercept=False).kind == "overlap"


# ---------------------------------------------------------------------------------------------------------- brute force


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(4, 40),
    st.integers(1, 4),
    st.integers(2, 4),
    st.booleans(),
    st.sampled_from(["grid", "normal", "shifted"]),
)
def test_the_kind_is_that_of_a_linear_program_on_all_rows(seed, n, p, classes, intercept, style):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, p)).astype(float) if style == "grid" else rng.normal(size=(n, p))
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    if style == "shifted":
        X += y[:, None] * rng.uniform(0, 3, p)
    found = separating_hyperplane(X, y, fit_intercept=intercept)
    assert found.kind == by_brute_force(X, y, intercept)
    check(found, X, y, intercept)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4), st.booleans())
def test_a_working_set_gives_the_answer_of_all_rows(seed, classes, intercept):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(400, 3)), rng.integers(0, 3))
    B = rng.integers(-2, 3, (classes, 4)).astype(float)
    y = np.argmax(
        X @ B[:, :3].T + intercept * B[:, 3] + rng.choice([0, 0, 0.01]) * rng.normal(size=(400, classes)), axis=1
    )
    y[:classes] = np.arange(classes) if rng.random() < 0.2 or len(np.unique(y)) < classes else y[:classes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("summula.optimize.solvers.class_inequalities._ALL_AT_ONCE", 20)
        patch.setattr("summula.optimize.solvers.class_inequalities._BLOCK", 64)
        few = separating_hyperplane(X, y, fit_intercept=intercept)
    check(few, X, y, intercept)
    assert few.kind == separating_hyperplane(X, y, fit_intercept=intercept).kind == by_brute_force(X, y, intercept)


# ----------------------------------------------------------------------------------------------------------- invariances


def examples():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120, 4))
    score = X @ [1.0, -2.0, 0.5, 0.0]
    clear = np.abs(score) > 0.3
    return [
        ("complete", X[clear], score[clear] > 0),
        ("quasi", np.vstack([X[:, :3], np.zeros((4, 3))]), np.append(score > 0, [False, True, False, True])),
        ("overlap", X, score + rng.normal(size=120) > 0),
    ]


@pytest.mark.parametrize(("kind", "X", "y"), examples(), ids=["complete", "quasi", "overlap"])
class TestInvariance:
    def test_units(self, kind, X, y):
        for s in (np.geomspace(1e-6, 1e6, X.shape[1]), np.geomspace(1e6, 1e-6, X.shape[1]), 1e-150, 1e150):
            found = separating_hyperplane(X * s, y)
            assert found.kind == kind
            check(found, X * s, y)

    def test_origins(self, kind, X, y):
        shift = np.array([1e3, -1e4, 1e5, 0.0])[: X.shape[1]]
        moved = np.round((X + shift) * 2**30) / 2**30  # a grid on which sums are exact
        again = moved - shift
        found = separating_hyperplane(moved, y)
        assert found.kind == separating_hyperplane(again, y).kind == kind
        check(found, moved, y)

    def test_order_and_repeats(self, kind, X, y):
        turn = np.random.default_rng(8).permutation(np.repeat(np.arange(len(X)), 3))
        assert separating_hyperplane(X[turn], y[turn]).kind == kind

    def test_other_storage(self, kind, X, y):
        names = [f"c{j}" for j in range(X.shape[1])]
        for table in (sparse.csr_array(X), sparse.csc_matrix(X), X.tolist(), np.asfortranarray(X)):
            check(found := separating_hyperplane(table, y), X, y)
            assert found.kind == kind
        for table in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
            assert separating_hyperplane(table, y.tolist()).kind == kind
        single = X.astype(np.float32)
        assert separating_hyperplane(single, y).kind == separating_hyperplane(single.astype(float), y).kind

    def test_labels(self, kind, X, y):
        swapped = separating_hyperplane(X, ~y)
        assert swapped.kind == kind
        check(swapped, X, ~y)
        for labels in (
            np.where(y, "yes", "no"),
            np.where(y, 7.5, -1.0),
            pd.Series(y, dtype="category"),
            list(map(str, y)),
        ):
            assert separating_hyperplane(X, labels).kind == kind
        mixed = np.array([1, "one"], dtype=object)[y.astype(int)]
        assert separating_hyperplane(X, mixed).classes.tolist() == [1, "one"]

    def test_rows_for_solvers(self, kind, X, y):
        before = X.copy()
        found = separation_of_rows(X, y.astype(int), 2, True)
        assert found.kind == kind
        assert found.classes.tolist() == [0, 1]
        assert separation_of_rows(sparse.csr_array(X), y.astype(np.int32), 2, True).kind == kind
        assert np.array_equal(X, before)


def test_adjacent_floats_in_one_column_are_distinguished():
    x = np.array([1.0, np.nextafter(1.0, 2)])
    assert separating_hyperplane(x[:, None], [0, 1]).kind == "complete"
    far = 1e9 + np.array([[0.0], [1e-6], [2e-6]])
    assert separating_hyperplane(far, [0, 0, 1]).kind == "complete"


# ------------------------------------------------------------------------------------------------------------- large data


@pytest.mark.parametrize(("kind", "programs"), [("complete", 20), ("quasi", 25), ("overlap", 3), ("one row wrong", 3)])
def test_linear_programs_see_a_small_working_set_of_many_rows(kind, programs, monkeypatch):
    sizes = []

    def counted(*args, **options):
        sizes.append(options["A_ub"].shape[0])
        return linprog(*args, **options)

    monkeypatch.setattr("scipy.optimize.linprog", counted)
    rng = np.random.default_rng(9)
    X = rng.normal(size=(40_000, 20))
    w = rng.normal(size=20)
    score = X @ w / np.linalg.norm(w)
    y = score > 0
    if kind == "overlap":
        y = score + rng.normal(size=len(X)) > 0
    else:
        X += 0.01 * np.where(y, 1, -1)[:, None] * w / np.linalg.norm(w)
    if kind == "quasi":
        X[:2], y[:2] = 0.0, [False, True]
    if kind == "one row wrong":
        row = np.argmax(score)
        y[row] = not y[row]
    found = separating_hyperplane(X, y)
    assert found.kind == ("overlap" if kind == "one row wrong" else kind)
    check(found, X, y)
    assert len(sizes) <= programs
    assert max(sizes) < 1_000  # of 40,000 inequalities, and 40 bounds


# -------------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([[1.0], [2.0]], ["a", "a"], ["'a'", "two classes"]),
        ([[1.0, 2.0], [3.0, np.nan]], [0, 1], ["row 1", "column 1", "impute"]),
        (sparse.csr_array([[0.0, np.inf], [3.0, 1.0]]), [0, 1], ["row 0", "column 1"]),
        (pd.DataFrame({"u": [1.0, 2.0], "v": [np.nan, 1.0]}), [0, 1], ["row 0", "column 'v'"]),
        ([[1.0], [2.0]], [0, 1, 1], ["2 rows", "y has 3"]),
        ([[1.0], [2.0]], [[0], [1]], ["(2, 1)", "1d"]),
        ([[1.0], [2.0]], [0, np.nan], ["y is missing at row 1"]),
        ([[1.0], [2.0]], np.array(["a", None], dtype=object), ["y is missing at row 1"]),
        ([1.0, 2.0], [0, 1], ["(2,)", "table"]),
        (np.empty((0, 2)), [], ["(0, 2)"]),
        ([["u"], ["v"]], [0, 1], ["not a table of numbers"]),
        ([[1j], [2j]], [0, 1], ["complex"]),
    ],
)
def test_bad_input_gets_one_sentence(X, y, words):
    with pytest.raises(DataError) as caught:
        separating_hyperplane(X, y)
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert message.endswith(".")
    assert "\n" not in message
    with pytest.raises(DataError):
        is_linearly_separable(X, y)


def test_a_class_without_rows_is_refused():
    with pytest.raises(DataError, match="Class 1 has no rows"):
        separation_of_rows(np.eye(3), np.array([0, 2, 2]), 3, True)
