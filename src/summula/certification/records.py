"""What a certificate of true error says, keeps, prints, and how it is checked.

A certificate is plain data: it goes to JSON and back. Rows, and the model it is bound to, stay outside the text; their
hashes are in it. `use` remembers, as long as a certificate lives, which rows were looked at for which models.
"""

from __future__ import annotations

import hashlib
import json
import math
import weakref
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
    """A certificate recomputed from model and data. It is true when it confirms the certificate.

    Attributes
    ----------
    estimate, lower, upper : float
        What the rows say.
    confirms : bool
        Whether they are the rows of the certificate and say what it says.
    """

    estimate: float
    lower: float
    upper: float
    confirms: bool

    def __bool__(self) -> bool:
        return self.confirms


@dataclass(frozen=True)
class RiskCertificate:
    """Bounds on the true risk of a fitted model: its mean loss on rows it has not met.

    Attributes
    ----------
    estimate : float
        The mean loss on the held-out rows.
    lower, upper : float
        The true risk is below `lower` with probability at most delta, and above `upper` with probability at most delta.
    delta : float
        For the statement as a whole, however many models it was chosen from.
    n : int
        How many held-out rows there were.
    method : {"Clopper-Pearson", "betting"}
    loss : str
    range : tuple of float
        The smallest and largest loss there can be.
    model : str
        The class of the model.
    model_hash, data_hash : str
        What the certificate is bound to.
    n_models : int
        How many models the rows chose from; each was tested at delta / n_models.
    chosen : int or str or None
        Which of them it is about.
    costs : tuple of tuple of float or None
    sampling : {"rows", "groups", "latest rows"}
        What was drawn independently: single rows, whole groups of rows, or rows after all those that were learned from.
    n_groups : int or None
        How many groups were held out; the risk is then the mean over groups of the mean loss in a group.
    n_dropped : int
        How many more rows were given, which were in the training data of the model and do not count.
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
        """What has to be true for the bounds to hold; nothing else is assumed, of model or data."""
        said = [_SAMPLING[self.sampling], "The model was fitted, and its settings chosen, without them."]
        if self.n_dropped:
            said.append(
                f"{self.n_dropped:,} rows that were in the training data were dropped: the statement is about rows "
                "that were not."
            )
        if self.method != "Clopper-Pearson":
            said.append(f"No row there can be has a loss outside [{self.range[0]:g}, {self.range[1]:g}].")
        if self.n_models > 1:
            said.append(f"The model is one of the {self.n_models} that were compared on these rows, and of no others.")
        return tuple(said)

    @property
    def vacuous(self) -> bool:
        """Whether neither bound says more than the range does."""
        return self.lower <= self.range[0] and self.upper >= self.range[1]

    @property
    def void(self) -> bool:
        """Whether the model has been fitted again, or changed, since it was certified."""
        return self._bound_to is not None and model_hash(self._bound_to) != self.model_hash

    def verify(self, X: Any, y: Any, model: Any = None, loss: Any = None, groups: Any = None) -> RiskVerification:
        """Recompute the certificate from its rows.

        Parameters
        ----------
        X, y : as in `certify`
            The held-out rows, in any order.
        model : estimator, optional
            The certified model; needed when the certificate came from a text.
        loss : callable, optional
            The loss, where it was a function and the certificate came from a text.
        groups : array-like, optional
            The group of each row, where the certificate is about groups.

        Returns
        -------
        RiskVerification
            True when these are the rows of the certificate and they say what it says.
        """
        model = self._bound_to if model is None else model
        check_bound(self, model)
        meant = self._loss_again(loss)
        if (groups is None) != (self.n_groups is None):
            raise ParameterError(
                "The certificate is about groups of rows: verify(X, y, groups=...)."
                if groups is None
                else "The certificate is about single rows: verify(X, y) without groups."
            )
        rows = measure([model], X, y, meant)
        if self.n_dropped:
            from summula.certification.holdout import fresh_rows

            fresh = fresh_rows([model], rows)
            rows, groups = rows.only(fresh), None if groups is None else np.asarray(groups)[fresh]
        if groups is not None:
            rows, meant = mean_by_group(rows, groups), replace(meant, binary=False)
        data = data_hash(rows.hashes)
        found = risk_bounds(rows, meant, shared_delta(self.delta, self.n_models), self.model_hash, data)
        # Predictions of another machine or another number of threads differ in their last digits.
        slack = 1e-6 * (meant.high - meant.low)
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
                f"The loss {self.loss!r} was a function, which no text carries: verify(X, y, loss=...)."
            )
        return loss_named(self.loss, self.range, None)

    def to_json(self) -> str:
        """The certificate as a JSON text; equal certificates have equal texts."""
        tree: dict[str, Any] = {"format": FORMAT, "kind": "risk certificate", **_plain(self)}
        return canonical(tree | {"digest": _digest(tree)})

    @classmethod
    def from_json(cls, text: str | bytes, model: Any = None) -> RiskCertificate:
        """Read a certificate from its JSON text.

        Parameters
        ----------
        text : str or bytes
        model : estimator, optional
            The certified model, to bind the certificate to again; it must have the hash the certificate names.

        Returns
        -------
        RiskCertificate

        Raises
        ------
        DataError
            The text is cut short, edited, or no certificate; or the model is another.
        """
        certificate = cls(**_parsed(text), _bound_to=model)
        if model is not None:
            check_bound(certificate, model)
        return use(certificate, None, (certificate.model_hash,), quiet=True)

    def __str__(self) -> str:
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        who = f"{self.loss} loss of {self.model}, {self.n:,} held-out rows{groups}, {self.method}"
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
    """Bounds on how much the true risk of one model exceeds that of another, from the same rows.

    Attributes
    ----------
    estimate : float
        Mean loss of the first model minus that of the second.
    lower, upper : float
        Each is wrong with probability at most delta.
    p_value : float or None
        Of "both have the same error", by McNemar's exact test; None when losses are not 0 and 1.
    better : {"first", "second"} or None
        Which model is better, with confidence 1 - delta for each answer; None when the rows do not tell.
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
        verdict = {"first": "the first is better", "second": "the second is better", None: "the rows do not tell"}
        test = "" if self.p_value is None else f"; McNemar p = {self.p_value:.3g}"
        return (
            f"risk of {self.models[0]} minus risk of {self.models[1]}: {self.estimate:.6g}, at least {low}, at most "
            f"{high} (each with confidence {confidence(self.delta)}): {verdict[self.better]}{test}"
        )


# ------------------------------------------------------------------------------------------------------------- words


def confidence(delta: float) -> str:
    """1 - delta in percent, rounded down; below a millionth as a difference, with delta rounded up."""
    if delta < 1e-6:
        text = f"{delta:.2g}"
        return f"1 - {text if float(text) >= delta else f'{math.nextafter(delta, 1.0) * 1.05:.2g}'}"
    digits = max(0, math.ceil(-math.log10(delta)) - 2) + 1
    floored = math.floor(round((1 - delta) * 100 * 10**digits, 6)) / 10**digits
    return f"{floored:.{digits}f}".rstrip("0").rstrip(".") + " %"


def rounded(lower: float, upper: float) -> tuple[str, str]:
    """Bounds in a few digits, rounded away from each other."""
    digits = max(0, 2 - math.floor(math.log10(max(upper - lower, 1e-12))))
    unit = 10.0**digits
    # A number that is whole but for rounding stays what it is.
    low, high = math.floor(lower * unit + 1e-9), math.ceil(upper * unit - 1e-9)
    low, high = low - (low / unit > lower), high + (high / unit < upper)
    return f"{low / unit:.{digits}f}", f"{high / unit:.{digits}f}"


def check_bound(certificate: RiskCertificate, model: Any) -> None:
    """Raise when a model is not, or no longer, the one that was certified."""
    if model is None:
        raise DataError("A certificate that came from a text knows no model: verify(X, y, model=...).")
    if model_hash(model) != certificate.model_hash:
        raise DataError(
            f"This {type(model).__name__} is not the model that was certified: it was fitted or changed since, which "
            "voids the certificate; certify it again, on fresh rows."
        )


# -------------------------------------------------------------------------------------------------------------- JSON


def _plain(certificate: RiskCertificate) -> dict[str, Any]:
    wanted = [f.name for f in fields(certificate) if not f.name.startswith("_")]
    # (Fields that were added later are written only where they say something, so that older texts stay the same.)
    later = {"sampling": "rows", "n_groups": None, "n_dropped": 0}
    found = {name: _listed(getattr(certificate, name)) for name in wanted}
    return {name: value for name, value in found.items() if name not in later or value != later[name]}


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


def _digest(tree: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(tree).encode()).hexdigest()


def _parsed(text: str | bytes) -> dict[str, Any]:
    """The fields of a certificate, once the text has proved to be one."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(tree := dict(pairs)) != len(pairs):
            raise ValueError("a key stands there twice")
        return tree

    def refuse(constant: str) -> Any:
        raise ValueError(f"it holds {constant}")

    try:
        tree = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
        if not isinstance(tree, dict) or tree.get("kind") != "risk certificate":
            raise ValueError("it does not say that it is one")
        if type(tree["format"]) is not int or tree["format"] > FORMAT:
            raise ValueError(f"its format {tree['format']!r} is newer than {FORMAT}: upgrade summula")
        if tree.pop("digest", None) != _digest(tree):
            raise ValueError("it was edited: its digest does not match")
        return _checked({name: value for name, value in tree.items() if name not in ("format", "kind")})
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError, AttributeError) as error:
        reason = " ".join(str(error).split())[:160]
        raise DataError(f"The text is no whole certificate ({reason}): restore a copy, or certify again.") from None


def _checked(tree: dict[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(RiskCertificate) if not f.name.startswith("_")}
    tree = {"sampling": "rows", "n_groups": None, "n_dropped": 0, **tree}
    if odd := sorted(known ^ tree.keys()):
        raise ValueError(f"{odd[0]!r} is missing or unknown")
    for name in ("estimate", "lower", "upper", "delta"):
        if type(tree[name]) not in (int, float) or not math.isfinite(tree[name]):
            raise ValueError(f"{name!r} is no number")
        tree[name] = float(tree[name])
    for name in ("n", "n_models", "n_groups"):
        if name == "n_groups" and tree[name] is None:
            continue
        if type(tree[name]) is not int or tree[name] < 1:
            raise ValueError(f"{name!r} is no number of things")
    for name in ("method", "loss", "model", "model_hash", "data_hash"):
        if not isinstance(tree[name], str):
            raise ValueError(f"{name!r} is no text")
    if type(tree["n_dropped"]) is not int or tree["n_dropped"] < 0:
        raise ValueError("'n_dropped' is not a count")
    if tree["sampling"] not in _SAMPLING:
        raise ValueError("'sampling' is unknown")
    low, high = (float(value) for value in tree["range"])
    tree["range"] = (low, high)
    if not (low <= tree["lower"] <= tree["estimate"] <= tree["upper"] <= high and 0 < tree["delta"] < 1):
        raise ValueError("its numbers contradict each other")
    if tree["costs"] is not None:
        tree["costs"] = tuple(tuple(float(cost) for cost in row) for row in tree["costs"])
    if not (tree["chosen"] is None or type(tree["chosen"]) in (int, str)):
        raise ValueError("'chosen' is neither a number nor a name")
    return tree


# ------------------------------------------------------------------------------------------------------------ re-use


class Use:
    """Which rows were looked at for which models; lives as long as the certificate that holds it."""

    def __init__(self, rows: NDArray[np.uint64] | None, data: str, models: frozenset[str]) -> None:
        self.rows, self.data, self.models = rows, data, models


_USES: weakref.WeakSet[Use] = weakref.WeakSet()


def use(certificate: C, rows: NDArray[np.uint64] | None, models: tuple[str, ...], *, quiet: bool = False) -> C:
    """Remember the rows of a certificate, and warn when they were looked at for models that are not among these."""
    here = Use(rows, certificate.data_hash, frozenset(models))
    seen = 0.0
    for earlier in list(_USES):
        if quiet or earlier.models <= here.models:
            continue
        if earlier.data == here.data:
            seen = 1.0
        elif earlier.rows is not None and rows is not None:
            seen = max(seen, share_seen(rows, earlier.rows))
    if seen:
        warn(
            f"{seen:.2%} of these rows were looked at for another model before; if this one was made or chosen "
            "after that, its bounds need not hold: take fresh rows, or certify_best([...]) all models at once "
            "(delta was not changed).",
            HoldoutWarning,
        )
    _USES.add(here)
    object.__setattr__(certificate, "_use", here)
    return certificate
