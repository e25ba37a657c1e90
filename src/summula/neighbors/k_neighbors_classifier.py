"""Classification by the nearest training rows: f of equation (1) of `k_neighbors` is the class proportions."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.estimator.multi_output import MultiOutputClassifier
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.neighbors.k_neighbors import KNeighborsModel
from summula.neighbors.search.base import Neighbors
from summula.neighbors.weighting import check_weights, neighbor_weights

__all__ = ["KNeighborsClassifier"]

Array = NDArray[Any]


def _class_shares(codes: Array, counts: tuple[int, ...], weights: Any, found: Neighbors) -> Array:
    """Return the weighted class proportions of every target among the neighbours."""
    w = neighbor_weights(weights, found.values)
    total = np.zeros(len(w))
    for m in range(w.shape[1]):
        total += w[:, m]
    is_bad = check_weights(total, found.values)
    shares, here = [], np.arange(len(w))
    for t, classes in enumerate(counts):
        of_target = np.zeros((len(w), classes))
        for m in range(w.shape[1]):  # by increasing distance, independent of the number of rows
            of_target[here, codes[found.rows[:, m], t]] += w[:, m]
        shares.append(of_target)
    return np.hstack(shares) / np.where(is_bad, np.nan, total)[:, None]


def _codes_are_sound(model: Any, sizes: schema.Sizes) -> str | None:
    counts = [len(classes) for classes in model._classes_of_outputs]
    if model._y.shape[1] != len(counts):
        return f"_y has {model._y.shape[1]} targets, but there are classes for {len(counts)}"
    if (model._y.max(axis=0) >= counts).any():
        return "_y contains codes of unknown classes"
    return None


@inherit_docs()
@schema.saved(
    _codes_are_sound,
    classes_=schema.Labels("n_classes") | schema.Items(schema.Labels(), low=2),
    _y=schema.Array("int32", "n_rows", "n_outputs", low=0),
)
class KNeighborsClassifier(KNeighborsModel, MultiOutputClassifier):
    """Classifier that predicts the most frequent class among the k nearest training rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or list of such arrays
        With several targets, one array per target.

    References
    ----------
    Cover and Hart (1967), Nearest neighbor pattern classification. Friedman, Bentley and Finkel (1977), An algorithm
    for finding best matches in logarithmic expected time.

    Examples
    --------
    >>> from summula.neighbors import KNeighborsClassifier
    >>> X, y = [[0.0], [1.0], [2.0], [7.0], [8.0]], ["low", "low", "low", "high", "high"]
    >>> model = KNeighborsClassifier(n_neighbors=3).fit(X, y)
    >>> model.predict([[1.5], [6.0]])
    array(['low', 'high'], dtype='<U4')
    >>> model.predict_proba([[6.0]]).round(3)
    array([[0.667, 0.333]])
    >>> model.kneighbors([[6.0]])
    (array([[1., 2., 4.]]), array([[3, 4, 2]]))
    """

    _fewest_classes = 1

    def _targets(self, chunk: Chunk, one_target: bool) -> Array:
        codes = chunk.codes[:, None] if chunk.codes is not None else chunk.y
        return np.array(codes, np.int32)

    @property
    def outputs_2d_(self) -> bool:
        """Whether `y` had several targets."""
        return len(self._classes_of_outputs) > 1

    def _average(self) -> Any:
        counts = tuple(len(classes) for classes in self._classes_of_outputs)
        return functools.partial(_class_shares, self._y, counts, self.weights)

    def _score_function(self) -> RowFunction:
        return self._row_function()

    def _errors(self, own: Array, found: Neighbors, weights: Array) -> Array:
        """Return whether the first k neighbours of rows vote for a wrong class, for every k."""
        wrong = np.zeros(found.rows.shape, bool)
        for t, classes in enumerate(self._classes_of_outputs):
            member = self._y[found.rows, t][..., None] == np.arange(len(classes))
            if weights.shape[1] == 1:
                votes = np.cumsum(weights[:, 0, :, None] * member, axis=1)
            else:
                votes = np.einsum("nkm,nmc->nkc", weights, member.astype(np.float64))
            wrong |= votes.argmax(axis=2) != self._y[own, t][:, None]
        return wrong
