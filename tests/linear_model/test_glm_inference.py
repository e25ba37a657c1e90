"""Standard errors of generalised linear models: closed forms, invariances, statsmodels, coverage; residuals; separation."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse, stats

import summula.linear_model.glm.separation as glm_separation
from summula import DataError, ParameterError, SeparationWarning, engine, load, save, scan
from summula.core.data import training_data as training
from summula.linear_model import GeneralizedLinearRegressor, LogisticRegression, PoissonRegressor
from summula.stats.families import NegativeBinomial, Tweedie

COLUMNS = ("estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high")
FACTS = (
    *("deviance", "null_deviance", "pearson_chi2", "dispersion", "log_likelihood", "aic", "bic", "pseudo_r2"),
    *("lr_statistic", "lr_p_value", "df_residual"),
)
TIGHT = {"tol": 1e-8, "max_iter": 1000}
COVARIANCES = ("classical", "HC0", "HC1", "cluster")


def columns(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(n, d)) * [1.0, 10.0, 0.1][:d] + [0.0, 5.0, 1.0][:d]


def score(X):
    return 0.3 + X @ ([0.5, -0.02, 2.0][: X.shape[1]])


def data(family, n=300, seed=0):
    rng, X = columns(n, seed=seed)
    mu = np.exp(0.3 * score(X))
    y = {
        "binomial": lambda: (rng.random(n) < 1 / (1 + np.exp(1 - score(X)))).astype(float),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "negative_binomial": lambda: rng.poisson(mu * rng.gamma(2, 0.5, n)).astype(float),
        "gamma": lambda: mu * rng.gamma(3, 1 / 3, n),
        "inverse_gaussian": lambda: rng.wald(mu, 5.0),
        "normal": lambda: mu + 0.3 * rng.normal(size=n),
        "tweedie": lambda: np.where(rng.random(n) < 0.2, 0.0, mu * rng.gamma(2, 0.5, n)),
    }[family]()
    return X, y


def model(family="poisson", link="auto", **options):
    chosen = {"negative_binomial": NegativeBinomial(0.5), "tweedie": Tweedie(1.5)}.get(family, family)
    return GeneralizedLinearRegressor(chosen, link, **{**TIGHT, **options})


def softmax_data(n=300, seed=0):
    rng, X = columns(n, seed=seed)
    middle = score(X) - 2.2
    scores = np.column_stack([np.zeros(n), middle, 0.5 * X[:, 0] - middle]) + rng.gumbel(size=(n, 3))
    return X, np.array(["a", "b", "c"])[scores.argmax(axis=1)]


def logistic(**options):
    return LogisticRegression(C=np.inf, **{**TIGHT, **options})


def same(a, b, rtol=1e-6, columns=COLUMNS, facts=FACTS):
    for name in (*columns, *facts):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=1e-9, err_msg=name)


# -------------------------------------------------------------------------------------------------------- closed forms


def test_the_odds_ratio_of_a_table():
    """Woolf: Var log(ad / bc) = 1/a + 1/b + 1/c + 1/d; the ratio test is the G statistic of independence."""
    a, b, c, d = 30.0, 12.0, 8.0, 25.0
    X, y, w = np.array([[1.0], [1.0], [0.0], [0.0]]), [1, 0, 1, 0], [a, b, c, d]
    fit = logistic().fit(X, y, sample_weight=w)
    s = fit.summary()
    assert s.estimate[1] == pytest.approx(np.log(a * d / (b * c)), rel=1e-8)
    assert s.std_error[1] == pytest.approx(np.sqrt(1 / a + 1 / b + 1 / c + 1 / d), rel=1e-8)
    g = stats.chi2_contingency([[a, b], [c, d]], correction=False, lambda_="log-likelihood")
    assert s.lr_statistic == pytest.approx(g.statistic, rel=1e-8)
    assert s.lr_p_value == pytest.approx(g.pvalue, rel=1e-7)
    ratios = fit.summary(odds_ratios=True)
    assert ratios.estimate[1] == pytest.approx(a * d / (b * c), rel=1e-8)
    np.testing.assert_allclose(ratios.std_error, np.exp(s.estimate) * s.std_error, rtol=1e-10)
    np.testing.assert_allclose(ratios.ci_low, np.exp(s.ci_low), rtol=1e-10)
    np.testing.assert_allclose(ratios.ci_high, np.exp(s.ci_high), rtol=1e-10)
    same(ratios, s, columns=("statistic", "p_value"))
    assert any("Odds ratios" in note for note in ratios.notes)


def test_the_rate_ratio_of_two_counts():
    """Var log(y1 / y0) = 1/y1 + 1/y0, for any exposures."""
    s = PoissonRegressor(alpha=0, **TIGHT).fit([[0.0], [1.0]], [40, 90], exposure=[100.0, 150.0]).summary()
    assert s.estimate[1] == pytest.approx(np.log(90 / 150 / (40 / 100)), rel=1e-8)
    assert s.std_error[1] == pytest.approx(np.sqrt(1 / 40 + 1 / 90), rel=1e-8)
    assert s.null_deviance == pytest.approx(2 * (40 * np.log(40 / 52) + 90 * np.log(90 / 78)), rel=1e-9)
    assert s.statistic_name == "z"


def test_the_normal_family_has_the_errors_of_least_squares():
    from summula.linear_model import LinearRegression

    X, y = data("normal")
    ours, least_squares = model("normal").fit(X, y), LinearRegression().fit(X, y)
    for cov in ("classical", "HC0", "HC1"):
        same(ours.summary(cov=cov), least_squares.summary(cov=cov), columns=("estimate", "std_error"), facts=())


@pytest.mark.filterwarnings("ignore::summula.CollinearityWarning")
def test_ratio_test_and_pseudo_r2_are_those_of_the_two_likelihoods():
    X, y = data("poisson")
    s, null = model().fit(X, y).summary(), model().fit(np.zeros_like(X[:, :1]) + np.arange(300)[:, None] * 0, y)
    alone = null.log_likelihood_
    assert s.lr_statistic == pytest.approx(2 * (s.log_likelihood - alone), rel=1e-8)
    assert s.lr_p_value == pytest.approx(stats.chi2.sf(s.lr_statistic, 3), rel=1e-8)
    assert s.pseudo_r2 == pytest.approx(1 - s.log_likelihood / alone, rel=1e-8)
    assert s.aic == pytest.approx(2 * 4 - 2 * s.log_likelihood)
    assert s.bic == pytest.approx(np.log(300) * 4 - 2 * s.log_likelihood)
    assert np.isnan(model(fit_intercept=False).fit(X, y).summary().lr_statistic), "no intercept, no special case of it"


# ---------------------------------------------------------------------------------------------------------- statsmodels

PAIRS = [
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("binomial", "loglog"),
    ("binomial", "cauchit"),
    ("poisson", "sqrt"),
    ("poisson", "log"),
    ("gamma", "log"),
    ("inverse_gaussian", "log"),
    ("negative_binomial", "log"),
    ("tweedie", "log"),
    ("normal", "identity"),
    ("normal", "log"),
]


def theirs(family, link, X, y, **options):
    sm = pytest.importorskip("statsmodels.api")
    links = {"logit": "Logit", "probit": "Probit", "cloglog": "CLogLog", "log": "Log", "identity": "Identity"}
    links |= {"loglog": "LogLog", "cauchit": "Cauchy", "sqrt": "Sqrt"}
    made = {
        "binomial": sm.families.Binomial,
        "poisson": sm.families.Poisson,
        "gamma": sm.families.Gamma,
        "inverse_gaussian": sm.families.InverseGaussian,
        "negative_binomial": lambda link: sm.families.NegativeBinomial(link, alpha=0.5),
        "tweedie": lambda link: sm.families.Tweedie(link, var_power=1.5),
        "normal": sm.families.Gaussian,
    }[family](link=getattr(sm.families.links, links[link])())
    return sm.GLM(y, sm.add_constant(X), family=made, **options)


@pytest.mark.parametrize(("family", "link"), PAIRS)
@pytest.mark.parametrize("cov", ["classical", "HC0", "cluster"])  # its HC1 is HC0
def test_statsmodels(family, link, cov):
    X, y = data(family)
    groups = np.arange(len(y)) // 7
    kind = {"classical": "nonrobust"}.get(cov, cov)
    options = {"cov_kwds": {"groups": groups}} if cov == "cluster" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = theirs(family, link, X, y).fit(tol=1e-12, maxiter=300, cov_type=kind, **options)
    s = model(family, link).fit(X, y).summary(cov=cov, groups=groups if cov == "cluster" else None)
    np.testing.assert_allclose(s.estimate, want.params, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(s.std_error, want.bse, rtol=1e-6)
    np.testing.assert_allclose(s.p_value, want.pvalues, rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(np.column_stack([s.ci_low, s.ci_high]), want.conf_int(), rtol=1e-5, atol=1e-7)
    assert s.deviance == pytest.approx(want.deviance, rel=1e-8)
    assert s.null_deviance == pytest.approx(want.null_deviance, rel=1e-8)
    assert s.pearson_chi2 == pytest.approx(want.pearson_chi2, rel=1e-6)


@pytest.mark.parametrize("cov", ["classical", "HC0", "cluster"])
def test_statsmodels_several_classes(cov):
    sm = pytest.importorskip("statsmodels.api")
    X, y = softmax_data()
    groups = np.arange(len(y)) // 7
    options = {"cov_kwds": {"groups": groups}} if cov == "cluster" else {}
    codes = np.unique(y, return_inverse=True)[1]
    design = sm.add_constant(X)
    kind = {"classical": "nonrobust"}.get(cov, cov)
    want = sm.MNLogit(codes, design).fit(disp=0, method="newton", tol=1e-12, cov_type=kind, **options)
    s = logistic().fit(X, y).summary(cov=cov, groups=groups if cov == "cluster" else None)
    assert s.targets == ("b",) * 4 + ("c",) * 4
    assert s.terms == ("intercept", "x0", "x1", "x2") * 2
    np.testing.assert_allclose(s.estimate, np.asarray(want.params).T.ravel(), rtol=1e-6)
    np.testing.assert_allclose(s.std_error, np.asarray(want.bse).T.ravel(), rtol=1e-6)
    np.testing.assert_allclose(s.p_value, np.asarray(want.pvalues).T.ravel(), rtol=1e-5, atol=1e-12)
    assert s.lr_statistic == pytest.approx(want.llr, rel=1e-8)
    assert s.lr_p_value == pytest.approx(want.llr_pvalue, rel=1e-6)
    assert s.pseudo_r2 == pytest.approx(want.prsquared, rel=1e-8)


@pytest.mark.parametrize("cov", ["classical", "HC0"])
def test_weights_as_precisions(cov):
    X, y = data("gamma")
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    kind = {"classical": "nonrobust"}.get(cov, cov)
    want = theirs("gamma", "log", X, y, var_weights=w).fit(tol=1e-12, maxiter=300, cov_type=kind)
    ours = model("gamma").fit(X, y, sample_weight=w)
    s = ours.summary(cov=cov, weights="precision")
    np.testing.assert_allclose(s.std_error, want.bse, rtol=1e-6)
    assert s.dispersion == pytest.approx(want.scale, rel=1e-7)
    assert s.log_likelihood == pytest.approx(want.llf, rel=1e-8)
    assert any("precisions" in note for note in s.notes)
    assert np.isnan(pickle.loads(pickle.dumps(ours)).summary(weights="precision").log_likelihood), "needs the rows"


# ----------------------------------------------------------------------------------------------------------- invariance


def makers():
    yield "softmax", logistic, softmax_data
    yield "logistic", logistic, lambda: data("binomial")
    for family, link in (("poisson", "log"), ("gamma", "log"), ("binomial", "probit"), ("inverse_gaussian", "log")):
        yield (
            f"{family}-{link}",
            (lambda family=family, link=link: model(family, link)),
            (lambda family=family: data(family)),
        )


MODELS = [pytest.param(make, rows, id=name) for name, make, rows in makers()]


@pytest.mark.parametrize("cov", COVARIANCES)
@pytest.mark.parametrize(("make", "rows"), MODELS)
def test_a_weight_equals_repeated_rows(make, rows, cov):
    X, y = rows()
    w = np.random.default_rng(3).integers(0, 4, len(y))
    groups = np.arange(len(y)) // 5
    at = np.repeat(np.arange(len(y)), w)
    given = {"groups": groups} if cov == "cluster" else {}
    again = {"groups": groups[at]} if cov == "cluster" else {}
    one = make().fit(X, y, sample_weight=w.astype(float)).summary(cov=cov, **given)
    same(one, make().fit(X[at], y[at]).summary(cov=cov, **again), rtol=1e-5)
    assert one.n == np.count_nonzero(w)


@pytest.mark.parametrize(("make", "rows"), MODELS)
def test_groups_of_one_row_are_no_groups(make, rows):
    """G / (G - 1) (N - 1) / (N - p) is N / (N - p) then: HC1."""
    X, y = rows()
    fit = make().fit(X, y)
    s = fit.summary(cov="cluster", groups=np.arange(len(y)))
    same(s, fit.summary(cov="HC1"), rtol=1e-8)
    p = len(s)
    np.testing.assert_allclose(s.std_error, fit.summary(cov="HC0").std_error * np.sqrt(300 / (300 - p)), rtol=1e-8)


@pytest.mark.parametrize("cov", COVARIANCES)
@pytest.mark.parametrize(("make", "rows"), MODELS)
def test_chunks_and_sparse_rows(make, rows, cov):
    X, y = rows()
    given = {"groups": np.arange(len(y)) % 11} if cov == "cluster" else {}
    want = make().fit(X, y).summary(cov=cov, **given)
    with engine(chunk_rows=64):
        same(make().fit(X, y).summary(cov=cov, **given), want)
    same(make().fit(sparse.csr_array(X), y).summary(cov=cov, **given), want)


def test_rows_far_from_the_origin():
    """Shifting the columns moves the intercept alone."""
    X, y = data("poisson")
    for cov in ("classical", "HC0"):
        near, far = model().fit(X, y).summary(cov=cov), model().fit(X + 1e4, y).summary(cov=cov)
        np.testing.assert_allclose(far.std_error[1:], near.std_error[1:], rtol=1e-5)


def test_labels_of_groups_are_of_any_kind():
    X, y = data("poisson")
    fit, codes = model().fit(X, y), np.arange(300) % 13
    want = fit.summary(cov="cluster", groups=codes)
    assert want.groups == 13
    texts = np.array([f"g{k}" for k in codes])
    mixed = np.array([k if k % 2 else f"g{k}" for k in codes], dtype=object)
    for groups in (texts, texts.astype(object), mixed, -codes / 3.0, codes.tolist(), texts.tolist()):
        same(fit.summary(cov="cluster", groups=groups), want, rtol=1e-12)
    missing = mixed.copy()
    missing[17] = None
    for groups in (missing, np.where(codes == 4, np.nan, codes)):
        with pytest.raises(DataError, match="is missing"):
            fit.summary(cov="cluster", groups=groups)
    with pytest.raises(DataError, match="300 rows"):
        fit.summary(cov="cluster", groups=codes[:-1])
    with pytest.raises(DataError, match="2 groups"):
        fit.summary(cov="cluster", groups=np.zeros(300))


@pytest.mark.parametrize("kind", ["text", "number"])
def test_files_and_frames_have_columns_of_groups(tmp_path, kind):
    pd = pytest.importorskip("pandas")
    X, y = data("poisson")
    codes = np.arange(300) % 13
    want = model().fit(X, y, offset=0.1 * X[:, 0]).summary(cov="cluster", groups=codes)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, shift=0.1 * X[:, 0])
    whole = frame.assign(who=[f"g{k}" for k in codes] if kind == "text" else codes)
    fit = model().fit(frame, "y", offset="shift")
    assert fit.feature_names_in_.tolist() == ["a", "b", "c"], "target and offset are no features"
    same(fit.summary(whole, "y", offset="shift", cov="cluster", groups="who"), want)
    np.testing.assert_allclose(fit.predict(frame, offset="shift").sum(), y.sum(), rtol=1e-6)
    path = tmp_path / "rows.parquet"
    whole.to_parquet(path)
    with engine(chunk_rows=64):
        streamed = model().fit(scan(path, columns=["a", "b", "c", "y", "shift"]), "y", offset="shift")
        same(streamed.summary(scan(path), "y", offset="shift", cov="cluster", groups="who"), want)
        same(streamed.summary(cov="HC0"), fit.summary(cov="HC0"))
        parts = list(streamed.residuals(scan(path), "y", offset="shift"))
    np.testing.assert_allclose(np.concatenate(parts), fit.residuals(frame, "y", offset="shift"), rtol=1e-6, atol=1e-9)
    with pytest.raises(DataError, match="no column 'whom'"):
        fit.summary(whole, "y", offset="shift", cov="cluster", groups="whom")
    with pytest.raises(DataError, match="no column 'whom'"):
        streamed.summary(scan(path), "y", offset="shift", cov="cluster", groups="whom")


def test_a_classifier_on_files_with_groups(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = softmax_data()
    groups = np.array([f"g{k}" for k in np.arange(300) % 13])
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, who=groups).to_parquet(path)
    fit = logistic().fit(scan(path, columns=["a", "b", "c", "y"]), "y")
    same(
        fit.summary(scan(path), "y", cov="cluster", groups="who"),
        logistic().fit(X, y).summary(cov="cluster", groups=groups),
    )


def test_terms_the_data_leave_free_have_no_error():
    X, y = data("poisson")
    with pytest.warns(UserWarning, match="combination"):
        fit = model().fit(np.column_stack([X, X[:, 1]]), y)
    s, want = fit.summary(), model().fit(X, y).summary()
    assert np.isnan(s.std_error).tolist() == [False, False, True, False, True]
    np.testing.assert_allclose(s.std_error[[0, 1, 3]], want.std_error[[0, 1, 3]], rtol=1e-6)
    assert any("x1, x3" in note for note in s.notes)
    same(s, want, columns=(), rtol=1e-7)
    robust = fit.summary(cov="HC1")
    np.testing.assert_allclose(
        robust.std_error[[0, 1, 3]], model().fit(X, y).summary(cov="HC1").std_error[[0, 1, 3]], rtol=1e-6
    )


def test_single_precision_rows():
    X, y = data("poisson")
    one = PoissonRegressor(alpha=0).fit(X.astype(np.float32), y.astype(np.float32))
    for cov in ("classical", "HC0"):
        np.testing.assert_allclose(
            one.summary(cov=cov).std_error, model().fit(X, y).summary(cov=cov).std_error, rtol=1e-3
        )


# --------------------------------------------------------------------------------------------------------------- saving


@pytest.mark.parametrize(("make", "rows"), MODELS)
def test_a_model_remembers_its_errors(make, rows, tmp_path):
    X, y = rows()
    fit = make().fit(X, y)
    want, robust = fit.summary(), fit.summary(cov="HC0")
    save(fit, tmp_path / "model.safetensors")
    for other in (pickle.loads(pickle.dumps(fit)), load(tmp_path / "model.safetensors")):
        same(other.summary(), want, rtol=0)
        assert str(other.summary()) == str(want)
        with pytest.raises(DataError, match="training rows"):
            other.summary(cov="HC0")
        same(other.summary(X, y, cov="HC0"), robust, rtol=1e-12)
        with pytest.raises(DataError, match="not the rows"):
            other.summary(X + 0.1, y, cov="HC0")


def test_rows_are_kept_as_long_as_the_caller_keeps_them(monkeypatch):
    monkeypatch.setattr(training, "_KEPT_BYTES", 0)
    X, y = data("poisson")
    fit = model().fit(X, y)
    fit.summary(cov="HC0")
    del X
    with pytest.raises(DataError, match="training rows"):
        fit.summary(cov="HC0")


def test_a_fit_too_large_for_its_information_gets_it_from_the_rows(monkeypatch):
    from summula.linear_model.glm import objective

    X, y = softmax_data()
    groups = np.arange(300) // 4
    want = logistic().fit(X, y).summary()
    grouped = logistic().fit(X, y).summary(cov="cluster", groups=groups)
    monkeypatch.setattr(objective, "_NEWTON_WORK", 0)
    fit = logistic().fit(X, y)
    assert fit._fit.half_inverse is None
    np.testing.assert_allclose(fit.summary().std_error, want.std_error, rtol=1e-4)
    again = fit.summary(cov="cluster", groups=groups)
    np.testing.assert_allclose(again.std_error, grouped.std_error, rtol=1e-4)
    with pytest.raises(DataError, match=r"summary\(X, y\)"):
        pickle.loads(pickle.dumps(fit)).summary()


# --------------------------------------------------------------------------------------------------------------- errors


def test_what_has_no_standard_errors():
    X, y = data("poisson")
    with pytest.raises(ParameterError, match="alpha=0"):
        model(alpha=0.1).fit(X, y).summary()
    with pytest.raises(ParameterError, match="C=inf"):
        LogisticRegression().fit(X, y > 1).summary()
    with pytest.raises(ParameterError, match="bounds"):
        model(upper=0.0).fit(X, y).summary()
    assert len(model(upper=100.0).fit(X, y).summary()) == 4, "bounds that do not bind do no harm"
    with pytest.raises(ParameterError, match="'probit'"):
        model("binomial", "probit").fit(X, (y > 1).astype(float)).summary(odds_ratios=True)


def test_unknown_words_are_refused():
    fit = model().fit(*data("poisson"))
    for options, match in (
        ({"cov": "HC4"}, "'HC0'"),
        ({"weights": "probability"}, "'precision'"),
        ({"level": 95}, "level"),
        ({"cov": "cluster"}, "groups"),
        ({"groups": np.arange(300)}, "cluster"),
    ):
        with pytest.raises(ParameterError, match=match):
            fit.summary(**options)
    with pytest.raises(ParameterError, match="'working'"):
        fit.residuals(*data("poisson"), kind="raw")


# ------------------------------------------------------------------------------------------------------------- coverage


def test_intervals_cover():
    """Of 150 simulated 95 % intervals about 142 contain the truth, within four binomial deviations."""
    rng, X = columns(400, 2, seed=5)
    truth = np.array([0.2, 0.7, -0.05])
    held = np.zeros((3, 3))
    for _ in range(150):
        y = rng.random(400) < 1 / (1 + np.exp(-truth[0] - X @ truth[1:]))
        fit = LogisticRegression(C=np.inf).fit(X, y)
        for k, cov in enumerate(("classical", "HC1", "cluster")):
            s = fit.summary(cov=cov, groups=np.arange(400) // 4 if cov == "cluster" else None)
            held[k] += (s.ci_low <= truth) & (truth <= s.ci_high)
    deviation = np.sqrt(150 * 0.95 * 0.05)
    assert (np.abs(held - 0.95 * 150) < 4 * deviation).all(), held


# ------------------------------------------------------------------------------------------------------------ residuals


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_residuals(family, link):
    X, y = data(family)
    fit = model(family, link).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = theirs(family, link, X, y).fit(tol=1e-12, maxiter=300)
    for kind in ("deviance", "pearson", "response", "working"):
        np.testing.assert_allclose(
            fit.residuals(X, y, kind=kind), getattr(want, f"resid_{kind}"), rtol=1e-5, atol=1e-6, err_msg=kind
        )
    w = np.random.default_rng(1).uniform(0.5, 2, len(y))
    weighted = model(family, link).fit(X, y, sample_weight=w)
    assert np.square(weighted.residuals(X, y, w)).sum() == pytest.approx(weighted.deviance_, rel=1e-8)
    chi2 = np.square(weighted.residuals(X, y, w, kind="pearson")).sum()
    assert chi2 == pytest.approx(weighted.pearson_chi2_, rel=1e-8)


# ----------------------------------------------------------------------------------------------------------- separation


def separated(kind, n=120):
    rng, X = columns(n)
    y = rng.random(n) < 0.5
    if kind == "complete":
        y = X[:, 0] - 0.1 * X[:, 1] > -0.4
    if kind == "quasi":
        X = np.column_stack([X, np.arange(n) < 6])
        y[:6] = True
    return X, y.astype(int)


def names(X):
    return [f"c{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
@pytest.mark.parametrize(("kind", "named"), [("complete", "'c0', 'c1'"), ("quasi", "'c3'")])
def test_separation_is_named(kind, named, link):
    pd = pytest.importorskip("pandas")
    X, y = separated(kind)
    frame = pd.DataFrame(X, columns=names(X))
    word = "completely" if kind == "complete" else "quasi-completely"
    with pytest.warns(SeparationWarning, match=f"{named} separates? the classes {word}.*alpha > 0"):
        regressor = model("binomial", link, max_iter=100).fit(frame, y.astype(float))
    with pytest.raises(DataError, match=f"{named} separate"):
        regressor.summary()
    if link == "logit":
        with pytest.warns(SeparationWarning, match=f"{named} separates? .*a finite C"):
            fit = logistic().fit(frame, y)
        assert fit.predict(frame).shape == y.shape, "the model is kept"
        with pytest.raises(DataError, match="no maximum"):
            pickle.loads(pickle.dumps(fit)).summary()
        LogisticRegression(C=10.0).fit(frame, y)


def test_separation_of_several_classes_and_of_weighted_shares():
    X, _ = columns(150)[1], None
    with pytest.warns(SeparationWarning, match="Column 0 separates the classes completely"):
        logistic(max_iter=50).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    X, y = separated("quasi")
    shares = np.where(np.arange(len(y)) < 6, 1.0, 0.25 + 0.5 * y)
    with pytest.warns(SeparationWarning, match="Column 3 separates the classes quasi"):
        model("binomial").fit(X, shares, sample_weight=np.full(len(y), 4.0))


def test_several_separated_classes_end_where_rounding_hides_all_progress():
    X = np.random.RandomState(0).uniform(0.0, 3.0, (20, 3))
    with pytest.warns(SeparationWarning, match="Column 0 separates the classes completely"):
        fit = logistic().fit(X, X[:, 0].astype(int))
    assert fit.n_iter_[0] < 60 < fit.max_iter


def test_rows_without_weight_do_not_count():
    X, y = separated("quasi")
    X, y = np.vstack([X, X[:1]]), np.append(y, 0)
    w = np.append(np.ones(len(y) - 1), 0.0)
    logistic().fit(X, y).summary()
    with pytest.warns(SeparationWarning, match="Column 3"):
        logistic().fit(X, y, sample_weight=w)


@pytest.mark.parametrize("kind", ["complete", "quasi", "none"])
def test_separation_of_files(kind, tmp_path, monkeypatch):
    """Decided on the leading rows; a direction found there is checked on all."""
    pd = pytest.importorskip("pandas")
    X, y = separated("complete" if kind == "none" else kind, 400)
    if kind == "none":
        y[-1] = 1 - y[-1]
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=names(X)).assign(y=y).to_parquet(path)
    monkeypatch.setattr(glm_separation, "_LOOK_BYTES", 200 * 8 * X.shape[1])
    if kind == "none":
        with warnings.catch_warnings():
            warnings.simplefilter("error", SeparationWarning)
            logistic().fit(scan(path), "y")
        return
    with pytest.warns(SeparationWarning, match="leading 200 rows, checked on all"):
        logistic().fit(scan(path), "y")


def test_ordinary_fits_skip_the_separation_check(monkeypatch):
    def never(*given):
        raise AssertionError("separation was checked without need")

    monkeypatch.setattr(glm_separation, "separation_of_rows", never)
    for seed in range(20):
        X, y = data("binomial", seed=seed)
        logistic().fit(X, y).summary()
        for link in ("probit", "cloglog"):
            model("binomial", link).fit(X, y)
        logistic().fit(*softmax_data(seed=seed))
    rng, X = columns(5000)
    strong = rng.random(5000) < 1 / (1 + np.exp(-10 * X[:, 0]))
    logistic().fit(X, strong)
    collinear = np.column_stack([X, X[:, 0] + 1e-4 * rng.normal(size=5000)])
    logistic().fit(collinear, rng.random(5000) < 0.3)
    with pytest.warns(UserWarning, match="combination"):
        logistic().fit(np.column_stack([X, X[:, 0] - X[:, 2]]), strong)


@pytest.mark.parametrize("make", [model, lambda **options: logistic(**options)], ids=["regressor", "classifier"])
def test_a_fit_cut_short_has_no_summary(make, monkeypatch):
    """Ctrl-C keeps the best model so far, which is not an estimate."""
    import summula.linear_model.glm.model as glm_model

    def cut(*given):
        raise KeyboardInterrupt

    X, y = data("binomial")
    fit = make()
    monkeypatch.setattr(glm_model, "expected_information", cut)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(X, y)
    assert fit.predict(X).shape == y.shape
    with pytest.raises(DataError, match="interrupted"):
        fit.summary()
