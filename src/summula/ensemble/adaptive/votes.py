"""Weighted votes of the learners of AdaBoost.

With the weights alpha_t of the learners h_t and A their sum, the votes for class k and the score of class k are

    V_k(x) = sum_t alpha_t [h_t(x) = k],        f_k(x) = (K V_k(x) / A - 1) / (K - 1),                              (1)

so that a class with all votes has the score 1. Two classes have the single score 2 (V_1 - V_0) / A.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.ensemble.adaptive.learners import predicted_codes
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import find_leaves

__all__ = ["learner_votes", "scores_of_votes", "staged_codes", "tree_votes"]

Array = NDArray[Any]


def tree_votes(nodes: Nodes, winner: Array, alpha: Array, n_classes: int, X: Array) -> Array:
    """Return the votes (1) of trees, shape (n, n_classes); `winner` is the class of each node."""
    by_node = np.repeat(alpha, np.diff(nodes.roots))
    votes = np.zeros((n_classes, len(X), 1))
    for k in range(n_classes):
        nodes._replace(value=np.where(winner == k, by_node, 0.0)).add_scores(X, votes[k])
    return votes[:, :, 0].T


def learner_votes(learners: list[Any], classes: Array, alpha: Array, X: Any) -> Array:
    """Return the votes (1) of any classifiers."""
    n = X.shape[0]
    votes, rows = np.zeros((n, len(classes))), np.arange(n)
    for learner, weight in zip(learners, alpha, strict=True):
        votes[rows, predicted_codes(learner, X, classes)] += weight
    return votes


def staged_codes(nodes: Nodes | None, winner: Array, learners: list[Any], classes: Array, X: Any) -> Iterator[Array]:
    """Yield the codes of the classes that each learner predicts."""
    if nodes is None:
        for learner in learners:
            yield predicted_codes(learner, X, classes)
        return
    leaves = np.empty((X.shape[0], 1), np.int64)
    for tree in range(nodes.n_trees):
        find_leaves(X, nodes, tree, tree + 1, leaves)
        yield winner[nodes.roots[tree] + leaves[:, 0]]


def scores_of_votes(votes: Array, total: float) -> Array:
    """Return the scores (1), shape (n, 1) for two classes."""
    k = votes.shape[1]
    if k == 1:
        return np.zeros_like(votes)
    if k == 2:
        return np.asarray(2.0 * (votes[:, 1:] - votes[:, :1]) / total)
    return np.asarray((votes * (k / total) - 1.0) / (k - 1))


def tree_scores(nodes: Nodes, winner: Array, alpha: Array, n_classes: int, chunk: Chunk) -> Array:
    """Return the scores of the rows of a chunk by trees."""
    return scores_of_votes(tree_votes(nodes, winner, alpha, n_classes, chunk.dense(chunk.dtype)), float(alpha.sum()))


def learner_scores(learners: list[Any], classes: Array, alpha: Array, chunk: Chunk) -> Array:
    """Return the scores of the rows of a chunk by any classifiers."""
    return scores_of_votes(learner_votes(learners, classes, alpha, chunk.X), float(alpha.sum()))
