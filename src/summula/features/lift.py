"""Base class of lifting maps, whose columns and names follow from those of the features."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.errors import ParameterError
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema

__all__ = ["Lift", "finite_numbers", "monomial_name", "own_rows"]


def _counts_columns(model: Any, sizes: schema.Sizes) -> str | None:
    expected = model._n_lifted(sizes["n_features"])
    if model.n_output_features_ != expected:
        return f"n_output_features_ is {model.n_output_features_}, but there are {expected} lifted features"
    return None


@inherit_docs()
@schema.state(_counts_columns, n_output_features_=schema.Integer(1, 2**31 - 1))
class Lift(Transformer):
    """Map rows into a space of more dimensions, where linear models of the lifted rows are nonlinear ones of the rows.

    Attributes
    ----------
    n_output_features_ : int
        Number of lifted features.
    n_features_in_, feature_names_in_ : as in scikit-learn
    """

    @abstractmethod
    def _n_lifted(self, n_features: int) -> int:
        """Return the number of lifted features."""

    @abstractmethod
    def _names(self, names: list[str]) -> list[str]:
        """Return the names of the lifted features, given those of the features."""

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the number and names of the features.

        Parameters
        ----------
        y : ignored
        """
        with self._fitting(X, needs_y=False) as run:
            self._store_size(run)
        return self

    def _store_size(self, run: Run) -> None:
        """Check the rows, and store the number of lifted features."""
        run.raise_if_not_finite()
        d = run.source.n_features
        n = self._n_lifted(d)
        if not 0 < n <= np.iinfo(np.int32).max:
            raise ParameterError(self._too_many(n, d))
        self.n_output_features_ = n

    def _coefficients(self, coef: Any) -> NDArray[np.float64]:
        """Return the coefficients of one linear model of the lifted rows as a vector."""
        check_is_fitted(self)
        w = finite_numbers(coef, "coef")
        n = self.n_output_features_
        if w.shape not in ((n,), (1, n)):
            raise ParameterError(
                f"coef must have one coefficient for each of {n} lifted features; got an array of shape {w.shape}. For "
                "several classes, pass one row of coef_ at a time."
            )
        return w.ravel()

    def _too_many(self, n: int, d: int) -> str:
        return f"{d} columns would become {n}, which is too many: use fewer columns."

    def _n_outputs(self) -> int:
        return int(self.n_output_features_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the lifted features, such as "x0^2 x1"."""
        check_is_fitted(self)
        return np.array(self._names(_input_names(self, input_features)), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def finite_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Return coefficients as an array of finite numbers."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must contain numbers; got {values!r}.") from None
    if not np.isfinite(found).all():
        raise ParameterError(f"{name} must contain finite numbers.")
    return found


def own_rows(X: Any) -> Any:
    """Return a copy of a CSR matrix whose values are stored once and in order."""
    X = X.tocsr(copy=True)
    X.sum_duplicates()
    return X


def monomial_name(term: tuple[int, ...], names: list[str]) -> str:
    """Return the name of a product of features, given by their indices."""
    powers = [(j, term.count(j)) for j in dict.fromkeys(term)]
    return " ".join(names[j] if power == 1 else f"{names[j]}^{power}" for j, power in powers)


def _input_names(estimator: Any, given: Any) -> list[str]:
    known = getattr(estimator, "feature_names_in_", None)
    if given is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)] if known is None else [str(n) for n in known]
    names = [str(name) for name in given]
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            f"input_features should have length equal to number of features ({estimator.n_features_in_}), "
            f"got {len(names)}"
        )
    if known is not None and names != [str(n) for n in known]:
        raise ValueError("input_features is not equal to feature_names_in_")
    return names
