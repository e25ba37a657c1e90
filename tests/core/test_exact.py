"""Intercepts about another origin: rounded once, by rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from summula.core.numerics.exact import dot, intercepts, leads, shifts


def cancelling(seed: int, d: int = 6):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=d) * 10.0 ** rng.integers(-10, 16, d)
    b = rng.normal(size=d) * 10.0 ** rng.integers(-10, 10, d)
    b[-1] = -(a[:-1] @ b[:-1]) / a[-1]
    return a, b, float(rng.normal() * 10.0 ** rng.integers(-5, 20))


def exactly(a, b, *others):
    return sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(0)) + sum(
        map(Fraction, others)
    )


@pytest.mark.parametrize("seed", range(50))
def test_a_product_is_rounded_once(seed):
    a, b, c = cancelling(seed)
    assert dot(a, b) == float(exactly(a, b))
    assert dot(a, b, c, -c / 3) == float(exactly(a, b, c, -c / 3))


def test_products_of_nothing_and_of_what_cannot_be_split():
    assert dot(np.zeros(3), np.ones(3), 2.5) == 2.5
    assert dot(np.array([1e300, 2.0]), np.array([1e5, 3.0]), 1.0) == 1e300 * 1e5
    assert dot(np.array([1e300, -1e300]), np.array([1e100, 1e100])) != 0  # overflows


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(10))
def test_there_and_back(seed, dtype):
    rng = np.random.default_rng(seed)
    origin, coef = rng.normal(size=4) * 1e15, rng.normal(size=(3, 4))
    lead, term = rng.normal(size=3), rng.normal(size=3)
    b = intercepts(coef, origin, lead, term, dtype=dtype)
    assert (b == b.astype(dtype)).all()
    for k in range(3):
        assert b[k] == float(np.float64(float(exactly(-origin, coef[k], lead[k], term[k]))).astype(dtype))
        back = exactly(origin, coef[k], b[k], -term[k])
        assert leads(coef, origin, b, -term)[k] == float(back)
        assert shifts(coef, origin, b, lead)[k] == float(exactly(origin, coef[k], b[k], -lead[k]))
        relative = exactly(origin, coef[k], b[k], -lead[k]) - exactly(origin, coef[0], b[0], -lead[0])
        assert shifts(coef, origin, b, lead, relative=True)[k] == float(relative)
