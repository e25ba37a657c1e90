"""LogisticRegression: optimality on badly scaled, sorted, wide, sparse, weighted and degenerate data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse, special
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression as Theirs

import summula
from summula.linear_model import LogisticRegression

Array = NDArray[Any]


def drawn(n: int, d: int, classes: int, seed: int = 0, *, spread: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng([seed, n, d, classes])
    X = rng.normal(size=(n, d))
    scores = spread * X @ rng.normal(size=(d, classes)) / np.sqrt(d) + rng.gumbel(size=(n, classes))
    return X, scores.argmax(axis=1)


def objective(X: Any, y: Array, coef: Array, intercept: Array, C: float = 1.0, weight: Any = None) -> float:
    """Equation (1) of the module, divided by C, in plain NumPy."""
    scores = X @ coef.T + intercept
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    losses = special.logsumexp(scores, axis=1) - scores[np.arange(len(y)), y]
    weight = np.ones(len(y)) if weight is None else weight
    return float(weight @ losses + (coef**2).sum() / (2 * C))


def reference(X: Array, y: Array, C: float = 1.0, weight: Any = None, *, intercept: bool = True) -> float:
    """Return the minimum of the objective, by SciPy's Newton method in standardised columns (penalty in original units)."""
    size = X.std(axis=0)
    size = np.where(size > 0, size, 1.0)
    Z = X / size
    K = len(np.unique(y))
    outputs = 1 if K == 2 else K
    weight = np.ones(len(y)) if weight is None else weight
    hit = np.eye(K)[y][:, -outputs:]
    first = int(intercept)
    A = np.hstack([np.ones((len(X), first)), Z])
    shrink = np.concatenate([np.zeros(first), 1 / (C * size**2)])

    def evaluate(x: Array) -> tuple[float, Array]:
        theta = x.reshape(outputs, -1)
        scores = A @ theta.T
        full = np.hstack([np.zeros((len(X), 1)), scores]) if outputs == 1 else scores
        value = weight @ (special.logsumexp(full, axis=1) - full[np.arange(len(y)), y])
        p = special.softmax(full, axis=1)[:, -outputs:]
        slope = (weight[:, None] * (p - hit)).T @ A + shrink * theta
        return float(value + (shrink * theta**2).sum() / 2), slope.ravel()

    def times(x: Array, v: Array) -> Array:
        theta, direction = x.reshape(outputs, -1), v.reshape(outputs, -1)
        scores, move = A @ theta.T, A @ direction.T
        full = np.hstack([np.zeros((len(X), 1)), scores]) if outputs == 1 else scores
        p = special.softmax(full, axis=1)[:, -outputs:]
        change = p * (move - (p * move).sum(axis=1, keepdims=True))
        return ((weight[:, None] * change).T @ A + shrink * direction).ravel()

    x = np.zeros(outputs * A.shape[1])
    for method, options in (("trust-ncg", {"gtol": 1e-10}), ("Newton-CG", {"xtol": 1e-14})):
        x = optimize.minimize(evaluate, x, jac=True, hessp=times, method=method, options=options).x
    return evaluate(x)[0]


# ------------------------------------------------------------------------------------------------------------- optimum


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, np.inf])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_badly_scaled_columns_reach_the_optimum(classes: int, C: float) -> None:
    X, y = drawn(400, 7, classes)
    X = X * np.logspace(-6, 6, 7) + np.array([0, 1, -1, 5, 0, 1e3, 1e6])
    model = LogisticRegression(C=C).fit(X, y)
    mine, best = objective(X, y, model.coef_, model.intercept_, C), reference(X, y, C)
    assert mine <= best * (1 + 1e-9)
    assert model.certificate_.primal == pytest.approx(mine, rel=1e-9)
    assert model.certificate_.kind == "global"
    assert model.certificate_.gap <= 1e-8 * mine


@pytest.mark.parametrize("rows", ["as drawn", "sorted", "first class first", "last class late"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_order_of_rows_is_nothing(classes: int, rows: str) -> None:
    """The start uses leading rows, which may have one class only, or rare classes."""
    X, y = drawn(30_000, 4, classes, seed=2)
    y = np.where((y == classes - 1) & (np.arange(len(y)) % 50 > 0), 0, y)  # the last class is rare
    order = {
        "as drawn": np.arange(len(y)),
        "sorted": np.argsort(y, kind="stable"),
        "first class first": np.argsort(y > 0, kind="stable"),
        "last class late": np.argsort(y == classes - 1, kind="stable"),
    }[rows]
    expected = LogisticRegression(tol=1e-8).fit(X, y)
    model = LogisticRegression(tol=1e-8).fit(X[order], y[order])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
    assert model.certificate_.verify(X, y)


def test_targets_sorted_by_their_score_reach_the_optimum() -> None:
    X, y = drawn(20_000, 3, 2, seed=5)
    order = np.argsort(X[:, 0])
    model = LogisticRegression().fit(X[order], y[order])
    assert model.certificate_.gap <= 1e-8 * model.certificate_.primal
    assert model.certificate_.verify(X, y)


# ------------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("classes", [2, 3])
def test_class_weights_are_weights_of_rows(classes: int) -> None:
    X, y = drawn(300, 3, classes)
    weights = {0: 2.0, 1: 0.5}
    rows = np.array([weights.get(label, 1.0) for label in y])
    by_class = LogisticRegression(class_weight=weights, tol=1e-9).fit(X, y)
    by_row = LogisticRegression(tol=1e-9).fit(X, y, sample_weight=rows)
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-9)
    balanced = LogisticRegression(class_weight="balanced", tol=1e-9).fit(X, y)
    counts = np.bincount(y)
    equal = LogisticRegression(tol=1e-9).fit(X, y, sample_weight=(len(y) / (classes * counts))[y])
    np.testing.assert_allclose(balanced.coef_, equal.coef_, rtol=1e-9)
    assert balanced.certificate_.verify(X, y)


def test_a_class_of_weight_zero_is_never_predicted() -> None:
    X, y = drawn(300, 3, 3)
    model = LogisticRegression(class_weight={2: 0.0}).fit(X, y)
    assert 2 not in model.predict(X)
    assert model.predict_proba(X).shape == (300, 3)
    assert model.certificate_.verify(X, y)


def test_rows_of_weight_zero_are_absent() -> None:
    X, y = drawn(300, 3, 2)
    weight = np.ones(300)
    weight[::3] = 0.0
    wild = X.copy()
    wild[::3] = 1e9
    expected = LogisticRegression(tol=1e-9).fit(X[weight > 0], y[weight > 0])
    model = LogisticRegression(tol=1e-9).fit(wild, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)


def test_a_class_weight_for_an_unknown_label() -> None:
    X, y = drawn(50, 2, 2)
    with pytest.raises(summula.ParameterError, match="7.*not in class_weight"):
        LogisticRegression(class_weight={7: 1.0}).fit(X, y)


# ----------------------------------------------------------------------------------------------------------- odd shapes


@pytest.mark.parametrize("classes", [2, 3])
def test_more_columns_than_rows(classes: int) -> None:
    X, y = drawn(40, 90, classes)
    model = LogisticRegression().fit(X, y)
    assert objective(X, y, model.coef_, model.intercept_) <= reference(X, y) * (1 + 1e-8)
    assert model.certificate_.verify(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_wide_sparse_rows(classes: int) -> None:
    rng = np.random.default_rng(8)
    X = sparse.random_array((500, 3_000), density=0.01, rng=rng, format="csr")
    y = (X @ rng.normal(size=(3_000, classes)) + 0.3 * rng.gumbel(size=(500, classes))).argmax(axis=1)
    model = LogisticRegression().fit(X, y)
    dense = LogisticRegression().fit(X.toarray(), y)
    mine = objective(X, y, model.coef_, model.intercept_)
    assert mine == pytest.approx(objective(X, y, dense.coef_, dense.intercept_), rel=1e-7)
    theirs = Theirs(tol=1e-8, max_iter=5_000).fit(X, y)
    assert mine <= objective(X, y, theirs.coef_, theirs.intercept_) * (1 + 1e-7)
    assert model.certificate_.kind == "global"
    assert model.certificate_.gap <= 1e-5 * mine
    assert model.certificate_.verify(X, y)


def test_constant_columns_have_no_slope() -> None:
    X, y = drawn(200, 3, 2)
    constant = np.hstack([X, np.full((200, 1), 3.0)])
    model, expected = LogisticRegression(tol=1e-9).fit(constant, y), LogisticRegression(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_[:, :3], expected.coef_, rtol=1e-8)
    assert abs(model.coef_[0, 3]) < 1e-12
    alone = LogisticRegression(tol=1e-9).fit(np.full((200, 2), 5.0), y)
    np.testing.assert_allclose(alone.predict_proba(X[:1, :2] * 0 + 5.0)[0], np.bincount(y) / 200, rtol=1e-7)


def test_collinear_columns_without_a_penalty_share_their_slope() -> None:
    X, y = drawn(300, 2, 2)
    twice = np.hstack([X, X[:, :1]])
    with pytest.warns(summula.CollinearityWarning):
        model = LogisticRegression(C=np.inf, tol=1e-8).fit(twice, y)
    expected = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y).coef_[0]
    np.testing.assert_allclose(model.coef_[0], [expected[0] / 2, expected[1], expected[0] / 2], rtol=1e-6)


# ----------------------------------------------------------------------------------------------------------- certificates


@pytest.mark.parametrize("seed", range(12))
def test_the_gap_is_a_true_bound(seed: int) -> None:
    """A loose tolerance gives a gap; a tight one shows that the gap is an upper bound."""
    rng = np.random.default_rng(seed)
    n, d, classes = int(rng.integers(30, 400)), int(rng.integers(1, 9)), int(rng.integers(2, 5))
    X, y = drawn(n, d, classes, seed, spread=2.0)
    X = X * 10.0 ** rng.uniform(-2, 2, d)
    weight = rng.gamma(1.0, size=n)
    C = np.inf if seed % 4 == 3 else 10.0 ** rng.uniform(-2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separable classes, and of being stopped
        tight = LogisticRegression(C=C, tol=1e-9, max_iter=500).fit(X, y, weight).certificate_
        for steps in (1, 2, 3, 5):
            loose = LogisticRegression(C=C, tol=1e-1, max_iter=steps).fit(X, y, weight).certificate_
            if loose.kind == "global":
                assert loose.primal - tight.primal <= loose.gap * (1 + 1e-9) + 1e-12 * abs(loose.primal) < np.inf
            assert loose.verify(X, y, weight)
    if np.isfinite(C):
        assert tight.kind == "global"
        assert tight.gap <= 1e-9 * tight.primal
    assert tight.verify(X, y, weight)


# ----------------------------------------------------------------------------------------------------------------- use


def test_max_iter_warning_matches_scikit_learn() -> None:
    X, y = drawn(300, 5, 2)
    for solver, words in (("lbfgs", "^lbfgs failed to converge"), ("auto", "^LogisticRegression failed to converge"),
                          ("newton-cholesky", "^Newton solver did not converge after 1 iterations")):  # fmt: skip
        with pytest.warns(ConvergenceWarning, match=words):
            LogisticRegression(solver=solver, max_iter=1, tol=1e-12).fit(X, y)


def test_a_warm_start_needs_fewer_steps() -> None:
    X, y = drawn(3_000, 5, 3)
    model = LogisticRegression(warm_start=True, tol=1e-6).fit(X, y)
    before = model.n_iter_[0]
    model.fit(X, y)
    assert model.n_iter_[0] < before
    np.testing.assert_allclose(model.coef_, LogisticRegression(tol=1e-6).fit(X, y).coef_, atol=1e-6)


def test_sparse_coefficients_predict_alike() -> None:
    X, y = drawn(100, 3, 3)
    model = LogisticRegression()
    with pytest.raises(NotFittedError):
        model.sparsify()
    expected = model.fit(X, y).predict_proba(X)
    model.sparsify()
    assert sparse.issparse(model.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    np.testing.assert_array_equal(model.densify().predict_proba(X), expected)
    assert isinstance(model.coef_, np.ndarray)


@pytest.mark.parametrize(("parameters", "category", "words"), [
    ({"penalty": "l2"}, FutureWarning, "'penalty' was deprecated"),
    ({"penalty": None, "C": 4.0}, UserWarning, "Setting penalty=None will ignore the C"),
    ({"l1_ratio": None}, FutureWarning, "'l1_ratio=None' was deprecated"),
    ({"penalty": "l2", "l1_ratio": 1.0}, UserWarning, "Inconsistent values: penalty=l2 with l1_ratio=1.0"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")
def test_what_scikit_learn_warns_of(parameters: dict[str, Any], category: type[Warning], words: str) -> None:
    X, y = drawn(100, 2, 2)
    with pytest.warns(category, match=words) as caught:
        LogisticRegression(**parameters).fit(X, y)
    assert caught[-1].filename == __file__


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated")
def test_no_penalty_is_an_infinite_c() -> None:
    X, y = drawn(200, 3, 2)
    none, infinite = LogisticRegression(penalty=None).fit(X, y), LogisticRegression(C=np.inf).fit(X, y)
    np.testing.assert_array_equal(none.coef_, infinite.coef_)


def test_no_combination_of_hints_fails() -> None:
    X, y = drawn(60, 2, 3)
    expected = LogisticRegression().fit(X, y).coef_
    for solver in ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"):
        for dual in (False, True):
            model = LogisticRegression(solver=solver, dual=dual, random_state=3, n_jobs=1).fit(X, y)
            np.testing.assert_array_equal(model.coef_, expected)
