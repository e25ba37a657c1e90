"""Discretisation of columns into bins: of equal width, by quantiles, or by one-dimensional k-means.

    uniform     edges at min + (max - min) b / B,   b = 0, ..., B, with the minima and maxima of all rows
    quantile    edges at the quantiles b / B
    kmeans      edges halfway between centres; each centre is the mean of its bin

Quantiles and centres are computed from all rows, or from a random sample of `subsample` of them; the sample depends
only on row numbers, so arrays, files and Dask collections give the same bins.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk, Part
from summula.core.data.sources import Source
from summula.core.data.sparse_format import as_dense
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import choice, stream_key
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.input.argument_values import numbers_in
from summula.core.estimator.parameters import Allowed, array_like, integer, none, one_of, random_state
from summula.core.estimator.rows import DENSE_ROWS
from summula.core.estimator.run import Run
from summula.core.estimator.transformer import Transformer
from summula.core.model_files import schema
from summula.core.numerics.sums import Sum, merged_by

__all__ = ["KBinsDiscretizer"]

Array = NDArray[np.float64]

_NARROW = 1e-8  # bins of at most this width are removed
_STEPS = 300  # maximum number of k-means steps
_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
)


def _is_float_type(value: Any) -> bool:
    try:
        return np.dtype(value) in (np.float32, np.float64)
    except TypeError:
        return False


_float_type = Allowed(_is_float_type, "float32 or float64")


@dataclass(frozen=True)
class _Extremes(Sum):
    """Smallest and largest value of each column, over rows with positive weight."""

    weight: float
    low: Array = field(metadata=merged_by(np.minimum))
    high: Array = field(metadata=merged_by(np.maximum))

    @classmethod
    def map(cls, chunk: Chunk, params: Any) -> Self:
        """The extremes of one chunk."""
        X = chunk.block(np.float64)
        weight = float(len(X)) if chunk.weight is None else float(chunk.weight.sum())
        if chunk.weight is not None:
            X = X[chunk.weight > 0]
        if not len(X):
            return cls(weight, np.full(chunk.n_features, np.inf), np.full(chunk.n_features, -np.inf))
        return cls(weight, X.min(axis=0), X.max(axis=0))

    def is_finite(self) -> bool:
        """Whether no value is missing or infinite."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())


class _Rows(NamedTuple):
    """A subset of the rows, and their weights if any."""

    X: Array
    weight: Array | None


def _edges_rule(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: each column has one more edge than bins."""
    for j, (edges, bins) in enumerate(zip(model.bin_edges_, model.n_bins_.tolist(), strict=True)):
        if edges.shape != (bins + 1,) or not (np.diff(edges) > 0).all():
            return f"bin_edges_[{j}] must be {bins + 1} ascending numbers"
    return None


@schema.saved(
    _edges_rule,
    n_bins_=schema.Array("int64", "n_features", low=1),
    bin_edges_=schema.Items(schema.Array("float64", "...", finite=False), "n_features"),
)
class KBinsDiscretizer(Transformer):
    """Discretise numeric columns into bins.

    Parameters
    ----------
    n_bins : int or array-like of shape (n_features,), default=5
        Number of bins, at least 2.
    encode : {"onehot", "onehot-dense", "ordinal"}, default="onehot"
        Encode bins as indicators in a sparse or a dense matrix, or as integers.
    strategy : {"uniform", "quantile", "kmeans"}, default="quantile"
        Bins of equal width, with equal numbers of rows, or by one-dimensional k-means.
    quantile_method : str, default="averaged_inverted_cdf"
        As in `numpy.quantile`; with sample weights the default or "inverted_cdf".
    dtype : {None, float32, float64}, optional
        Data type of the result; by default that of the input.
    subsample : int or None, default=200_000
        Maximum number of rows used to compute quantiles and centres; None uses all.
    random_state : int, Generator or None, optional
        Seed for drawing the subsample.

    Attributes
    ----------
    bin_edges_ : list of ndarray of shape (n_bins of the column + 1,)
        Edges of the bins of each column.
    n_bins_ : ndarray of shape (n_features,)
        Number of bins of each column; bins that are too narrow are removed, and constant columns have one.

    Examples
    --------
    >>> from summula.preprocessing import KBinsDiscretizer
    >>> X = [[-2.0, 1.0], [-1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]
    >>> KBinsDiscretizer(n_bins=2, encode="ordinal", strategy="uniform").fit_transform(X)
    array([[0., 0.],
           [0., 0.],
           [1., 1.],
           [1., 1.]])
    """

    _accepts_sparse = False
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "n_bins": (integer(2), array_like),
        "encode": (one_of("onehot", "onehot-dense", "ordinal"),),
        "strategy": (one_of("uniform", "quantile", "kmeans"),),
        "quantile_method": (one_of(*_METHODS),),
        "dtype": (none, _float_type),
        "subsample": (none, integer(1)),
        "random_state": (random_state,),
    }

    def __init__(
        self,
        n_bins: Any = 5,
        *,
        encode: str = "onehot",
        strategy: str = "quantile",
        quantile_method: str = "averaged_inverted_cdf",
        dtype: Any = None,
        subsample: int | None = 200_000,
        random_state: Any = None,
    ) -> None:
        self.n_bins, self.encode, self.strategy, self.quantile_method = n_bins, encode, strategy, quantile_method
        self.dtype, self.subsample, self.random_state = dtype, subsample, random_state

    @with_callbacks
    @inherit_docs(DENSE_ROWS)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the bins.

        Parameters
        ----------
        y : ignored
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional
            Sample weights, used for quantiles and centres.

        Returns
        -------
        self
        """
        with self._fitting(X, None, sample_weight, needs_y=False) as run:
            n_bins = self._bins_per_column(run.source.n_features)
            extremes = run.sum(_Extremes, None)
            rows = None if self.strategy == "uniform" else self._sampled(run)
            found = [self._edges(j, int(b), extremes, rows) for j, b in enumerate(n_bins)]
            self.bin_edges_ = found
            self.n_bins_ = np.array([len(edges) - 1 for edges in found], np.int64)
        return self

    def _bins_per_column(self, d: int) -> NDArray[np.int64]:
        if np.ndim(self.n_bins) == 0:
            return np.full(d, self.n_bins, np.int64)
        bins = numbers_in("n_bins", self.n_bins)
        if bins.ndim != 1 or len(bins) != d:
            raise ParameterError("n_bins must be a scalar or array of shape (n_features,).")
        bad = np.flatnonzero((bins < 2) | (bins != np.floor(bins)))
        if len(bad):
            raise ParameterError(
                f"KBinsDiscretizer received an invalid number of bins at indices {', '.join(map(str, bad))}. Number of "
                "bins must be at least 2, and must be an int."
            )
        return bins.astype(np.int64)

    def _sampled(self, run: Run) -> _Rows:
        """Return the rows from which quantiles and centres are computed."""
        n, chosen = run.source.n_rows, None
        if self.subsample is not None and n > self.subsample:
            seed = int(np.random.default_rng(self.random_state).integers(2**31)) if _is_drawn(self.random_state) else 0
            seed = seed if self.random_state is None or _is_drawn(self.random_state) else int(self.random_state)
            chosen = choice(stream_key(seed), n, int(self.subsample))
        parts = list(run.each(functools.partial(_taken, chosen)))
        weights = [one.weight for one in parts if one.weight is not None]
        return _Rows(np.concatenate([one.X for one in parts]), np.concatenate(weights) if weights else None)

    def _edges(self, j: int, bins: int, extremes: _Extremes, rows: _Rows | None) -> Array:
        low, high = extremes.low[j], extremes.high[j]
        if low == high:
            warn(f"Feature {j} is constant and will be replaced with 0.", UserWarning)
            return np.array([-np.inf, np.inf])
        if rows is None:
            return np.linspace(low, high, bins + 1)
        x, weight = rows.X[:, j], rows.weight
        if self.strategy == "quantile":
            edges = _quantiles(x, weight, bins, self.quantile_method)
        else:
            centres = _centres(x, weight, bins, low, high)
            edges = np.concatenate([[low], (centres[1:] + centres[:-1]) / 2, [high]])
        wide = np.ediff1d(edges, to_begin=np.inf) > _NARROW
        if not wide.all():
            warn(
                f"Bins whose width are too small (i.e., <= 1e-8) in feature {j} are removed. Consider decreasing the "
                "number of bins.",
                UserWarning,
            )
        edges = edges[wide]
        return edges if len(edges) > 1 else np.array([-np.inf, np.inf])

    # ---- results for rows

    def _n_outputs(self) -> int:
        return len(self.n_bins_) if self.encode == "ordinal" else int(self.n_bins_.sum())

    def _numbers(self, chunk: Chunk) -> Array:
        """Return the index of the bin of each value; NaN for missing values."""
        X = chunk.block(np.float64)
        out = np.empty(X.shape)
        for j, edges in enumerate(self.bin_edges_):
            out[:, j] = np.searchsorted(edges[1:-1], X[:, j], side="right")
        out[~np.isfinite(X)] = np.nan
        return out

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        numbers = self._numbers(chunk)
        if self.encode == "ordinal":
            out[...] = numbers
            return
        out[...] = 0.0
        first = np.concatenate([[0], np.cumsum(self.n_bins_)[:-1]])
        known = np.isfinite(numbers)
        rows, columns = np.nonzero(known)
        out[rows, first[columns] + numbers[known].astype(np.intp)] = 1.0
        out[~known.all(axis=1)] = np.nan  # located by the caller

    @inherit_docs(DENSE_ROWS, Transformer.transform)
    def transform(self, X: Any) -> Any:
        """Encode each value by its bin."""
        source = self._reading(X)
        if self.encode == "onehot" and source.streams:
            source.release()
            raise DataError(
                "encode='onehot' returns one sparse matrix, which needs the rows in memory: use encode='ordinal' or "
                "'onehot-dense' for files and Dask collections."
            )
        dtype = source.dtype if self.dtype is None else np.dtype(self.dtype)
        if source.streams:
            return self._filled(self._write_rows, source)
        if self.encode != "onehot":
            return self._filled(self._write_rows, source, np.empty((source.n_rows, self._n_outputs()), dtype))
        return self._sparse(source, dtype)

    def _sparse(self, source: Source, dtype: Any) -> Any:
        numbers = np.empty((source.n_rows, source.n_features))
        write = functools.partial(_write, self._numbers)
        numbers = self._filled(write, source, numbers)
        n, d = numbers.shape
        first = np.concatenate([[0], np.cumsum(self.n_bins_)[:-1]])
        columns = (first + numbers.astype(np.int64)).astype(np.int32).ravel()
        ends = np.arange(0, n * d + 1, d, dtype=np.int32 if n * d < 2**31 else np.int64)
        return sparse.csr_matrix((np.ones(n * d, dtype), columns, ends), shape=(n, int(self.n_bins_.sum())))

    def inverse_transform(self, X: Any) -> Array:
        """Replace bins by their centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_outputs)
            Rows transformed by `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        coded = np.asarray(as_dense(X), np.float64)
        if coded.ndim != 2 or coded.shape[1] != self._n_outputs():
            raise DataError(f"Incorrect number of features. Expecting {self._n_outputs()}, received {coded.shape[1]}.")
        ends = np.cumsum(self.n_bins_)
        out = np.empty((len(coded), len(self.n_bins_)))
        for j, edges in enumerate(self.bin_edges_):
            own = (
                coded[:, j]
                if self.encode == "ordinal"
                else coded[:, ends[j] - self.n_bins_[j] : ends[j]].argmax(axis=1)
            )
            with np.errstate(invalid="ignore"):
                middles = (edges[1:] + edges[:-1]) / 2
            out[:, j] = middles[own.astype(np.intp)]
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the output columns."""
        check_is_fitted(self)
        fitted = getattr(self, "feature_names_in_", None)
        names = [f"x{j}" for j in range(self.n_features_in_)] if fitted is None else fitted.tolist()
        if input_features is not None:
            if fitted is not None and list(input_features) != names:
                raise DataError("input_features is not equal to feature_names_in_")
            if len(input_features) != len(names):
                raise DataError(f"input_features should have length equal to number of features ({len(names)})")
            names = list(input_features)
        if self.encode == "ordinal":
            return np.asarray(names, dtype=object)
        pairs = [f"{name}_{float(b)}" for name, bins in zip(names, self.n_bins_, strict=True) for b in range(bins)]
        return np.asarray(pairs, dtype=object)


def _is_drawn(state: Any) -> bool:
    return isinstance(state, np.random.Generator | np.random.RandomState)


def _write(numbers: Any, chunk: Chunk, out: Array) -> None:
    out[...] = numbers(chunk)


def _taken(chosen: NDArray[np.intp] | None, part: Part) -> _Rows:
    """Return the chosen rows of a part; all rows if `chosen` is None."""
    X, weight = [], []
    for chunk in part.chunks():
        block = chunk.block(np.float64)
        if chosen is None:
            here: Any = slice(None)
        else:
            here = chosen[np.searchsorted(chosen, chunk.start) : np.searchsorted(chosen, chunk.stop)] - chunk.start
        X.append(np.array(block[here]))
        if chunk.weight is not None:
            weight.append(np.array(chunk.weight[here]))
    return _Rows(np.concatenate(X), np.concatenate(weight) if weight else None)


def _quantiles(x: Array, weight: Array | None, bins: int, method: Any) -> Array:
    """Return the quantiles at multiples of 1 / bins."""
    if weight is None:
        return np.asarray(np.percentile(x, np.linspace(0, 100, bins + 1), method=method))
    if method not in ("inverted_cdf", "averaged_inverted_cdf"):
        raise ParameterError(
            "When fitting with strategy='quantile' and sample weights, quantile_method should either be set to "
            f"'averaged_inverted_cdf' or 'inverted_cdf', got quantile_method='{method}' instead."
        )
    kept = weight > 0
    order = np.argsort(x[kept], kind="stable")
    values, below = x[kept][order], np.cumsum(weight[kept][order])
    target = np.linspace(0.0, 1.0, bins + 1) * below[-1]
    last = len(values) - 1
    close = 1e-12 * below[-1]
    low = np.minimum(np.searchsorted(below, target - close), last)
    if method == "inverted_cdf":
        return np.asarray(values[low])
    high = np.minimum(np.searchsorted(below, target + close, side="right"), last)
    return np.asarray((values[low] + values[high]) / 2)


def _centres(x: Array, weight: Array | None, bins: int, low: float, high: float) -> Array:
    """Return the centres of one-dimensional k-means, started from the centres of bins of equal width."""
    order = np.argsort(x, kind="stable")
    values = x[order]
    w = np.ones(len(values)) if weight is None else weight[order]
    mass, moment = (np.concatenate([[0.0], np.cumsum(one)]) for one in (w, w * values))
    edges = np.linspace(low, high, bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    for _ in range(_STEPS):
        cuts = np.searchsorted(values, (centres[1:] + centres[:-1]) / 2, side="right")
        ends = np.concatenate([[0], cuts, [len(values)]])
        own, sums = np.diff(mass[ends]), np.diff(moment[ends])
        moved = np.where(own > 0, sums / np.where(own > 0, own, 1.0), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return np.sort(centres)
