"""The bootstrap estimates of prediction error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.neighbors import KNeighborsClassifier

from summula.core.errors import DataError, ParameterError
from summula.linear_model import LinearRegression
from summula.model_selection import bootstrap_error
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
    capped = min(plus.out_of_bag, 0.5)
    w = 0.632 / (1 - 0.368 * capped / 0.5)
    assert plus.estimate == pytest.approx(w * capped)


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
    """A prediction of 0 whatever the sample: Err1 is the mean of y^2, of standard error sd / sqrt(n).

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
    with pytest.raises(DataError, match="one target per row"):
        bootstrap_error(LinearRegression(), X, Y[:-1])
