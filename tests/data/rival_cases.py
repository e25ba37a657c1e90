"""Problems that other libraries solved once; their answers are in tests/data/rivals.json.

The libraries are no dependencies of the tests, so answers are stored; `make_rival_references.py` computed them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[Any]

REFERENCES = Path(__file__).with_name("rivals.json")


def fingerprint(*arrays: Any) -> str:
    """Return a hash of numbers rounded to six digits: another stream of random numbers is noticed, rounding is not."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(",".join(f"{value:.6g}" for value in np.ravel(np.asarray(array, float))).encode())
    return digest.hexdigest()[:16]


def answer(library: str, case: str, *arrays: Any) -> Any:
    """Return what a library answered, after checking that it was asked about the same data."""
    stored = json.loads(REFERENCES.read_text())[library]["answers"][case]
    assert stored["data"] == fingerprint(*arrays), "other data: run `python -m tests.data.make_rival_references`"
    return stored["answer"]


# --------------------------------------------------------------------------------------------- lasso for two classes


def wide_classes() -> tuple[Array, Array]:
    """Two classes, 120 rows, 300 columns of which four matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 300)) * np.geomspace(0.2, 5.0, 300) + 1.0
    eta = (X[:, :4] - 1) @ [4.0, -3.0, 2.0, 3.0]
    return X, (eta + rng.logistic(size=120) > 0).astype(int)


LASSO_C = 0.2


def lasso_objective(coef: Any, intercept: Any) -> float:
    """C sum of logistic losses + |w|_1 at a point."""
    X, y = wide_classes()
    eta = X @ np.ravel(coef) + np.sum(intercept)
    return float(LASSO_C * np.logaddexp(0, np.where(y == 1, -eta, eta)).sum() + np.abs(coef).sum())


# ------------------------------------------------------------------------------------------- generalised linear models

# glum's name of each family, by Summula's name
FAMILIES = {
    "normal": "normal",
    "poisson": "poisson",
    "gamma": "gamma",
    "inverse_gaussian": "inverse.gaussian",
    "binomial": "binomial",
}
RATIOS = (1.0, 0.5)


def targets(family: str, eta: Array, rng: np.random.Generator) -> Array:
    """Targets of a family around a linear predictor."""
    mu = np.exp(eta)
    drawn: dict[str, Callable[[], Any]] = {
        "normal": lambda: eta + rng.standard_normal(len(eta)),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(2.0, mu / 2),
        "inverse_gaussian": lambda: rng.wald(mu, 2.0),
        "binomial": lambda: rng.binomial(5, special.expit(eta)) / 5,
    }
    return np.asarray(drawn[family]())


def glm_rows(family: str) -> tuple[Array, Array, Array]:
    """Rows of a family whose mean depends on three of eight columns, and weights."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 8))
    y = targets(family, X[:, :3] @ [0.5, -0.3, 0.2] + 0.3, rng)
    return X, y, rng.uniform(0.5, 2.0, 300)


def link_of(family: str) -> str:
    return "log" if family not in ("normal", "binomial") else "auto"


def counts() -> tuple[Array, Array, Array, Array]:
    """Counts with columns of very different sizes, offsets and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 6)) * np.geomspace(0.1, 10, 6)
    offset = rng.normal(size=2_000)
    weight = rng.integers(1, 5, 2_000).astype(float)
    mean = np.exp(X @ (0.3 / np.geomspace(0.1, 10, 6)) - 0.5 + offset)
    return X, rng.poisson(mean).astype(float), offset, weight


# Penalty, weights, offset.
COUNTS = {f"counts-{a}-{w}-{o}": (a, w, o) for a in (0.0, 0.1) for w in (True, False) for o in (True, False)}


# -------------------------------------------------------------------------------------------------------- boosted trees


def smooth(n: int = 1_500, seed: int = 0) -> tuple[Array, Array, Array]:
    """Numbers, some missing, and a target with an interaction: features, its mean, the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[::7, 2] = np.nan
    f = X[:, 0] * X[:, 1] + np.where(np.isnan(X[:, 2]), 1.0, X[:, 2])
    return X, f, f + 0.1 * rng.normal(size=n)


def classes(n: int = 1_500, k: int = 2, seed: int = 0) -> tuple[Array, Array]:
    """The same with the target cut into k classes of the same size."""
    X, _, y = smooth(n, seed)
    return X, np.digitize(y, np.quantile(y, np.arange(1, k) / k))


def _table(name: str, target: str) -> tuple[Any, Array]:
    from summula.datasets import load

    frame = load(name).to_pandas()
    return frame.drop(columns=target), frame[target].to_numpy()


def _breast_cancer_with_holes() -> tuple[Any, Array]:
    from sklearn.datasets import load_breast_cancer

    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2), y.to_numpy()


def _diabetes() -> tuple[Any, Array]:
    from sklearn.datasets import load_diabetes

    frame, y = load_diabetes(return_X_y=True, as_frame=True)
    return frame.assign(sex=np.where(frame["sex"] > 0, "a", "b")), y.to_numpy()


def _wine() -> tuple[Any, Array]:
    from sklearn.datasets import load_wine

    frame, y = load_wine(return_X_y=True, as_frame=True)
    return frame, y.to_numpy()


TABLES: dict[str, tuple[Callable[[], tuple[Any, Array]], str]] = {
    "penguins": (lambda: _table("penguins", "species"), "log_loss"),
    "election": (lambda: _table("election", "vote"), "log_loss"),
    "breast cancer with holes": (_breast_cancer_with_holes, "log_loss"),
    "wine": (_wine, "log_loss"),
    "doctor visits": (lambda: _table("doctor_visits", "visits"), "poisson"),
    "diabetes": (_diabetes, "squared_error"),
}


def table(name: str) -> tuple[Any, Array, str]:
    """Return features with text as categories, target and loss."""
    read, loss = TABLES[name]
    X, y = read()
    text = [column for column in X.columns if X[column].dtype.kind not in "fiub"]
    return X.astype(dict.fromkeys(text, "category")), y if loss == "log_loss" else y.astype(float), loss


def codes(X: Any, y: Array) -> list[Any]:
    """Return a table as numbers, for its fingerprint."""
    columns = [X[name].cat.codes if X[name].dtype == "category" else X[name].fillna(-1) for name in X.columns]
    return [*columns, np.unique(y, return_inverse=True)[1] if y.dtype.kind not in "fi" else y]


def losses_of_folds(model: Any, X: Any, y: Array, loss: str) -> Iterator[float]:
    """Yield the loss of a model on held-out rows, fold by fold."""
    from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error
    from sklearn.model_selection import KFold, StratifiedKFold

    cut = StratifiedKFold if loss == "log_loss" else KFold
    for train, test in cut(3, shuffle=True, random_state=0).split(X, y):
        model.fit(X.iloc[train], y[train])
        if loss == "log_loss":
            yield log_loss(y[test], model.predict_proba(X.iloc[test]))
        else:
            score = mean_poisson_deviance if loss == "poisson" else mean_squared_error
            yield score(y[test], model.predict(X.iloc[test]))
