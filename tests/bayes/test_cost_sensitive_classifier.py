"""Cost-sensitive decisions: the decision rule, calibration, pipelines, grid search and certificates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression as Plain
from sklearn.linear_model import Perceptron
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import summula
from summula.bayes import CostSensitiveClassifier, expected_cost, mean_cost
from summula.core.errors import DataError, ParameterError
from summula.linear_model import LogisticRegression
from summula.preprocessing import StandardScaler

COSTS = np.array([[0.0, 9.0], [1.0, 0.0]])  # missing the second class costs 9


def rows(n: int = 600, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < expit(2 * X[:, 0] - 1)).astype(int)


def test_it_takes_the_action_of_least_expected_cost() -> None:
    X, y = rows()
    model = CostSensitiveClassifier(LogisticRegression(), COSTS, calibrate=False).fit(X, y)
    p = LogisticRegression().fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), (p[:, 1] > 0.1).astype(int))
    np.testing.assert_allclose(model.risk(X), np.column_stack([9 * p[:, 1], p[:, 0]]), rtol=1e-12)


def test_it_costs_less_than_ignoring_costs() -> None:
    X, y = rows(2_000)
    Z, t = rows(2_000, seed=1)
    aware = CostSensitiveClassifier(LogisticRegression(), COSTS).fit(X, y)
    assert mean_cost(t, aware.predict(Z), COSTS) < 0.7 * mean_cost(t, Plain().fit(X, y).predict(Z), COSTS)
    assert aware.score(Z, t) == pytest.approx(-mean_cost(t, aware.predict(Z), COSTS))


@pytest.mark.parametrize("n", [600, 2_000])
def test_calibration_helps_a_model_that_is_too_sure(n: int) -> None:
    X, y = rows(n)
    Z, t = rows(2_000, seed=1)
    repeated, wide = np.repeat(X, 8, axis=1), np.repeat(Z, 8, axis=1)  # naive Bayes counts a column eight times
    cost = {
        calibrate: -CostSensitiveClassifier(GaussianNB(), COSTS, calibrate=calibrate).fit(repeated, y).score(wide, t)
        for calibrate in (True, False)
    }
    assert cost[True] < 0.95 * cost[False]


def test_names_of_actions_and_rejection() -> None:
    X, y = rows()
    costs = {"treat": {"ill": 0.0, "well": 1.0}, "send home": {"ill": 20.0, "well": 0.0}}
    model = CostSensitiveClassifier(Plain(), costs, reject_cost=0.3).fit(X, np.where(y == 1, "ill", "well"))
    assert model.actions_.tolist() == ["treat", "send home", "reject"]
    assert set(model.predict(X)) == {"treat", "send home", "reject"}
    numbers = CostSensitiveClassifier(Plain(), reject_cost=0.2).fit(X, y)
    np.testing.assert_array_equal(numbers.predict(X) == "reject", numbers.predict_proba(X).max(axis=1) < 0.8)


def test_costs_per_row() -> None:
    X, y = rows()

    def tables(Z: Any) -> Any:
        return np.array([[[0.0, a], [1.0, 0.0]] for a in np.exp(np.asarray(Z)[:, 1])])

    model = CostSensitiveClassifier(Plain(), tables, calibrate=False).fit(X, y)
    p, output = model.predict_proba(X), model.predict(X)
    np.testing.assert_array_equal(output, (np.exp(X[:, 1]) * p[:, 1] > p[:, 0]).astype(int))
    fixed = CostSensitiveClassifier(Plain(), COSTS, calibrate=False).fit(X, y)
    np.testing.assert_array_equal(fixed.predict(X, costs=tables(X)), output)
    paid = np.where(output == y, 0.0, np.where(y == 1, np.exp(X[:, 1]), 1.0))
    assert model.score(X, y) == pytest.approx(-paid.mean())


def test_pipelines_grid_search_and_clones() -> None:
    X, y = rows()
    pipe = make_pipeline(StandardScaler(), CostSensitiveClassifier(Plain(), COSTS, calibrate=False))
    search = GridSearchCV(pipe, {"costsensitiveclassifier__estimator__C": [1e-4, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"costsensitiveclassifier__estimator__C": 1.0}
    assert clone(pipe)[-1].costs is not None
    whole = CostSensitiveClassifier(make_pipeline(StandardScaler(), Plain()), COSTS).fit(X, y)
    assert set(whole.predict(X)) == {0, 1}


def test_a_model_without_probabilities_is_calibrated() -> None:
    X, y = rows()
    assert CostSensitiveClassifier(Perceptron(), COSTS).fit(X, y).predict(X).mean() > y.mean()
    with pytest.raises(ParameterError, match="no predict_proba, and costs need probabilities: use calibrate=True"):
        CostSensitiveClassifier(Perceptron(), COSTS, calibrate=False).fit(X, y)


def test_scorer() -> None:
    X, y = rows()
    assert cross_val_score(Plain(), X, y, scoring=expected_cost(COSTS), cv=3).shape == (3,)
    model = Plain().fit(X, y)
    output = model.predict(X)
    paid = 9 * ((y == 1) & (output == 0)) + ((y == 0) & (output == 1))
    assert expected_cost(COSTS)(model, X, y) == pytest.approx(-paid.mean())
    weight = np.arange(len(y))
    assert expected_cost(COSTS)(model, X, y, sample_weight=weight) == pytest.approx(-np.average(paid, weights=weight))


def test_certified_cost() -> None:
    X, y = rows(4_000)
    model = CostSensitiveClassifier(Plain(), COSTS, reject_cost=0.4).fit(X[:1_000], y[:1_000])
    certificate = summula.certify(model, X[1_000:], y[1_000:], costs=model.costs_)
    assert str(certificate).splitlines()[-1].startswith("cost of CostSensitiveClassifier, ")
    assert certificate.estimate == pytest.approx(-model.score(X[1_000:], y[1_000:]))
    assert certificate.lower < certificate.estimate < certificate.upper < 0.5
    assert certificate.verify(X[1_000:], y[1_000:])


class TestCostsOfRows:
    """Cost tables per row as scikit-learn metadata."""

    X, y = rows(900)
    tables = np.zeros((900, 2, 2))
    tables[:, 0, 1], tables[:, 1, 0] = np.random.default_rng(1).exponential(5.0, 900), 1.0
    weight = np.random.default_rng(2).integers(1, 4, 900)

    def model(self) -> Any:
        one = CostSensitiveClassifier(LogisticRegression(), calibrate=False)
        return one.set_predict_request(costs=True).set_score_request(costs=True)

    def by_hand(self, estimator: Any) -> list[float]:
        """Return the negative mean cost in each of three folds, with decisions by the tables of their rows."""
        scores = []
        for train, test in StratifiedKFold(3).split(self.X, self.y):
            p = clone(estimator).fit(self.X[train], self.y[train]).predict_proba(self.X[test])
            chosen = np.einsum("nak,nk->na", self.tables[test], p).argmin(axis=1)
            scores.append(-self.tables[test][np.arange(len(test)), chosen, self.y[test]].mean())
        return scores

    @pytest.mark.parametrize("scoring", [None, expected_cost()], ids=["score", "scorer"])
    def test_they_pass_through_pipelines_and_grid_searches(self, scoring: Any) -> None:
        with sklearn.config_context(enable_metadata_routing=True):
            pipe = make_pipeline(StandardScaler(), self.model())
            grid = {"costsensitiveclassifier__estimator__C": [1.0, 100.0]}
            search = GridSearchCV(pipe, grid, cv=3, scoring=scoring).fit(self.X, self.y, costs=self.tables)
            plain = make_pipeline(StandardScaler(), LogisticRegression())
            np.testing.assert_allclose(
                [search.cv_results_[f"split{k}_test_score"][0] for k in range(3)], self.by_hand(plain), rtol=1e-12
            )
            best = search.best_estimator_
            assert best.score(self.X, self.y, costs=self.tables) == search.score(self.X, self.y, costs=self.tables)
            assert (best.predict(self.X, costs=self.tables) != best.predict(self.X)).any()

    def test_weights_and_costs_together(self) -> None:
        with sklearn.config_context(enable_metadata_routing=True):
            model = CostSensitiveClassifier(LogisticRegression()).set_fit_request(sample_weight=True)
            model.set_predict_request(costs=True)
            scorer = expected_cost().set_score_request(sample_weight=True)
            found = cross_validate(
                model,
                self.X,
                self.y,
                scoring=scorer,
                cv=3,
                params={"costs": self.tables, "sample_weight": self.weight},
                return_estimator=True,
            )
        for fitted, score, (_, test) in zip(
            found["estimator"], found["test_score"], StratifiedKFold(3).split(self.X, self.y), strict=True
        ):
            decided = fitted.predict(self.X[test], costs=self.tables[test])
            paid = self.tables[test][np.arange(len(test)), decided, self.y[test]]
            assert score == pytest.approx(-np.average(paid, weights=self.weight[test]), rel=1e-12)

    def test_a_model_without_costs_is_scored_by_them(self) -> None:
        model = Plain().fit(self.X, self.y)
        expected = -self.tables[np.arange(900), model.predict(self.X), self.y].mean()
        assert expected_cost()(model, self.X, self.y, costs=self.tables) == pytest.approx(expected, rel=1e-12)

    def test_no_costs_at_all(self) -> None:
        with pytest.raises(ParameterError, match=r"expected_cost\(\) has no costs"):
            expected_cost()(Plain().fit(self.X, self.y), self.X, self.y)
        with pytest.raises(ParameterError, match="'groups' is not metadata"):
            expected_cost().set_score_request(groups=True)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda X, y: CostSensitiveClassifier(Plain(), [[0, 1, 2]]).fit(X, y), ParameterError, r"\(n, 2\)"),
        (
            lambda X, y: CostSensitiveClassifier(Plain(), COSTS, calibrate="platt").fit(X, y),
            ParameterError,
            "calibrate must be a bool or one of",
        ),
        (
            lambda X, y: CostSensitiveClassifier(Plain(), COSTS).fit(X, y).predict(X, costs=[COSTS]),
            DataError,
            r"here \(600, 2, 2\); got \(1, 2, 2\)",
        ),
        (lambda X, y: mean_cost(y, y + 5, COSTS), DataError, "The action [56] has no cost"),
        (lambda X, y: mean_cost(y, y[:-1], COSTS), DataError, "600 true classes and 599 decisions"),
    ],
)
def test_bad_input(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(*rows())
