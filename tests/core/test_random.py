"""Counter-based random numbers: the same in NumPy and in kernels, in any order, and statistically random."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from summula.core.compilation.compile import kernel
from summula.core.engine import random, random_kernels
from summula.core.engine.random import (
    choice,
    draw_seed,
    integers,
    mix64,
    normal,
    permutation,
    random_bits,
    seed_from,
    stream_key,
    uniform,
)


@kernel
def draw_rows(key, first, last, bits, uniforms, normals, whole):
    """Draw one of each kind for every row."""
    for i in range(first, last):
        bits[i - first] = random_kernels.random_bits(key, i)
        uniforms[i - first] = random_kernels.uniform(key, i)
        normals[i - first] = random_kernels.normal(key, i)
        whole[i - first] = random_kernels.integer(key, i, 1_000)


def test_the_mixing_function_is_that_of_splitmix64():
    # The first outputs for seed 1234567, from Vigna's reference implementation.
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    counters = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * np.uint64(random.GOLDEN)
    assert mix64(counters).tolist() == expected
    assert random_bits(1234567, 5).tolist() == expected


def test_kernels_draw_what_numpy_draws():
    key, first, last = stream_key(3, (1, 2)), 1_000_000_000_000, 1_000_000_000_400
    bits, uniforms = np.empty(400, np.uint64), np.empty(400)
    normals, whole = np.empty(400), np.empty(400, np.int64)
    draw_rows(key, first, last, bits, uniforms, normals, whole)
    rows = range(first, last)
    np.testing.assert_array_equal(bits, random_bits(key, rows))
    np.testing.assert_array_equal(uniforms, uniform(key, rows))
    np.testing.assert_array_equal(whole, integers(key, rows, 1_000))
    np.testing.assert_allclose(normals, normal(key, rows), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 1_001])
def test_permutations_and_choices_of_kernels_are_those_of_numpy(n):
    order = np.empty(n, np.int64)
    for key in range(20):
        random_kernels.permutation(key, order)
        np.testing.assert_array_equal(order, permutation(key, n))
        assert sorted(order.tolist()) == list(range(n))
        for size in {0, n // 3, n}:
            some = np.empty(size, np.int64)
            random_kernels.choice(key, n, some)
            np.testing.assert_array_equal(some, choice(key, n, size))
            np.testing.assert_array_equal(some, np.sort(permutation(key, n)[:size]))


def test_draws_do_not_depend_on_how_rows_are_grouped():
    whole = normal(5, 1_000)
    parts = np.concatenate([normal(5, range(a, a + 250)) for a in range(0, 1_000, 250)])
    np.testing.assert_array_equal(parts, whole)
    np.testing.assert_array_equal(normal(5, np.arange(999, -1, -1)), whole[::-1])


def test_keys_are_different_and_fit_int64():
    streams = [(), 0, 1, (0, 0), (0, 1), (1, 0), (1, 1), (0, 0, 0), (2**40, 3), -1]
    keys = {stream_key(seed, stream) for seed in range(50) for stream in streams if stream != 0 or seed % 2 == 0}
    assert len(keys) == 50 * (len(streams) - 1) + 25
    assert all(0 <= key < 2**63 for key in keys)
    assert stream_key(7, 3) == stream_key(7, (3,))


@pytest.mark.parametrize("seed", range(3))
def test_draws_have_the_distributions_they_should(seed):
    n = 100_000
    u, z = uniform(stream_key(seed, 1), n), normal(stream_key(seed, 2), n)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > 1e-4
    assert stats.kstest(z, "norm").pvalue > 1e-4
    counts = np.bincount(integers(stream_key(seed, 3), n, 100), minlength=100)
    assert len(counts) == 100
    assert stats.chisquare(counts).pvalue > 1e-4
    # Neighbouring rows, and the same rows of neighbouring streams, are uncorrelated.
    for other in (u[1:], uniform(stream_key(seed, 2), n - 1), uniform(stream_key(seed + 1, 1), n - 1)):
        assert abs(np.corrcoef(u[:-1], other)[0, 1]) < 5 / np.sqrt(n)


def test_every_permutation_and_every_choice_is_as_likely():
    drawn = [tuple(permutation(stream_key(0, k), 4)) for k in range(4_800)]
    assert stats.chisquare(list({p: drawn.count(p) for p in set(drawn)}.values())).pvalue > 1e-4
    assert len(set(drawn)) == 24
    counts = np.zeros(10)
    for k in range(3_000):
        counts[choice(stream_key(1, k), 10, 3)] += 1
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(("seed", "stream"), [(0, (0, 0)), (7, (3, 1)), (2**32 - 2, (10**6, 2))])
def test_a_shuffle_is_that_of_fisher_and_yates(seed, stream):
    for n in (0, 1, 2, 100):
        key, expected = random.stream_key(seed, stream), list(range(n))
        for i in range(n - 1, 0, -1):
            j = int(random.integers(key, np.array([i]), i + 1)[0])
            expected[i], expected[j] = expected[j], expected[i]
        values = np.arange(n)
        random_kernels.shuffle(seed, *stream, values)
        assert values.tolist() == expected


def test_shuffles_put_every_value_everywhere_equally_often():
    places = np.zeros((4, 4))
    for seed in range(4_000):
        values = np.arange(4)
        random_kernels.shuffle(seed, 1, 2, values)
        places[values, np.arange(4)] += 1
    # Counts are binomial with mean 1,000 and standard deviation 27.
    assert np.abs(places - 1_000).max() < 5 * 27.4


def test_seeds_are_drawn_once_from_generators_and_an_int_can_be_the_seed_itself():
    for made in (np.random.default_rng, np.random.RandomState):
        assert draw_seed(made(3)) == draw_seed(made(3)) < 2**32
        assert seed_from(made(3)) == seed_from(made(3)) < 2**31
    assert draw_seed(3) == draw_seed(np.random.RandomState(3))
    assert seed_from(np.int64(3)) == 3
