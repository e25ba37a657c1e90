"""Base classes of naive Bayes models of discrete columns: priors, smoothing, sums by class.

log P(x, k) = log pi_k + sum_j log P(x_j | k),   probabilities smoothed by pseudo-counts alpha (Laplace: 1)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.additive import AdditiveClassifier
from summula.core.estimator.certificates import SAVED_CERTIFICATE, StatisticCertificate
from summula.core.estimator.classifier import GenerativeClassifier
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, boolean, none, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.grouped import Grouped
from summula.core.numerics.priors import Priors
from summula.naive_bayes.class_totals import split_missing

__all__ = ["PARAMETERS", "CountNB", "DiscreteNB", "log_products"]

Array = NDArray[np.float64]

_LEAST_ALPHA = 1e-10
_LARGEST_LOG = 1e3  # no logarithm of a number in double precision is larger

PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "alpha": (real(0.0), array_like),
    "force_alpha": (boolean,),
    "fit_prior": (boolean,),
    "class_prior": (none, array_like),
}


@schema.state(
    class_count_=schema.Array("float64", "n_classes"),
    class_log_prior_=schema.Array("float64", "n_classes", finite=False),
    certificate_=SAVED_CERTIFICATE,
)
class DiscreteNB(AdditiveClassifier, GenerativeClassifier):
    """Base class for discrete columns; subclasses have `alpha`, `force_alpha`, `fit_prior` and `class_prior`.

    Parameters
    ----------
    force_alpha : bool, default=True
        Whether to use an alpha below 1e-10 unchanged.
    fit_prior : bool, default=True
        Whether to estimate the class probabilities by the class proportions; otherwise they are equal.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities.

    Attributes
    ----------
    certificate_ : StatisticCertificate
        The objective minimised by the probabilities (`count_fits`), and its suboptimality.
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = PARAMETERS

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def _counted(self) -> Any:
        """Return the statistic that is summed by class."""
        raise NotImplementedError

    def _sums_of(self, run: Run) -> Any:
        return run.sum(Grouped(self._counted(), len(self.classes_)), None)

    def _log_priors(self, weight: Array) -> Array:
        """Return the log class probabilities: given, uniform, or the class proportions (-inf for one without rows)."""
        K = len(weight)
        if self.class_prior is not None:
            priors = numbers_in("class_prior", self.class_prior)
            if priors.shape != (K,):
                raise ParameterError(
                    f"Number of priors must match number of classes: class_prior has {np.size(priors)} numbers, but "
                    f"there are {K} classes, {self.classes_.tolist()}."
                )
            if (priors < 0).any() or not np.isclose(priors.sum(), 1.0):
                raise ParameterError(f"class_prior must be non-negative and sum to 1; got {self.class_prior!r}.")
        else:
            priors = weight / weight.sum() if self.fit_prior else np.full(K, 1 / K)
        with np.errstate(divide="ignore"):
            return np.log(priors)

    def _smoothing(self) -> Any:
        """Return the pseudo-counts: a number, or one per column."""
        alpha = numbers_in("alpha", self.alpha)
        if alpha.ndim and alpha.shape != (self.n_features_in_,):
            raise ParameterError(
                "When alpha is an array, it should contains `n_features`: one number per column, here "
                f"{self.n_features_in_}; got {alpha.shape}."
            )
        if (alpha < 0).any():
            raise ParameterError("All values in alpha must be greater than 0. Pass non-negative pseudo-counts.")
        if not self.force_alpha and alpha.min() < _LEAST_ALPHA:
            warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST_ALPHA:.1e}. Use "
                "`force_alpha=True` to keep alpha unchanged.",
                UserWarning,
            )
            alpha = np.maximum(alpha, _LEAST_ALPHA)
        return alpha[()]

    def _name_priors(self, weight: Array) -> None:
        self.class_count_, self.class_log_prior_ = np.array(weight), self._log_priors(weight)

    def _fitted_priors(self) -> Priors:
        """Return the class probabilities, and whether they were estimated."""
        return Priors(np.exp(self.class_log_prior_), self.class_prior is None and self.fit_prior)

    def _certify(self, fit: Any, sums: Any) -> None:
        """Set the certificate of the fitted attributes."""
        self.certificate_ = StatisticCertificate.of(fit, sums, kind="exact", classes=self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on the data of scikit-learn's checks, which are not counts
        return tags


@inherit_docs()
@schema.state(
    feature_count_=schema.Array("float64", "n_classes", "n_features"),
    feature_log_prob_=schema.Array("float64", "n_classes", "n_features", finite=False),
)
class CountNB(DiscreteNB):
    """Base class of naive Bayes with log probabilities that are linear in the columns."""

    _allows_nan = True

    def _check_range(self, sums: Any) -> None:
        """Raise an error for counts whose sum, times the largest logarithm of a probability, overflows."""
        with np.errstate(over="ignore"):
            total = float(sums.total.sum()) * _LARGEST_LOG
        if not np.isfinite(total):
            raise DataError(
                f"The sums of the columns of X (up to {sums.total.max():.3g}) are so large that their products with "
                "log probabilities overflow; divide the counts, or the sample weights, by a constant."
            )

    def _by_column(self, alpha: Any) -> Array:
        return np.full(self.n_features_in_, alpha)

    def _linear(self, chunk: Chunk, B: Array) -> Array:
        """Return X B' for a table with one row per class, with missing values (NaN) skipped."""
        columns = np.ascontiguousarray(B.T)
        scores = np.asarray(chunk.times(columns))
        if np.isfinite(scores).all():
            return scores
        known, _ = split_missing(chunk.X if chunk.is_sparse else chunk.block(np.float64))
        return log_products(known, columns)


def log_products(counts: Any, logs: Array) -> Array:
    """Return sum_j x_j log p_j for a block or CSR of counts and a table with one column per class, with 0 log 0 = 0.

    Rows with infinite counts are NaN: the caller locates them.
    """
    endless = np.isinf(logs)
    with np.errstate(invalid="ignore"):
        scores = product(counts, np.where(endless, 0.0, logs))
        sizes = product(counts, np.ones((len(logs), 1)))[:, 0]
        if endless.any():
            hits = product(counts, endless.astype(np.float64))
            scores[hits > 0] = logs[endless][0]  # probabilities of 0: no infinities of both signs
    scores[~np.isfinite(sizes)] = np.nan
    return scores
