"""What a GLM regressor says about its fit: deviance and dispersion, standard errors, residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.training_data import recalled
from summula.core.errors import ParameterError
from summula.linear_model.glm.inference import Asked
from summula.linear_model.glm.model import GlmModel
from summula.linear_model.glm.offsets import rows_and_offset
from summula.linear_model.glm.quality import Quality
from summula.linear_model.glm.residuals import KINDS, residuals
from summula.linear_model.glm.sums import At, linear_predictor
from summula.linear_model.glm.terms import tested_terms
from summula.losses import Loss, loss_of
from summula.stats.exponential_family import Family
from summula.stats.links import Link
from summula.stats.summary import Summary
from summula.stats.term_tests import TermTests

__all__ = ["DiagnosedGlm"]

Array = NDArray[Any]


class DiagnosedGlm(GlmModel):
    """A fit of a family and a link, with offsets, and what can be said about it."""

    def _family_and_link(self) -> tuple[Family, Link]:
        raise NotImplementedError

    def _note_shift(self, offset: Any, exposure: Any) -> None:
        """Columns of the frame that were offset or exposure are no features of later frames either."""
        self._shifted = offset is not None or exposure is not None
        named = [name for name in (offset, exposure) if isinstance(name, str)]
        if self._shifted and named:
            self._not_features = tuple(dict.fromkeys([*getattr(self, "_not_features", ()), *named]))

    def _at(self, loss: Loss) -> At:
        """The fitted coefficients as a point where a pass sums."""
        lead = [float(self.intercept_)] if self.fit_intercept else []
        theta = np.concatenate([lead, np.asarray(self.coef_, np.float64)])[:, None]
        return At(loss, np.zeros(len(self.coef_)), theta, self.fit_intercept, 1)

    # ------------------------------------------------------------------------------------------------- how well it fits

    @property
    def deviance_(self) -> float:
        """Deviance of the training data."""
        return self._judged().deviance

    @property
    def null_deviance_(self) -> float:
        """Deviance of an intercept alone (beside the offset, if there is one) on the training data."""
        return self._judged().null_deviance

    @property
    def pearson_chi2_(self) -> float:
        """Sum of squared Pearson residuals of the training data."""
        return self._judged().pearson_chi2

    @property
    def dispersion_(self) -> float:
        """1 for families whose variance is given by the mean, else Pearson's chi-squared over degrees of freedom."""
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
        """Standard errors, tests and intervals of the coefficients of an unpenalised fit.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure : optional
            The training data; needed for all but classical errors when the model no longer has them (it keeps small
            data, and large data as long as the caller does; a loaded or unpickled model has none).
        cov : {"classical", "HC0", "HC1", "cluster"}
            How the variance of the coefficients is estimated: from the expected information (times the
            dispersion), or by the sandwich, which allows each row, or each group of rows, errors of its own.
        groups : array-like of shape (n_samples,), or name of a column of X, optional
            Labels of the groups within which rows may depend on each other, for cov="cluster".
        weights : {"frequency", "precision"}
            What a `sample_weight` means: so many rows, or the inverse variance of one.
        level : float
            Confidence of the intervals.
        odds_ratios : bool
            Whether to report exp(coefficient): odds ratios under the logit link, rate ratios under the log link.

        Returns
        -------
        Summary
            Prints as a table; `to_frame()` gives it as data. Estimates are compared with the normal
            distribution, also where the dispersion is estimated.
        """
        asked = Asked(cov, weights, level, odds_ratios)
        return self._summarised((X, y, sample_weight, offset, exposure), asked, groups)

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
        """Test every column, a factor with all its levels at once, of an unpenalised fit.

        Parameters
        ----------
        kind : {"wald", "likelihood_ratio"}
            From the covariance of the coefficients, or by refitting without the column.
        X, y, sample_weight, offset, exposure : optional
            The training data; likelihood-ratio tests need them when the model no longer has them.

        Returns
        -------
        TermTests
            Prints as a table; `to_frame()` gives it as data.
        """
        check_is_fitted(self)
        self._refuse_summary()
        if kind not in ("wald", "likelihood_ratio"):
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
        """What the model leaves unexplained, row by row.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
        sample_weight, offset, exposure : as in `fit`
            Weights multiply squared deviance and Pearson residuals.
        kind : {"deviance", "pearson", "response", "working"}
            Signed roots of the terms of the deviance; differences from the mean in standard deviations (at dispersion
            1), plain, or on the scale of the linear predictor.

        Returns
        -------
        ndarray of shape (n_samples,); batches for a scan
        """
        check_is_fitted(self)
        if kind not in KINDS:
            raise ParameterError(f"The 'kind' of residuals must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        family, link = self._family_and_link()
        at = self._at(loss_of(family, link))

        def rows(chunk: Chunk) -> Array:
            eta = linear_predictor(chunk, at)[:, 0]
            return residuals(kind, chunk.target.astype(np.float64), eta, chunk.weight, family, link)

        X, total = rows_and_offset(X, offset, exposure)
        return self._map_rows(rows, self._source(X, y, sample_weight, offset=total))
