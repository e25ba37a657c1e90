"""Joint tests of the coefficients of a term: a numeric column, or a factor with all its levels.

With beta_T the coefficients of the term, V_TT their covariance phi (F F')_TT, D the deviance and D_0 that of the
model refitted without the term,

    Wald               beta_T' V_TT^-1 beta_T                                                                   (1)
    likelihood ratio   (D_0 - D) / phi                                                                          (2)

both chi-squared with as many degrees of freedom as the term has coefficients, if the term has no effect.
Reference: McCullagh and Nelder (1989), section 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula.core.data.frames import is_frame, pop_columns
from summula.core.data.scan import Scan
from summula.core.errors import DataError
from summula.core.estimator.input.validation import collection_reader
from summula.optimize.solvers.newton_method import Factor
from summula.stats.term_tests import TermTests

if TYPE_CHECKING:
    from summula.linear_model.glm.statistics.diagnostics import DiagnosedGlm

__all__ = ["terms_of", "tested_terms"]

Array = NDArray[Any]


def terms_of(model: DiagnosedGlm) -> dict[str, Array]:
    """Return the indices of each term's coefficients: numeric columns first, then factors."""
    names = getattr(model, "feature_names_in_", None)
    inputs = [f"x{j}" for j in range(model.n_features_in_)] if names is None else [str(name) for name in names]
    levels = getattr(model, "factor_levels_", {})
    terms: dict[str, Array] = {}
    end = 0
    for name in [c for c in inputs if c not in levels] + [c for c in inputs if c in levels]:
        size = len(levels[name]) - 1 if name in levels else 1
        terms[name] = np.arange(end, end + size)
        end += size
    return terms


def tested_terms(model: DiagnosedGlm, kind: str, given: tuple[Any, ...] | None) -> TermTests:
    """Compute the tests of all terms; (2) refits the model without each, on the training data `given`."""
    terms = terms_of(model)
    statistic = np.array(
        [_wald(model, at) for at in terms.values()]
        if kind == "wald"
        else [_ratio(model, name, j, given) for j, name in _inputs(model)]
    )
    if kind != "wald":  # reorder from columns to terms
        order = [name for _, name in _inputs(model)]
        statistic = statistic[[order.index(name) for name in terms]]
    df = np.array([len(at) for at in terms.values()])
    return TermTests(kind, tuple(terms), df, statistic, special.chdtrc(df, np.maximum(statistic, 0.0)))


def _inputs(model: DiagnosedGlm) -> list[tuple[int, str]]:
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [(j, f"x{j}") for j in range(model.n_features_in_)]
    return [(j, str(name)) for j, name in enumerate(names)]


def _wald(model: DiagnosedGlm, at: Array) -> float:
    """Equation (1)."""
    fit = model._fit
    if fit.half_inverse is None:
        raise DataError(
            "Wald tests need the covariance of the coefficients, which this fit does not have; use "
            "kind='likelihood_ratio', or fit again."
        )
    rows = fit.half_inverse[at + int(model.fit_intercept)]
    beta = fit.coef[0, at]
    covariance = model.dispersion_ * (rows @ rows.T)
    return float(beta @ Factor.of(covariance).solve(beta))


def _ratio(model: DiagnosedGlm, name: str, j: int, given: tuple[Any, ...] | None) -> float:
    """Equation (2)."""
    from sklearn.base import clone

    if given is None:
        raise DataError("Likelihood-ratio tests refit the model, which needs the training data: pass X and y.")
    X, y, *rest = given
    smaller = clone(model).fit(_without(X, name, j), y, *rest)
    return float((smaller.deviance_ - model.deviance_) / model.dispersion_)


def _without(X: Any, name: str, j: int) -> Any:
    """Return the features without one column."""
    if isinstance(X, Scan):
        return X.select([column for column in X.columns if column != name])
    if collection_reader(X) is not None:
        if not hasattr(X, "columns"):
            raise DataError(
                "Likelihood-ratio tests are not supported for Dask arrays; use a Dask dataframe, or Wald tests."
            )
        return X.drop(columns=[name])
    if is_frame(X):
        return pop_columns(X, [name])[0]
    kept = np.arange(X.shape[1] if hasattr(X, "shape") else len(X[0])) != j
    return X[:, kept] if hasattr(X, "indptr") else np.asarray(X)[:, kept]
