"""Mixtures of binomial distributions: columns count successes, independent given the component.

    P(x) = sum_k pi_k prod_j C(m_j, x_j) p_kj^x_j (1 - p_kj)^(m_j - x_j)

E-step, with the log joint probability linear in x:

    r_ik = P(k | x_i),      n_k = sum_i w_i r_ik,      s_k = sum_i w_i r_ik x_i                                      (1)

M-step:

    pi_k = n_k / sum_j n_j,        p_kj = s_kj / (n_k m_j)                                                           (2)

A Bernoulli mixture has m_j = 1 for every column. If p is 0 or 1, the logarithm of the smallest float is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from summula import em
from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import aligned, empty_block, product
from summula.core.engine.random import stream_key, uniform
from summula.core.errors import RowError
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum
from summula.mixture.starts import nearest, row_sample, seed_points

__all__ = ["BinomialEM", "BinomialSums", "Binomials", "counted", "log_joint"]

Array = NDArray[Any]

_SMALLEST = float(np.finfo(np.float64).tiny)


@schema.saved(
    weights=schema.Array("float64", "n_components", low=0.0),
    probabilities=schema.Array("float64", "n_components", "n_features", low=0.0, high=1.0),
    trials=schema.Array("float64", "n_features", low=1.0),
)
@dataclass(frozen=True)
class Binomials:
    """The parameters of a mixture of binomial distributions.

    Attributes
    ----------
    weights : ndarray of shape (k,)
    probabilities : ndarray of shape (k, d)
    trials : ndarray of shape (d,)
    """

    weights: Array
    probabilities: Array
    trials: Array

    def distance(self, other: Binomials) -> float:
        """Return the largest change of a weight or probability."""
        changes = (other.weights - self.weights, other.probabilities - self.probabilities)
        return float(max(np.abs(change).max() for change in changes))

    @cached_property
    def slopes(self) -> Array:
        """Return log p - log(1 - p), shape (d, k)."""
        success, failure = _logs(self.probabilities)
        return (success - failure).T

    @cached_property
    def constants(self) -> Array:
        """Return log pi_k + sum_j m_j log(1 - p_kj)."""
        return np.asarray(np.log(np.maximum(self.weights, _SMALLEST)) + _logs(self.probabilities)[1] @ self.trials)


def _logs(p: Array) -> tuple[Array, Array]:
    return np.log(np.maximum(p, _SMALLEST)), np.log(np.maximum(1.0 - p, _SMALLEST))


def counted(chunk: Chunk, trials: Array) -> Array:
    """Return the rows of a chunk as a block; raise for the first value that is not a possible number of successes.

    Rows without weight are replaced by zeros.
    """
    block = chunk.block(np.float64)
    if chunk.weight is not None and not np.all(chunk.weight):
        kept, block = block, empty_block(*block.shape)
        block[...] = np.where(np.asarray(chunk.weight)[:, None] > 0, kept, 0.0)
    with np.errstate(invalid="ignore"):
        bad = (block != np.floor(block)) | (block < 0) | (block > trials)
    bad &= np.isfinite(block)
    if bad.any():
        row, j = (int(place[0]) for place in np.nonzero(bad))
        most, negative = f"{trials[j]:g}", "Negative values in data passed to a mixture of counts: column"
        raise RowError(
            f"{negative if block[row, j] < 0 else 'Column'} {j} contains {block[row, j]:g}",
            chunk.start + row,
            ", which is neither 0 nor 1: encode failures as 0 and successes as 1."
            if trials[j] == 1
            else f", which is not an integer from 0 to {most}: pass counts of successes in {most} trials.",
        )
    return block


def log_joint(block: Array, theta: Binomials) -> Array:
    """Return log pi_k + log P(x_i | k), shape (n, k)."""
    joint = product(block, theta.slopes)
    joint += theta.constants
    joint += _log_coefficients(block, theta.trials)[:, None]
    return joint


def _log_coefficients(block: Array, trials: Array) -> Array:
    """Return the logarithm of the product of C(m_j, x_j)."""
    if (trials == 1).all():
        return np.zeros(len(block))
    with np.errstate(invalid="ignore"):
        return np.asarray((-np.log1p(trials) - special.betaln(block + 1, trials - block + 1)).sum(axis=1))


@dataclass(frozen=True)
class BinomialSums(Sum):
    """The sums (1), and the log-likelihood.

    Attributes
    ----------
    elbo, weight : float
    counts : ndarray of shape (k,)
    successes : ndarray of shape (k, d)
    """

    elbo: float
    weight: float
    counts: Array
    successes: Array

    @classmethod
    def map(cls, chunk: Chunk, params: Binomials) -> Self:
        """Return the sums over one chunk at the parameters `params`."""
        from summula.mixture.kernels import responsibilities

        block, theta = counted(chunk, params.trials), params
        weight = chunk.weights
        k = len(theta.weights)
        lines = empty_block(k + 2, len(block))
        lines[:k] = log_joint(block, theta).T
        elbo = responsibilities(lines, k, np.ascontiguousarray(weight, np.float64))
        return cls(elbo, float(weight.sum()), lines[:k].sum(axis=1), product(lines[:k], block))


class BinomialEM(em.Model[Binomials, BinomialSums]):
    """A mixture of binomial distributions.

    Parameters
    ----------
    k : int
        Number of components.
    trials : ndarray of shape (d,)
    weights, probabilities : ndarray, optional
        Initial parameters; None is initialised from a sample of the rows.
    fit_weights : bool, default=True
        Whether to estimate the weights; otherwise they are fixed.
    method : {"kmeans", "k-means++", "random", "random_from_data"}
    seeds : sequence of int
        One per start.
    """

    statistic = BinomialSums

    def __init__(
        self,
        k: int,
        trials: Array,
        weights: Array | None = None,
        probabilities: Array | None = None,
        *,
        fit_weights: bool = True,
        method: str = "kmeans",
        seeds: Sequence[int] = (0,),
    ) -> None:
        self.k, self.trials, self.weights, self.probabilities = k, trials, weights, probabilities
        self.fit_weights, self.method, self.seeds = fit_weights, method, seeds

    def maximize(self, sums: BinomialSums, theta: Binomials) -> Binomials:
        """Perform the M-step (2); a component without rows is unchanged."""
        n = sums.counts
        empty = n <= _SMALLEST
        p = sums.successes / (np.where(empty, 1.0, n)[:, None] * self.trials)
        p = np.where(empty[:, None], theta.probabilities, np.clip(p, 0.0, 1.0))
        return Binomials(n / n.sum() if self.fit_weights else theta.weights, p, self.trials)

    def starts(self, run: Run) -> list[Binomials]:
        """Initialise from the given parameters, or from clusters of a sample."""
        equal = np.full(self.k, 1.0 / self.k) if self.weights is None else self.weights
        if self.probabilities is not None:
            return [Binomials(equal, self.probabilities, self.trials)]
        sample = row_sample(run, self.seeds[0])
        if not np.isfinite(sample.rows).all():
            run.raise_if_not_finite()
        return [self._start(sample.rows, sample.weight, equal, seed) for seed in self.seeds]

    def _start(self, rows: Array, weight: Array, weights: Array, seed: int) -> Binomials:
        Z = rows / self.trials
        if self.method == "random":
            R = np.stack([uniform(stream_key(seed, (2, k)), len(Z)) for k in range(self.k)], axis=1)
            R = weight[:, None] * (R / R.sum(axis=1, keepdims=True))
        else:
            labels = nearest(Z, seed_points(Z, weight, self.k, self.method, stream_key(seed, 1)))
            R = weight[:, None] * (labels[:, None] == np.arange(self.k))
        n = R.sum(axis=0)
        p = (product(aligned(R).T, rows) + 0.5) / (
            n[:, None] * self.trials + 1.0
        )  # away from 0 and 1, where EM cannot move
        if self.weights is None and self.fit_weights:
            weights = (n + 0.5) / (n + 0.5).sum()
        return Binomials(weights, p, self.trials)
