"""Compiled slopes of the log-losses against their formulas in double precision."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from summula.ensemble.boosting_losses import Binary, Multiclass


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_slopes_are_those_of_the_formulas(classes, weighted, kind):
    loss = Binary() if classes == 2 else Multiclass(classes)
    rng, n = np.random.default_rng(classes), 1_000
    y = rng.integers(0, classes, n).astype(kind)
    z = (rng.normal(size=(loss.scores, n)) * np.geomspace(0.01, 30.0, n)).astype(kind)
    weight = rng.random(n) if weighted else None
    g, h = np.zeros((loss.scores, n), np.float32), np.zeros((loss.scores, n), np.float32)
    rows = SimpleNamespace(y=y, z=z, weight=weight)
    parts = [loss.slopes(rows, g, h, a, b) for a, b in ((0, 300), (300, 1_000))]

    scores = np.stack([np.zeros(n), z[0]]) if classes == 2 else z
    e = np.exp(scores.astype(np.longdouble) - scores.max(axis=0))
    p = e / e.sum(axis=0)
    hot = np.arange(classes)[:, None] == y
    others = np.stack([np.delete(p, k, axis=0).sum(axis=0) for k in range(classes)])
    w = np.ones(n) if weight is None else weight
    gradients, curvatures = np.where(hot, -others, p) * w, p * others * w
    own = slice(1, None) if classes == 2 else slice(None)
    np.testing.assert_allclose(g, gradients[own].astype(float), rtol=2e-5, atol=1e-14)
    np.testing.assert_allclose(h, curvatures[own].astype(float), rtol=4e-5, atol=1e-14)
    values = -np.log(p[y.astype(int), np.arange(n)].astype(float)) * w
    assert sum(part[0] for part in parts) == pytest.approx(values.sum(), rel=1e-6)
    tops = np.max([part[1] for part in parts], axis=0)
    np.testing.assert_array_equal(tops, np.stack([np.abs(g).max(axis=1), h.max(axis=1)]))
