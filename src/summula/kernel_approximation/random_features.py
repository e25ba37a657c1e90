"""Base class of kernel approximations: the seed, and block-wise transformation of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource
from summula.core.docstrings import inherit_docs
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer

__all__ = ["RandomFeatures"]

Array = NDArray[Any]


@inherit_docs()
class RandomFeatures(ClassNamePrefixFeaturesOutMixin, Transformer):
    """Base class of transformers to `n_components` features, which are dense also for sparse rows.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None, default=None
    """

    n_components: int

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Any:
        """Draw the features."""
        with self._fitting(X, None, needs_y=False) as run:
            if not run.source.streams:  # files are checked when they are transformed
                run.raise_if_not_finite()
            self._draw(run)
        return self

    def _draw(self, run: Run) -> None:
        """Draw the features and assign them."""
        raise NotImplementedError

    def _n_outputs(self) -> int:
        return int(self.n_components)

    def _features(self, chunk: Chunk) -> Array:
        """Return the features of the rows of a chunk."""
        raise NotImplementedError

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        with np.errstate(invalid="ignore", over="ignore"):  # the caller reports values that are not finite
            out[...] = self._features(chunk)

    def _transform_sparse(self, X: Any) -> Any:
        source = MemorySource(X, None, None, X.dtype)
        out = np.empty((X.shape[0], self._n_outputs()), X.dtype)
        return self._filled(self._write_rows, source, out)

    @property
    def _n_features_out(self) -> int:
        return self._n_outputs()

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the features: the lower-case class name and a number.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns; validated, but not used.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.asarray(super().get_feature_names_out(input_features))
