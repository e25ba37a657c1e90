"""Certificates of true risk: their statements, every kind of data, error rates, and invalidation."""

from __future__ import annotations

import gc
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.svm import LinearSVC

import summula
from summula.certification import RiskCertificate, certify, certify_best, compare
from summula.certification.fingerprints import betting_order, data_hash, model_hash, row_hashes, share_seen
from summula.certification.records import _USES
from summula.core.errors import DataError, HoldoutWarning, ParameterError
from summula.linear_model import Lasso, LinearRegression, LogisticRegression
from summula.preprocessing import ColumnPlan
from summula.stats import betting_bounds, clopper_pearson_bounds
from tests.stats.loss_laws import too_often


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Remove the certificates of other tests."""
    yield
    _USES.clear()


def classes(n: int, seed: int = 0, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, "yes", "no")


@pytest.fixture(scope="module")
def classifier() -> LogisticRegression:
    return LogisticRegression().fit(*classes(400, seed=100))


@pytest.fixture(scope="module")
def regressor() -> LinearRegression:
    rng = np.random.default_rng(101)
    X = rng.normal(size=(200, 3))
    return LinearRegression().fit(X, np.tanh(X[:, 0]))


class Echo:
    """Model that predicts its first column, so that a test can choose the losses."""

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]


# ------------------------------------------------------------------------------------------------------ statements


def test_counted_errors(classifier: LogisticRegression) -> None:
    X, y = classes(1_000, seed=1)
    wrong = int(np.sum(classifier.predict(X) != y))
    c = certify(classifier, X, y)
    assert (c.estimate, c.n, c.method, c.loss, c.range) == (wrong / 1_000, 1_000, "Clopper-Pearson", "zero_one", (0, 1))
    assert (c.lower, c.upper) == tuple(clopper_pearson_bounds(wrong, 1_000))
    assert c.model == "LogisticRegression"
    assert "confidence 95 %" in str(c)
    assert len(c.assumptions) == 2
    assert not c.vacuous
    assert not c.void


def test_bet_losses(regressor: LinearRegression) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2_000, 3))
    y = np.tanh(X[:, 0])
    error = regressor.predict(X) - y
    for loss, values in (("squared", error**2), ("absolute", np.abs(error))):
        c = certify(regressor, X, y, loss=loss, range=(0, 20))
        assert c.method == "betting"
        assert c.estimate == pytest.approx(values.mean())
        assert c.lower <= c.estimate <= c.upper < c.estimate + 0.05
        assert any("[0, 20]" in output for output in c.assumptions)
    with_function = certify(regressor, X, y, loss=lambda y, f: np.abs(y - f), range=(0, 20))
    assert (with_function.lower, with_function.upper) == (c.lower, c.upper)
    # In other units everything is scaled.
    wide = certify(regressor, X, y, loss=lambda y, f: 10 * np.abs(y - f) - 1, range=(-1, 199))
    np.testing.assert_allclose([wide.lower, wide.upper], [10 * c.lower - 1, 10 * c.upper - 1], rtol=1e-9)


def test_log_loss(classifier: LogisticRegression) -> None:
    X, y = classes(500, seed=3)
    p = classifier.predict_proba(X)[np.arange(500), (y == "yes").astype(int)]
    c = certify(classifier, X, y, loss="log", range=(0, 10))
    assert c.estimate == pytest.approx(-np.log(p).mean())
    assert c.upper < 1


def test_costs(classifier: LogisticRegression) -> None:
    X, y = classes(500, seed=4)
    f = classifier.predict(X)
    costs = [[0.0, 5.0], [1.0, 0.5]]  # rows: predicted no, predicted yes
    expected = np.where(y == "no", np.where(f == "no", 0.0, 1.0), np.where(f == "no", 5.0, 0.5))
    c = certify(classifier, X, y, costs=costs)
    assert (c.method, c.range) == ("betting", (0.0, 5.0))
    assert c.estimate == pytest.approx(expected.mean())
    named = {"yes": {"no": 1.0, "yes": 0.5}, "no": {"yes": 5.0, "no": 0.0}}  # prediction -> {true class: cost}
    assert certify(classifier, X, y, costs=named).estimate == c.estimate
    assert c.costs == ((0.0, 5.0), (1.0, 0.5))
    # Two values can be counted.
    missed = certify(classifier, X, y, costs=[[0, 3], [0, 0]])
    assert missed.method == "Clopper-Pearson"
    assert missed.upper == pytest.approx(3 * clopper_pearson_bounds(np.sum((y == "yes") & (f == "no")), 500).upper)


def test_rounded_away_from_each_other(classifier: LogisticRegression) -> None:
    X, y = classes(700, seed=5)
    c = certify(classifier, X, y)
    words = str(c).replace(",", "").split()
    assert float(words[words.index("most") + 1]) >= c.upper
    assert float(words[words.index("least") + 1]) <= c.lower


def test_vacuous_is_called_vacuous() -> None:
    c = certify(Echo(), [[0.5]], [0.0], loss="absolute", range=(0, 1))
    assert c.vacuous
    assert str(c).startswith(
        "vacuous: at confidence 95 % 1 row say nothing about the risk (even without a loss, 5 are needed"
    )
    one_sided = certify(Echo(), np.zeros((50, 1)), np.zeros(50), loss="absolute", range=(0, 1))
    assert "lower bound vacuous" in str(one_sided)
    assert "at most" in str(one_sided)


# ---------------------------------------------------------------------------------------------------- kinds of data


def test_frames_of_every_library(constructor: Callable[..., Any], classifier: LogisticRegression) -> None:
    X, y = classes(300, seed=6)
    expected = certify(classifier, X, y)
    frame = constructor({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    named = LogisticRegression().fit(constructor({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), y)
    table = constructor({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y.astype(object)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fitted on other names
        assert certify(classifier, frame, y) == expected
    del named._training
    with pytest.warns(HoldoutWarning):
        assert certify(named, table, "y").data_hash == expected.data_hash


def test_sparse_rows(classifier: LogisticRegression) -> None:
    X, y = classes(300, seed=7)
    X[np.abs(X) < 0.3] = 0.0
    expected = certify(classifier, X, y)
    for form in (sparse.csr_array, sparse.csc_array):
        assert certify(classifier, form(X), y) == expected


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    X, y = classes(500, seed=8)
    names = ["a", "b", "c"]
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(pa.table(dict(zip(names, X.T, strict=True)) | {"y": y}), tmp_path / "rows.parquet")
    scanned = summula.scan(tmp_path / "rows.parquet")
    fresh_X, fresh_y = classes(400, seed=9)
    for model in (LogisticRegression(), Theirs()):
        import pandas as pd

        model.fit(pd.DataFrame(fresh_X, columns=names), fresh_y)
        for loss in ({"loss": "zero_one"}, {"loss": "log", "range": (0, 12)}):
            expected = certify(model, pd.DataFrame(X, columns=names), y, **loss)
            for block in (1 << 16, 64):
                monkeypatch.setattr("summula.certification.rows._BLOCK", block)
                assert certify(model, scanned, "y", **loss) == expected
                assert expected.verify(scanned, "y")
            assert certify(model, scanned.select(names), y, **loss) == expected
            del expected
        gc.collect()
    with pytest.raises(DataError, match="The data have no column 'z'"):
        certify(model, scanned, "z")


def test_dask_collections(classifier: LogisticRegression) -> None:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, y = classes(500, seed=10)
    expected = certify(classifier, X, y)
    lazy = da.from_array(X, chunks=(130, 2))
    assert certify(classifier, lazy, da.from_array(y, chunks=130)) == expected
    assert certify(classifier, lazy, da.from_array(y, chunks=97)) == expected
    assert certify(classifier, lazy, y) == expected
    named = LogisticRegression().fit(
        pd.DataFrame(classes(400, seed=11)[0], columns=list("abc")), classes(400, seed=11)[1]
    )
    frame = pd.DataFrame(X, columns=list("abc"))
    with pytest.warns(HoldoutWarning):
        of_frame = certify(named, frame, y)
    table = dd.from_pandas(frame.assign(y=y), npartitions=4)
    with pytest.warns(HoldoutWarning):
        assert certify(named, table, "y") == of_frame


def test_a_cluster(dask_client: Any, classifier: LogisticRegression) -> None:
    da = pytest.importorskip("dask.array")
    X, y = classes(500, seed=10)
    expected = certify(classifier, X, y)
    with summula.engine(dask_client):
        assert certify(classifier, da.from_array(X, chunks=(130, 3)), da.from_array(y, chunks=130)) == expected


def test_the_order_of_rows_does_not_matter(regressor: LinearRegression) -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(400, 3)).round(0)  # many rows are equal
    y = np.tanh(X[:, 0])
    order = rng.permutation(400)
    given = certify(regressor, X, y, loss="absolute", range=(0, 5))
    assert certify(regressor, X[order], y[order], loss="absolute", range=(0, 5)) == given
    assert given.verify(X[order], y[order])
    assert not given.verify(X[:-1], y[:-1])


# ------------------------------------------------------------------------------------------------- how often they err


@pytest.mark.parametrize("values", [None, 4])
def test_certificates_hold_with_the_stated_probability(values: int | None) -> None:
    """For continuous rows, and for rows with few distinct values, many of which are equal."""
    rng = np.random.default_rng(13)
    times, n, wrong = 400, 300, np.zeros(2)
    for _ in range(times):
        u = rng.random(n) if values is None else rng.integers(0, values + 1, n) / values
        c = certify(Echo(), (u**3)[:, None], np.zeros(n), loss="absolute", range=(0, 1), delta=0.1)
        mean = 0.25 if values is None else np.mean((np.arange(values + 1) / values) ** 3)
        wrong += (c.upper < mean, c.lower > mean)
        del c
    assert not too_often(wrong[0], times, 0.1)
    assert not too_often(wrong[1], times, 0.1)
    assert wrong.min() >= 0.03 * times


def test_the_best_of_many_is_paid_for() -> None:
    """Models that guess: the best of twenty looks better than it is, for which its bound is corrected."""
    rng = np.random.default_rng(14)
    below = np.zeros(2)
    times, n, many = 200, 200, 20
    for _ in range(times):
        wrong = (rng.random((n, many)) < 0.5).sum(axis=0)
        best = int(wrong.min())
        below += (
            clopper_pearson_bounds(best, n, 0.1).upper < 0.5,
            clopper_pearson_bounds(best, n, 0.1 / many).upper < 0.5,
        )
    assert below[0] > 0.5 * times  # without paying
    assert not too_often(below[1], times, 0.1)


def test_certify_best_tests_each_at_its_share() -> None:
    X, y = classes(600, seed=15)
    train_X, train_y = classes(200, seed=16)
    models = {name: LogisticRegression(C=c).fit(train_X, train_y) for name, c in (("weak", 1e-4), ("middle", 1.0))}
    models["flipped"] = LogisticRegression().fit(-train_X, train_y)
    best = certify_best(models, X, y, delta=0.06)
    errors = {name: np.mean(model.predict(X) != y) for name, model in models.items()}
    assert best.chosen == min(errors, key=errors.__getitem__)
    assert (best.n_models, best.delta) == (3, 0.06)
    assert best.estimate == errors[best.chosen]
    assert best.upper == clopper_pearson_bounds(round(best.estimate * 600), 600, 0.02).upper
    assert "chosen from 3 models" in str(best)
    assert "no others" in best.assumptions[-1]
    assert best.verify(X, y)
    assert RiskCertificate.from_json(best.to_json()) == best
    assert certify_best(list(models.values()), X, y, delta=0.06).chosen == list(models).index(best.chosen)


# --------------------------------------------------------------------------------------------------------- comparing


def test_comparing_two_models(classifier: LogisticRegression) -> None:
    X, y = classes(2_000, seed=17)
    other = LogisticRegression().fit(classes(400, seed=18)[0][:, ::-1], classes(400, seed=18)[1])
    c = compare(classifier, other, X, y)
    assert c.better == "first"
    assert c.upper < 0
    assert c.p_value < 1e-6
    assert "the first is better" in str(c)
    turned = compare(other, classifier, X, y)
    np.testing.assert_allclose([turned.lower, turned.upper], [-c.upper, -c.lower], atol=1e-6)
    assert turned.better == "second"
    assert turned.p_value == c.p_value
    with pytest.warns(HoldoutWarning):
        same = compare(classifier, classifier, X, y)
    assert same.estimate == 0
    assert same.better is None
    assert same.p_value == 1.0
    assert "the rows are inconclusive" in str(same)


def test_pairs_cancel(classifier: LogisticRegression) -> None:
    """A difference far smaller than the width of either bound."""
    X, y = classes(20_000, seed=19)

    class Worse:
        classes_ = classifier.classes_

        def predict(self, X: Any) -> Any:
            f = classifier.predict(X)
            f[:60] = np.where(y[:60] == "yes", "no", "yes")
            return f

    alone = certify(classifier, X, y)
    paired = compare(classifier, Worse(), X, y)
    assert paired.better == "first"
    assert abs(paired.estimate) < (alone.upper - alone.lower) / 2


def test_comparisons_hold_with_the_stated_probability() -> None:
    rng = np.random.default_rng(20)

    class Second(Echo):
        def predict(self, X: Any) -> Any:
            return np.asarray(X)[:, 1]

    times, n, wrong = 300, 200, np.zeros(2)
    for _ in range(times):
        c = compare(Echo(), Second(), rng.random((n, 2)), np.zeros(n), loss="absolute", range=(0, 1), delta=0.1)
        wrong += (c.upper < 0, c.lower > 0)
        del c
    assert not too_often(wrong[0], times, 0.1)
    assert not too_often(wrong[1], times, 0.1)


# ---------------------------------------------------------------------------------------------------- binding, re-use


def test_a_new_fit_voids() -> None:
    X, y = classes(300, seed=21)
    model = LogisticRegression().fit(*classes(200, seed=22))
    c = certify(model, X, y)
    assert c.verify(X, y)
    model.fit(*classes(200, seed=23))
    assert c.void
    assert str(c).startswith("void: the model was fitted or changed after it was certified")
    with pytest.raises(DataError, match="is not the model that was certified: it was refitted or changed, which voids"):
        c.verify(X, y)
    model.fit(*classes(200, seed=22))
    assert not c.void


def test_hashes_of_models(tmp_path: Path) -> None:
    X, y = classes(200, seed=24)
    for make in (LogisticRegression, Theirs, lambda: RandomForestClassifier(5, random_state=0), LinearSVC):
        model = make().fit(X, y)
        assert model_hash(model) == model_hash(make().fit(X, y)) == model_hash(pickle.loads(pickle.dumps(model)))
        assert model_hash(model) != model_hash(make().fit(X[:-1], y[:-1]))
    number = (y == "yes").astype(float)
    for ours in (LogisticRegression().fit(X, y), LinearRegression().fit(X, number), Lasso(0.01).fit(X, number)):
        summula.save(ours, tmp_path / "model.safetensors")
        assert model_hash(summula.load(tmp_path / "model.safetensors")) == model_hash(ours)
    itself: list[Any] = [1]
    itself.append(itself)
    assert model_hash(itself) != model_hash([1, [1]])


def test_plain_objects_are_hashed_as_they_are_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [ColumnPlan("a", "number", mean=0.5), ColumnPlan("b", "category", levels=("x", "y"))]
    at_once = model_hash(plans)
    monkeypatch.setattr("summula.certification.fingerprints._of_instances", lambda kind: b"")
    assert model_hash(plans) == at_once
    assert model_hash(plans[:1]) != at_once


def test_hashes_of_functions_and_of_what_has_none() -> None:
    def scale(k: float) -> Any:
        return lambda X: X * k

    assert model_hash(scale(1.0)) == model_hash(scale(1.0)) != model_hash(scale(2.0))
    assert model_hash(lambda X: X + 1) != model_hash(lambda X: X + 2)
    assert model_hash(np.exp) != model_hash(np.log)
    model = Echo()
    model.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(ParameterError, match=r"Echo cannot be pickled \(cannot pickle '_thread.lock' object\)"):
        certify(model, [[0.5]], [0.0], loss="absolute", range=(0, 1))


def test_a_hold_out_looked_at_before_warns(classifier: LogisticRegression) -> None:
    X, y = classes(300, seed=25)
    other = LogisticRegression(C=0.1).fit(*classes(200, seed=26))
    first = certify(classifier, X, y)
    assert certify(classifier, X, y) == first  # the same question
    with pytest.warns(HoldoutWarning, match=r"100.00% of these rows were used for another model before.*delta was not"):
        second = certify(other, X, y)
    assert second.delta == 0.05
    with pytest.warns(HoldoutWarning, match="50.00% of these rows"):
        certify(other, np.vstack([X[:150], classes(150, seed=27)[0]]), y)
    both = certify_best([classifier, other], X, y)  # pays for both
    with pytest.warns(HoldoutWarning):
        certify(classifier, X, y)  # one of two, now without paying
    del first, second, both
    gc.collect()
    certify(other, X, y)  # no references to the earlier ones remain


def test_equal_rows_are_no_proof() -> None:
    rng = np.random.default_rng(28)
    few = [row_hashes(rng.integers(0, 3, (500, 4)), rng.integers(0, 2, 500)) for _ in range(2)]
    assert share_seen(*few) == 0.0
    assert share_seen(few[0], few[0]) == 1.0
    many = row_hashes(rng.normal(size=(500, 2)), np.zeros(500))
    assert share_seen(many, np.concatenate([many[:1], few[0]])) == 0.0  # one row, among many equal rows
    assert share_seen(many, many[:1]) == 1 / 500


def test_training_rows_are_dropped_and_counted() -> None:
    X, y = classes(300, seed=29)
    model = LogisticRegression().fit(X[:200], y[:200])
    mixed, fresh = certify(model, X[100:], y[100:]), certify(model, X[200:], y[200:])
    assert (mixed.n, mixed.n_dropped) == (100, 100)
    assert (mixed.estimate, mixed.lower, mixed.upper) == (fresh.estimate, fresh.lower, fresh.upper)
    assert "100 rows of the training data dropped" in str(mixed)
    assert "100 rows that were in the training data were dropped" in mixed.assumptions[2]
    assert mixed.verify(X[100:], y[100:])
    again = RiskCertificate.from_json(mixed.to_json(), model)
    assert again == mixed
    # A duplicated row does not admit the others.
    twice = certify(model, np.concatenate([X[100:], X[-1:]]), np.concatenate([y[100:], y[-1:]]))
    assert (twice.n, twice.n_dropped) == (101, 100)
    with pytest.raises(DataError, match="certify on rows held out of the fit"):
        certify_best([model], X[:200], y[:200])
    certify(model, X[200:], y[200:])


def test_orders_are_as_good_as_drawn_by_lot() -> None:
    rng = np.random.default_rng(30)
    rows = row_hashes(rng.integers(0, 2, (4_000, 1)), np.zeros(4_000))
    order = betting_order(rows, "model", data_hash(rows))
    assert sorted(order) == list(range(4_000))
    sorted_rows = rows[order] == rows[order[0]]
    # Runs of equal rows: about half of all neighbours differ. Four standard deviations.
    assert abs(np.sum(sorted_rows[1:] != sorted_rows[:-1]) - 2_000) < 4 * np.sqrt(1_000)
    assert not np.array_equal(order, betting_order(rows, "another model", data_hash(rows)))
    distinct = row_hashes(np.arange(4_000.0)[:, None], np.zeros(4_000))
    assert len(np.unique(distinct)) == 4_000
    assert abs(np.corrcoef(betting_order(distinct, "m"), np.arange(4_000))[0, 1]) < 4 / np.sqrt(4_000)


def test_rows_are_the_same_in_every_form() -> None:
    import pandas as pd

    X = np.array([[0.0, 1.0], [2.0, -0.0], [1.0, 1.0]])
    y = ["a", "b", "a"]
    expected = row_hashes(X, y)
    assert len(set(expected.tolist())) == 3
    for form in (X.astype(np.float32), X.astype(int), sparse.csr_array(X), pd.DataFrame(X), X.tolist()):
        np.testing.assert_array_equal(row_hashes(form, np.array(y, object)), expected)
    assert (
        row_hashes(pd.DataFrame({"t": ["x", "y", "x"]}), y)[0] != row_hashes(pd.DataFrame({"t": ["x", "y", "x"]}), y)[1]
    )


# ------------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"delta": 0}, ParameterError, "delta must be a number between 0 and 1"),
        ({"delta": 1.5}, ParameterError, "delta must be a number between 0 and 1"),
        (
            {"loss": "hinge"},
            ParameterError,
            "loss must be one of 'zero_one', 'squared', 'absolute', 'log' or a function",
        ),
        ({"loss": "squared"}, ParameterError, r"The loss 'squared' is unbounded.*pass range=\(low, high\)"),
        ({"loss": "log", "range": (1, 0)}, ParameterError, "range must be two finite numbers, the smaller first"),
        ({"loss": "log", "range": (0, np.inf)}, ParameterError, "range must be two finite numbers"),
        ({"loss": "log", "range": 3}, ParameterError, "range must be two finite numbers"),
        ({"range": (0, 2)}, ParameterError, r"The range of the zero-one loss is \(0, 1\)"),
        (
            {"loss": "log", "range": (0, 1e-3)},
            DataError,
            r"The loss is .* at row \d+, outside the range from 0 to 0.001",
        ),
        ({"costs": [[1, 1], [1, 1]]}, ParameterError, "costs must be a 2d array .* not all equal"),
        ({"costs": [[0, 1]]}, ParameterError, r"shape \(1, 2\), but LogisticRegression needs \(2, 2\)"),
        ({"costs": {"no": {"no": 0.0, "yes": 1.0}}}, ParameterError, r"\{prediction: \{true class: cost\}\}"),
        ({"costs": np.ones((2, 2))}, ParameterError, "not all equal"),
        ({"costs": np.eye(3)}, ParameterError, r"shape \(3, 3\), but LogisticRegression needs \(2, 2\)"),
        ({"costs": np.eye(2), "loss": "log"}, ParameterError, "costs defines the cost of each confusion"),
        (
            {"loss": lambda y, f: 1.0, "range": (0, 1)},
            DataError,
            r"The loss returned shape \(\); it must return one number for each",
        ),
    ],
)
def test_what_cannot_be_meant(
    classifier: LogisticRegression, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y = classes(50, seed=31)
    with pytest.raises(error, match=message):
        certify(classifier, X, y, **options)


def test_uninformative_data(classifier: LogisticRegression, regressor: LinearRegression) -> None:
    X, y = classes(50, seed=32)
    with pytest.raises(DataError, match=r"X has no rows; pass held-out rows \(59 rows without"):
        certify(classifier, X[:0], y[:0])
    with pytest.raises(DataError, match="The target y is None"):
        certify(classifier, X, None)
    with pytest.raises(DataError, match="X has 50 rows but y has 49"):
        certify(classifier, X, y[:-1])
    with pytest.raises(DataError, match="y='y' is a column name, but X is not a frame"):
        certify(classifier, X, "y")
    with pytest.raises(DataError, match="None of the labels is among the classes LogisticRegression was fitted on"):
        certify(classifier, X, np.zeros(50))
    with pytest.raises(DataError, match="The loss is missing at row 7"):
        certify(classifier, X, np.where(np.arange(50) == 7, None, y))
    with pytest.raises(
        ParameterError, match="The zero-one loss is for classifiers, but LinearRegression predicts numbers"
    ):
        certify(regressor, X, np.zeros(50))
    with pytest.raises(DataError, match="loss='squared' needs numeric targets and predictions"):
        certify(regressor, X, y, loss="squared", range=(0, 1))
    with pytest.raises(DataError, match="The label at row 3 is not among the classes"):
        certify(classifier, X, np.where(np.arange(50) == 3, "maybe", y), costs=np.eye(2))
    with pytest.raises(DataError, match="The loss is inf at row 3"):
        certify(classifier, X, np.where(np.arange(50) == 3, "maybe", y), loss="log", range=(0, 10))
    # A class that was never seen is a plain error.
    seen = certify(classifier, X, np.where(np.arange(50) == 3, "maybe", y))
    assert seen.estimate >= 1 / 50


def test_models_that_cannot_be_certified() -> None:
    X, y = classes(50, seed=33)
    with pytest.raises(DataError, match="This LogisticRegression is not fitted: fit it first on other rows"):
        certify(LogisticRegression(), X, y)
    with pytest.raises(ParameterError, match="A fitted estimator with a predict method is needed; got"):
        certify("model", X, y)
    with pytest.raises(ParameterError, match="A fitted estimator with a predict method is needed"):
        certify(LogisticRegression, X, y)
    with pytest.raises(ParameterError, match="needs probabilities, but LinearSVC has no predict_proba"):
        certify(LinearSVC().fit(X, y), *classes(50, seed=34), loss="log", range=(0, 5))
    with pytest.raises(ParameterError, match="models is empty"):
        certify_best([], X, y)


def test_foreign_models_are_certified_alike() -> None:
    X, y = classes(200, seed=35)
    c = certify(DummyClassifier().fit(X, y), *classes(300, seed=36))
    assert c.model == "DummyClassifier"
    assert c.verify(*classes(300, seed=36))
    losses = np.abs(np.linspace(0, 1, 100))
    bet = certify(Echo(), losses[:, None], np.zeros(100), loss="absolute", range=(0, 1))
    hashes = row_hashes(losses[:, None], np.zeros(100))
    expected = betting_bounds(losses[betting_order(hashes, model_hash(Echo()), data_hash(hashes))])
    assert (bet.lower, bet.upper) == tuple(expected)


def test_groups_are_the_independent_units() -> None:
    X, y = classes(600, seed=31)
    model = LogisticRegression().fit(X[:200], y[:200])
    X, y, groups = X[200:], y[200:], np.arange(400) // 8
    certificate = certify(model, X, y, groups=groups)
    wrong = (model.predict(X) != y).reshape(50, 8).mean(axis=1)
    assert certificate.estimate == pytest.approx(wrong.mean(), rel=1e-12)
    assert (certificate.n, certificate.n_groups, certificate.sampling) == (400, 50, "groups")
    assert certificate.upper > certify(model, X, y).upper  # fifty draws give wider bounds than four hundred
    assert certificate.verify(X, y, groups=groups)
    assert certificate.verify(X[::-1], y[::-1], groups=groups[::-1])
    assert not certificate.verify(X, y, groups=np.arange(400) % 50)
    assert RiskCertificate.from_json(certificate.to_json(), model) == certificate
    with pytest.raises(ParameterError, match="is about groups of rows"):
        certificate.verify(X, y)
    with pytest.raises(DataError, match=r"groups has shape \(3,\), but there are 400 rows"):
        certify(model, X, y, groups=[1, 2, 3])


def _text_frames() -> list[Any]:
    words = ["x", None, "y"]
    return [
        pa.table({"a": words}),
        pa.table({"a": pa.array(words).dictionary_encode()}),
        pd.DataFrame({"a": words}),
        pd.DataFrame({"a": words}, dtype=object).fillna(np.nan),
        pd.DataFrame({"a": pd.Categorical(words)}),
        pd.DataFrame({"a": pd.array(words, dtype="string")}),
        pl.DataFrame({"a": words}),
    ]


@pytest.mark.parametrize("place", range(7))
def test_missing_text_has_one_hash_in_all_containers_and_blocks(place: int) -> None:
    y = np.array([0, 1, 0])
    expected = row_hashes(pa.table({"a": ["x", None, "y"]}), y)
    frame = _text_frames()[place]
    np.testing.assert_array_equal(row_hashes(frame, y), expected)
    alone = frame.slice(1, 1) if hasattr(frame, "slice") else frame.iloc[1:2]  # a block in which all are missing
    np.testing.assert_array_equal(row_hashes(alone, y[1:2]), expected[1:2])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_have_one_hash_in_all_units(unit: str) -> None:
    moments = np.array(["2024-12-31", "NaT", "2024-12-31T10:30"], f"datetime64[{unit}]")
    expected = row_hashes(pa.table({"a": moments.astype("datetime64[us]")}))
    np.testing.assert_array_equal(row_hashes(pd.DataFrame({"a": moments})), expected)
