"""SGDClassifier and SGDRegressor: steps by hand, scikit-learn's trajectories, streams, warm starts, bad input."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.linear_model as theirs
from pyarrow import parquet
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import summula
from summula.core.data import chunks
from summula.linear_model import LogisticRegression, Perceptron, SGDClassifier, SGDRegressor
from summula.optimize.solvers.stochastic_descent import model as sgd_model
from summula.optimize.solvers.stochastic_descent import rows as sgd_rows
from tests.contract.compare import assert_same_bits, fitted_attributes, without_names

LOSSES = ("hinge", "squared_hinge", "log_loss", "modified_huber", "perceptron", "squared_error", "huber")
ours: dict[str, Any] = {"SGDClassifier": SGDClassifier, "SGDRegressor": SGDRegressor}


def rows(n: int = 600, d: int = 6, seed: int = 0) -> tuple[Any, Any]:
    """Standard normal columns and a noisy linear score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) + 0.3


# ------------------------------------------------------------------------------------------------------------- by hand


def test_two_steps_of_lms_by_hand() -> None:
    """w = 0. Row (1, 2), y = 3: error 3, w = (0.3, 0.6), b = 0.3. Row (2, 0), y = 1: score 0.9, error 0.1."""
    X, y = np.array([[1.0, 2.0], [2.0, 0.0]]), np.array([3.0, 1.0])
    lms = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.1, shuffle=False, max_iter=1, tol=None)
    lms.fit(X, y)
    np.testing.assert_allclose(lms.coef_, [0.32, 0.6], rtol=1e-15)
    np.testing.assert_allclose(lms.intercept_, [0.31], rtol=1e-15)
    assert lms.t_ == 3
    assert lms.n_iter_ == 1


def test_two_steps_of_a_hinge_by_hand() -> None:
    """alpha = 0.5, eta = 0.1: w = 0.1 (1, 1); shrunk by 0.95 and moved by -0.1 (1, -1), since -1 * 0.1 < 1."""
    X = np.array([[1.0, 1.0], [1.0, -1.0]])
    model = SGDClassifier(alpha=0.5, learning_rate="constant", eta0=0.1, shuffle=False, max_iter=1, tol=None)
    model.fit(X, [1, 0])
    np.testing.assert_allclose(model.coef_, [[0.095 - 0.1, 0.095 + 0.1]], rtol=1e-14)
    np.testing.assert_allclose(model.intercept_, [0.0], atol=1e-16)


def test_the_step_of_a_batch_is_the_mean_of_its_rows() -> None:
    X, y = rows(6, 2)
    model = SGDRegressor(penalty=None, learning_rate="constant", eta0=0.1, shuffle=False, max_iter=1, tol=None)
    model.set_params(batch_size=6).fit(X, y)
    np.testing.assert_allclose(model.coef_, 0.1 * X.T @ y / 6, rtol=1e-14)
    assert model.t_ == 2


@pytest.mark.parametrize(("share", "converges"), [(0.9, True), (1.1, False)])
def test_the_longest_step_of_lms_is_two_over_the_square_of_the_row(share: float, converges: bool) -> None:
    """A single row, repeatedly: its error is multiplied by 1 - eta (|x|^2 + 1)."""
    X, y = np.array([[3.0, 4.0]]), np.array([1.0])
    eta = share * 2 / (25 + 1)
    lms = SGDRegressor(penalty=None, learning_rate="constant", eta0=eta, max_iter=100, tol=None)
    if converges:
        assert abs(lms.fit(X, y).predict(X)[0] - 1) < 1e-9
    else:
        with pytest.warns(ConvergenceWarning, match=r"eta0=0\.0846154 is too large: .* eta0 below 0\.077"):
            lms.fit(X, y)


# ------------------------------------------------------------------------------- scikit-learn, step by step and on average

TRAJECTORIES: dict[str, dict[str, Any]] = {
    **{f"loss {loss}": {"loss": loss} for loss in LOSSES},
    "l1": {"penalty": "l1"},
    "elastic net": {"penalty": "elasticnet"},
    "optimal": {"learning_rate": "optimal", "alpha": 0.1},
    "no penalty": {"penalty": None},
    "constant": {"learning_rate": "constant", "eta0": 0.02},
    "adaptive": {"learning_rate": "adaptive", "eta0": 0.1, "max_iter": 1_000, "tol": 1e-3},
    "passive-aggressive 1": {"learning_rate": "pa1", "eta0": 0.3},
    "passive-aggressive 2": {"learning_rate": "pa2", "eta0": 0.3},
    "averages": {"average": True, "loss": "log_loss"},
    "late averages": {"average": 700, "loss": "log_loss"},
    "class weights": {"class_weight": {0: 0.3, 1: 2.0}},
    "balanced": {"class_weight": "balanced"},
    "stops": {"max_iter": 1_000, "tol": 1e-3, "loss": "log_loss"},
    # (With a penalty scikit-learn scores the rows held out with weights that lack their scale.)
    "early stopping": {"early_stopping": True, "penalty": None, "max_iter": 1_000, "tol": 1e-3, "random_state": 3},
    "no intercept": {"fit_intercept": False},
}


@pytest.mark.parametrize("settings", TRAJECTORIES.values(), ids=TRAJECTORIES.keys())
@pytest.mark.parametrize("classes", [2, 3])
def test_in_the_same_order_the_weights_are_scikit_learns(settings: dict[str, Any], classes: int) -> None:
    X, y = rows()
    labels = np.digitize(y, [0.0] if classes == 2 else [-1.0, 1.0])
    if classes == 3 and isinstance(settings.get("class_weight"), dict):
        settings = settings | {"class_weight": {0: 0.3, 1: 2.0, 2: 1.5}}
    weight = np.random.default_rng(1).random(len(X))
    steps = {"learning_rate": "invscaling", "eta0": 0.05, "alpha": 0.01}
    given = {"max_iter": 5, "tol": None, "shuffle": False} | steps | settings
    expected = theirs.SGDClassifier(**given).fit(X, labels, sample_weight=weight)
    model = SGDClassifier(**given).fit(X, labels, sample_weight=weight)
    # A few thousand steps, each of which may enlarge rounding a little.
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9, atol=1e-10)
    assert (model.n_iter_, model.t_) == (expected.n_iter_, expected.t_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("loss", ["squared_error", "huber", "epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("settings", [{}, {"average": True}, {"early_stopping": True, "random_state": 1}])
def test_in_the_same_order_regressions_are_scikit_learns(loss: str, settings: dict[str, Any]) -> None:
    X, y = rows()
    given = {"shuffle": False, "loss": loss} | settings
    expected, model = theirs.SGDRegressor(**given).fit(X, y), SGDRegressor(**given).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9)
    assert (model.n_iter_, model.t_) == (expected.n_iter_, expected.t_)
    np.testing.assert_allclose(model.predict(X), expected.predict(X))


def test_shuffled_descent_is_distributed_as_scikit_learns_steps_over_shuffled_rows() -> None:
    """Over twenty seeds: the same mean objective within four standard errors, and much the same spread."""
    X, y = rows()
    labels = (y > 0).astype(int)
    given: dict[str, Any] = {"loss": "log_loss", "alpha": 0.01, "tol": None}
    mine, others = [], []
    for seed in range(20):
        model = SGDClassifier(random_state=seed, max_iter=20, **given).fit(X, labels)
        rng, other = np.random.default_rng(1_000 + seed), theirs.SGDClassifier(shuffle=False, **given)
        for _ in range(20):
            order = rng.permutation(len(X))
            other.partial_fit(X[order], labels[order], classes=[0, 1])
        whole = theirs.SGDClassifier(random_state=seed, max_iter=20, **given).fit(X, labels)
        reached = [
            dataclasses.replace(model.certificate_, coef=one.coef_, intercept=one.intercept_).verify(X, labels).primal
            for one in (other, whole)
        ]
        mine.append(model.certificate_.primal)
        others.append(reached[0])
        assert mine[-1] < reached[1] * 1.0005
    spread = np.hypot(np.std(mine), np.std(others))
    assert abs(np.mean(mine) - np.mean(others)) < 4 * spread / np.sqrt(20)
    assert 0.4 < np.std(mine) / np.std(others) < 2.5


def test_many_epochs_with_averages_come_near_the_exact_optimum() -> None:
    X, y = rows(2_000)
    labels = (y > 0).astype(int)
    alpha = 0.05
    exact = LogisticRegression(C=1 / (alpha * len(X)), tol=1e-8).fit(X, labels)
    model = SGDClassifier("log_loss", alpha=alpha, average=10_000, max_iter=200, tol=None, random_state=0)
    model.fit(X, labels)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=0.01)
    best = exact.certificate_.primal / len(X)
    assert best <= model.certificate_.primal < best * (1 + 1e-4)
    assert model.certificate_.dual <= best
    assert model.certificate_.gap < 0.01 * best


# -------------------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", None])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False])
def test_no_point_is_below_the_bound(loss: str, penalty: str | None, intercept: bool) -> None:
    X, y = rows(300, 4)
    labels = (y > 0.5).astype(int)
    settings: dict[str, Any] = {"loss": loss, "penalty": penalty, "fit_intercept": intercept, "alpha": 0.05}
    certificates = [
        SGDClassifier(learning_rate="invscaling", eta0=eta, max_iter=epochs, tol=None, random_state=0, **settings)
        .fit(X, labels)
        .certificate_
        for eta, epochs in ((0.05, 1), (0.02, 30), (0.01, 300))
    ]
    least = min(one.primal for one in certificates)
    for one in certificates:
        assert one.dual <= least * (1 + 1e-12)
        assert 0 <= one.gap < np.inf
        assert one.verify(X, labels)
        assert not one.verify(X[1:], labels[1:])
        assert not dataclasses.replace(one, coef=one.coef + 0.1).verify(X, labels)


# ------------------------------------------------------------------------------------------------- streams and threads


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sgd_rows, "_PIECE_ELEMENTS", 200)  # 32 rows of 6; buffers of 512


STREAMED: dict[str, tuple[str, dict[str, Any]]] = {
    "classifier": ("SGDClassifier", {"loss": "log_loss", "max_iter": 4, "tol": None}),
    "averages": ("SGDClassifier", {"average": True, "max_iter": 3, "tol": None}),
    "early stopping": ("SGDClassifier", {"early_stopping": True}),
    "l1": ("SGDClassifier", {"penalty": "l1", "max_iter": 3, "tol": None}),
    "regressor": ("SGDRegressor", {"batch_size": 3, "max_iter": 3, "tol": None}),
    "in order": ("SGDRegressor", {"shuffle": False}),
}


@pytest.mark.parametrize(("kind", "settings"), STREAMED.values(), ids=STREAMED.keys())
@pytest.mark.parametrize("listed", [True, False])
def test_files_in_many_buffers_give_the_bits_of_the_array(
    kind: str,
    settings: dict[str, Any],
    listed: bool,
    small_pieces: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not listed:
        monkeypatch.setattr(sgd_model, "_LISTED_ROWS", 0)
    X, y = rows(3_001)
    y = np.digitize(y, [-1.0, 1.0]) if kind == "SGDClassifier" else y
    weight = np.random.default_rng(2).random(len(X))
    table = {f"x{j}": X[:, j] for j in range(6)} | {"y": y, "weight": weight}
    parquet.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=700)
    model = ours[kind](random_state=0, **settings)
    expected = without_names(fitted_attributes(model.fit(X, y, sample_weight=weight)))
    monkeypatch.setattr(chunks, "_PART_ELEMENTS", 1)
    for engine in ("serial", "threads"):
        for chunk_rows in (None, 100):
            with summula.engine(engine, chunk_rows=chunk_rows):
                model.fit(summula.scan(tmp_path / "rows.parquet"), "y", sample_weight="weight")
                found = without_names(fitted_attributes(model))
                # (The certificate is a sum over chunks, on which it depends in the last place.)
                assert found.pop("certificate_").verify(X, y, weight)
                assert_same_bits({k: v for k, v in expected.items() if k != "certificate_"}, found)


@pytest.mark.parametrize("keep", [np.asfortranarray, lambda X: X[::-1][::-1], lambda X: X.astype(">f8")])
def test_other_layouts_in_many_buffers_give_the_same_bits(keep: Any, small_pieces: None) -> None:
    X, y = rows(2_000)
    expected = SGDRegressor(random_state=0).fit(X, y)
    model = SGDRegressor(random_state=0).fit(keep(X), y)
    assert_same_bits((expected.coef_, expected.intercept_), (model.coef_, model.intercept_))


def test_sparse_rows_in_many_buffers(small_pieces: None) -> None:
    X, y = rows(2_000)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    kept = sparse.csr_array(X)
    first = SGDRegressor(random_state=0, max_iter=3, tol=None).fit(kept, y)
    long = sparse.csr_array((kept.data, kept.indices.astype(np.int64), kept.indptr.astype(np.int64)), shape=X.shape)
    assert_same_bits(first.coef_, SGDRegressor(random_state=0, max_iter=3, tol=None).fit(long, y).coef_)
    kept.data.flags.writeable = False
    assert_same_bits(first.coef_, SGDRegressor(random_state=0, max_iter=3, tol=None).fit(kept, y).coef_)


def test_sorted_classes_in_many_buffers_are_learnt(small_pieces: None) -> None:
    """All rows of a class are contiguous in the file: sixteen random pieces per buffer mix them."""
    X, y = rows(8_000)
    order = np.argsort(y)
    X, labels = X[order], (y[order] > 0).astype(int)
    model = SGDClassifier("log_loss", random_state=0, max_iter=5, tol=None, alpha=1e-3).fit(X, labels)
    whole = theirs.SGDClassifier(loss="log_loss", random_state=0, max_iter=5, tol=None, alpha=1e-3).fit(X, labels)
    assert model.score(X, labels) > whole.score(X, labels) - 0.02


# --------------------------------------------------------------------------------------------------- going on from before


def test_partial_fits_in_order_are_a_fit() -> None:
    X, y = rows()
    labels = np.digitize(y, [-1.0, 1.0])
    for average in (False, True, 250):
        steps: dict[str, Any] = {"learning_rate": "invscaling", "eta0": 0.05, "loss": "log_loss"}
        given = steps | {"shuffle": False, "tol": None, "average": average}
        whole = SGDClassifier(max_iter=1, **given).fit(X, labels)
        parts = SGDClassifier(**given)
        for part in (slice(0, 100), slice(100, 101), slice(101, None)):
            parts.partial_fit(X[part], labels[part], classes=[0, 1, 2])
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-11)
        np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-11)
        assert parts.t_ == whole.t_ == 601
        assert not hasattr(parts, "certificate_")


def test_a_part_may_lack_classes_and_may_not_bring_new_ones() -> None:
    X, y = rows(50)
    model = SGDClassifier(random_state=0).partial_fit(X, np.ones(50), classes=[0, 1, 2])
    assert model.coef_.shape == (3, 6)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="which is not one of the 3 classes"):
        model.partial_fit(X, np.full(50, 7))
    assert_same_bits(before, model.coef_)
    with pytest.raises(ValueError, match="is not the same as on last call"):
        model.partial_fit(X, np.ones(50), classes=[0, 1])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        SGDClassifier().partial_fit(X, np.ones(50))


def test_starting_points() -> None:
    X, y = rows()
    given: dict[str, Any] = {"shuffle": False, "max_iter": 2, "tol": None, "learning_rate": "constant"}
    first = SGDRegressor(**given).fit(X, y)
    again = SGDRegressor(**given).fit(X, y, coef_init=first.coef_, intercept_init=first.intercept_)
    warm = SGDRegressor(warm_start=True, **given).fit(X, y).fit(X, y)
    four = SGDRegressor(**(given | {"max_iter": 4})).fit(X, y)
    for other in (again, warm):
        np.testing.assert_allclose(other.coef_, four.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match=r"coef_init does not match dataset: it has shape \(3,\)"):
        SGDRegressor(**given).fit(X, y, coef_init=np.zeros(3))
    with pytest.raises(ValueError, match="intercept_init does not match dataset"):
        SGDRegressor(**given).fit(X, y, intercept_init=np.zeros(3))


def test_saved_models_go_on(tmp_path: Path) -> None:
    X, y = rows()
    model = SGDRegressor(average=True, random_state=0).fit(X, y)
    summula.save(model, tmp_path / "model.safetensors")
    loaded = summula.load(tmp_path / "model.safetensors")
    assert_same_bits(model.partial_fit(X, y).coef_, loaded.partial_fit(X, y).coef_)


# --------------------------------------------------------------------------------------------------------- predictions


def test_ties_go_to_the_first_class() -> None:
    X, y = rows(90)
    model = SGDClassifier(random_state=0).fit(X, np.arange(90) % 3)
    model.coef_[:] = 0.0
    model.intercept_[:] = [1.0, 2.0, 2.0]
    assert set(model.predict(X)) == {1}
    two = SGDClassifier(random_state=0).fit(X, np.where(y > 0, "yes", "no"))
    two.coef_[:], two.intercept_[:] = 0.0, 0.0
    assert set(two.predict(X)) == {"no"}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["log_loss", "modified_huber"])
def test_probabilities_are_scikit_learns(loss: str, classes: int) -> None:
    X, y = rows()
    labels = np.digitize(y, [0.0] if classes == 2 else [-1.0, 1.0])
    model = SGDClassifier(loss, random_state=0).fit(X, labels)
    other = theirs.SGDClassifier(loss=loss, random_state=0).fit(X, labels)
    other.coef_, other.intercept_ = model.coef_, model.intercept_
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), rtol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(other.predict_proba(X)), rtol=1e-10, atol=1e-15)


def test_probabilities_need_a_loss_that_has_them() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        _ = SGDClassifier("hinge").predict_proba
    assert not hasattr(SGDClassifier("hinge"), "predict_log_proba")


def test_predictions_are_written_to_a_file(tmp_path: Path) -> None:
    X, y = rows()
    model = SGDClassifier(random_state=0).fit(X, np.where(y > 0, "yes", "no"))
    assert model.predict_to(X, tmp_path / "labels.parquet") == 600
    assert parquet.read_table(tmp_path / "labels.parquet")["prediction"].to_pylist() == model.predict(X).tolist()


def test_sparse_coefficients() -> None:
    X, y = rows()
    for model, target in ((SGDClassifier(random_state=0), y > 0), (SGDRegressor(random_state=0), y)):
        expected = model.fit(X, target).predict(X)
        assert sparse.issparse(model.sparsify().coef_)
        np.testing.assert_array_equal(model.predict(X), expected)
        assert isinstance(model.densify().coef_, np.ndarray)


# ----------------------------------------------------------------------------------------------------- what goes wrong


def test_a_step_that_is_too_long_is_an_error_or_a_warning_that_names_a_safe_one() -> None:
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match=r"diverged: .* eta0=1 is too large: .* eta0 below 0\.0"):
        model = SGDRegressor(learning_rate="constant", eta0=1.0, random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    safe = 2 / (X**2).sum(axis=1).max() / 1e200
    with pytest.raises(ValueError, match=f"Floating-point .* eta0 below {safe:.2g}, which is safe"):
        SGDRegressor(learning_rate="constant", eta0=1.0, random_state=0).fit(X * 1e100, y)


def test_descent_stopped_by_max_iter_warns_once() -> None:
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match="Maximum number of iteration reached") as caught:
        SGDRegressor(max_iter=2, random_state=0).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SGDRegressor(max_iter=2, tol=None, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"eta0": 0.0}, r"The 'eta0' parameter of SGDClassifier must be a float in the range \(0.0, inf\)"),
        ({"eta0": -1.0}, "The 'eta0' parameter"),
        ({"loss": "huge"}, "The 'loss' parameter"),
        ({"alpha": -1.0}, "The 'alpha' parameter"),
        ({"alpha": 0.0}, "alpha must be > 0 since learning_rate is 'optimal'"),
        ({"average": 0.5}, "The 'average' parameter"),
        ({"batch_size": 0}, "The 'batch_size' parameter"),
        ({"learning_rate": "pa1", "loss": "log_loss"}, "only works with loss 'hinge'"),
        ({"penalty": "elasticnet", "l1_ratio": None}, "l1_ratio must be set"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "The 'validation_fraction' parameter"),
        ({"early_stopping": True, "validation_fraction": 0.999}, "change validation_fraction"),
        ({"class_weight": {"other": 2.0}}, "class_weight contains labels that do not occur in y"),
    ],
)
def test_bad_parameters(settings: dict[str, Any], message: str) -> None:
    X, y = rows(100)
    with pytest.raises(ValueError, match=message):
        SGDClassifier(**settings).fit(X, y > 0)


def test_bad_data() -> None:
    X, y = rows(100)
    with pytest.raises(ValueError, match="only one class"):
        SGDClassifier().fit(X, np.zeros(100))
    with pytest.raises(ValueError, match="Unknown label type"):
        SGDClassifier().fit(X, y)
    broken = X.copy()
    broken[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"Column 2 has 1 missing value \(NaN; first at row 7\)"):
        SGDRegressor().fit(broken, y)
    with pytest.raises(ValueError, match="could not convert"):
        SGDRegressor().fit([["a", 1.0], ["b", 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="has one target, not 2"):
        SGDRegressor().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="early_stopping should be False with partial_fit"):
        SGDRegressor(early_stopping=True).partial_fit(X, y)
    with pytest.raises(ValueError, match="not supported for partial_fit"):
        SGDClassifier(class_weight="balanced").partial_fit(X, y > 0, classes=[False, True])


def test_callbacks_may_stop_it_and_a_time_limit_does(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()

    class Stop:
        def setup(self, estimator: Any, context: Any) -> None: ...
        def teardown(self, estimator: Any, context: Any) -> None: ...
        def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...
        def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
            return context.task_name == "epoch"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SGDRegressor(random_state=0).set_callbacks(Stop()).fit(X, y).n_iter_ == 1
    monkeypatch.setattr(sgd_rows, "_WORK_AT_ONCE", 0)  # the time limit is checked after every epoch
    ticks = iter(range(10**9))
    monkeypatch.setattr("summula.core.estimator.run.time.monotonic", lambda: float(next(ticks)))
    with pytest.warns(ConvergenceWarning, match="stopped after max_time=30 s and kept the best model so far"):
        model = SGDRegressor(random_state=0, max_iter=10**6, tol=None, max_time=30).fit(X, y)
    assert 1 < model.n_iter_ < 30
    assert model.score(X, y) > 0.9
    assert model.certificate_.verify(X, y)


def test_scaling_is_the_users() -> None:
    """A column scaled by a thousand makes a different problem, as in scikit-learn; after scaling it is solved."""
    X, y = rows()
    assert SGDRegressor(random_state=0).fit(scale(X * [1, 1, 1, 1, 1, 1e3]), y).score(scale(X), y) > 0.9


# ------------------------------------------------------------------------------------------------- epochs at once


AT_ONCE: dict[str, Any] = {
    "default": SGDRegressor(random_state=0),
    "averages of l1": SGDRegressor(penalty="l1", average=True, random_state=0),
    "adaptive": SGDRegressor(learning_rate="adaptive", random_state=0),
    "batches without a rule to stop": SGDRegressor(
        penalty="elasticnet", batch_size=3, tol=None, max_iter=7, random_state=0
    ),
    "in order": SGDRegressor(shuffle=False),
    "classes": SGDClassifier("log_loss", average=10, random_state=0),
    "mistakes": Perceptron(random_state=0),
}


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("name", AT_ONCE)
def test_epochs_taken_at_once_are_those_taken_one_by_one(name: str, storage: Any, monkeypatch: Any) -> None:
    X, y = rows(200)
    y = y if isinstance(AT_ONCE[name], SGDRegressor) else (X[:, 0] + X[:, 1] > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        at_once = clone(AT_ONCE[name]).fit(storage(X), y)
        monkeypatch.setattr(sgd_rows, "_WORK_AT_ONCE", 0)
        one_by_one = clone(AT_ONCE[name]).fit(storage(X), y)
    assert at_once.n_iter_ > 1
    assert_same_bits(fitted_attributes(at_once), fitted_attributes(one_by_one))


def test_epochs_taken_at_once_name_the_epoch_that_diverged(monkeypatch: Any) -> None:
    X, y = rows(200)
    messages = []
    for work in (2**20, 0):
        monkeypatch.setattr(sgd_rows, "_WORK_AT_ONCE", work)
        with pytest.raises(summula.DataError) as error:
            SGDRegressor(learning_rate="constant", eta0=10.0, random_state=0).fit(1e150 * X, y)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
