"""Compute the answers of other libraries in tests/data/rivals.json.

    python -m tests.data.make_rival_references celer skglm glum lightgbm

Libraries that are not named keep their answers, so each may be run in an environment of its own. It needs the tests'
own dependencies besides.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np

from tests.data import rival_cases as cases
from tests.data.rival_cases import REFERENCES, fingerprint

warnings.simplefilter("ignore")


def stored(answer: Any, *arrays: Any) -> dict[str, Any]:
    return {"data": fingerprint(*arrays), "answer": answer}


def celer() -> dict[str, Any]:
    """Least objective without an intercept."""
    from celer import LogisticRegression

    X, y = cases.wide_classes()
    model = LogisticRegression(C=cases.LASSO_C, tol=1e-12, max_iter=200).fit(X, y)
    return {"lasso": stored(cases.lasso_objective(model.coef_, 0.0), X, y)}


def skglm() -> dict[str, Any]:
    """Least objective with an intercept."""
    from skglm import SparseLogisticRegression

    X, y = cases.wide_classes()
    model = SparseLogisticRegression(alpha=1 / (cases.LASSO_C * len(y)), tol=1e-12, max_iter=200).fit(X, y)
    return {"lasso": stored(cases.lasso_objective(model.coef_, model.intercept_), X, y)}


def glum() -> dict[str, Any]:
    """Intercept and coefficients."""
    from glum import GeneralizedLinearRegressor

    found = {}
    for family, name in cases.FAMILIES.items():
        X, y, w = cases.glm_rows(family)
        for ratio in cases.RATIOS:
            model = GeneralizedLinearRegressor(family=name, link=cases.link_of(family), alpha=0.03, l1_ratio=ratio,
                                               gradient_tol=1e-10, max_iter=500).fit(X, y, sample_weight=w)  # fmt: skip
            found[f"{family}-{ratio}"] = stored([float(model.intercept_), *map(float, model.coef_)], X, y, w)
    X, y, offset, weight = cases.counts()
    for case, (alpha, weighted, shifted) in cases.COUNTS.items():
        model = GeneralizedLinearRegressor(
            family="poisson", link="log", alpha=alpha, l1_ratio=0, gradient_tol=1e-10, max_iter=1000
        ).fit(X, y, sample_weight=weight if weighted else None, offset=offset if shifted else None)
        found[case] = stored([float(model.intercept_), *map(float, model.coef_)], X, y, offset, weight)
    return found


def lightgbm() -> dict[str, Any]:
    """Mean loss on held-out rows of tables, and the area under the curve of two classes."""
    from lightgbm import Dataset, LGBMClassifier, LGBMRegressor, train
    from sklearn.metrics import roc_auc_score

    found, options = {}, {"n_estimators": 30, "num_leaves": 8, "n_jobs": 1, "verbose": -1, "random_state": 0}
    for name in cases.TABLES:
        X, y, loss = cases.table(name)
        goal = {"poisson": {"objective": "poisson"}, "squared_error": {"objective": "l2"}, "log_loss": {}}[loss]
        model = (LGBMClassifier if loss == "log_loss" else LGBMRegressor)(**options, **goal)
        losses = list(cases.losses_of_folds(model, X, y, loss))
        found[name] = stored(float(np.mean(losses)), *cases.codes(X, y))
    (X, y), (fresh, labels) = cases.classes(2_000), cases.classes(2_000, seed=5)
    settings = {"objective": "binary", "num_leaves": 31, "learning_rate": 0.1, "num_threads": 1, "verbose": -1}
    scores = train(settings, Dataset(X, y), 40).predict(fresh)
    found["classes"] = stored(float(roc_auc_score(labels, scores)), X[:, :2], y, fresh[:, :2], labels)
    return found


LIBRARIES = {"celer": celer, "skglm": skglm, "glum": glum, "lightgbm": lightgbm}

if __name__ == "__main__":
    content = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
    for name in sys.argv[1:]:
        content[name] = {"version": version(name), "answers": LIBRARIES[name]()}
    REFERENCES.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
