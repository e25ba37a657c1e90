"""Confidence intervals of metrics: published and brute-force values, coverage, bad input."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from summula import metrics
from summula.core.errors import AccuracyWarning, DataError, ParameterError
from summula.metrics.delong import delong_variance


def test_metrics_are_those_of_scikit_learn():
    assert metrics.roc_auc_score is sklearn.metrics.roc_auc_score
    assert {"interval", "f1_score", "confusion_matrix"} <= set(dir(metrics))
    with pytest.raises(AttributeError, match="no attribute 'f7_score'"):
        metrics.f7_score  # noqa: B018


@pytest.mark.parametrize(
    ("metric", "k", "n"),
    [("accuracy", 17, 20), ("error", 3, 20), ("recall", 6, 8), ("tpr", 6, 8), ("fnr", 2, 8), ("specificity", 11, 12),
     ("fpr", 1, 12), ("precision", 6, 7)],
)  # fmt: skip
def test_proportions_are_exact(metric, k, n):
    y = np.array([1] * 8 + [0] * 12)
    p = np.array([1] * 6 + [0] * 2 + [1] + [0] * 11)
    found = metrics.interval(metric, y, p)
    peer = scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")
    assert found.estimate == k / n
    assert found.n == n
    np.testing.assert_allclose([found.lower, found.upper], [peer.low, peer.high], rtol=1e-9)


def test_words_and_positive_labels():
    y, p = np.array(["ill", "ill", "well", "well"]), np.array(["ill", "well", "well", "well"])
    assert metrics.interval("recall", y, p, pos_label="ill").estimate == 0.5
    assert metrics.interval("recall", y, p).estimate == 1.0  # "well" is the larger label
    assert metrics.interval(metrics.accuracy_score, y, p).method == "clopper-pearson"


@pytest.mark.parametrize("decimals", [8, 0])
def test_delong_is_the_u_statistic(decimals):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    s = np.round(rng.normal(size=60) + y, decimals)  # rounded: many ties
    x, z = s[y == 1], s[y == 0]
    psi = np.sign(x[:, None] - z[None, :]) / 2 + 0.5
    variance = psi.mean(axis=1).var(ddof=1) / len(x) + psi.mean(axis=0).var(ddof=1) / len(z)
    found = delong_variance(y, s)
    assert found.area == pytest.approx(sklearn.metrics.roc_auc_score(y, s), abs=1e-12)
    assert found.area == pytest.approx(psi.mean(), abs=1e-12)
    assert found.variance == pytest.approx(variance, rel=1e-10)
    limits = metrics.interval("auc", y, s)
    half = 1.959963984540054 * np.sqrt(variance) / (found.area * (1 - found.area))
    np.testing.assert_allclose(
        np.log(limits.upper / (1 - limits.upper)) - np.log(limits.lower / (1 - limits.lower)), 2 * half
    )


def test_perfect_ranking_has_no_interval_of_length_0():
    found = metrics.interval("auc", [0] * 10 + [1] * 10, np.arange(20.0))
    assert found.estimate == found.upper == 1.0
    assert found.lower == pytest.approx(0.025**0.1)
    assert metrics.interval("auc", [1] * 10 + [0] * 10, np.arange(20.0)).upper == pytest.approx(1 - 0.025**0.1)


def test_bca_agrees_with_scipy():
    rng = np.random.default_rng(3)
    y = rng.normal(size=80)
    p = y + rng.exponential(size=80)
    found = metrics.interval("rmse", y, p, n_resamples=9_999)
    peer = scipy.stats.bootstrap(
        (y, p), lambda a, b: np.sqrt(np.mean((a - b) ** 2)), paired=True, vectorized=False, n_resamples=9_999, rng=0
    )
    # Two sets of 9,999 resamples: a 2.5 % quantile has a standard error of about 0.0016 / density, 3 % of the length.
    length = peer.confidence_interval.high - peer.confidence_interval.low
    np.testing.assert_allclose([found.lower, found.upper], peer.confidence_interval, atol=0.06 * length)
    assert found.estimate == pytest.approx(metrics.root_mean_squared_error(y, p))


LABEL_METRICS = ["accuracy_score", "zero_one_loss", "recall_score", "precision_score", "f1_score", "jaccard_score",
                 "balanced_accuracy_score", "matthews_corrcoef"]  # fmt: skip
SCORE_METRICS = ["roc_auc_score", "average_precision_score", "brier_score_loss", "log_loss"]
NUMBER_METRICS = ["root_mean_squared_error", "mean_squared_error", "mean_absolute_error", "r2_score"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("function", LABEL_METRICS + SCORE_METRICS + NUMBER_METRICS)
def test_estimates_agree_with_scikit_learn(function, weighted):
    rng = np.random.default_rng(4)
    y = rng.integers(1, 3, 90)  # labels 1 and 2, of which scikit-learn's functions take 1 as positive
    p = np.where(rng.random(90) < 0.3, 3 - y, y)
    if function in SCORE_METRICS:
        y, p = y - 1, np.clip(p / 4 + rng.normal(scale=0.1, size=90), 0.0, 1.0)
    w = rng.exponential(size=90) if weighted else None
    truth = getattr(metrics, function)(y, p, sample_weight=w)
    for metric in (function, getattr(metrics, function)):
        positive = {} if callable(metric) or function not in LABEL_METRICS else {"pos_label": 1}
        found = metrics.interval(metric, y, p, sample_weight=w, n_resamples=100, **positive)
        assert found.estimate == pytest.approx(truth, abs=1e-12)
        assert found.lower < truth < found.upper


def test_options_reach_the_function():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 60)
    p = np.where(rng.random(60) < 0.3, 1 - y, y)
    truth = metrics.fbeta_score(y, p, beta=2)
    for arguments in (("fbeta", y, p), (metrics.fbeta_score, y, p), ("fbeta_score", y, p)):
        assert metrics.interval(*arguments, beta=2, n_resamples=100).estimate == pytest.approx(truth)
    partial = metrics.interval(functools.partial(metrics.fbeta_score, beta=2), y, p, n_resamples=100)
    assert (partial.metric, partial.method) == ("fbeta", "bca")
    words = np.array(["b", "a"])
    found = metrics.interval(metrics.fbeta_score, words[y], words[p], beta=2, pos_label="a", n_resamples=100)
    assert found.estimate == pytest.approx(truth)
    three = rng.integers(0, 3, 60)
    guess = np.where(rng.random(60) < 0.3, 0, three)
    found = metrics.interval("recall", three, guess, average="macro", n_resamples=100)
    assert found.estimate == pytest.approx(metrics.recall_score(three, guess, average="macro"))
    found = metrics.interval(metrics.matthews_corrcoef, three, guess, n_resamples=100)
    assert found.estimate == pytest.approx(metrics.matthews_corrcoef(three, guess))
    assert metrics.interval("cohen_kappa_score", y, p, n_resamples=100).metric == "cohen_kappa_score"


def test_small_unsigned_numbers_do_not_wrap_around():
    assert metrics.interval("mae", np.uint8([1, 2, 3]), np.uint8([2, 2, 2]), n_resamples=100).estimate == pytest.approx(
        2 / 3
    )


def test_cells_are_resampled_like_rows():
    """Limits of a metric of labels from 4,000 multinomial tables and from 4,000 resamples of rows."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 60)
    p = np.where(rng.random(60) < 0.2, 1 - y, y)
    cells = metrics.interval("matthews", y, p, n_resamples=4_000)
    rows = metrics.interval(lambda y, p: np.corrcoef(y, p)[0, 1], y, p, n_resamples=4_000)
    # a 2.5 % quantile of 4,000 values is known up to about 2 % of the length of the interval
    np.testing.assert_allclose(
        [cells.lower, cells.upper], [rows.lower, rows.upper], atol=0.08 * (rows.upper - rows.lower)
    )


@pytest.mark.parametrize(("name", "function"), [("rmse", "root_mean_squared_error"), ("r2", "r2_score")])
def test_blocks_are_resampled_like_rows(name, function):
    """5,000 rows in 2,000 blocks; a 2.5 % quantile of 1,000 values is known up to about 4 % of the length."""
    rng = np.random.default_rng(5)
    y = rng.exponential(size=5_000)
    p = y + rng.normal(size=5_000)
    w = rng.exponential(size=5_000)
    blocks = metrics.interval(name, y, p, sample_weight=w, n_resamples=1_000)

    def metric(y, p, sample_weight):
        square, centred = sample_weight @ (y - p) ** 2, y - np.average(y, weights=sample_weight)
        return np.sqrt(square / sample_weight.sum()) if name == "rmse" else 1 - square / (sample_weight @ centred**2)

    rows = metrics.interval(metric, y, p, sample_weight=w, n_resamples=1_000)
    assert blocks.estimate == pytest.approx(getattr(metrics, function)(y, p, sample_weight=w))
    length = rows.upper - rows.lower
    np.testing.assert_allclose([blocks.lower, blocks.upper], [rows.lower, rows.upper], atol=0.16 * length)


@pytest.mark.parametrize(("metric", "options"), [("f1", {}), ("fbeta", {"beta": 2.0}), ("fbeta", {"beta": 0.5})])
def test_predictions_without_an_error_still_have_an_interval(metric, options):
    y = np.array([1] * 10 + [0] * 30)
    found = metrics.interval(metric, y, y, **options)
    J = 0.025**0.1  # lower limit of 10 of 10
    cost, beta = max(1.0, options.get("beta", 1.0) ** 2), options.get("beta", 1.0) ** 2
    assert found.lower == pytest.approx((1 + beta) * J / ((1 + beta) * J + cost * (1 - J)), rel=1e-9)
    assert found.estimate == found.upper == 1.0
    nothing = metrics.interval(metric, y, 1 - y, **options)
    assert nothing.estimate == nothing.lower == 0.0 < nothing.upper < 0.5


def test_other_metrics_without_an_error():
    y = np.array([1] * 10 + [0] * 30)
    found = metrics.interval("balanced_accuracy", y, y)
    assert found.lower == pytest.approx((0.0125**0.1 + 0.0125 ** (1 / 30)) / 2, rel=1e-9)
    for name in ("matthews", "rmse"):
        with pytest.warns(AccuracyWarning, match="no width"):
            metrics.interval(name, y, y, n_resamples=100)
    tied = metrics.interval("auc", y, np.zeros(40))
    assert tied.estimate == 0.5
    assert tied.upper == pytest.approx(1 - 0.025**0.1 / 2)


def test_weighted_shares():
    y = np.array([1] * 8 + [0] * 12)
    p = np.array([1] * 6 + [0] * 2 + [1] + [0] * 11)
    plain, equal = (
        metrics.interval("accuracy", y, p),
        metrics.interval("accuracy", y, p, sample_weight=np.full(20, 0.3)),
    )
    assert equal.method == "korn-graubard"
    np.testing.assert_allclose([equal.lower, equal.upper], [plain.lower, plain.upper], rtol=1e-9)
    # Without an error: limits of n* = (sum w)^2 / sum w^2 rows, here 8.
    w = np.repeat([1.0, 3.0], 10)
    perfect = metrics.interval("accuracy", y, y, sample_weight=w)
    assert perfect.lower == pytest.approx(0.025 ** (1 / 16), rel=1e-9)
    assert (10 + 30) ** 2 / (10 + 90) == 16


def covered(draw, interval, truth, trials):
    """Return the number of intervals of independent samples that contain the truth."""
    found = [interval(*draw(np.random.default_rng([7, trial]))) for trial in range(trials)]
    return sum(one.lower <= truth <= one.upper for one in found)


def test_coverage_of_clopper_pearson():
    def draw(rng):
        return np.zeros(50, int), (rng.random(50) < 0.1).astype(int)

    hits = covered(draw, lambda y, p: metrics.interval("error", y, p), 0.1, 400)
    assert hits >= scipy.stats.binom.ppf(1e-4, 400, 0.95)  # at least 95 %, so fewer with probability 1e-4 at most


def test_coverage_of_f1():
    """Rows of four kinds: F1 = 2 * 0.2 / (2 * 0.2 + 0.05 + 0.1)."""

    def draw(rng):
        kind = rng.choice(4, p=[0.2, 0.05, 0.1, 0.65], size=40)
        return np.array([1, 0, 1, 0])[kind], np.array([1, 1, 0, 0])[kind]

    hits = covered(draw, lambda y, p: metrics.interval("f1", y, p), 0.4 / 0.55, 400)
    assert hits >= scipy.stats.binom.ppf(1e-4, 400, 0.95)


def test_coverage_with_weights():
    """Errors are four times as likely among rows of weight 3: P(error) = (0.05 + 3 * 0.2) / 4."""

    def draw(rng):
        heavy = rng.random(100) < 0.5
        error = rng.random(100) < np.where(heavy, 0.2, 0.05)
        return np.zeros(100, int), error.astype(int), np.where(heavy, 3.0, 1.0)

    def found(y, p, w):
        return metrics.interval("error", y, p, sample_weight=w)

    hits = covered(draw, found, 0.1625, 400)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 400, [0.94, 0.99])  # conservative, like Clopper and Pearson
    assert low <= hits <= high


@pytest.mark.parametrize(("metric", "truth"), [("r2", 0.8), ("mae", np.sqrt(0.5 / np.pi))])
def test_coverage_of_errors_of_numbers(metric, truth):
    def draw(rng):
        p = rng.normal(size=80)
        return p + 0.5 * rng.normal(size=80), p

    hits = covered(draw, lambda y, p: metrics.interval(metric, y, p, n_resamples=200), truth, 100)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 100, [0.90, 0.97])  # second-order accurate; 200 resamples
    assert low <= hits <= high


def test_coverage_of_delong():
    truth = float(scipy.stats.norm.cdf(1 / np.sqrt(2)))

    def draw(rng):
        y = np.arange(120) % 2
        return y, rng.normal(size=120) + y

    hits = covered(draw, lambda y, s: metrics.interval("auc", y, s), truth, 400)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 400, [0.93, 0.97])  # asymptotic: within 2 % of 95 %
    assert low <= hits <= high


def test_coverage_of_bca():
    def draw(rng):
        y = rng.normal(size=100)
        return y, y + rng.normal(size=100)

    hits = covered(draw, lambda y, p: metrics.interval("rmse", y, p, n_resamples=300), 1.0, 200)
    low, high = scipy.stats.binom.ppf([1e-4, 1 - 1e-4], 200, [0.91, 0.97])  # second-order accurate; 300 resamples
    assert low <= hits <= high


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("kappa", [0, 1], [0, 1]), "one of accuracy"),
        (("accuracy", [0, 1], [0]), "one value per row"),
        (("accuracy", [], []), "at least one row"),
        (("rmse", [0.0, np.nan], [0.0, 1.0]), "y_true is missing or infinite at row 1"),
        (("recall", [0, 1, 2], [0, 1, 2]), "there are 3: give pos_label"),
        (("recall", [0, 0], [0, 0]), "no row is positive"),
        (("auc", [1, 1], [0.1, 0.2]), "rows of both classes"),
        (("r2", [1.0, 1.0], [1.0, 2.0]), "undefined for these rows"),
        (("mse", ["a", "b"], ["a", "b"]), "y_true must contain numbers"),
        (("log_loss", [0, 1], [0.5, 1.5]), "between 0 and 1; the largest score is 1.5"),
        (("f1", [0, 0], [0, 0]), "no row is positive or predicted positive"),
        (("fbeta", [0, 1], [0, 1]), "needs a positive number beta"),
        (("neg_mean_squared_error", [0, 1], [0, 1]), "leave out 'neg_'"),
        ((sklearn.metrics.recall_score, [2, 3], [2, 3]), r"labels are \[2, 3\]: give pos_label"),
        ((sklearn.metrics.precision_score, [1, 2, 3], [1, 2, 3]), "give pos_label, or average="),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises((DataError, ParameterError), match=words):
        metrics.interval(*arguments)


def test_errors_of_functions_are_raised():
    with pytest.raises(ValueError, match="cannot be used when targets contain values less"):
        metrics.interval(sklearn.metrics.mean_squared_log_error, [-2.0, 1.0], [1.0, 1.0])


def test_bad_options():
    for weight in ([1.0], [1.0, -1.0], [0.0, 0.0]):
        with pytest.raises(DataError, match="one finite weight per row"):
            metrics.interval("accuracy", [0, 1], [0, 1], sample_weight=weight)
    with pytest.raises(ParameterError, match="does not apply to 'accuracy' with weights"):
        metrics.interval("accuracy", [0, 1], [0, 1], sample_weight=[1, 2], method="clopper-pearson")
    with pytest.raises(ParameterError, match="confidence must be"):
        metrics.interval("accuracy", [0, 1], [0, 1], confidence=95)
    with pytest.raises(ParameterError, match="does not apply to 'rmse'"):
        metrics.interval("rmse", [0.0, 1.0], [0.0, 1.0], method="delong")
    with pytest.raises(ParameterError, match="n_resamples must be an int >= 100"):
        metrics.interval("rmse", [0.0, 1.0], [0.0, 1.0], n_resamples=5)


def test_entries_of_a_confusion_matrix_are_proportions():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 120)
    p = np.where(rng.random(120) < 0.7, y, rng.integers(0, 3, 120))
    found = metrics.interval("confusion_matrix", y, p, confidence=0.9)
    matrix = metrics.confusion_matrix(y, p)
    np.testing.assert_allclose(found.estimate, matrix)
    for i, j in np.ndindex(3, 3):
        exact = scipy.stats.binomtest(int(matrix[i, j]), 120).proportion_ci(0.9)
        np.testing.assert_allclose([found.lower[i, j], found.upper[i, j]], 120 * np.array(exact))
    assert str(found).startswith(
        "confusion_matrix, 90 % confidence interval of each entry (clopper-pearson, n = 120)\n"
    )
    for normalize in ("true", "pred", "all"):
        shares = metrics.interval(metrics.confusion_matrix, y, p, normalize=normalize)
        np.testing.assert_allclose(shares.estimate, metrics.confusion_matrix(y, p, normalize=normalize))
    recalls = metrics.interval("confusion_matrix", y == 1, p == 1, normalize="true")
    recall = metrics.interval("recall", y == 1, p == 1)
    np.testing.assert_allclose([recalls.lower[1, 1], recalls.upper[1, 1]], [recall.lower, recall.upper])
    names = np.array(["a", "b", "c"])
    part = metrics.interval("confusion_matrix", names[y], names[p], labels=["c", "a"])
    np.testing.assert_allclose(part.estimate, metrics.confusion_matrix(names[y], names[p], labels=["c", "a"]))
    w = rng.uniform(1, 2, 120)
    weighted = metrics.interval("confusion_matrix", y, p, sample_weight=w)
    np.testing.assert_allclose(weighted.estimate, metrics.confusion_matrix(y, p, sample_weight=w))
    assert weighted.method == "korn-graubard"
    empty = metrics.interval("confusion_matrix", [0, 0, 1], [0, 0, 0], normalize="pred")
    assert (empty.estimate[0, 1], empty.lower[0, 1], empty.upper[0, 1]) == (0.0, 0.0, 1.0)


def test_scorers_of_several_classes_are_known_by_name():
    rng = np.random.default_rng(4)
    y, p = rng.integers(0, 3, 60), rng.integers(0, 3, 60)
    for name, average in (("f1_macro", "macro"), ("precision_weighted", "weighted")):
        function = getattr(metrics, f"{name.split('_')[0]}_score")
        assert metrics.interval(name, y, p).estimate == pytest.approx(function(y, p, average=average))
    shares = np.eye(3)[p]
    assert metrics.interval("roc_auc_ovr", y, shares).estimate == metrics.roc_auc_score(y, shares, multi_class="ovr")
    assert metrics.interval("explained_variance", y, p).estimate == metrics.explained_variance_score(y, p)


@pytest.mark.parametrize(
    ("metric", "options", "words"),
    [
        ("recall_score", {"average": None}, "recall_score does not return one number: choose a class or an average"),
        ("det_curve", {}, "det_curve does not return one number"),
        (
            "confusion_matrix",
            {"normalise": "true"},
            "options of 'confusion_matrix' are labels and normalize.*'normalise'",
        ),
        ("confusion_matrix", {"normalize": "rows"}, "got 'rows'"),
        ("confusion_matrix", {"method": "bca"}, "does not apply to 'confusion_matrix'; use method='auto'.$"),
    ],
)
def test_metrics_that_are_no_single_number(metric, options, words):
    with pytest.raises(ParameterError, match=words):
        metrics.interval(metric, [0, 1, 0, 1], [0, 1, 1, 1], **options)
