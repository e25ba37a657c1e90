"""Steps of stochastic descent: against a reference implementation, by hand, and the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from summula.losses import score_losses
from summula.losses.kernels import loss_of_score, slope_of_score
from summula.optimize.solvers.stochastic_descent import kernels as sgd_kernels
from summula.optimize.solvers.stochastic_descent import rows as sgd_rows
from summula.optimize.solvers.stochastic_descent.kernels import apply_pending_updates, descend
from summula.optimize.solvers.stochastic_descent.rows import Buffer
from summula.optimize.solvers.stochastic_descent.rule import (
    AVERAGED,
    INTERCEPT,
    INTERCEPTS,
    LOSS,
    LOSSES,
    PENALTY,
    SCALE,
    SCHEDULES,
    Rule,
    State,
)
from tests.reference import stochastic

REGRESSION = ("squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive")

# Sums in another order, over a few hundred steps that each may enlarge an error a little.
ROUNDING = 1e-10
ETA = 2.0**-7


def rule(loss: str, **changes: Any) -> Rule:
    plain = Rule(
        loss=LOSSES[loss],
        bend={"hinge": 1.0, "perceptron": 0.0}.get(loss, 0.1),
        positive=-1.0 if loss in REGRESSION else 1.0,
        inside=1.0,
        outside=1.0,
        intercept=1,
        l2=0.0,
        l1=0.0,
        schedule=SCHEDULES["constant"],
        eta0=ETA,
        power=0.5,
        alpha=0.1,
        early=1.0,
        average=0.0,
        batch=1,
        judged=1,
    )
    return plain._replace(**changes)


def problem(loss: str, n: int = 150, d: int = 7) -> tuple[Any, Any, Any, Any]:
    """Rows with many zeros, targets or codes, weights, and an order that omits and repeats rows."""
    rng = np.random.default_rng([n, d, len(loss)])
    # With binary fractions a perceptron's steps are exact, so that a row on the hyperplane is there for both.
    X = np.where(rng.random((n, d)) < 0.6, np.round(64 * rng.normal(size=(n, d))) / 64, 0.0)
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    y = y if loss in REGRESSION else (y > 0).astype(float)
    return X, y, rng.integers(0, 3, n).astype(float), rng.integers(0, n, 2 * n)


def ours(X: Any, y: Any, weight: Any, order: Any, given: Rule, storage: str) -> tuple[Any, ...]:
    state = State.at(np.zeros(X.shape[1]), 0.0, 1.0, given.eta0, averages=given.average > 0, l1=given.l1 > 0)
    rows = sparse.csr_array(X)
    if storage == "dense":
        buffer = Buffer(X.ravel(), None, None, X.shape[1], y, weight, order)
    else:
        indices, starts = rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
        buffer = Buffer(rows.data, indices, starts, X.shape[1], y, weight, order)
    descend(buffer, given, state)
    apply_pending_updates(state)
    numbers = state.numbers
    count = max(numbers[AVERAGED], 1.0)
    averages = (state.a / count, numbers[INTERCEPTS] / count) if given.average else (np.zeros(X.shape[1]), 0.0)
    return numbers[SCALE] * state.v, numbers[INTERCEPT], *averages, numbers[LOSS], numbers[PENALTY]


CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "l2": {"l2": 0.3},
    "l1": {"l1": 2.0**-5},
    "average": {"l2": 0.3, "average": 20.0},
    "average of l1": {"l1": 2.0**-6, "average": 1.0},
    "batches": {"l2": 0.1, "batch": 7},
    "batches, l1": {"l1": 2.0**-5, "batch": 4},
    "no intercept": {"l2": 0.1, "intercept": 0},
}


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("loss", LOSSES)
def test_the_kernel_matches_the_reference_implementation(loss: str, changes: dict[str, Any], storage: str) -> None:
    if storage == "csr" and changes == CHANGES["average of l1"]:
        pytest.skip("columns pay when they are looked at, so averages know of it later")
    X, y, weight, order = problem(loss)
    found = ours(X, y, weight, order, rule(loss, **changes), storage)
    signs = y if loss in REGRESSION else 2 * y - 1
    options = {name: value for name, value in changes.items() if name not in ("average", "intercept")}
    expected = stochastic.descend(
        X,
        signs,
        weight,
        order,
        loss,
        average=changes.get("average", 0),
        intercept=changes.get("intercept", 1),
        **options,
    )
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_without_a_rule_that_stops_the_weights_are_the_same(changes: dict[str, Any], storage: str) -> None:
    X, y, weight, order = problem("log_loss")
    found, expected = (ours(X, y, weight, order, rule("log_loss", judged=k, **changes), storage) for k in (0, 1))
    for mine, theirs in zip(found[:4], expected[:4], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


def test_elastic_net_on_dense_rows_matches_the_reference() -> None:
    X, y, weight, order = problem("log_loss")
    found = ours(X, y, weight, order, rule("log_loss", l2=0.2, l1=0.03), "dense")
    expected = stochastic.descend(X, 2 * y - 1, weight, order, "log_loss", l2=0.2, l1=0.03)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize(
    ("schedule", "eta"),
    [("optimal", lambda t: 1 / (0.1 * (10 + t - 1))), ("invscaling", lambda t: ETA / t**0.5)],
    ids=["optimal", "invscaling"],
)
def test_schedules(schedule: str, eta: Any) -> None:
    X, y, weight, order = problem("log_loss")
    given = rule("log_loss", schedule=SCHEDULES[schedule], early=10.0, l2=0.1)
    expected = stochastic.descend(X, 2 * y - 1, weight, order, "log_loss", l2=0.1, eta=eta)
    for mine, theirs in zip(ours(X, y, weight, order, given, "dense"), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


def test_a_scale_that_runs_to_zero_is_written_into_the_weights() -> None:
    """(1 - 60 / 128)^300 is 1e-82; the scale is renewed below 1e-9, and averages go on."""
    X, y, weight, order = problem("log_loss")
    given = rule("log_loss", l2=60.0, average=5.0)
    expected = stochastic.descend(X, 2 * y - 1, weight, order, "log_loss", l2=60.0, average=5)
    for mine, theirs in zip(ours(X, y, weight, order, given, "csr"), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_slopes(loss: str) -> None:
    value, slope = stochastic.losses(loss)
    bend = {"hinge": 1.0, "perceptron": 0.0}.get(loss, 0.1)
    for y in (-1.0, 1.0):
        p = np.array([-30.0, -2.0, -1.0, -0.95, 0.0, 0.3, 0.95, 1.0, 1.05, 3.0, 40.0])
        expected = np.array([value(y, one) for one in p]), np.array([slope(y, one) for one in p])
        compiled = [[f(LOSSES[loss], bend, y, one) for one in p] for f in (loss_of_score, slope_of_score)]
        for found in (compiled, score_losses(loss, bend, np.full(len(p), y), p)):
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)


# ---------------------------------------------------------------------------------------------------- the order of rows


class Rows:
    """The part of a run that the order of the rows needs."""

    def __init__(self, n: int, d: int = 3) -> None:
        from summula.core.data.sources import MemorySource

        X = np.arange(float(n * d)).reshape(n, d)
        self.source = MemorySource(X, np.arange(float(n))[:, None], None, X.dtype)


def seen(n: int, epoch: int = 0, seed: int = 0, **options: Any) -> list[Any]:
    return [b.y[b.order] for b in sgd_rows.Visits(Rows(n), seed, **options).buffers(epoch)]  # type: ignore[arg-type]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgd_rows, "_PIECE_ELEMENTS", 48)  # pieces of 16 rows, buffers of 256


@pytest.mark.parametrize("n", [1, 15, 16, 256, 257, 1_000, 5_003])
def test_every_row_is_visited_once_per_epoch(n: int, small_pieces: None) -> None:
    for epoch in range(3):
        assert sorted(np.concatenate(seen(n, epoch))) == list(range(n))


def test_rows_come_in_another_order_in_every_epoch_and_for_every_seed(small_pieces: None) -> None:
    orders = [np.concatenate(seen(1_000, epoch, seed)) for epoch in range(2) for seed in range(2)]
    for k, one in enumerate(orders):
        assert not any((one == other).all() for other in orders[:k])
    np.testing.assert_array_equal(orders[0], np.concatenate(seen(1_000)))


def test_without_shuffling_rows_come_as_they_are(small_pieces: None) -> None:
    np.testing.assert_array_equal(np.concatenate(seen(1_000, shuffle=False)), np.arange(1_000))


def test_a_buffer_has_rows_from_everywhere(small_pieces: None) -> None:
    """Sorted data: the mean row number of a buffer is near the middle, as sixteen random pieces make it."""
    means = [buffer.mean() / 25_600 for buffer in seen(25_600)]
    assert len(means) == 100
    # A uniform number has a standard deviation of 0.29, the mean of 16 of them 0.07.
    assert np.abs(np.array(means) - 0.5).max() < 0.35
    assert np.std(means) < 0.1


def test_held_out_rows_are_not_visited(small_pieces: None) -> None:
    out = sgd_rows.HeldOut(None, 0.25, 3)
    rows = np.concatenate(seen(4_000, held_out=out))
    held = np.flatnonzero(out.among(0, 4_000, 16))
    assert sorted([*rows, *held]) == list(range(4_000))
    assert 850 < len(held) < 1_150  # five standard deviations
    np.testing.assert_array_equal(out.among(100, 777, 16), out.among(0, 4_000, 16)[100:777])


# ------------------------------------------------------------------------------------------------------------ the rest


def test_squared_lengths() -> None:
    X, *_ = problem("hinge")
    X[3] = 0.0
    expected = (X**2).sum(axis=1)
    np.testing.assert_allclose(sgd_rows.squared_lengths(X), expected)
    np.testing.assert_allclose(sgd_rows.squared_lengths(sparse.csr_array(X)), expected)
    twice = sparse.csr_array((np.ones(2), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    np.testing.assert_allclose(sgd_rows.squared_lengths(twice), [4.0])


def test_products_of_sparse_rows() -> None:
    X, y, *_ = problem("huber")
    rows, theta, out = sparse.csr_array(X), np.column_stack([y, y**2, 0 * y]), np.ones((3, X.shape[1]))
    sgd_kernels.add_products(rows.indptr, rows.indices, rows.data, theta, out)
    np.testing.assert_allclose(out, 1.0 + theta.T @ X, rtol=1e-12)


def test_warmup_compiles_every_kernel() -> None:
    sgd_kernels.warmup()
    for name in ("descend_rows", "add_products", "add_squares"):
        assert getattr(sgd_kernels, name).signatures, name
