"""Compute the estimates of tests/data/glm/references.json with statsmodels, at tolerance 1e-12.

    python -m tests.data.make_glm_references

Columns are standardised for the fit, and estimates and covariances mapped back, so that badly scaled tables lose no
digits. Weights are numbers of rows, and rows are repeated that often. Conventions, where there are several:

    classical      dispersion times the inverse of the expected information; of the observed one for "multinomial", where
                   the two are the same
    HC0            A^-1 (sum_i g_i g_i') A^-1 with the observed information A, as statsmodels has it
    HC0_expected   the same with the expected information, as R's sandwich has it; differs when the link is not canonical
    cluster        g_i summed over groups, times G / (G - 1) (n - 1) / (n - k); cluster_plain is without that factor
    dispersion     Pearson chi2 / (n - k) for gamma, else 1
    log_likelihood at that dispersion; of shares y: sum y log mu + (1 - y) log(1 - mu)
    aic            -2 log-likelihood + 2 k, the dispersion not counted
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import statsmodels.api as sm
from scipy import stats
from statsmodels.tools.sm_exceptions import DomainWarning

from tests.data.glm_cases import CASES, REFERENCES, Model, fingerprint

LINKS = {
    "log": sm.families.links.Log,
    "inverse": sm.families.links.InversePower,
    "logit": sm.families.links.Logit,
    "probit": sm.families.links.Probit,
}
FAMILIES = {"gamma": sm.families.Gamma, "bernoulli": sm.families.Binomial, "poisson": sm.families.Poisson}


def repeated(model: Model) -> Model:
    """Repeat every row by its weight."""
    if model.weight is None:
        return model
    rows = np.repeat(np.arange(len(model.y)), model.weight.astype(int))
    groups = None if model.groups is None else model.groups[rows]
    return model._replace(X=model.X[rows], y=model.y[rows], weight=None, groups=groups)


def standardised(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(1, Z) and the matrix that maps its coefficients to those of (1, X)."""
    centre, scale = X.mean(axis=0), X.std(axis=0)
    back = np.eye(X.shape[1] + 1)
    back[0, 1:] = -centre / scale
    back[1:, 1:] = np.diag(1 / scale)
    return np.column_stack([np.ones(len(X)), (X - centre) / scale]), back


def table(estimate: np.ndarray, covariances: dict[str, np.ndarray]) -> dict[str, Any]:
    """Estimates, and for each covariance standard errors, z and p."""
    columns: dict[str, Any] = {"estimate": estimate.tolist()}
    for name, covariance in covariances.items():
        error = np.sqrt(np.diag(covariance))
        z = estimate / error
        columns[name] = {
            "std_error": error.tolist(),
            "statistic": z.tolist(),
            "p_value": (2 * stats.norm.sf(np.abs(z))).tolist(),
        }
    return columns


def clustered(fit: Any, groups: np.ndarray | None) -> dict[str, np.ndarray]:
    """The two cluster-robust covariances by a function that fits again."""
    if groups is None:
        return {}
    codes = np.unique(groups, return_inverse=True)[1]
    return {
        name: np.asarray(fit(cov_type="cluster", cov_kwds={"groups": codes, "use_correction": correct}).cov_params())
        for name, correct in (("cluster", True), ("cluster_plain", False))
    }


def single(model: Model) -> dict[str, Any]:
    """A model with one linear predictor."""
    Z, T = standardised(model.X)
    family = FAMILIES[model.family](link=LINKS[model.link]())
    warnings.filterwarnings("ignore", "The InversePower link", DomainWarning)  # eta stays positive on these tables
    problem = sm.GLM(model.y, Z, family=family, exposure=model.exposure)

    def fit(**options: Any) -> Any:
        return problem.fit(tol=1e-12, tol_criterion="params", maxiter=200, **options)

    plain = fit()
    assert plain.converged
    assert np.abs(problem.score(plain.params)).max() < 1e-9 * len(Z), "not at the optimum"
    # The same without standardising, to fewer digits.
    raw = sm.GLM(model.y, sm.add_constant(model.X), family=family, exposure=model.exposure).fit(tol=1e-12, maxiter=200)
    np.testing.assert_allclose(raw.params, T @ plain.params, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(raw.bse, np.sqrt(np.diag(T @ plain.cov_params() @ T.T)), rtol=1e-5)
    g = problem.score_obs(plain.params)
    expected = np.linalg.inv(problem.hessian(plain.params, observed=False))
    covariances = {
        "classical": plain.cov_params(),
        "HC0": fit(cov_type="HC0").cov_params(),
        "HC0_expected": expected @ (g.T @ g) @ expected,
        **clustered(fit, model.groups),
    }
    mu = plain.mu
    likelihood = float(plain.llf)
    if model.family == "bernoulli":
        bernoulli = float((model.y * np.log(mu) + (1 - model.y) * np.log1p(-mu)).sum())
        assert np.any((model.y > 0) & (model.y < 1)) or np.isclose(bernoulli, likelihood, rtol=1e-12)
        likelihood = bernoulli
    k = Z.shape[1]
    return {
        **table(T @ plain.params, {name: T @ V @ T.T for name, V in covariances.items()}),
        "n": len(Z),
        "df_residual": len(Z) - k,
        "log_likelihood": likelihood,
        "aic": -2 * likelihood + 2 * k,
        "deviance": float(plain.deviance),
        "null_deviance": float(plain.null_deviance),
        "pearson_chi2": float(plain.pearson_chi2),
        "dispersion": float(plain.scale),
    }


def multinomial(model: Model) -> dict[str, Any]:
    """K classes against the first: estimates of the second class, then those of the third, ..."""
    Z, T = standardised(model.X)
    classes, codes = np.unique(model.y, return_inverse=True)
    problem = sm.MNLogit(codes, Z)

    def fit(**options: Any) -> Any:
        return problem.fit(method="newton", tol=1e-12, maxiter=100, disp=False, **options)

    plain = fit()
    assert np.abs(problem.score(plain.params.ravel(order="F"))).max() < 1e-8 * len(Z), "not at the optimum"
    blocks = np.kron(np.eye(len(classes) - 1), T)
    covariances = {
        "classical": plain.cov_params(),
        "HC0": fit(cov_type="HC0").cov_params(),
        **clustered(fit, model.groups),
    }
    return {
        **table(
            (T @ plain.params).ravel(order="F"),
            {name: blocks @ np.asarray(V) @ blocks.T for name, V in covariances.items()},
        ),
        "classes": classes.tolist(),
        "n": len(Z),
        "log_likelihood": float(plain.llf),
        "aic": float(plain.aic),
        "deviance": -2 * float(plain.llf),
        "null_deviance": -2 * float(plain.llnull),
        "dispersion": 1.0,
    }


def main() -> int:
    """Write references.json."""
    results: dict[str, Any] = {}
    for name, case in CASES.items():
        model = repeated(case())
        numbers = multinomial(model) if model.family == "multinomial" else single(model)
        terms = ["intercept", *model.terms]
        about = {"table": model.table, "family": model.family, "link": model.link, "terms": terms}
        results[name] = {**about, "fingerprint": fingerprint(model.table), **numbers}
    versions = {package: version(package) for package in ("statsmodels", "numpy", "scipy")}
    text = json.dumps({"versions": {"python": platform.python_version(), **versions}, "cases": results}, indent=1)
    REFERENCES.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
