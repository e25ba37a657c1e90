"""Certificates that are verified by recomputing sums over the rows.

    verify(X, y):   sums over the rows  ->  objective and gap at the stated point  ->  compare with the stated values

A certificate states a point of an optimisation problem; its `objective` computes value and gap there from sums over
rows, never with the solver that found the point.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import Factors
from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.errors import DataError
from summula.core.estimator.additive import sums_by_class
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Run, Unnamed
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification

__all__ = ["SAVED_CERTIFICATE", "StatisticCertificate", "SummedCertificate", "check_width"]

Array = NDArray[Any]

_UNIT = 1e-11  # relative rounding error of an objective computed from sums in double precision


def check_width(source: Source, n_columns: int | None) -> None:
    """Raise DataError unless rows have the number of columns of those that a certificate is about; None is any."""
    if n_columns not in (None, source.n_features):
        raise DataError(
            f"X has {source.n_features} columns, but the model was fitted to {n_columns} (text columns count once per "
            "level): pass the rows of the fit, in a frame if columns contain text."
        )


class SummedCertificate(Certificate):
    """A certificate with an objective computed from the rows of a run; `unit` is its relative rounding error."""

    # Whether y is required; None if it is optional, False if it is ignored, as in `fit`.
    _supervised: ClassVar[bool | None] = None
    # Dimension of the saved state that is the number of columns of the rows.
    _columns: ClassVar[str] = "n_features"

    @abstractmethod
    def objective(self, run: Run) -> tuple[float, float]:
        """Return the objective and the gap at the stated point on the rows of a run."""

    def confirms(self, value: float, gap: float) -> bool:
        """Return whether the values agree with the stated ones, up to rounding."""
        rounding = self.unit * abs(self.primal)  # type: ignore[attr-defined]
        return bool(abs(value - self.primal) <= rounding and gap <= self.gap + rounding)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None, **given: Any) -> Verification:
        """Recompute objective and gap from the data, without the solver.

        Parameters
        ----------
        X, y, sample_weight
            The training data, as passed to `fit`.

        Returns
        -------
        Verification
            True if it confirms the certificate.
        """
        source = self._source(X, y, sample_weight, **given)
        try:
            check_width(source, schema.sizes_of(self).get(self._columns))
            return self.compare(Run(Unnamed("the certificate"), source))
        except (OverflowError, np.linalg.LinAlgError):  # a stated point that is too far away to be judged
            return Verification(np.inf, np.inf, False)
        finally:
            source.release()

    def compare(self, run: Run) -> Verification:
        """Recompute objective and gap on the rows of a run, and compare them with the stated values."""
        with np.errstate(over="ignore"):  # values that overflow confirm nothing
            value, gap = self.objective(run)
        return Verification(value, gap, self.confirms(value, gap))

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """Return the data as a source; labels are encoded if there are `classes`, factors if there are `levels`."""
        classes, levels = getattr(self, "classes", None), getattr(self, "levels", None)
        labels = None if classes is None else Labels("the certificate", classes)
        factors = Factors("the certificate", levels) if levels else None
        y = None if self._supervised is False else y
        needs_y = self._supervised or y is not None
        return as_source(Unnamed(), X, y, sample_weight, needs_y=needs_y, labels=labels, factors=factors)


def _has_a_statistic(certificate: Any, sizes: schema.Sizes) -> str | None:
    """Rule of saved models: the parameters state an objective of sums over the rows, or over those of each class."""
    statistic = getattr(certificate.fit, "statistic", None)
    if not hasattr(certificate.fit, "objective") or statistic is None:
        return f"a {type(certificate.fit).__name__} has no objective"
    if certificate.classes is None and not hasattr(statistic, "map"):
        return "its sums are of classes, and there are none"
    return None


@schema.saved(
    "core.certificates.StatisticCertificate",
    _has_a_statistic,
    fit=schema.Object(object, n_classes="n_classes", n_features="n_features"),
    classes=schema.Labels("n_classes") | None,
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class StatisticCertificate(SummedCertificate):
    """The certificate of a model computed from one statistic of its rows.

    Attributes
    ----------
    kind, primal, gap
        As in `Certificate`.
    fit : object
        The parameters of the model: `fit.statistic` is summed, per class for classifiers, and `fit.objective(sums)`
        returns value and gap.
    classes : ndarray or None
        Class labels of a classifier.
    unit : float
        Relative rounding error of the objective.
    """

    fit: Any
    classes: Array | None
    unit: float

    @classmethod
    def of(cls, fit: Any, sums: Any, *, kind: str, classes: Array | None = None) -> Self:
        """Create the certificate of a model from the sums it was computed from."""
        value, gap = fit.objective(sums)
        return cls(kind, float(value), max(float(gap), 0.0), fit, classes, _UNIT)

    def objective(self, run: Run) -> tuple[float, float]:
        """Return value and gap of the stated model on the rows of a run."""
        if self.classes is not None:
            sums = sums_by_class(run, self.fit.statistic, len(self.classes))
        else:
            sums = run.sum(self.fit.statistic, run.origin()[: run.source.n_features])
        value, gap = self.fit.objective(sums)
        return float(value), max(float(gap), 0.0)


# Models declare the field by `@schema.saved(certificate_=SAVED_CERTIFICATE, ...)`.
SAVED_CERTIFICATE = schema.Object(StatisticCertificate, n_classes="n_classes", n_features="n_features")
