"""The bootstrap estimates of prediction error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.neighbors import KNeighborsClassifier

from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression
from summula.model_selection import bootstrap, bootstrap_error
from summula.naive_bayes import GaussianNB

rng = np.random.default_rng(5)
X, LABELS = rng.normal(size=(40, 2)), np.arange(40) % 2
Y = X @ [1.0, -1.0] + rng.normal(size=40)


def test_one_nearest_neighbour_on_noise():
    """Efron and Tibshirani's example (section 4): err = 0, gamma = 1/2, so .632 gives 0.316 and .632+ about 1/2."""
    found = {
        kind: bootstrap_error(KNeighborsClassifier(1), X, LABELS, kind=kind, random_state=0)
        for kind in ("632", "632+", "out_of_bag")
    }
    plus = found["632+"]
    assert plus.training_error == 0.0
    assert plus.no_information == 0.5
    assert found["632"].estimate == pytest.approx(0.632 * plus.out_of_bag)
    assert found["out_of_bag"].estimate == plus.out_of_bag
    assert plus.estimate == pytest.approx(efron_and_tibshirani(plus))


def efron_and_tibshirani(found):
    """The .632+ rule as Efron and Tibshirani write it, from .632, R' and Err1'."""
    err, one, gamma = found.training_error, found.out_of_bag, found.no_information
    err632, one_prime = 0.368 * err + 0.632 * one, min(one, gamma)
    R = (one_prime - err) / (gamma - err) if one_prime > err and gamma > err else 0.0
    return err632 + (one_prime - err) * (0.368 * 0.632 * R) / (1 - 0.368 * R)


def test_out_of_bag_error_above_the_no_information_error():
    """Neighbours have opposite labels, so a nearest neighbour is worse than chance: R' = 1, and the rule still holds."""
    found = bootstrap_error(KNeighborsClassifier(1), np.arange(40.0)[:, None], LABELS, random_state=0)
    assert found.out_of_bag > found.no_information == 0.5
    assert (found.relative_overfitting, found.weight) == (1.0, 1.0)
    assert found.estimate == pytest.approx(0.632 * found.out_of_bag + 0.368 * 0.5)
    assert found.estimate == pytest.approx(efron_and_tibshirani(found))


def test_hand_computed_estimates():
    """Four rows, three resamples. E = (1, 1/2, 0, 1), so Err1 = 0.625; err = 1/4, gamma = 3/4: R = 3/4, w = 0.632 / 0.724."""
    nan = np.nan
    losses = np.array([[1.0, nan, 0.0, nan], [nan, 1.0, nan, 1.0], [1.0, 0.0, nan, nan]])
    copies = np.array([[0, 2, 0, 2], [1, 0, 3, 0], [0, 0, 2, 2]])
    found = {kind: bootstrap._estimate(kind, losses, copies, 0.25, 0.75) for kind in ("632", "632+", "out_of_bag")}
    assert found["out_of_bag"].estimate == 0.625
    assert found["632"].estimate == pytest.approx(0.368 * 0.25 + 0.632 * 0.625)  # 0.487
    assert found["632+"].weight == pytest.approx(0.632 / 0.724)  # 0.87293
    assert found["632+"].estimate == pytest.approx(0.25 + 0.632 / 0.724 * 0.375)  # 0.57735


@pytest.mark.parametrize("loss", [None, "absolute", lambda y, p: ((y - p) ** 2).mean(axis=1)])
def test_several_targets(loss):
    targets = np.column_stack([Y, 2 * Y])
    options = {"n_resamples": 5, "random_state": 0}
    found = bootstrap_error(LinearRegression(), X, targets, loss=loss, **options)
    one = bootstrap_error(LinearRegression(), X, Y, loss="absolute" if loss == "absolute" else None, **options)
    factor = 1.5 if loss == "absolute" else 2.5  # (1 + 2) / 2, (1 + 4) / 2
    assert found.training_error == pytest.approx(factor * one.training_error)
    assert found.estimate == pytest.approx(factor * one.estimate)
    if not callable(loss):
        column = bootstrap_error(LinearRegression(), X, Y[:, None], loss=loss, **options)
        assert column.estimate == pytest.approx(one.estimate)


def test_without_overfitting_all_weights_are_0_632():
    found = bootstrap_error(DummyClassifier(strategy="constant", constant=1), X, LABELS, random_state=0)
    assert found.relative_overfitting == 0.0
    assert found.weight == 0.632
    assert found.training_error == found.no_information == 0.5


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_no_information_error(loss):
    function = {"squared": np.square, "absolute": np.abs}[loss]
    p = LinearRegression().fit(X, Y).predict(X)
    found = bootstrap_error(LinearRegression(), X, Y, loss=loss, n_resamples=5, random_state=0)
    assert found.no_information == pytest.approx(function(Y[:, None] - p[None, :]).mean())
    by_call = bootstrap_error(
        LinearRegression(), X, Y, loss=lambda y, p: function(y - p), n_resamples=5, random_state=0
    )
    assert by_call.estimate == pytest.approx(found.estimate)


def test_standard_error_of_a_constant():
    """A constant prediction of 0: Err1 is the mean of y^2, with standard error sd / sqrt(n).

    The delta method adds both parts of (7); with many resamples it is within a few per cent of it.
    """
    y = np.random.default_rng(0).normal(size=200)
    model = DummyRegressor(strategy="constant", constant=0.0)
    found = bootstrap_error(model, np.zeros((200, 1)), y, kind="out_of_bag", n_resamples=4_000, random_state=0)
    assert found.estimate == pytest.approx(np.mean(y**2))
    # slopes are known up to 1 / sqrt(B) each: relative variance about n / B = 5 %
    assert found.standard_error == pytest.approx(np.std(y**2) / np.sqrt(200), rel=0.1)


def test_frames_and_seeds():
    frame, labels = pd.DataFrame(X, columns=["a", "b"]), pd.Series(LABELS)
    one, two = (
        bootstrap_error(GaussianNB(), *data, n_resamples=10, random_state=3) for data in ((X, LABELS), (frame, labels))
    )
    assert one == two
    assert one != bootstrap_error(GaussianNB(), X, LABELS, n_resamples=10, random_state=4)
    assert "10 resamples" in str(one)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"kind": "632++"}, "kind must be one of"), ({"n_resamples": 1}, "n_resamples must be"), ({"loss": "huber"}, "loss must be one of"),
     ({"loss": lambda y, p: 1.0}, "must return 40 finite numbers")],
)  # fmt: skip
def test_bad_options(options, words):
    with pytest.raises((ParameterError, DataError), match=words):
        bootstrap_error(LinearRegression(), X, Y, **options)
    with pytest.raises(DataError, match="use loss='zero_one'"):
        bootstrap_error(GaussianNB(), X, np.array(["a", "b"])[LABELS], loss="squared")
    with pytest.raises(DataError, match="one target per row"):
        bootstrap_error(LinearRegression(), X, Y[:-1])


def test_other_names_of_kinds_and_losses():
    for name, other in (("632", ".632"), ("632+", ".632+")):
        one, two = (
            bootstrap_error(LinearRegression(), X, Y, kind=kind, loss=loss, n_resamples=5, random_state=0)
            for kind, loss in ((name, "absolute"), (other, "absolute_error"))
        )
        assert one == two
