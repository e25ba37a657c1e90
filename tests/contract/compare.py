"""Comparing fitted models: every public attribute, to the bit or to rounding."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from summula.cluster.certificate import KMeansCertificate
from summula.core.numerics.certificate import Certificate
from summula.linear_model.perceptron import PerceptronCertificate
from summula.optimize.solvers.stochastic_descent.certificate import DescentCertificate
from summula.svm.dual.certificate import SupportCertificate

# What rounding may change in a well-conditioned fit: a few hundred units in the last place (sums of a few thousand
# terms in another order differ by about sqrt(n) units; the condition number of the data is below 10).
ROUNDING = 1e-11


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return all public attributes that end in "_", including properties, except those unavailable for this fit."""
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}  # (`lambda_` is one)
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_") and name not in parameters]
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def without_names(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Only frames have names: exclude them when an array is compared with a frame."""
    return {name: value for name, value in attributes.items() if name not in ("feature_names_in_", "coef_names_")}


def assert_same_bits(a: Any, b: Any, where: str = "value") -> None:
    """Assert equal types, shapes, dtypes and bits."""
    assert type(a) is type(b), f"{where}: {type(a)} and {type(b)}"
    if isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype, f"{where}: {a.dtype} and {b.dtype}"
        assert a.shape == b.shape, f"{where}: shapes {a.shape} and {b.shape}"
        if a.dtype == object:
            assert_same_bits(a.tolist(), b.tolist(), where)  # labels, or estimators
        else:
            assert a.tobytes() == b.tobytes(), f"{where}: {_difference(a, b)}"
    elif sparse.issparse(a):
        for part in ("indptr", "indices", "data"):
            assert_same_bits(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif inner := _parts(a):
        theirs = _parts(b)
        assert inner.keys() == theirs.keys(), f"{where}: {list(inner)} and {list(theirs)}"
        for name, value in inner.items():
            assert_same_bits(value, theirs[name], f"{where}.{name}")
    else:
        assert repr(a) == repr(b), f"{where}: {a!r} and {b!r}"


def assert_close(a: Any, b: Any, *, rounding: float = ROUNDING, where: str = "value") -> None:
    """Assert equal names and shapes; numbers equal up to `rounding` relative to the largest entry of their array."""
    if isinstance(a, Certificate):
        _assert_certificates_close(a, b, rounding, where)
    elif sparse.issparse(a) or sparse.issparse(b):
        assert_close(_dense(a), _dense(b), rounding=rounding, where=where)
    elif isinstance(a, np.ndarray | np.generic | float | int) and not isinstance(a, bool):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape, f"{where}: shapes {a.shape} and {b.shape}"
        if a.dtype.kind not in "fiub":
            assert_close(a.tolist(), b.tolist(), rounding=rounding, where=where)
            return
        largest = max(np.abs(c[np.isfinite(c)]).max(initial=0.0) for c in (a, b))
        np.testing.assert_allclose(a, b, rtol=0, atol=rounding * largest, err_msg=where)
    elif inner := _parts(a):
        theirs = _parts(b)
        assert inner.keys() == theirs.keys(), f"{where}: {list(inner)} and {list(theirs)}"
        for name, value in inner.items():
            # dual_gap_ is scikit-learn's name for the gap of the certificate; whether the last step of an iteration
            # reaches the tolerance, and so their number, is decided by rounding.
            if name not in ("dual_gap_", "n_iter_"):
                assert_close(value, theirs[name], rounding=rounding, where=f"{where}.{name}")
    else:
        assert repr(a) == repr(b), f"{where}: {a!r} and {b!r}"


def assert_equivalent(case: Any, expected: Any, model: Any) -> None:
    """The same model of the same rows, repeated, in another order or sparse: but for attributes of single rows."""
    rounding = max(case.apart, ROUNDING)
    assert_close(_of_all_rows(case, expected), _of_all_rows(case, model), rounding=rounding)
    if "certificate_" in case.of_rows:
        np.testing.assert_allclose(model.certificate_.primal, expected.certificate_.primal, rtol=rounding)


def _of_all_rows(case: Any, model: Any) -> dict[str, Any]:
    return {name: value for name, value in fitted_attributes(model).items() if name not in case.of_rows}


def _assert_certificates_close(a: Certificate, b: Certificate, rounding: float, where: str) -> None:
    """The gap of a fit is itself rounding: small relative to the objective; of descent that stops early it must be equal.

    What intercepts have lost by rounding is small relative to them, too.
    """
    mine, theirs = _parts(a), _parts(b)
    lost = [np.zeros(1) if one is None else one for one in (mine.pop("lost", None), theirs.pop("lost", None))]
    if lost[0].any() or lost[1].any():
        largest = 1.0 + np.abs(mine["intercept"]).max() + np.abs(mine["coef"]).max()
        np.testing.assert_allclose(*lost, rtol=0, atol=rounding * largest, err_msg=f"{where}.lost")
    gaps, small = (mine.pop("gap"), theirs.pop("gap")), rounding * (abs(a.primal) + mine.get("scale", 0.0))
    assert min(gaps) >= 0, f"{where}.gap"
    if a.kind == "stationary" and np.inf in gaps:  # the distance to the optimum is unknown
        assert gaps == (np.inf, np.inf), f"{where}.gap"
        return assert_close(mine, theirs, rounding=rounding, where=where)
    far = (
        abs(gaps[0] - gaps[1])
        if isinstance(a, DescentCertificate | KMeansCertificate | PerceptronCertificate | SupportCertificate)
        else max(gaps)
    )
    assert far <= small, f"{where}.gap"
    assert_close(mine, theirs, rounding=rounding, where=where)


def _parts(value: Any) -> dict[Any, Any]:
    """Return the items of a container, by name or index; empty for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, BaseEstimator):  # one that a model holds
        return dict(vars(value))
    return {}


def _dense(value: Any) -> Any:
    return value.toarray() if sparse.issparse(value) else value


def _difference(a: Any, b: Any) -> str:
    if a.dtype.kind != "f":
        return f"{a!r} and {b!r}"
    largest = np.abs(a).max(initial=0.0)
    return f"differ by {np.abs(np.asarray(a) - b).max(initial=0.0):.3g} relative to {largest:.3g}"
