"""Statistics that add up field by field, and rows partitioned by code."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.data.sources import MemorySource
from summula.core.errors import DataError
from summula.core.estimator.run import Run, Unnamed
from summula.core.numerics.grouped import Grouped, partition, regrouped, sums_by_code
from summula.core.numerics.statistics import Gram, Moments
from summula.core.numerics.sums import Groups, Sum, merged_by


@dataclass(frozen=True)
class Totals(Sum):
    count: int
    total: np.ndarray
    pieces: tuple[int, ...] = ()
    optional: float | None = None


@dataclass(frozen=True)
class Extremes(Sum):
    count: int
    largest: float = field(metadata=merged_by(max))
    least: np.ndarray = field(metadata=merged_by(np.minimum))


@dataclass(frozen=True)
class About(Sum):
    """The sum of x - origin."""

    weight: float
    origin: float
    total: float

    def recentre(self, origin):
        return About(self.weight, origin, self.total + self.weight * (self.origin - origin))


@dataclass(frozen=True)
class Nested(Sum):
    count: int
    about: About


def chunk_of(X):
    return Chunk(X, None, None, 0, len(X), X.dtype)


def test_fields_are_added_and_tuples_joined():
    a, b = Totals(1, np.array([1.0, 2.0]), (1,), 2.0), Totals(2, np.array([10.0, 20.0]), (2, 3), 3.0)
    both = a.merge(b)
    assert (both.count, both.pieces, both.optional) == (3, (1, 2, 3), 5.0)
    assert_array_equal(both.total, [11.0, 22.0])


def test_fields_that_are_sums_are_merged_and_unmerged_by_their_own_rules():
    a, b = Nested(2, About(2.0, 0.0, 3.0)), Nested(1, About(1.0, 5.0, 1.0))
    assert a.merge(b) == Nested(3, About(3.0, 0.0, 9.0))
    assert a.merge(b).unmerge(b) == a


def test_none_on_one_side_is_none():
    a, b = Totals(1, np.zeros(1), optional=2.0), Totals(1, np.zeros(1))
    assert a.merge(b).optional is None
    assert b.merge(a).optional is None


def test_fields_with_another_merge():
    both = Extremes(1, 3.0, np.array([1.0, 5.0])).merge(Extremes(2, 2.0, np.array([4.0, -1.0])))
    assert (both.count, both.largest) == (3, 3.0)
    assert_array_equal(both.least, [1.0, -1.0])


def test_what_is_no_sum_is_not_unmerged():
    one = Extremes(1, 3.0, np.zeros(1))
    with pytest.raises(TypeError, match="largest is not a sum"):
        one.unmerge(one)


def test_origins_are_aligned_before_adding_and_subtracting():
    # Rows 1, 2 about 0 and row 6 about 5.
    a, b = About(2.0, 0.0, 3.0), About(1.0, 5.0, 1.0)
    assert a.merge(b) == About(3.0, 0.0, 9.0)
    assert b.merge(a) == About(3.0, 5.0, -6.0)
    assert a.merge(b).unmerge(b) == a


def test_a_sum_with_an_origin_must_define_how_to_move_it():
    @dataclass(frozen=True)
    class Stuck(Sum):
        origin: float
        total: float

    with pytest.raises(NotImplementedError, match="Stuck cannot be moved"):
        Stuck(0.0, 1.0).merge(Stuck(1.0, 1.0))


def test_groups_merge_one_by_one_and_none_is_a_group_without_rows():
    a, b = Totals(1, np.ones(1)), Totals(2, np.ones(1))
    merged = Groups((a, None, None)).merge(Groups((b, b, None)))
    assert merged.groups[0].count == 3
    assert merged.groups[1] is b
    assert merged.groups[2] is None


def test_rows_are_taken_out_of_groups_one_by_one():
    one, three = (Gram.map(chunk_of(np.ones((n, 1))), np.zeros(1)) for n in (1, 3))
    left = Groups((three, one, one, None)).unmerge(Groups((one, None, one, one)))
    assert left.groups[0].products.tolist() == [[2.0]]
    assert left.groups[1] is one
    assert left.groups[2] is None  # no rows are left
    assert left.count.tolist() == [2, 1, 0, -1]
    assert left.n_rows == 2


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("rows", [300, 2**16 // 3 + 1, "sparse"], ids=["NumPy", "kernel", "sparse"])
def test_grouped_moments_are_the_moments_of_each_group(rows, weighted):
    rng = np.random.default_rng(3)
    n = 300 if rows == "sparse" else rows
    X, codes = rng.normal(2.0, 1.0, (n, 3)), rng.choice([0, 1, 3, -1], n).astype(np.int32)
    X[rng.random(n) < 0.1, 1] = np.nan
    weight = rng.random(n) if weighted else None
    kept = SparseRows(sparse.csr_array(X), 0, n) if rows == "sparse" else X
    chunk = Chunk(kept, None, weight, 0, n, X.dtype, codes=codes)
    origins = np.ones(3) if rows == "sparse" else rng.normal(2.0, 0.1, (5, 3))
    sums = Grouped(Moments, 5).map(chunk, origins)
    assert sums.count.shape == (5, 3)
    for code in (0, 1, 3):
        own = codes == code
        expected = Moments.map(chunk.take(np.flatnonzero(own)), np.broadcast_to(origins, (5, 3))[code])
        for name in ("count", "weight", "origin", "total", "square"):
            assert_allclose(getattr(sums, name)[code], getattr(expected, name), rtol=1e-9, err_msg=name)
    assert not sums.count[[2, 4]].any()
    assert not sums.square[[2, 4]].any()


def test_moments_without_rows_are_exactly_zero_after_rows_are_taken_out():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, 2)), rng.random(40)
    codes = (np.arange(40) % 2).astype(np.int32)
    whole = Chunk(X, None, weight, 0, 40, X.dtype, codes=codes)
    sums = Grouped(Moments, 2).map(whole, np.zeros(2))
    pieces = [
        Grouped(Moments, 2).map(whole.take(np.flatnonzero(codes == 0)[a : a + 5]), np.ones(2)) for a in (0, 5, 10, 15)
    ]
    for piece in pieces:
        sums = sums.unmerge(piece)
    assert sums.count.tolist() == [[0, 0], [20, 20]]
    assert sums.weight[0].tolist() == sums.total[0].tolist() == sums.square[0].tolist() == [0.0, 0.0]


def test_sums_of_groups_move_to_other_places():
    moments = Grouped(Moments, 2).map(
        Chunk(np.ones((3, 1)), None, None, 0, 3, np.dtype(float), codes=np.array([0, 1, 1], np.int32)), np.zeros(1)
    )
    assert regrouped(moments, np.array([2, 0]), 3).count.tolist() == [[2], [0], [1]]
    one = Totals(1, np.ones(1))
    assert regrouped(Groups((one, None)), np.array([2, 0]), 3).groups == (None, None, one)


@pytest.mark.parametrize(
    "codes", [[0, 0, 0], [2, 2, 2], [0, 1, 0, 1, 2], [1, 1, 1, 0, 0], [3, 0]], ids=lambda codes: str(codes)
)
def test_a_partition_finds_the_rows_of_each_code_in_order(codes):
    codes = np.array(codes)
    found = dict(partition(codes))
    assert sorted(found) == sorted(set(codes.tolist()))
    for code, index in found.items():
        rows = np.arange(len(codes)) if index is None else np.arange(len(codes))[index]
        assert_array_equal(rows, np.flatnonzero(codes == code))


def test_sums_by_code_are_those_of_the_rows_of_each_code():
    rng = np.random.default_rng(0)
    X, codes, origin = rng.normal(size=(50, 3)), rng.choice([0, 1, 3], 50), np.ones(3)
    sums = sums_by_code(Gram, chunk_of(X), codes, 5, origin, left_out=1)
    assert [one is None for one in sums] == [False, True, True, False, True]
    for code in (0, 3):
        rows = X[codes == code] - origin
        assert sums[code].count == len(rows)
        assert_allclose(sums[code].products, rows.T @ rows, rtol=1e-13)


# ------------------------------------------------------------------------------------------------- values not finite


@pytest.mark.parametrize(
    ("total", "finite"),
    [
        (Totals(1, np.array([1.0, 2.0])), True),
        (Totals(1, np.array([1.0, np.nan])), False),
        (Totals(1, np.array([1.0, np.inf], np.float32)), False),
        (Totals(1, np.array([1, 2]), optional=np.inf), False),
        (Totals(1, np.array(["text"]), (1, 2)), True),
        (Totals(1, np.zeros(1), (np.zeros(2), np.array([np.nan]))), False),
        (Groups((None, Totals(1, np.array([np.nan])))), False),
        (Groups((None, Totals(1, np.array([1.0])))), True),
    ],
)
def test_values_that_are_not_finite_are_found_everywhere(total, finite):
    assert total.is_finite() is finite


def test_a_run_locates_the_first_value_that_is_not_finite_once(monkeypatch):
    X = np.zeros((300, 2))
    X[217, 1] = np.nan
    source = MemorySource(X, None, None, X.dtype)
    with pytest.raises(DataError, match=r"Column 1 has 1 missing value \(NaN; first at row 217\); the computation"):
        Run(Unnamed(), source).sum(Gram, np.zeros(2))
    # Moments skip missing values, and count them.
    with pytest.raises(DataError, match=r"Column 1 has 1 missing value \(NaN; first at row 217\); the computation"):
        Run(Unnamed(), source).sum(Moments, np.zeros(2))
    allowing = Unnamed()
    allowing._allows_nan = True
    assert Run(allowing, source).sum(Moments, np.zeros(2)).count.tolist() == [300, 299]
    large = MemorySource(np.full((5, 1), 1e200), None, None, X.dtype)
    run, looks = Run(Unnamed(), large), []
    monkeypatch.setattr(Run, "raise_if_not_finite", lambda self: looks.append(self))
    for _ in range(3):  # squares overflow: a single pass shows that no value is missing
        assert not run.sum(Gram, np.zeros(1)).is_finite()
    assert looks == [run]
