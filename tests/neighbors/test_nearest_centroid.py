"""Nearest centroids: distances by definition, scikit-learn, the adjusted boundary by brute force."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sklearn.neighbors as peers
from scipy import sparse

from summula.core.errors import DataError, ParameterError
from summula.neighbors import NearestCentroid

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 150)
X = RNG.normal(size=(150, 4)) + Y[:, None] * [1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metric": "manhattan"},
        {"shrink_threshold": 0.8},
        {"priors": "empirical"},
        {"priors": [0.1, 0.2, 0.7], "shrink_threshold": 0.2},
        {"metric": "manhattan", "shrink_threshold": 0.8},
        {"metric": "manhattan", "priors": [0.1, 0.2, 0.7]},
    ],
    ids=repr,
)
def test_predictions_are_those_of_scikit_learn(options: Any) -> None:
    ours, theirs = NearestCentroid(**options).fit(X, Y), peers.NearestCentroid(**options).fit(X, Y)
    np.testing.assert_allclose(ours.centroids_, theirs.centroids_, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours.deviations_, theirs.deviations_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.within_class_std_dev_, theirs.within_class_std_dev_, rtol=1e-10)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if options.get("metric") is None:
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-9)


def test_the_border_of_two_classes_is_halfway() -> None:
    two = Y < 2
    model = NearestCentroid().fit(X[two], Y[two])
    c0, c1 = model.centroids_
    np.testing.assert_array_equal(model.predict(X), (X @ (c1 - c0) > (c1 - c0) @ (c0 + c1) / 2).astype(int))


def test_the_adjusted_border_makes_the_fewest_errors_along_the_line() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        y = rng.integers(0, 2, 40)
        Z = rng.exponential(1.0, (40, 2)) * (1 + 3 * y[:, None])
        weight = rng.integers(0, 3, 40)
        if min(weight[y == 0].sum(), weight[y == 1].sum()) == 0:
            continue
        model = NearestCentroid(adjust=True).fit(Z, y, sample_weight=weight)
        along = Z @ (model.centroids_[1] - model.centroids_[0])
        least = min(weight @ ((along > t) != y) for t in np.concatenate([[along.min() - 1], along]))
        assert weight @ (model.predict(Z) != y) == least


def test_an_adjusted_border_stays_in_the_middle_where_that_is_best() -> None:
    model = NearestCentroid(adjust=True).fit([[0.0], [1.0], [9.0], [10.0]], [0, 0, 1, 1])
    assert model.threshold_ == pytest.approx(9 * 5)  # w = 9, halfway between 1 and 9


def test_sparse_rows_and_weights() -> None:
    dense = NearestCentroid(shrink_threshold=0.1).fit(X, Y)
    np.testing.assert_allclose(
        NearestCentroid(shrink_threshold=0.1).fit(sparse.csr_matrix(X), Y).centroids_, dense.centroids_, rtol=1e-9
    )
    for metric in ("euclidean", "manhattan"):
        weighted = NearestCentroid(metric).fit(X, Y, sample_weight=Y + 1.0)
        repeated = NearestCentroid(metric).fit(np.repeat(X, Y + 1, axis=0), np.repeat(Y, Y + 1))
        np.testing.assert_allclose(weighted.centroids_, repeated.centroids_, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: NearestCentroid(adjust=True).fit(X, Y), ParameterError, "two classes, .* there are 3"),
        (lambda: NearestCentroid(priors=[0.5, 0.5]).fit(X, Y), ParameterError, "each of 3 classes"),
        (lambda: NearestCentroid(priors=[-1.0, 1.0, 1.0]).fit(X, Y), ParameterError, "non-negative"),
        (lambda: NearestCentroid(shrink_threshold=1.0).fit(np.ones((4, 2)), [0, 0, 1, 1]), DataError, "zero variance"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_shrunken_centroids_are_certified_and_medians_are_not() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)) + y[:, None] * [1.0, 0.0, 0.5, 0.0]
    model = NearestCentroid(shrink_threshold=0.8).fit(X, y)
    assert model.certificate_.verify(X, y)
    assert not model.certificate_.verify(X + 0.01 * y[:, None], y)
    worse = dataclasses.replace(model.certificate_.fit, deviations=model.deviations_ + 0.1)
    assert not dataclasses.replace(model.certificate_, fit=worse).verify(X, y)
    assert not hasattr(model.set_params(metric="manhattan", shrink_threshold=None).fit(X, y), "certificate_")


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([0.5, 0.5], "each of 3 classes"),
        ([0.5, np.nan, 0.5], "finite numbers"),
        ([0.0, 0.0, 0.0], "not all of them 0"),
        ([-1.0, 1.0, 1.0], "non-negative"),
        (["a", "b", "c"], "priors must be numbers"),
    ],
)
def test_priors_that_are_no_probabilities(priors: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        NearestCentroid(priors=priors).fit(X, Y)


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12, 1e15])
def test_the_objective_is_that_of_the_rounded_centroids(shift: float) -> None:
    """At 1e15 a centroid has no digits below 0.125, and the gap contains the cost."""
    rows = X + shift
    model = NearestCentroid().fit(rows, Y)
    exact = Fraction(0)
    for row, label in zip(rows.tolist(), Y.tolist(), strict=True):
        centre = model.centroids_[label].tolist()
        exact += sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(row, centre, strict=True)), Fraction(0))
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(float(exact), rel=1e-13)
    near = rows - shift
    least = sum(((near[own] - near[own].mean(axis=0)) ** 2).sum() for own in (np.equal(Y, k) for k in range(3)))
    assert certificate.primal - certificate.gap == pytest.approx(least, rel=1e-12)
    assert certificate.verify(rows, Y)
