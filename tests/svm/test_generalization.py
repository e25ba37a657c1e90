"""The scenario bound: its equation, its coverage, its conditions."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

import summula
from summula.svm import SVC
from summula.svm.generalization import scenario_bound


@pytest.mark.parametrize(("m", "k"), [(30, 0), (30, 4), (60, 20)])
def test_the_bounds_are_roots_of_the_polynomial(m: int, k: int) -> None:
    delta = 0.1
    found = scenario_bound(m, k, delta)

    def polynomial(t: float) -> float:
        below = sum(comb(i, k) * t ** (i - k) for i in range(k, m))
        above = sum(comb(i, k) * t ** (i - k) for i in range(m + 1, 4 * m + 1))
        left = comb(m, k) * t ** (m - k)
        return (delta / (2 * m) * below + delta / (6 * m) * above) / left - 1

    assert polynomial(1 - found.high) == pytest.approx(0.0, abs=1e-6)
    if found.low > 0:
        assert polynomial(1 - found.low) == pytest.approx(0.0, abs=1e-6)
    assert found.low <= k / m <= found.high


def test_all_rows_in_the_margin_give_no_upper_bound() -> None:
    assert scenario_bound(20, 20, 0.05).high == 1.0


def test_the_bound_covers() -> None:
    draws = np.random.default_rng(0)

    def sample(n: int) -> tuple[Any, Any]:
        labels = draws.integers(0, 2, n) * 2 - 1
        return draws.normal(size=(n, 2)) + 0.8 * labels[:, None], labels

    fresh, truth = sample(4_000)
    inside = 0
    for _ in range(40):
        X, y = sample(80)
        model = SVC(kernel="linear", C=1.0, tol=1e-5).fit(X, y)
        bound = model.generalization_bound(0.2)
        risk = float((truth * model.decision_function(fresh) < 1).mean())
        inside += bound.low - 0.02 <= risk <= bound.high + 0.02
    # 80 % are promised; 26 of 40 or fewer would have a probability below 0.02.
    assert inside >= 27


def test_what_the_theorem_does_not_cover_is_refused() -> None:
    draws = np.random.default_rng(1)
    X, y = draws.normal(size=(60, 2)), draws.integers(0, 2, 60)
    for model, message in (
        (SVC(), "gamma='scale'"),
        (SVC(gamma=1.0, class_weight="balanced"), "balanced"),
    ):
        with pytest.raises(summula.DataError, match=message):
            model.fit(X, y).generalization_bound()
    with pytest.raises(summula.DataError, match="weights"):
        SVC(gamma=1.0).fit(X, y, np.arange(1.0, 61.0)).generalization_bound()
    with pytest.raises(summula.DataError, match="classes"):
        SVC(gamma=1.0).fit(X, np.arange(60) % 3).generalization_bound()
    with pytest.raises(summula.ParameterError, match="delta"):
        SVC(gamma=1.0).fit(X, y).generalization_bound(0.0)
