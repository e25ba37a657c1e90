"""Certificates that are checked by summing over the rows again.

    verify(X, y):   sums of the rows  ->  objective and gap at the stated point  ->  are they what is stated?

A certificate names a point of a problem; its `objective` computes value and gap there from sums over rows, never by the
solver that found the point.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.estimator.additive import sums_by_class
from summula.core.estimator.run import Run, Unnamed
from summula.core.estimator.validation import as_source
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification

__all__ = ["SAVED_CERTIFICATE", "StatisticCertificate", "SummedCertificate"]

Array = NDArray[Any]

_UNIT = 1e-11  # relative rounding error of an objective computed from sums in double precision


class SummedCertificate(Certificate):
    """A certificate with an objective computed from the rows of a run; subclasses have a `unit`, its rounding."""

    _supervised: ClassVar[bool] = False  # whether there has to be a target

    @abstractmethod
    def objective(self, run: Run) -> tuple[float, float]:
        """The objective at the stated point on the rows of a run, and the gap there."""

    def confirms(self, value: float, gap: float) -> bool:
        """Whether these are what is stated, up to rounding."""
        rounding = self.unit * abs(self.primal)  # type: ignore[attr-defined]
        return bool(abs(value - self.primal) <= rounding and gap <= self.gap + rounding)

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None, **given: Any) -> Verification:
        """Recompute objective and gap from the data, without the solver.

        Parameters
        ----------
        X, y, sample_weight
            The training data, as they were given to `fit`.

        Returns
        -------
        Verification
            True when it confirms the certificate.
        """
        source = self._source(X, y, sample_weight, **given)
        try:
            return self.compare(Run(Unnamed("the certificate"), source))
        finally:
            source.release()

    def compare(self, run: Run) -> Verification:
        """Recompute objective and gap on the rows of a run, and compare them with what is stated."""
        value, gap = self.objective(run)
        return Verification(value, gap, self.confirms(value, gap))

    def _source(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """The data as a source, with labels as codes where there are `classes`."""
        classes = getattr(self, "classes", None)
        labels = None if classes is None else Labels("the certificate", classes)
        return as_source(Unnamed(), X, y, sample_weight, needs_y=self._supervised or y is not None, labels=labels)


@schema.saved(
    "core.certificates.StatisticCertificate",
    fit=schema.Object(object, n_classes="n_classes", n_features="n_features"),
    classes=schema.Labels("n_classes") | None,
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class StatisticCertificate(SummedCertificate):
    """The certificate of a model that follows from one statistic of its rows.

    Attributes
    ----------
    kind, primal, gap
        As in `Certificate`.
    fit : object
        The numbers of the model: `fit.statistic` is summed, by class where there are classes, and `fit.objective(sums)`
        gives value and gap.
    classes : ndarray or None
        The labels of a classifier.
    unit : float
        Rounding of the objective.
    """

    fit: Any
    classes: Array | None
    unit: float

    @classmethod
    def of(cls, fit: Any, sums: Any, *, kind: str, classes: Array | None = None) -> Self:
        """Judge the numbers of a model on the sums they were computed from."""
        value, gap = fit.objective(sums)
        return cls(kind, float(value), max(float(gap), 0.0), fit, classes, _UNIT)

    def objective(self, run: Run) -> tuple[float, float]:
        """Value and gap of the stated numbers on the rows of a run."""
        if self.classes is not None:
            sums = sums_by_class(run, self.fit.statistic, len(self.classes))
        else:
            sums = run.sum(self.fit.statistic, run.origin()[: run.source.n_features])
        value, gap = self.fit.objective(sums)
        return float(value), max(float(gap), 0.0)


# How models declare theirs: `@schema.saved(certificate_=SAVED_CERTIFICATE, ...)`.
SAVED_CERTIFICATE = schema.Object(StatisticCertificate, n_classes="n_classes", n_features="n_features")
