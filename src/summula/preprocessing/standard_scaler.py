"""Standardise columns: z = (x - mean) / sd, from the sums of x - o and its square about an origin o.

    mean = o + s / W,      variance = q / W - (s / W)^2                                                         (1)

Missing values (NaN) are ignored in the sums and preserved by the transform.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from summula.core.data.chunks import Chunk
from summula.core.data.sources import Source
from summula.core.errors import DataError
from summula.core.estimator.additive import SAVED_SUMS, AdditiveEstimator, sums_by_class_rule
from summula.core.estimator.input.finiteness import raise_if_overflowing, raise_if_underflowing
from summula.core.estimator.parameters import Allowed, boolean, none, real
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema
from summula.core.numerics.statistics import Moments

__all__ = ["StandardScaler"]

Array = NDArray[Any]


_ONE_EACH = schema.Array("float64", "n_features", finite=False) | None


@schema.saved(
    sums_by_class_rule,
    mean_=_ONE_EACH,
    var_=_ONE_EACH,
    scale_=_ONE_EACH,
    n_samples_seen_=schema.Real(0.0) | schema.Array("number", "n_features", low=0),
    **SAVED_SUMS | {"_sums": schema.Object(Moments, n_features="n_features", n_groups="n_groups")},
)
class StandardScaler(OneToOneFeatureMixin, Transformer, AdditiveEstimator):
    """Standardise columns to mean 0 and variance 1.

    Parameters
    ----------
    copy : bool, default=True
        Whether to return a copy; if False, a float array is scaled in place.
    with_mean : bool, default=True
        Whether to subtract the mean; sparse data cannot be centred.
    with_std : bool, default=True
        Whether to divide columns by their standard deviation.
    max_time : float, optional
        Time limit of a fit in seconds.

    Attributes
    ----------
    mean_, var_, scale_ : ndarray of shape (n_features,), or None
        Mean, variance and scale of each column; the scale of a constant column is 1.
    n_samples_seen_ : int or ndarray of shape (n_features,)
        Number of rows (sum of weights, if there are weights); one value per column if values are missing.
    n_features_in_, feature_names_in_ : as in scikit-learn

    References
    ----------
    Chan, Golub, LeVeque (1983), Algorithms for computing the sample variance, The American Statistician 37.

    Examples
    --------
    >>> from summula.preprocessing import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0, 10.0], [2.0, 30.0]])
    >>> scaler.mean_, scaler.transform([[3.0, 20.0]])
    (array([ 1., 20.]), array([[2., 0.]]))
    """

    _needs_y = False
    _allows_nan = True
    _statistic = Moments
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "copy": (boolean,),
        "with_mean": (boolean,),
        "with_std": (boolean,),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        *,
        copy: bool = True,
        with_mean: bool = True,
        with_std: bool = True,
        max_time: float | None = None,
    ) -> None:
        self.copy = copy
        self.with_mean = with_mean
        self.with_std = with_std
        self.max_time = max_time

    def _sums_of(self, run: Run) -> Moments:
        if run.source.is_sparse:
            _raise_if_centring(self.with_mean)
        sums: Moments = super()._sums_of(run)
        if self.with_std:
            raise_if_overflowing(run.source, sums.square)
            raise_if_underflowing(run.source, sums.square, sums.total)
        return sums

    def _solve(self, sums: Moments) -> None:
        """Equation (1)."""
        plain = not (self.with_mean or self.with_std)
        variance, mean = sums.variance, sums.mean
        self.mean_ = None if plain else mean
        self.var_ = variance if self.with_std else None
        # A standard deviation below the rounding error of the values means that the column is constant.
        unit = float(np.finfo(self._dtype).eps)
        constant = np.sqrt(variance) <= 4 * unit * np.abs(mean)
        self.scale_ = np.where(constant, 1.0, np.sqrt(variance)) if self.with_std else None
        counts = sums.weight if self._weighted else sums.count
        self.n_samples_seen_ = counts[0] if (counts == counts[0]).all() else counts
        if not self._weighted:
            self.n_samples_seen_ = np.int64(self.n_samples_seen_) if np.ndim(self.n_samples_seen_) == 0 else counts

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        """Centre and scale.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        copy : bool, optional
            Overrides the parameter `copy`.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features); for a scan an iterator of blocks, which estimators
        take as X
        """
        source = self._reading(X)
        if source.is_sparse:
            return self._scaled_sparse(source, invert=True)
        return self._for_next_step(X, self._filled(self._write_rows, source, self._output(X, source, copy)))

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        shift, divisor = self._shift_and_divisor(out.dtype)
        chunk.write(out, shift)
        if divisor is not None:
            np.divide(out, divisor, out=out)

    def inverse_transform(self, X: Any, copy: bool | None = None) -> Any:
        """Undo `transform`."""
        source = self._reading(X)
        if source.is_sparse:
            return self._scaled_sparse(source, invert=False)
        shift, divisor = self._shift_and_divisor(source.dtype)

        def unscale(chunk: Chunk, out: Array) -> None:
            chunk.write(out)
            if divisor is not None:
                np.multiply(out, divisor, out=out)
            if shift is not None:
                np.add(out, shift, out=out)

        return self._filled(unscale, source, self._output(X, source, copy))

    def _shift_and_divisor(self, dtype: np.dtype[Any]) -> tuple[Array | None, Array | None]:
        shift = self.mean_.astype(dtype) if self.with_mean and self.mean_ is not None else None
        return shift, None if self.scale_ is None else self.scale_.astype(dtype)

    def _output(self, X: Any, source: Source, copy: bool | None) -> Array | None:
        """Return the output array: X itself, or a new one in the memory order of X; None for files."""
        if source.streams:
            return None
        in_place = not (self.copy if copy is None else copy)
        if in_place and isinstance(X, np.ndarray) and X.dtype == source.dtype and X.flags.writeable:
            return X
        first = source.chunk(0, 1)
        return np.empty((source.n_rows, source.n_features), source.dtype, order=first.order)

    def _scaled_sparse(self, source: Source, *, invert: bool) -> Any:
        _raise_if_centring(self.with_mean)
        X = source.chunk(0, source.n_rows).X.copy()
        if self.scale_ is not None:
            scale = self.scale_.astype(X.dtype)[X.indices]
            X.data = X.data / scale if invert else X.data * scale
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _raise_if_centring(with_mean: bool) -> None:
    if with_mean:
        raise DataError("Cannot center sparse matrices: pass `with_mean=False` instead, or convert X to a dense array.")
