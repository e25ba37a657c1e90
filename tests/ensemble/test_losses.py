"""Compiled slopes of the log-losses against their formulas in double precision."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from summula.ensemble import HistGradientBoostingClassifier
from summula.ensemble.histogram.boosting_losses import Binary, Multiclass
from summula.tree.growing import grower as growing


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


def test_trees_of_several_classes_are_the_same_on_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-1.0, 0.0, 1.0])
    fits = [HistGradientBoostingClassifier(max_iter=6, random_state=0, n_jobs=jobs).fit(X, y) for jobs in (1, 2, None)]
    monkeypatch.setattr(growing, "_TINY", 0)  # as if the table were large
    monkeypatch.setattr(growing, "_SMALL", 0)
    fits.append(HistGradientBoostingClassifier(max_iter=6, random_state=0, n_jobs=2).fit(X, y))
    for other in fits[1:]:
        np.testing.assert_array_equal(other.decision_function(X), fits[0].decision_function(X))
