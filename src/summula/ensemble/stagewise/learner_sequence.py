"""Boosted models as sequences of their fitted learners, as scikit-learn's ensembles are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["LearnerSequence"]


class LearnerSequence:
    """Mixin of models with `estimators_`: `len(model)`, `model[i]` and iteration."""

    estimators_: Any

    def __len__(self) -> int:
        """Return the number of entries of `estimators_`."""
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        """Return an entry of `estimators_`."""
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over `estimators_`."""
        return iter(self.estimators_)
