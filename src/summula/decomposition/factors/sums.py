"""The covariance matrix for factor analysis, summed over rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from summula.core.data.layout.blocks import product
from summula.core.errors import ParameterError
from summula.core.estimator.run import Run
from summula.core.numerics.statistics import Gram
from summula.decomposition.factors.spread import Spread, of_matrix, of_rows
from summula.decomposition.principal.axes import Problem
from summula.decomposition.principal.gathered import gather
from summula.decomposition.principal.solver import sum_products

__all__ = ["Data", "read", "spread_about", "spread_of"]

Array = NDArray[np.float64]

KEPT_COLUMNS = 512  # number of columns up to which the covariance matrix is formed even for fewer rows
_MOST_COLUMNS = 16_384


@dataclass(frozen=True)
class Data:
    """Mean and spread of the rows of a run, and their sums, if formed.

    `about` is the spread about the rounded mean, which is the one stored in the model.
    """

    mean: Array
    spread: Spread
    about: Spread
    count: int
    sums: Gram | None


def read(run: Run) -> Data:
    """Compute in one pass products of columns, or gather the rows if there are fewer rows than columns."""
    n, d = run.source.n_rows, run.source.n_features
    unit = float(np.finfo(run.source.dtype).eps)
    if d <= KEPT_COLUMNS or n > d:
        if d > _MOST_COLUMNS:
            raise ParameterError(f"The covariance matrix of {d} columns is too large: use fewer than {_MOST_COLUMNS}.")
        return spread_of(sum_products(run, Problem(center=True, scale=False), each=True), unit)
    origin = run.origin()[:d]
    rows, weight = gather(run, origin)
    if not np.isfinite(rows).all():
        run.raise_if_not_finite()
    W = float(weight.sum())
    drift = product(rows.T, weight[:, None])[:, 0] / W
    mean, root = origin + drift, np.sqrt(weight)[:, None]
    spread, about = (of_rows((rows - centre) * root, W, _nothing(mean, unit)) for centre in (drift, mean - origin))
    return Data(mean, spread, about, len(rows), None)


def spread_of(gram: Gram, unit: float) -> Data:
    """Return mean and spread from the sums."""
    mean, W = gram.mean, gram.weight
    spread, about = (
        of_matrix(products / W, W, _nothing(mean, unit)) for products in (gram.centred(), gram.recentre(mean).products)
    )
    return Data(mean, spread, about, gram.count, gram)


def _nothing(mean: Array, unit: float) -> Array:
    """Return a bound on variances that are due to rounding of the values."""
    return np.square(4 * unit * np.abs(mean))


def spread_about(run: Run, mean: Array) -> Spread:
    """Return the spread of the rows of a run about a given mean."""
    n, d = run.source.n_rows, run.source.n_features
    unit = float(np.finfo(run.source.dtype).eps)
    if d <= KEPT_COLUMNS or n > d:
        # As in `read`: where columns are collinear, rounding of other sums would be a multiple of what is compared.
        gram = sum_products(run, Problem(center=True, scale=False), each=True).recentre(mean)
        return of_matrix(gram.products / gram.weight, gram.weight, _nothing(mean, unit))
    rows, weight = gather(run, mean)
    return of_rows(rows * np.sqrt(weight)[:, None], float(weight.sum()), _nothing(mean, unit))
