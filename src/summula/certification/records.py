"""Risk certificates: content, text, JSON form and verification.

A certificate is plain data, which can be converted to JSON and back. It contains hashes of the rows and the model, not
these themselves. `use` records which rows were used for which models, as long as the certificate exists.
"""

from __future__ import annotations

import hashlib
import json
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from summula.certification.fingerprints import data_hash, model_hash, share_seen
from summula.certification.rows import LOSSES, Loss, loss_named, mean_by_group, measure, risk_bounds
from summula.core.errors import DataError, HoldoutWarning, ParameterError, warn
from summula.core.model_files.model_file import canonical
from summula.stats.bounds import shared_delta

__all__ = ["Comparison", "RiskCertificate", "RiskVerification", "use"]

FORMAT = 1
C = TypeVar("C", "RiskCertificate", "Comparison")


_SAMPLING = {
    "rows": "The held-out rows are independent draws from the population the statement is about.",
    "groups": "The held-out groups of rows are independent draws from the population of groups the statement is about.",
    "latest rows": "Rows to come are distributed like the latest rows, which were held out, and are independent.",
}


@dataclass(frozen=True)
class RiskVerification:
    """The result of recomputing a certificate from model and data; true if it confirms the certificate.

    Attributes
    ----------
    estimate, lower, upper : float
        Recomputed values.
    confirms : bool
        Whether the rows are those of the certificate and the values agree.
    """

    estimate: float
    lower: float
    upper: float
    confirms: bool

    def __bool__(self) -> bool:
        return self.confirms


@dataclass(frozen=True)
class RiskCertificate:
    """Confidence bounds on the true risk of a fitted model: its expected loss on new rows.

    Attributes
    ----------
    estimate : float
        Mean loss on the held-out rows.
    lower, upper : float
        The true risk is below `lower` with probability at most delta, and above `upper` with probability at most delta.
    delta : float
        Error probability of each bound, accounting for the number of models compared.
    n : int
        Number of held-out rows.
    method : {"Clopper-Pearson", "betting"}
    loss : str
    range : tuple of float
        Smallest and largest possible loss.
    model : str
        Class name of the model.
    model_hash, data_hash : str
        Hashes of the model and the rows.
    n_models : int
        Number of models compared on the rows; each was tested at delta / n_models.
    chosen : int or str or None
        Index or name of the selected model.
    costs : tuple of tuple of float or None
        costs[prediction, true class], where they were given.
    sampling : {"rows", "groups", "latest rows"}
        Independent units: single rows, groups of rows, or rows later in time than all training rows.
    n_groups : int or None
        Number of held-out groups; the risk is then the mean over groups of the mean loss in a group.
    n_dropped : int
        Number of rows that were excluded because they were in the training data of the model.
    """

    estimate: float
    lower: float
    upper: float
    delta: float
    n: int
    method: str
    loss: str
    range: tuple[float, float]
    model: str
    model_hash: str
    data_hash: str
    n_models: int = 1
    chosen: int | str | None = None
    costs: tuple[tuple[float, ...], ...] | None = None
    sampling: str = "rows"
    n_groups: int | None = None
    n_dropped: int = 0
    _bound_to: Any = field(default=None, repr=False, compare=False)
    _loss: Any = field(default=None, repr=False, compare=False)
    _use: Any = field(default=None, repr=False, compare=False)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions under which the bounds hold; nothing else is assumed about model or data."""
        listed = [_SAMPLING[self.sampling], "The model was fitted, and its hyperparameters chosen, without them."]
        if self.n_dropped:
            listed.append(
                f"{self.n_dropped:,} rows that were in the training data were dropped: the statement is about rows "
                "that were not."
            )
        if self.method != "Clopper-Pearson":
            listed.append(f"All possible losses are within [{self.range[0]:g}, {self.range[1]:g}].")
        if self.n_models > 1:
            listed.append(f"The model was selected from {self.n_models} models; no others were compared on these rows.")
        return tuple(listed)

    @property
    def vacuous(self) -> bool:
        """Whether neither bound is tighter than the range of the loss."""
        return self.lower <= self.range[0] and self.upper >= self.range[1]

    @property
    def void(self) -> bool:
        """Whether the model has been refitted or changed since it was certified."""
        return self._bound_to is not None and model_hash(self._bound_to) != self.model_hash

    def verify(self, X: Any, y: Any, model: Any = None, loss: Any = None, groups: Any = None) -> RiskVerification:
        """Recompute the certificate from its rows.

        Parameters
        ----------
        X, y : as in `certify`
            The held-out rows, in any order.
        model : estimator, optional
            The certified model; required if the certificate was read from JSON.
        loss : callable, optional
            The loss, if it was a function and the certificate was read from JSON.
        groups : array-like, optional
            Group of each row, if the certificate is about groups.

        Returns
        -------
        RiskVerification
            True if these are the rows of the certificate and the recomputed values agree.
        """
        model = self._bound_to if model is None else model
        check_bound(self, model)
        loss = self._loss_again(loss)
        if (groups is None) != (self.n_groups is None):
            raise ParameterError(
                "The certificate is about groups of rows: verify(X, y, groups=...)."
                if groups is None
                else "The certificate is about single rows: verify(X, y) without groups."
            )
        rows = measure([model], X, y, loss)
        if self.n_dropped:
            from summula.certification.holdout import fresh_rows

            fresh = fresh_rows([model], rows)
            rows, groups = rows.only(fresh), None if groups is None else np.asarray(groups)[fresh]
        if groups is not None:
            rows, loss = mean_by_group(rows, groups), replace(loss, binary=False)
        data = data_hash(rows.hashes)
        found = risk_bounds(rows, loss, shared_delta(self.delta, self.n_models), self.model_hash, data)
        # Predictions on another machine or with another number of threads may differ in the last digits.
        slack = 1e-6 * (loss.high - loss.low)
        close = np.allclose(found, (self.estimate, self.lower, self.upper), rtol=0.0, atol=slack)
        return RiskVerification(*found, confirms=bool(close) and data == self.data_hash)

    def _loss_again(self, loss: Any) -> Loss:
        if loss is not None:
            return loss_named(loss, self.range, None)
        if self._loss is not None:
            return cast(Loss, self._loss)
        if self.loss == "zero_one":
            return loss_named("zero_one", None, self.costs)
        if self.loss not in LOSSES:
            raise ParameterError(
                f"The loss {self.loss!r} was a function, which is not stored in JSON: verify(X, y, loss=...)."
            )
        return loss_named(self.loss, self.range, None)

    def to_json(self) -> str:
        """Return the certificate as canonical JSON; equal certificates have equal texts.

        It includes the `assumptions` unless rows are independent draws, which is the default assumption.
        """
        tree: dict[str, Any] = {"format": FORMAT, "kind": "risk certificate", **_plain(self)}
        return canonical(tree | {"digest": _digest(tree)})

    @classmethod
    def from_json(cls, text: str | bytes, model: Any = None) -> RiskCertificate:
        """Read a certificate from its JSON text.

        Parameters
        ----------
        text : str or bytes
        model : estimator, optional
            The certified model; its hash must equal the one in the certificate.

        Returns
        -------
        RiskCertificate

        Raises
        ------
        DataError
            The text is truncated, edited, or not a certificate, or the model is a different one.
        """
        certificate = cls(**_parsed(text), _bound_to=model)
        if model is not None:
            check_bound(certificate, model)
        return use(certificate, None, (certificate.model_hash,), quiet=True)

    def __str__(self) -> str:
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        what = f"{self.loss} loss" if self.costs is None else "cost"
        who = f"{what} of {self.model}, {self.n:,} held-out rows{groups}, {self.method}"
        if self.n_dropped:
            who += f"; {self.n_dropped:,} rows of the training data dropped"
        if self.void:
            return f"void: the model was fitted or changed after it was certified ({who})"
        sure = confidence(self.delta)
        if self.vacuous:
            half = math.ceil((math.log(self.n_models) - math.log(self.delta)) / math.log(2))
            return (
                f"vacuous: at confidence {sure} {self.n:,} row{'s' if self.n > 1 else ''} say nothing about the risk "
                f"(even without a loss, {half} are needed to halve its range)\n{who}"
            )
        low, high = rounded(self.lower, self.upper)
        upper = f"at most {high}" if self.upper < self.range[1] else "upper bound vacuous"
        lower = f"at least {low}" if self.lower > self.range[0] else "lower bound vacuous"
        choice = f"; chosen from {self.n_models} models" if self.n_models > 1 else ""
        return f"true risk {upper}, {lower} (each with confidence {sure}); observed {self.estimate:.6g}\n{who}{choice}"


@dataclass(frozen=True)
class Comparison:
    """Confidence bounds on the difference of the true risks of two models, from the same rows.

    Attributes
    ----------
    estimate : float
        Mean loss of the first model minus that of the second.
    lower, upper : float
        One-sided bounds, each with error probability at most delta.
    p_value : float or None
        p-value of the hypothesis of equal error rates, by McNemar's exact test; None if losses are not 0 and 1.
    better : {"first", "second"} or None
        The better model, with confidence 1 - delta; None if the rows are inconclusive.
    n, delta, method, loss, range, models, model_hashes, data_hash
        As in `RiskCertificate`.
    """

    estimate: float
    lower: float
    upper: float
    p_value: float | None
    n: int
    delta: float
    method: str
    loss: str
    range: tuple[float, float]
    models: tuple[str, str]
    model_hashes: tuple[str, str]
    data_hash: str
    _use: Any = field(default=None, repr=False, compare=False)

    @property
    def better(self) -> str | None:
        return "first" if self.upper < 0 else "second" if self.lower > 0 else None

    def __str__(self) -> str:
        low, high = rounded(self.lower, self.upper)
        verdict = {"first": "the first is better", "second": "the second is better", None: "the rows are inconclusive"}
        test = "" if self.p_value is None else f"; McNemar p = {self.p_value:.3g}"
        return (
            f"risk of {self.models[0]} minus risk of {self.models[1]}: {self.estimate:.6g}, at least {low}, at most "
            f"{high} (each with confidence {confidence(self.delta)}): {verdict[self.better]}{test}"
        )


# ------------------------------------------------------------------------------------------------------------- words


def confidence(delta: float) -> str:
    """Format 1 - delta in percent, rounded down; for a tiny delta as a difference, with delta rounded up."""
    if delta < 1e-6:
        text = f"{delta:.2g}"
        return f"1 - {text if float(text) >= delta else f'{math.nextafter(delta, 1.0) * 1.05:.2g}'}"
    digits = max(0, math.ceil(-math.log10(delta)) - 2) + 1
    floored = math.floor(round((1 - delta) * 100 * 10**digits, 6)) / 10**digits
    return f"{floored:.{digits}f}".rstrip("0").rstrip(".") + " %"


def rounded(lower: float, upper: float) -> tuple[str, str]:
    """Format bounds with a few digits, rounded outward."""
    digits = max(0, 2 - math.floor(math.log10(max(upper - lower, 1e-12))))
    unit = 10.0**digits
    # Values that are integers up to rounding are not changed.
    low, high = math.floor(lower * unit + 1e-9), math.ceil(upper * unit - 1e-9)
    low, high = low - (low / unit > lower), high + (high / unit < upper)
    return f"{low / unit:.{digits}f}", f"{high / unit:.{digits}f}"


def check_bound(certificate: RiskCertificate, model: Any) -> None:
    """Raise if a model is not the one that was certified, or was changed since."""
    if model is None:
        raise DataError("A certificate read from JSON does not contain the model: verify(X, y, model=...).")
    if model_hash(model) != certificate.model_hash:
        raise DataError(
            f"This {type(model).__name__} is not the model that was certified: it was refitted or changed, which "
            "voids the certificate; certify it again on fresh rows."
        )


# -------------------------------------------------------------------------------------------------------------- JSON


def _plain(certificate: RiskCertificate) -> dict[str, Any]:
    names = [f.name for f in fields(certificate) if not f.name.startswith("_")]
    # Fields added in later versions are omitted if they have their default, so that older texts stay the same.
    later = {"sampling": "rows", "n_groups": None, "n_dropped": 0}
    found = {name: _listed(getattr(certificate, name)) for name in names}
    tree = {name: value for name, value in found.items() if name not in later or value != later[name]}
    return tree if certificate.sampling == "rows" else tree | {"assumptions": list(certificate.assumptions)}


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _digest(tree: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(tree).encode()).hexdigest()


def _parsed(text: str | bytes) -> dict[str, Any]:
    """Parse and validate the fields of a certificate."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(tree := dict(pairs)) != len(pairs):
            raise ValueError("it has a duplicate key")
        return tree

    def refuse(constant: str) -> Any:
        raise ValueError(f"it contains {constant}")

    try:
        tree = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        if not isinstance(tree, dict) or tree.get("kind") != "risk certificate":
            raise ValueError("its kind is not 'risk certificate'")
        if type(tree["format"]) is not int or tree["format"] > FORMAT:
            raise ValueError(f"its format {tree['format']!r} is newer than {FORMAT}: upgrade summula")
        if tree.pop("digest", None) != _digest(tree):
            raise ValueError("it was edited: its digest does not match")
        return _checked({name: value for name, value in tree.items() if name not in ("format", "kind")})
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"The text is not a valid certificate ({reason}): restore a backup or certify again.") from None


def _checked(tree: dict[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(RiskCertificate) if not f.name.startswith("_")}
    tree = {"sampling": "rows", "n_groups": None, "n_dropped": 0, **tree}
    stated = tree.pop("assumptions", [])  # for readers: they follow from the other fields
    if not isinstance(stated, list) or not all(isinstance(one, str) for one in stated):
        raise ValueError("'assumptions' is not a list of sentences")
    if unmatched := sorted(known ^ tree.keys()):
        raise ValueError(f"{unmatched[0]!r} is missing or unknown")
    for names, is_valid, fault in _FIELDS:
        for name in names:
            if not is_valid(tree[name]):
                raise ValueError(f"{name!r} {fault}")
    for name in _NUMBERS:
        tree[name] = float(tree[name])
    low, high = (float(value) for value in tree["range"])
    tree["range"] = (low, high)
    if not (low <= tree["lower"] <= tree["estimate"] <= tree["upper"] <= high and 0 < tree["delta"] < 1):
        raise ValueError("its numbers contradict each other")
    if tree["costs"] is not None:
        tree["costs"] = tuple(tuple(float(cost) for cost in row) for row in tree["costs"])
    return tree


_NUMBERS = ("estimate", "lower", "upper", "delta")
_FIELDS: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (_NUMBERS, lambda value: type(value) in (int, float) and math.isfinite(value), "is not a finite number"),
    (("n", "n_models"), lambda value: type(value) is int and value > 0, "is not a positive integer"),
    (("n_groups",), lambda value: value is None or (type(value) is int and value > 0), "is not a positive integer"),
    (("method", "loss", "model", "model_hash", "data_hash"), lambda value: isinstance(value, str), "is not a string"),
    (("n_dropped",), lambda value: type(value) is int and value >= 0, "is not a count"),
    (("sampling",), lambda value: value in _SAMPLING, "is unknown"),
    (("chosen",), lambda value: value is None or type(value) in (int, str), "is neither a number nor a name"),
)


# ------------------------------------------------------------------------------------------------------------ re-use


class Use:
    """Record of the rows that were used for models; it exists as long as the certificate that refers to it."""

    def __init__(self, rows: NDArray[np.uint64] | None, data: str, models: frozenset[str]) -> None:
        self.rows, self.data, self.models = rows, data, models


_USES: weakref.WeakSet[Use] = weakref.WeakSet()


def use(certificate: C, rows: NDArray[np.uint64] | None, models: tuple[str, ...], *, quiet: bool = False) -> C:
    """Record the rows of a certificate, and warn if they were used for other models before."""
    here = Use(rows, certificate.data_hash, frozenset(models))
    reused = 0.0
    for earlier in list(_USES):
        if quiet or earlier.models <= here.models:
            continue
        if earlier.data == here.data:
            reused = 1.0
        elif earlier.rows is not None and rows is not None:
            reused = max(reused, share_seen(rows, earlier.rows))
    if reused:
        warn(
            f"{reused:.2%} of these rows were used for another model before; if this one was fitted or selected "
            "after that, its bounds may not hold: use fresh rows, or certify_best([...]) for all models at once "
            "(delta was not changed).",
            HoldoutWarning,
        )
    _USES.add(here)
    object.__setattr__(certificate, "_use", here)
    return certificate
