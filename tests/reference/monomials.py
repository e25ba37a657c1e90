"""The monomials of `summula.features`, one product at a time."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import numpy as np


def lift(X, degree, *, interaction_only=False):
    """All monomials of degree 1 to `degree`, first by degree, then in dictionary order of their indices."""
    choose = combinations if interaction_only else combinations_with_replacement
    terms = [term for m in range(1, degree + 1) for term in choose(range(X.shape[1]), m)]
    return np.column_stack([X[:, list(term)].prod(axis=1) for term in terms])
