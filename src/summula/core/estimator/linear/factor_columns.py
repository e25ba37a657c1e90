"""Text columns in linear models: factors with a coefficient for each level except the first."""

from __future__ import annotations

from typing import Any, ClassVar

from summula.core.errors import DataError
from summula.core.estimator.run import Run
from summula.core.model_files import schema

__all__ = ["LEVEL", "FactorTerms", "counts_terms", "term_count"]

LEVEL = schema.Text() | schema.Real() | schema.Flag()  # of a factor, in saved models


def term_count(model: Any, n_features: int) -> int:
    """Return the number of coefficients of a linear score: a factor has one for each level except the first."""
    return n_features + sum(len(known) - 2 for known in getattr(model, "factor_levels_", {}).values())


def counts_terms(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: the number of coefficients matches the terms of the features."""
    terms = term_count(model, sizes["n_features"])
    if sizes["n_terms"] != terms:
        return f"coef_ has {sizes['n_terms']} columns, but the features give {terms}"
    return None


def _levels_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Validation rule of saved models: factors are features, each with a coefficient per level except the first."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if strange := getattr(model, "factor_levels_", {}).keys() - set(names):
        return f"factor_levels_ names {min(strange)!r}, which is not one of the features"
    return counts_terms(model, sizes)


@schema.state(
    _levels_rule,
    factor_levels_=schema.Maybe(schema.Dict(schema.Text(), schema.Items(LEVEL, low=2))),
    coef_names_=schema.Maybe(schema.Items(schema.Text(), "n_terms")),
)
class FactorTerms:
    """Mixin of linear models that treat text columns as factors.

    Fitted attributes are `factor_levels_`, the levels of each factor, the first one being the reference, and
    `coef_names_`: numeric columns first, then indicators, factor by factor.
    """

    _factored: ClassVar[bool] = True
    factor_levels_: dict[str, tuple[Any, ...]]
    coef_names_: tuple[str, ...]

    def _name_terms(self, run: Run) -> None:
        self.coef_names_ = run.source.names or tuple(f"x{j}" for j in range(run.source.n_features))

    def _check_levels(self, other: Any) -> None:
        """Raise if models to merge have factors with different levels."""
        if getattr(self, "factor_levels_", {}) != getattr(other, "factor_levels_", {}):
            raise DataError(
                "Models to merge must have the same levels of their factors: fit both on rows that have all levels, or "
                "use partial_fit."
            )
