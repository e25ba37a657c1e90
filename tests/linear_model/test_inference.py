"""Standard errors, tests and intervals: textbook values, invariances, statsmodels, and coverage."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse, stats

from summula import DataError, ParameterError, engine
from summula.core.data import training_data as training
from summula.linear_model import LinearRegression, LogisticRegression, PolynomialRegression, Ridge

COVARIANCES = ("classical", "HC0", "HC1", "HC2", "HC3")
FACTS = ("r2", "adjusted_r2", "residual_sd", "f_statistic", "f_p_value", "log_likelihood", "aic", "bic", "df_residual")
COLUMNS = ("estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high")


def data(n=60, d=3, seed=0):
    """Rows whose noise grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1
    return X, X @ np.arange(d, dtype=float) + 2 + rng.normal(size=n) * (0.5 + np.abs(X[:, 0]))


def same(a, b, rtol=1e-9, columns=COLUMNS, facts=FACTS):
    for name in (*columns, *facts):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=1e-12, err_msg=name)


# ------------------------------------------------------------------------------------------------------------- textbook


def test_a_line_by_the_formulas_of_every_textbook():
    """Greene, section 4.4: Var b1 = s^2 / Sxx, Var b0 = s^2 (1/n + xbar^2 / Sxx)."""
    x, y = np.array([1.0, 2, 3, 4, 5]), np.array([1.2, 1.9, 3.2, 3.8, 5.1])
    s = LinearRegression().fit(x[:, None], y).summary()
    sxx = ((x - 3) ** 2).sum()
    slope = ((x - 3) * y).sum() / sxx
    residual = y - y.mean() - slope * (x - 3)
    sigma = np.sqrt(residual @ residual / 3)
    errors = sigma * np.sqrt([1 / 5 + 9 / sxx, 1 / sxx])
    np.testing.assert_allclose(s.std_error, errors, rtol=1e-12)
    np.testing.assert_allclose(s.statistic, np.array([y.mean() - 3 * slope, slope]) / errors, rtol=1e-11)
    np.testing.assert_allclose(s.p_value, 2 * stats.t.sf(np.abs(s.statistic), 3), rtol=1e-11)
    half = stats.t.ppf(0.975, 3) * errors
    np.testing.assert_allclose(s.ci_high - s.ci_low, 2 * half, rtol=1e-11)
    r2 = np.corrcoef(x, y)[0, 1] ** 2
    assert s.r2 == pytest.approx(r2, rel=1e-12)
    assert s.f_statistic == pytest.approx(s.statistic[1] ** 2, rel=1e-10), "F of one slope is t squared"
    assert s.f_p_value == pytest.approx(s.p_value[1], rel=1e-9)


def test_the_table_has_one_row_a_term_the_intercept_first():
    X, y = data()
    frame = LinearRegression().fit(X, y).summary().to_frame()
    assert list(frame.columns) == ["term", *COLUMNS]
    assert list(frame["term"]) == ["intercept", "x0", "x1", "x2"]
    assert list(LinearRegression(fit_intercept=False).fit(X, y).summary().to_frame()["term"]) == ["x0", "x1", "x2"]


def test_intervals_of_a_level_next_to_one_are_finite():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    level = 1 - 2.0**-53
    model = LinearRegression().fit(X, y)
    found = model.summary(level=level)
    half = stats.t(197).isf(2.0**-54) * found.std_error
    np.testing.assert_allclose(found.ci_high, found.estimate + half, rtol=1e-12)
    np.testing.assert_allclose(found.ci_low, found.estimate - half, rtol=1e-12)
    found = LogisticRegression(C=np.inf).fit(X, y > 0).summary(level=level)
    np.testing.assert_allclose(found.ci_high, found.estimate + stats.norm.isf(2.0**-54) * found.std_error, rtol=1e-12)
    assert np.isfinite(model.predict(X[:2], interval=level)).all()


def test_the_level_of_the_intervals():
    X, y = data()
    model = LinearRegression().fit(X, y)
    wide, narrow = model.summary(level=0.99), model.summary(level=0.5)
    ratio = stats.t.ppf(0.995, 56) / stats.t.ppf(0.75, 56)
    np.testing.assert_allclose(wide.ci_high - wide.ci_low, ratio * (narrow.ci_high - narrow.ci_low), rtol=1e-11)
    for level in (0.0, 1.0, 95):
        with pytest.raises(ParameterError, match="level"):
            model.summary(level=level)


def test_unknown_words_are_refused():
    model = LinearRegression().fit(*data())
    with pytest.raises(ParameterError, match="'HC0'"):
        model.summary(cov="HC4")
    with pytest.raises(ParameterError, match="'precision'"):
        model.summary(weights="probability")


# ---------------------------------------------------------------------------------------------------------- statsmodels


@pytest.fixture(scope="module")
def sm():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings on its import are ignored
        return pytest.importorskip("statsmodels.api")


def check_against(theirs, ours, intercept):
    """`theirs` is a fitted statsmodels result with use_t."""
    np.testing.assert_allclose(ours.estimate, theirs.params, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.std_error, theirs.bse, rtol=1e-8)
    np.testing.assert_allclose(ours.statistic, theirs.tvalues, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.p_value, theirs.pvalues, rtol=1e-6, atol=1e-14)
    np.testing.assert_allclose(np.column_stack([ours.ci_low, ours.ci_high]), theirs.conf_int(), rtol=1e-7, atol=1e-9)
    assert ours.r2 == pytest.approx(theirs.rsquared, rel=1e-10)
    assert ours.adjusted_r2 == pytest.approx(theirs.rsquared_adj, rel=1e-10)
    assert ours.f_statistic == pytest.approx(float(np.squeeze(theirs.fvalue)), rel=1e-8)
    assert ours.f_p_value == pytest.approx(float(np.squeeze(theirs.f_pvalue)), rel=1e-6, abs=1e-15)
    assert ours.log_likelihood == pytest.approx(theirs.llf, rel=1e-11)
    assert ours.aic == pytest.approx(theirs.aic, rel=1e-11)
    assert ours.bic == pytest.approx(theirs.bic, rel=1e-11)
    assert ours.residual_sd == pytest.approx(np.sqrt(theirs.scale), rel=1e-10)
    assert ours.df_residual == theirs.df_resid


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("cov", COVARIANCES)
@pytest.mark.parametrize("intercept", [True, False])
class TestStatsmodels:
    def test_ordinary_least_squares(self, sm, cov, intercept):
        X, y = data()
        Z = sm.add_constant(X) if intercept else X
        theirs = sm.OLS(y, Z).fit(cov_type="nonrobust" if cov == "classical" else cov, use_t=True)
        ours = LinearRegression(fit_intercept=intercept).fit(X, y).summary(cov=cov)
        check_against(theirs, ours, intercept)

    def test_precision_weights_are_weighted_least_squares(self, sm, cov, intercept):
        X, y = data()
        w = np.random.default_rng(1).random(60) + 0.1
        Z = sm.add_constant(X) if intercept else X
        theirs = sm.WLS(y, Z, weights=w).fit(cov_type="nonrobust" if cov == "classical" else cov, use_t=True)
        ours = LinearRegression(fit_intercept=intercept).fit(X, y, w).summary(cov=cov, weights="precision")
        check_against(theirs, ours, intercept)
        assert "precisions" in " ".join(ours.notes)

    def test_polynomials_on_their_lifted_columns(self, sm, cov, intercept):
        X, y = data(d=2)
        Z = np.column_stack([X, X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])
        Z = sm.add_constant(Z) if intercept else Z
        theirs = sm.OLS(y, Z).fit(cov_type="nonrobust" if cov == "classical" else cov, use_t=True)
        model = PolynomialRegression(2, fit_intercept=intercept).fit(X, y)
        check_against(theirs, model.summary(cov=cov), intercept)


# -------------------------------------------------------------------------------------------------------------- weights


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("cov", COVARIANCES)
class TestWeights:
    def test_frequencies_are_repeated_rows(self, cov):
        X, y = data()
        w = np.random.default_rng(0).integers(0, 4, 60)
        weighted = LinearRegression().fit(X, y, w).summary(cov=cov)
        repeated = LinearRegression().fit(np.repeat(X, w, axis=0), np.repeat(y, w)).summary(cov=cov)
        same(weighted, repeated)
        assert "frequencies" in " ".join(weighted.notes)
        assert weighted.weights == "frequency"

    def test_the_scale_of_precisions_does_not_matter(self, cov):
        X, y = data()
        w = np.random.default_rng(0).random(60)
        one, many = (LinearRegression().fit(X, y, c * w).summary(cov=cov, weights="precision") for c in (1.0, 1e6))
        facts = set(FACTS) - {"residual_sd"}  # sigma is that of a row of weight 1
        same(one, many, facts=facts)

    def test_precisions_of_one_are_no_weights(self, cov):
        X, y = data()
        same(
            LinearRegression().fit(X, y, np.ones(60)).summary(cov=cov, weights="precision"),
            LinearRegression().fit(X, y).summary(cov=cov),
        )

    def test_rows_of_weight_zero_are_not_there(self, cov):
        X, y = data()
        w = np.ones(60)
        w[::3] = 0
        for weights in ("frequency", "precision"):
            some = LinearRegression().fit(X, y, w).summary(cov=cov, weights=weights)
            same(some, LinearRegression().fit(X[w > 0], y[w > 0]).summary(cov=cov))


def test_the_table_states_the_meaning_of_the_weights():
    X, y = data()
    plain = LinearRegression().fit(X, y).summary()
    assert plain.weights == "none"
    assert "eights" not in " ".join(plain.notes)
    weighted = LinearRegression().fit(X, y, np.full(60, 2.0))
    assert "frequencies" in str(weighted.summary())
    assert "precisions" in str(weighted.summary(weights="precision"))


def test_small_weights_that_cannot_be_frequencies_are_named():
    X, y = data()
    model = LinearRegression().fit(X, y, np.full(60, 0.01))
    with pytest.raises(DataError, match='weights="precision"'):
        model.summary()
    same(model.summary(weights="precision"), LinearRegression().fit(X, y).summary(), facts=("r2", "f_statistic", "aic"))


# ---------------------------------------------------------------------------------------------------------- invariances


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("cov", ["classical", "HC3"])
class TestInvariances:
    def test_targets_are_summarised_one_by_one(self, cov):
        X, y = data()
        Y = np.column_stack([y, y**2])
        both = LinearRegression().fit(X, Y).summary(cov=cov)
        assert len(both) == 8
        assert both.targets == ("y0",) * 4 + ("y1",) * 4
        for j in range(2):
            one = LinearRegression().fit(X, Y[:, j]).summary(cov=cov)
            for name in COLUMNS:
                np.testing.assert_allclose(
                    getattr(both, name)[4 * j : 4 * j + 4], getattr(one, name), rtol=1e-8, atol=1e-12
                )
            for name in set(FACTS) - {"df_residual"}:
                assert getattr(both, name)[j] == pytest.approx(getattr(one, name), rel=1e-8)

    def test_units(self, cov):
        X, y = data()
        s = np.array([1e-5, 1.0, 1e5])
        a = LinearRegression().fit(X * s, y).summary(cov=cov)
        b = LinearRegression().fit(X, y).summary(cov=cov)
        np.testing.assert_allclose(a.std_error[1:] * s, b.std_error[1:], rtol=1e-9)
        same(a, b, columns=("statistic", "p_value"))

    @pytest.mark.parametrize("chunk_rows", [1, 7])
    def test_chunks(self, cov, chunk_rows):
        X, y = data()
        with engine("threads", chunk_rows=chunk_rows):
            a = LinearRegression().fit(X, y).summary(cov=cov)
        same(a, LinearRegression().fit(X, y).summary(cov=cov))

    def test_sparse_is_dense(self, cov):
        X, y = data()
        X = X * (X > 0.5)
        a, b = (LinearRegression().fit(Z, y).summary(cov=cov) for Z in (sparse.csr_array(X), X))
        same(a, b)

    def test_hc_is_one_sum_on_far_columns_too(self, cov):
        X, y = data()
        a = LinearRegression().fit(X + 2.0**20, y).summary(cov=cov)
        b = LinearRegression().fit(X, y).summary(cov=cov)
        np.testing.assert_allclose(a.std_error[1:], b.std_error[1:], rtol=1e-8)


# ----------------------------------------------------------------------------------------------------------- short rank


@pytest.mark.usefixtures("way")
@pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")
@pytest.mark.parametrize("cov", COVARIANCES)
class TestShortRank:
    def test_a_duplicated_column_has_no_error_and_the_others_have_theirs(self, cov):
        X, y = data()
        s = LinearRegression().fit(np.column_stack([X, X[:, 0]]), y).summary(cov=cov)
        base = LinearRegression().fit(X, y).summary(cov=cov)
        assert np.array_equal(np.isnan(s.std_error), [False, True, False, False, True])
        np.testing.assert_allclose(s.std_error[[0, 2, 3]], base.std_error[[0, 2, 3]], rtol=1e-9)
        same(s, base, columns=())
        assert "x0, x3" in " ".join(s.notes)

    def test_a_constant_column_takes_the_intercept_with_it(self, cov):
        X, y = data()
        s = LinearRegression().fit(np.column_stack([X, np.full(60, 2.0)]), y).summary(cov=cov)
        base = LinearRegression().fit(X, y).summary(cov=cov)
        assert np.array_equal(np.isnan(s.std_error), [True, False, False, False, True])
        np.testing.assert_allclose(s.std_error[1:4], base.std_error[1:], rtol=1e-9)
        same(s, base, columns=())

    def test_a_column_of_zeros_does_not(self, cov):
        X, y = data()
        s = LinearRegression().fit(np.column_stack([X, np.zeros(60)]), y).summary(cov=cov)
        assert np.array_equal(np.isnan(s.std_error), [False, False, False, False, True])

    def test_a_full_set_of_dummies_leaves_nothing_but_other_columns(self, cov):
        X, y = data()
        group = np.arange(60) % 3
        D = (group[:, None] == np.arange(3)).astype(float)
        s = LinearRegression().fit(np.column_stack([D, X[:, 0]]), y).summary(cov=cov)
        base = LinearRegression().fit(np.column_stack([D[:, 1:], X[:, 0]]), y).summary(cov=cov)
        assert np.array_equal(np.isnan(s.std_error), [True, True, True, True, False])
        assert s.std_error[4] == pytest.approx(base.std_error[3], rel=1e-9)
        same(s, base, columns=())

    def test_a_power_that_is_another_power(self, cov):
        rng = np.random.default_rng(0)
        x, z = rng.integers(0, 2, 60).astype(float), rng.normal(size=60)
        y = x + z + rng.normal(size=60)
        for intercept in (True, False):
            model = PolynomialRegression(2, fit_intercept=intercept).fit(np.column_stack([x, z]), y)
            s = model.summary(cov=cov)
            nan = dict(zip(s.terms, np.isnan(s.std_error), strict=True))
            assert nan["x0"]
            assert nan["x0^2"], "x^2 = x when x is 0 or 1"
            assert not nan["x1"]
            assert not nan["x1^2"]


# ---------------------------------------------------------------------------------------------------------- no freedom


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("cov", COVARIANCES)
def test_without_residual_degrees_of_freedom_there_are_no_errors(n, cov):
    X, y = data(n)
    s = LinearRegression().fit(X, y).summary(cov=cov)
    assert np.isnan(s.std_error).all()
    assert np.isnan(s.p_value).all()
    assert np.isnan([s.residual_sd, s.adjusted_r2, s.f_statistic]).all()
    assert "No residual degrees of freedom" in " ".join(s.notes)
    assert s.df_residual <= 0
    str(s)


def test_an_exact_fit_has_errors_of_zero_and_no_warning():
    X, _ = data()
    s = LinearRegression().fit(X, X @ [1.0, 2, 3]).summary()
    np.testing.assert_allclose(s.std_error, 0, atol=1e-13)
    assert s.r2 == pytest.approx(1.0)
    assert (s.p_value[1:] < 1e-100).all()


def test_a_constant_target_has_no_r2():
    X, _ = data()
    s = LinearRegression().fit(X, np.full(60, 3.0)).summary()
    assert np.isnan(s.r2)
    str(s)


def test_a_row_that_fits_itself_does_not_break_hc3():
    X = np.column_stack([np.r_[1.0, np.zeros(29)], np.arange(30.0)])
    y = np.sin(np.arange(30.0))
    for cov in COVARIANCES:
        s = LinearRegression().fit(X, y).summary(cov=cov)
        assert np.isfinite(s.std_error).all()


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("model", "words"),
    [(Ridge(1.0), "alpha=1.0 biases"), (Ridge([0.0, 1.0]), "unpenalised"), (Ridge(0.0, positive=True), "positive=True"),
     (LinearRegression(positive=True), "positive=True")],
)  # fmt: skip
def test_penalised_and_constrained_fits_raise_with_the_reason(model, words):
    X, y = data()
    Y = np.column_stack([y, y]) if isinstance(getattr(model, "alpha", 0), list) else y
    with pytest.raises(ParameterError, match=words) as error:
        model.fit(X, Y).summary()
    assert str(error.value).count(". ") == 0, "one sentence"


def test_an_unfitted_model_raises_not_fitted_error():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        LinearRegression().summary()


# ------------------------------------------------------------------------------------------------- the rows once again


@pytest.mark.parametrize("kind", [LinearRegression, PolynomialRegression])
class TestRowsAgain:
    def test_rows_given_again_are_the_rows_kept(self, kind):
        X, y = data()
        w = np.random.default_rng(0).integers(1, 4, 60)
        model = kind().fit(X, y, w)
        same(model.summary(X, y, w, cov="HC3"), model.summary(cov="HC3"))

    def test_other_rows_are_not_verified(self, kind):
        X, y = data()
        model = kind().fit(X, y)
        for Z, t in [(X, y + 0.01), (X[:-1], y[:-1]), (X + 0.01, y), (X[::-1], y)]:
            with pytest.raises(DataError, match="not the rows the model was fitted on"):
                model.summary(Z, t, cov="HC0")

    def test_rows_changed_in_place_are_detected(self, kind):
        X, y = data()
        model = kind().fit(X, y)
        X[3] += 1
        with pytest.raises(DataError, match="not the rows"):
            model.summary(cov="HC0")
        model.summary()

    def test_rows_in_another_order_are_the_same_rows(self, kind):
        X, y = data()
        model = kind().fit(X, y)
        same(model.summary(X[::-1], y[::-1], cov="HC2"), model.summary(cov="HC2"))

    def test_a_copied_or_unpickled_model_asks_for_them(self, kind):
        X, y = data()
        model = kind().fit(X, y)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            same(other.summary(), model.summary())
            with pytest.raises(DataError, match=r'summary\(X, y, cov="HC1"\)'):
                other.summary(cov="HC1")
            same(other.summary(X, y, cov="HC1"), model.summary(cov="HC1"))

    def test_large_data_are_not_kept_alive(self, kind, monkeypatch):
        monkeypatch.setattr(training, "_KEPT_BYTES", 0)
        X, y = data()
        model = kind().fit(X, y)
        model.summary(cov="HC1")  # the caller still has them
        del X
        with pytest.raises(DataError, match="needs the training rows"):
            model.summary(cov="HC1")

    def test_columns_by_name(self, kind, constructor):
        X, y = data()
        frame = constructor({"a": X[:, 0].copy(), "b": X[:, 1].copy(), "y": y, "w": np.arange(60.0) % 3 + 1})
        model = kind().fit(frame, "y", "w")
        other = kind().fit(X[:, :2], y, np.arange(60.0) % 3 + 1)
        same(model.summary(cov="HC3"), other.summary(cov="HC3"))
        same(model.summary(frame, "y", "w", cov="HC3"), other.summary(cov="HC3"))


# ------------------------------------------------------------------------------------------------------------- coverage


def share_covered(draw, cov, trials=400, weights="frequency"):
    """Return the coverage of the 90 % intervals, per term."""
    hits = []
    rng = np.random.default_rng(2024)
    for _ in range(trials):
        X, y, w, truth = draw(rng)
        s = LinearRegression().fit(X, y, w).summary(cov=cov, level=0.9, weights=weights)
        hits.append((s.ci_low <= truth) & (truth <= s.ci_high))
    return np.mean(hits, axis=0)


def four_errors(trials):
    """Four standard errors of a proportion of 0.9: one false alarm in 16,000."""
    return 4 * np.sqrt(0.9 * 0.1 / trials)


def test_classical_intervals_have_nominal_coverage():
    def draw(rng):
        X = rng.normal(size=(12, 2))
        return X, 1 + X @ [2.0, 0.0] + rng.normal(size=12), None, np.array([1.0, 2.0, 0.0])

    share = share_covered(draw, "classical")
    assert (np.abs(share - 0.9) < four_errors(400)).all(), share


def test_precision_weighted_intervals_have_nominal_coverage():
    def draw(rng):
        X, w = rng.normal(size=(12, 2)), rng.random(12) + 0.05
        return X, 1 + X @ [2.0, 0.0] + rng.normal(size=12) / np.sqrt(w), w, np.array([1.0, 2.0, 0.0])

    share = share_covered(draw, "classical", weights="precision")
    assert (np.abs(share - 0.9) < four_errors(400)).all(), share


def test_robust_intervals_cover_where_classical_ones_do_not():
    def draw(rng):
        x = rng.normal(size=(80, 1))
        return x, 1 + 2 * x[:, 0] + x[:, 0] ** 2 * rng.normal(size=80), None, np.array([1.0, 2.0])

    classical, robust = share_covered(draw, "classical", 300), share_covered(draw, "HC3", 300)
    assert classical[1] < 0.8
    # HC3 is right for many rows; with 80 it is within a few points.
    assert abs(robust[1] - 0.9) < four_errors(300) + 0.03
