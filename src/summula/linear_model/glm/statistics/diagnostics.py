"""Diagnostics of GLM regressors: deviance and dispersion, standard errors, residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.training_data import recalled
from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.input.argument_values import is_choice
from summula.linear_model.glm.model import GlmModel
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.glm.statistics.inference import SummaryOptions
from summula.linear_model.glm.statistics.quality import Quality
from summula.linear_model.glm.statistics.residuals import KINDS, residuals
from summula.linear_model.glm.statistics.terms import tested_terms
from summula.linear_model.glm.sums import At, linear_predictor
from summula.losses import Loss, loss_of
from summula.stats.families.exponential_family import Family
from summula.stats.links import Link
from summula.stats.summary import SUMMARY_DOCS, Summary
from summula.stats.term_tests import TermTests

__all__ = ["DiagnosedGlm"]

Array = NDArray[Any]


class DiagnosedGlm(GlmModel):
    """Base class of GLM regressors with a family, a link, offsets, and diagnostics."""

    def _family_and_link(self) -> tuple[Family, Link]:
        raise NotImplementedError

    def _note_shift(self, offset: Any, exposure: Any) -> None:
        """Store which columns of the frame were offset or exposure, so that they are not features of later frames."""
        self._shifted = offset is not None or exposure is not None
        named = [name for name in (offset, exposure) if isinstance(name, str)]
        if self._shifted and named:
            self._not_features = tuple(dict.fromkeys([*getattr(self, "_not_features", ()), *named]))

    def _at(self, loss: Loss) -> At:
        """Return the fitted coefficients as a point of evaluation."""
        lead = [float(self.intercept_)] if self.fit_intercept else []
        theta = np.concatenate([lead, np.asarray(self.coef_, np.float64)])[:, None]
        return At(loss, np.zeros(len(self.coef_)), theta, self.fit_intercept, 1)

    # ------------------------------------------------------------------------------------------------- goodness of fit

    @property
    def deviance_(self) -> float:
        """Deviance of the training data."""
        return self._judged().deviance

    @property
    def null_deviance_(self) -> float:
        """Deviance of the intercept-only model (with the offset, if there is one) on the training data."""
        return self._judged().null_deviance

    @property
    def pearson_chi2_(self) -> float:
        """Sum of squared Pearson residuals of the training data."""
        return self._judged().pearson_chi2

    @property
    def dispersion_(self) -> float:
        """1 for families with fixed dispersion, else Pearson's chi-squared divided by the degrees of freedom."""
        return self._judged().dispersion

    @property
    def log_likelihood_(self) -> float:
        """Log likelihood of the training data at `dispersion_`."""
        return self._judged().log_likelihood

    def _judged(self) -> Quality:
        if not hasattr(self, "_quality"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        return self._quality

    # ----------------------------------------------------------------------------------------------------- summarising

    @inherit_docs(SUMMARY_DOCS)
    def summary(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cov: str = "classical",
        groups: Any = None,
        weights: str = "frequency",
        level: float = 0.95,
        odds_ratios: bool = False,
        offset: Any = None,
        exposure: Any = None,
    ) -> Summary:
        """Compute standard errors, tests and confidence intervals of the coefficients of an unpenalised fit.

        Parameters
        ----------
        offset, exposure : optional
            As in `fit`, with the training data.
        cov : {"classical", "HC0", "HC1", "cluster"}
            Covariance estimator: from the expected information (times the dispersion), or a sandwich estimator that is
            robust to heteroscedasticity, or to dependence within groups.
        odds_ratios : bool
            Whether to report exp(coefficient): odds ratios for the logit link, rate ratios for the log link.

        Returns
        -------
        Summary
            Prints as a table; `to_frame()` converts it to a data frame. Tests use the normal distribution, also if the
            dispersion is estimated.
        """
        options = SummaryOptions(cov, weights, level, odds_ratios)
        return self._summarised((X, y, sample_weight, offset, exposure), options, groups)

    def test_terms(
        self,
        kind: str = "wald",
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> TermTests:
        """Test each term (a column, or a factor with all its levels) of an unpenalised fit.

        Parameters
        ----------
        kind : {"wald", "likelihood_ratio"}
            Test from the covariance of the coefficients, or by refitting without the term.
        X, y, sample_weight, offset, exposure : optional
            Training data, needed for likelihood-ratio tests if the model no longer has access to them.

        Returns
        -------
        TermTests
            Prints as a table; `to_frame()` converts it to a data frame.
        """
        check_is_fitted(self)
        self._check_summary_applies()
        if not is_choice(kind, ("wald", "likelihood_ratio")):
            raise ParameterError(f"The 'kind' of test_terms must be 'wald' or 'likelihood_ratio'; got {kind!r}.")
        kept = recalled(getattr(self, "_training", None))
        return tested_terms(self, kind, kept if X is None else (X, y, sample_weight, offset, exposure))

    def _distribution(self) -> tuple[Family, Link]:
        return self._family_and_link()

    def residuals(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        kind: str = "deviance",
        offset: Any = None,
        exposure: Any = None,
    ) -> Any:
        """Compute the residuals of each row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
        sample_weight, offset, exposure : as in `fit`
            Sample weights multiply squared deviance and Pearson residuals.
        kind : {"deviance", "pearson", "response", "working"}
            Signed square roots of the terms of the deviance; differences from the mean in standard deviations (for
            dispersion 1), unscaled, or on the scale of the linear predictor.

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        if not is_choice(kind, KINDS):
            raise ParameterError(f"The 'kind' of residuals must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        family, link = self._family_and_link()
        at = self._at(loss_of(family, link))

        def rows(chunk: Chunk) -> Array:
            eta = linear_predictor(chunk, at)[:, 0]
            return residuals(kind, chunk.target.astype(np.float64), eta, chunk.weight, family, link)

        X, total = rows_and_offset(X, offset, exposure)
        return self._map_rows(rows, self._source(X, y, sample_weight, offset=total))
