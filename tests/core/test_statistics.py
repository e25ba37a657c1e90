"""The algebra of the sums: whole numbers add without rounding, so there equality is exact; else it is to n eps."""

from __future__ import annotations

import functools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource
from summula.core.engine.engine import TreeSum
from summula.core.numerics import origins as origins_of_sums
from summula.core.numerics.origins import far_origin, pilot_origin
from summula.core.numerics.statistics import Gram, Moments, TriangularFactor, blocks_of_part, weight_sums
from tests.reference import sums

F64, F32 = np.dtype(np.float64), np.dtype(np.float32)
EPS = float(np.finfo(float).eps)

WHOLE = st.integers(-1000, 1000).map(float)
REAL = st.floats(-100, 100, allow_subnormal=False).map(lambda x: round(x, 6))
SQUARES = [1.0, 4.0, 9.0]  # Gram multiplies rows by the root of their weight: these have exact ones
quickly = settings(max_examples=60, deadline=None)


def chunk(X, y=None, w=None, dtype=F64):
    source = MemorySource(X, y, w, dtype)
    return source.chunk(0, source.n_rows)


def summed(statistic, parts, params):
    """The statistic of all parts, as a fit adds it up."""
    tree = TreeSum(statistic.merge)
    for part in parts:
        for level, value in blocks_of_part(statistic, params, part):
            tree.push(value, level)
    return tree.result()


@st.composite
def blocks(draw, elements=WHOLE, count=3, targets=1):
    """Some blocks of rows [X, y], with the same columns, and whole weights for them."""
    d = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 6), min_size=count, max_size=count))
    Z = [draw(hnp.arrays(np.float64, (n, d + targets), elements=elements)) for n in sizes]
    w = [draw(hnp.arrays(np.float64, n, elements=st.sampled_from(SQUARES))) for n in sizes]
    return [(z[:, :d].copy(), z[:, d:].copy(), v) for z, v in zip(Z, w, strict=True)]


def origins(p):
    return hnp.arrays(np.float64, p, elements=st.integers(-50, 50).map(float))


def moments(block, origin):
    return Moments.map(chunk(block[0], None, block[2]), origin[: block[0].shape[1]])


def gram(block, origin):
    return Gram.map(chunk(*block), origin)


def factor(block, origin, *, lead=True):
    return TriangularFactor.map(chunk(*block), (origin, lead))


def together(some):
    return tuple(np.concatenate(parts) for parts in zip(*some, strict=True))


def same(a, b):
    """Equal, every field to the last bit."""
    return all(np.array_equal(x, vars(b)[name]) for name, x in vars(a).items() if name != "log_weight")


# ------------------------------------------------------------------------------------- the group, in whole numbers


@pytest.mark.parametrize("statistic", [moments, gram])
class TestGroup:
    @quickly
    @given(data=st.data())
    def test_merging_is_associative(self, statistic, data):
        some = data.draw(blocks())
        o = data.draw(origins(some[0][0].shape[1] + 1))
        a, b, c = (statistic(block, o) for block in some)
        assert same(a.merge(b).merge(c), a.merge(b.merge(c)))

    @quickly
    @given(data=st.data())
    def test_merging_is_commutative(self, statistic, data):
        some = data.draw(blocks(count=2))
        a, b = (statistic(block, data.draw(origins(some[0][0].shape[1] + 1))) for block in some)
        assert same(a.merge(b), b.merge(a).recentre(a.origin))

    @quickly
    @given(data=st.data())
    def test_rows_of_weight_zero_are_the_identity(self, statistic, data):
        (block,) = data.draw(blocks(count=1))
        o = data.draw(origins(block[0].shape[1] + 1))
        a = statistic(block, o)
        nothing = statistic((block[0], block[1], 0 * block[2]), o)
        merged = a.merge(nothing)
        for name in set(vars(a)) - {"count", "log_weight"}:
            assert np.array_equal(vars(merged)[name], vars(a)[name])

    @quickly
    @given(data=st.data())
    def test_unmerging_undoes_merging(self, statistic, data):
        some = data.draw(blocks(count=2))
        a, b = (statistic(block, data.draw(origins(some[0][0].shape[1] + 1))) for block in some)
        assert same(a.merge(b).unmerge(b), a)
        assert same(a.merge(b).unmerge(a).recentre(b.origin), b)

    @quickly
    @given(data=st.data())
    def test_merged_is_the_sum_of_all_rows(self, statistic, data):
        some = data.draw(blocks(count=3))
        o = data.draw(origins(some[0][0].shape[1] + 1))
        assert same(functools.reduce(type(statistic(some[0], o)).merge, (statistic(b, o) for b in some)),
                    statistic(together(some), o))  # fmt: skip

    @quickly
    @given(data=st.data())
    def test_recentring_is_summing_about_the_other_origin(self, statistic, data):
        (block,) = data.draw(blocks(count=1))
        o, other = (data.draw(origins(block[0].shape[1] + 1)) for _ in range(2))
        moved = statistic(block, o)
        moved = moved.recentre(other[: len(moved.origin)])
        assert same(moved, statistic(block, other))
        assert same(moved.recentre(o[: len(moved.origin)]), statistic(block, o))

    @quickly
    @given(data=st.data())
    def test_weights_are_repetition(self, statistic, data):
        (block,) = data.draw(blocks(count=1))
        o = data.draw(origins(block[0].shape[1] + 1))
        times = block[2].astype(int)
        repeated = (np.repeat(block[0], times, axis=0), np.repeat(block[1], times, axis=0), np.ones(times.sum()))
        a, b = statistic(block, o), statistic(repeated, o)
        for name in set(vars(a)) - {"count", "log_weight"}:
            assert np.array_equal(vars(a)[name], vars(b)[name])


# --------------------------------------------------------------------------------------- against plain NumPy, reals


@quickly
@given(data=st.data())
def test_moments_are_those_of_the_columns(data):
    (X, _, w), *_ = data.draw(blocks(REAL, count=1))
    o = data.draw(origins(X.shape[1]))
    want = sums.moments(X, w)
    got = Moments.map(chunk(X, None, w), o)
    size = np.abs(X - o).max(axis=0) + 1
    assert np.array_equal(got.count, want.count)
    np.testing.assert_allclose(got.weight, want.weight, rtol=4 * EPS)
    np.testing.assert_array_less(np.abs(got.mean - want.mean), 100 * EPS * (size + np.abs(o)))
    np.testing.assert_array_less(np.abs(got.variance - want.variance), 100 * EPS * size**2)


@quickly
@given(data=st.data())
def test_gram_products_about_the_mean_do_not_depend_on_the_origin(data):
    (X, y, w), *_ = data.draw(blocks(REAL, count=1))
    Z, o = np.hstack([X, y]), data.draw(origins(X.shape[1] + 1))
    got, want = Gram.map(chunk(X, y, w), o), sums.centred_products(Z, w)
    size = w.sum() * np.outer(*(np.abs(Z - o).max(axis=0) + 1,) * 2)
    np.testing.assert_array_less(np.abs(got.centred() - want), 100 * EPS * size)
    np.testing.assert_array_less(np.abs(got.mean - sums.moments(Z, w).mean), 100 * EPS * (200 + np.abs(o)))
    np.testing.assert_array_less(np.abs(got.products - sums.gram(Z, w, o)[1]), 100 * EPS * size)
    assert np.array_equal(got.products, got.products.T)


@quickly
@given(data=st.data(), lead=st.booleans())
def test_triangular_factor_has_the_products_of_the_rows(data, lead):
    some = data.draw(blocks(REAL, count=3, targets=2))
    o = data.draw(origins(some[0][0].shape[1] + 2))
    a, b, c = (factor(block, o, lead=lead) for block in some)
    X, y, w = together(some)
    A = sums.weighted_rows(np.hstack([X, y]), w, o, lead=lead)
    size = np.outer(*(np.linalg.norm(A, axis=0) + 1,) * 2)  # QR is backward stable column by column
    for f in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a).merge(b)):
        assert f.R.shape[0] <= A.shape[1]
        assert f.R.shape == (min(A.shape), A.shape[1])
        np.testing.assert_array_less(np.abs(f.R.T @ f.R - A.T @ A), 100 * EPS * size)
        assert f.weight == w.sum()
        assert f.count == len(w)


@quickly
@given(data=st.data())
def test_triangular_factor_of_weighted_rows_is_that_of_repeated_rows(data):
    ((X, y, w),) = data.draw(blocks(REAL, count=1))
    o, times = np.zeros(X.shape[1] + 1), w.astype(int)
    R = factor((X, y, w), o).R
    S = factor((np.repeat(X, times, axis=0), np.repeat(y, times, axis=0), np.ones(times.sum())), o).R
    size = np.outer(*(np.linalg.norm(R, axis=0) + 1,) * 2)
    np.testing.assert_array_less(np.abs(R.T @ R - S.T @ S), 100 * EPS * size)


def test_few_rows_are_their_own_factor():
    X, y = np.arange(6.0).reshape(2, 3), np.array([[1.0], [2.0]])
    R = TriangularFactor.map(chunk(X, y), (np.zeros(4), False)).R
    assert np.array_equal(R, np.hstack([X, y]))
    one = TriangularFactor.map(chunk(X[:1], y[:1]), (np.zeros(4), True)).R
    assert np.array_equal(one, [[1.0, 0.0, 1.0, 2.0, 1.0]])


def test_many_rows_give_a_triangle():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 1))
    R = TriangularFactor.map(chunk(X, y), (np.zeros(4), True)).R
    assert R.shape == (5, 5)
    assert np.array_equal(R, np.triu(R))


def test_factors_about_different_origins_do_not_merge():
    a, b = (TriangularFactor.map(chunk(np.eye(2)), (np.full(2, o), True)) for o in (0.0, 1.0))
    with pytest.raises(ValueError, match="different origins"):
        a.merge(b)


def test_a_missing_value_propagates_to_every_sum():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 1))
    X[13, 1] = np.nan
    assert np.isnan(Gram.map(chunk(X, y), np.zeros(3)).products).any()
    assert np.isnan(TriangularFactor.map(chunk(X, y), (np.zeros(3), True)).R).any()


# -------------------------------------------------------------------------------------------------------- storage


@quickly
@given(data=st.data(), weighted=st.booleans())
def test_sparse_is_dense(data, weighted):
    ((X, y, w),) = data.draw(blocks(count=1))
    X, w = X * (np.abs(X) > 400), w if weighted else None
    o = data.draw(origins(X.shape[1] + 1))
    csr = sparse.csr_array(X)
    assert same(Gram.map(chunk(X, y, w), o), Gram.map(chunk(csr, y, w), o))
    assert same(Moments.map(chunk(X, None, w), o[:-1]), Moments.map(chunk(csr, None, w), o[:-1]))
    R, S = (TriangularFactor.map(chunk(Z, y, w), (o, True)).R for Z in (X, csr))
    np.testing.assert_array_equal(R, S)


@pytest.mark.parametrize("matrix", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_both_kinds_of_csr_and_of_indices(matrix, index):
    X = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    Z = matrix(X)
    Z = matrix((Z.data, Z.indices.astype(index), Z.indptr.astype(index)), shape=X.shape)
    assert same(Gram.map(chunk(Z), np.zeros(2)), Gram.map(chunk(X), np.zeros(2)))


def test_columns_of_a_frame_and_both_orders_of_an_array_give_the_same_sums():
    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(40, 3)), rng.normal(size=(40, 1)), rng.random(40)
    o = pilot_origin(chunk(X, y))
    for statistic, params in [(Gram, o), (TriangularFactor, (o, True)), (Moments, o[:3])]:
        a, b, c = (statistic.map(chunk(Z, y, w), params) for Z in (X, np.asfortranarray(X), tuple(X.T)))
        for name in vars(a):
            np.testing.assert_allclose(vars(a)[name], vars(b)[name], rtol=1e-13, atol=1e-13)
            assert np.array_equal(vars(b)[name], vars(c)[name])  # both are filled column by column


@quickly
@given(data=st.data(), rows=st.integers(1, 7))
def test_chunks_add_up_to_the_whole(data, rows):
    X, y, w = together(data.draw(blocks()))
    o = data.draw(origins(X.shape[1] + 1))
    source = MemorySource(X, y, w, F64)
    cut = source.plan(rows)
    total = summed(Gram, cut, o)
    assert same(total, Gram.map(chunk(X, y, w), o))
    total = summed(Moments, cut, o[:-1])
    assert same(total, Moments.map(chunk(X, None, w), o[:-1]))


@quickly
@given(data=st.data())
def test_missing_values_are_passed_over_by_the_moments(data):
    ((X, _, w),) = data.draw(blocks(count=1))
    gone = data.draw(hnp.arrays(np.bool_, X.shape))
    X = np.where(gone, np.nan, X)
    o = np.ones(X.shape[1])
    want = sums.moments(X, w)
    for Z in (X, tuple(X.T), sparse.csr_array(np.where(gone, 1.0, X)).copy()):
        if not isinstance(Z, np.ndarray | tuple):
            Z.data[gone[np.repeat(np.arange(len(X)), np.diff(Z.indptr)), Z.indices]] = np.nan
        got = Moments.map(chunk(Z, None, w), o)
        assert np.array_equal(got.count, want.count)
        assert np.array_equal(got.weight, want.weight)
        np.testing.assert_allclose(got.mean, want.mean.astype(float), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(got.variance, want.variance.astype(float), rtol=1e-12, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- digits


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, -1e8])
def test_far_offsets_cost_no_digits_about_the_pilot_origin(offset):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 3)) + offset
    y = rng.normal(size=(3000, 1)) - offset
    source, o = MemorySource(X, y, None, F64), pilot_origin(chunk(X[:100], y[:100]))
    total = summed(Gram, source.plan(100), o)
    want = sums.centred_products(np.hstack([X, y]))
    np.testing.assert_allclose(total.centred(), want.astype(float), rtol=1e-12, atol=1e-9)
    about = Moments.map(chunk(X), o[:3])
    np.testing.assert_allclose(about.variance, sums.moments(X).variance.astype(float), rtol=1e-12)
    np.testing.assert_allclose(about.mean, sums.moments(X).mean.astype(float), rtol=4 * EPS, atol=1e-15)


def test_merging_sums_about_far_apart_origins_keeps_what_floats_can_hold():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    a, b = (Moments.map(chunk(X), np.full(2, o)) for o in (0.0, 1e4))
    # A square about an origin 1e4 away is 1e8 times the variance: 8 of 16 digits are left.
    np.testing.assert_allclose(a.merge(b).variance, X.var(axis=0), rtol=1e-7)
    np.testing.assert_allclose(b.mean, X.mean(axis=0), atol=1e-11)


@pytest.mark.parametrize(
    ("value", "dtype"), [(0.1, F64), (1e8 + 0.1, F64), (-3e-300, F64), (1e300, F64), (0.1, F32), (1e8 + 0.1, F32)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_constant_columns_are_exactly_zero(value, dtype, weighted):
    X = np.column_stack([np.full(300, value), np.linspace(0, 1, 300)]).astype(dtype)
    w = np.random.default_rng(0).random(300) if weighted else None
    o = pilot_origin(chunk(X[:32], dtype=dtype))
    source = MemorySource(X, None, w, dtype)
    for statistic in (Gram, Moments):
        total = summed(statistic, source.plan(32), o)
        assert total.total[0] == 0
        assert total.mean[0] == X[0, 0]
        if statistic is Gram:
            assert not total.centred()[0].any()
        else:
            assert total.variance[0] == 0
    R = TriangularFactor.map(chunk(X, None, w, dtype), (o, True)).R
    assert not R[:, 1].any()


def test_variance_is_never_negative():
    X = np.full((1000, 1), 0.1)
    assert Moments.map(chunk(X), np.array([0.1 + 1e-9])).variance[0] >= 0


def test_float32_is_summed_in_float64_between_chunks():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 2)).astype(np.float32)
    source, o = MemorySource(X, None, None, F32), pilot_origin(chunk(X[:1000], dtype=F32))
    total = summed(Gram, source.plan(1000), o)
    assert total.products.dtype == np.float64
    # Products of 1,000 rows in float32: the error of each is at most about sqrt(1000) 6e-8 of its 1,000 terms.
    np.testing.assert_allclose(total.centred(), sums.centred_products(X).astype(float), rtol=0, atol=2e-6 * len(X))
    # Whole numbers below 2^24 in each chunk are exact; their sum has more digits than float32.
    X = rng.integers(1, 100, (20_000, 2))
    source = MemorySource(X.astype(np.float32), None, None, F32)
    exact = X.T @ X
    assert exact.min() > 2**25
    np.testing.assert_array_equal(summed(Gram, source.plan(1000), np.zeros(2)).products[:2, :2], exact)
    assert TriangularFactor.map(chunk(X, dtype=F32), (o, True)).R.dtype == np.float64


# --------------------------------------------------------------------------------------------- origins and weights


def test_pilot_origin_is_the_mean_of_the_rows_and_zero_for_sparse_features():
    X, y = np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[2.0], [4.0]])
    assert np.array_equal(pilot_origin(chunk(X, y)), [2.0, 5.0, 3.0])
    assert np.array_equal(pilot_origin(chunk(tuple(X.T), y)), [2.0, 5.0, 3.0])
    assert np.array_equal(pilot_origin(chunk(sparse.csr_array(X), y)), [0.0, 0.0, 3.0])


def test_pilot_origin_is_finite_whatever_the_data():
    X = np.array([[np.nan, np.inf, 1e308], [1.0, 2.0, 1e308], [1.0, 2.0, 1.5e308]])
    assert np.isfinite(pilot_origin(chunk(X))).all()


def test_rows_of_weight_zero_are_not_counted():
    w = np.array([0.0, 2.0, 0.0, 3.0])
    n, total, logarithms = weight_sums(chunk(np.ones((4, 1)), None, w))
    assert (n, total) == (2, 5.0)
    assert logarithms == pytest.approx(np.log(6.0))
    assert weight_sums(chunk(np.ones((4, 1)))) == (4, 4.0, 0.0)


def test_sums_can_be_pickled():
    o = np.zeros(2)
    for a in (Gram.map(chunk(np.eye(2)), o), Moments.map(chunk(np.eye(2)), o)):
        assert same(pickle.loads(pickle.dumps(a)), a)


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4, 0.0])
@pytest.mark.parametrize("rows", [1, 2, 3, 50, 256])
def test_the_shortcut_for_columns_near_0_agrees_with_their_spread(spread, rows, monkeypatch):
    rng = np.random.default_rng(rows)
    X = 1.0 + spread * rng.standard_normal((rows, 5)) * [1.0, 0.1, 10.0, 1e-3, 1e3]
    chunk = MemorySource(X, None, None, np.dtype(float)).chunk(0, rows)
    found = far_origin(chunk)
    monkeypatch.setattr(origins_of_sums, "_are_surely_near", lambda rows: np.zeros(rows.shape[1], bool))
    of_all = far_origin(chunk)  # (sums of fewer columns are added in another order)
    assert np.array_equal(found == 0, of_all == 0)
    np.testing.assert_allclose(found, of_all, rtol=rows * np.finfo(float).eps)
    near = rng.standard_normal((rows, 5))
    assert not far_origin(MemorySource(near, None, None, np.dtype(float)).chunk(0, rows)).any() or rows == 1


@pytest.mark.parametrize("statistic", [Gram, Moments])
def test_sums_in_single_precision_are_about_the_origin_that_they_state(statistic):
    """Not about the nearest origin in single precision, which may be as far from it as the rows are."""
    rng = np.random.default_rng(0)
    X = (3.0 * rng.normal(size=(500, 2)) + [1e8, -3e7]).astype(np.float32)
    origin = X.mean(axis=0, dtype=np.float64)
    assert (origin.astype(np.float32) != origin).all()
    sums = statistic.map(Chunk(X, None, None, 0, 500, F32), origin)
    away = X.astype(np.float64) - origin
    assert sums.origin is origin
    np.testing.assert_allclose(sums.total, away.sum(axis=0), atol=1e-2)
    squares = np.diagonal(sums.products) if statistic is Gram else sums.square
    np.testing.assert_allclose(squares, (away**2).sum(axis=0), rtol=1e-5)
