"""Histograms of oriented gradients.

An image is divided into cells. The gradient of each pixel, with magnitude m and orientation theta, adds m to the
histogram of its cell, shared linearly between the two bins next to theta: with K bins, whose centres are k P / K for
the period P = pi (lines; opposite directions count as one) or 2 pi (signed),

    t = K theta / P,    bin floor(t) receives m (1 - (t - floor(t))),    the next one m (t - floor(t))            (1)

Neighbouring cells form blocks, which overlap. The histograms v of the cells of a block are divided by their norm, which
removes the contrast (Dalal and Triggs, CVPR 2005):

    l2         v / |v|_2                      l1         v / |v|_1
    l2-hys     l2, clipped at 0.2, l2         l1-sqrt    sqrt(v / |v|_1)                                            (2)

The gradient of a pixel of a colour image is that of the channel with the largest magnitude.

A block without gradient remains 0. Features are ordered by row and column of the block, those of the cell in the block,
and bin.
"""

from __future__ import annotations

from contextlib import suppress
from math import isqrt, prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.data.chunks import Chunk
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, real
from summula.core.model_files import schema
from summula.features.edge_detection import FILTERS, filter_named, gradient, strongest_channel
from summula.features.lift import Lift

__all__ = ["HOG"]

Array = NDArray[Any]

_CUT = 0.2  # threshold of l2-hys
_PIXELS = 1 << 18  # number of pixels computed at once, so that they stay in the cache
_ROUNDING = 64 * float(
    np.finfo(np.float64).eps
)  # gradients below this, relative to the largest pixel, are rounding errors


def _is_shape(value: Any, lengths: tuple[int, ...]) -> bool:
    return isinstance(value, tuple | list) and len(value) in lengths and all(integer(1).accepts(one) for one in value)


_pair = Allowed(lambda value: _is_shape(value, (2,)), "a pair of ints >= 1")
_image = Allowed(lambda value: _is_shape(value, (2, 3)), "two or three ints >= 1")


class _Layout(NamedTuple):
    """Pixels, cells and blocks along both axes: (rows, columns)."""

    image: tuple[int, int]
    channels: int
    cell: tuple[int, int]
    cells: tuple[int, int]
    block: tuple[int, int]  # cells per block
    blocks: tuple[int, int]


def _has_all_pixels(model: Any, sizes: schema.Sizes) -> str | None:
    shape = model.image_shape_
    if len(shape) > 3 or prod(shape) != sizes["n_features"]:
        return f"image_shape_ is {tuple(shape)}, but there are {sizes['n_features']} pixels"
    return None


@inherit_docs()
@schema.saved(_has_all_pixels, image_shape_=schema.Items(schema.Integer(1, 2**31 - 1), low=2))
class HOG(Lift):
    """Histograms of oriented gradients: counts of edge orientations in cells of an image.

    Rows are images, pixel by pixel, or X is an array of images. The features do not change with brightness and
    contrast, and little with small displacements, so linear models of them recognise shapes better than linear models
    of pixels.

    Parameters
    ----------
    image_shape : tuple (height, width) or (height, width, channels), optional
        Shape of the images. By default that of an array of images; rows of pixels are square images without colour if
        their number is a square number, and else as nearly square as it allows, with height <= width.
    n_bins : int, default=12
        Number of orientations of each histogram.
    cell : tuple (height, width), default=(8, 8)
        Size of a cell in pixels. The last cells are smaller if the image is not a multiple of it.
    block : tuple (height, width), default=(2, 2)
        Size of a block in cells, at most that of the image.
    norm : {"l2-hys", "l2", "l1", "l1-sqrt"} or None, default="l2-hys"
        Normalisation of blocks; None uses the histograms of the cells as they are, without blocks.
    signed : bool, default=False
        Whether opposite directions (dark to bright, and bright to dark) are distinguished.
    filter : {"tap", "sobel", "gaussian"}, default="tap"
        Filter for the gradient, as in `edges`.
    sigma : float, default=1.0
        Standard deviation of the "gaussian" filter, in pixels.

    Attributes
    ----------
    image_shape_ : tuple (height, width) or (height, width, channels)
        Shape of the images.
    n_output_features_ : int
        Number of features.

    Examples
    --------
    Digits of 8 x 8 pixels, classified by a linear model of pixels and of histograms:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from summula.features import HOG
    >>> from summula.svm import LinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> pixels = LinearSVC(max_iter=10_000).fit(X[:900], y[:900])
    >>> shapes = make_pipeline(HOG((8, 8), cell=(2, 2), block=(1, 1), signed=True), LinearSVC()).fit(X[:900], y[:900])
    >>> print(f"{pixels.score(X[900:], y[900:]):.2f} {shapes.score(X[900:], y[900:]):.2f}")
    0.91 0.96
    """

    _accepts_sparse: ClassVar[bool] = False
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "image_shape": (_image, none),
        "n_bins": (integer(1, 1 << 16),),
        "cell": (_pair,),
        "block": (_pair,),
        "norm": (one_of("l1", "l1-sqrt", "l2", "l2-hys"), none),
        "signed": (boolean,),
        "filter": (one_of(*FILTERS),),
        "sigma": (real(0.0, 1e3, open_low=True),),
        "n_jobs": (none, integer()),
    }

    def __init__(
        self,
        image_shape: tuple[int, ...] | None = None,
        *,
        n_bins: int = 12,
        cell: tuple[int, int] = (8, 8),
        block: tuple[int, int] = (2, 2),
        norm: str | None = "l2-hys",
        signed: bool = False,
        filter: str = "tap",
        sigma: float = 1.0,
        n_jobs: int | None = None,
    ) -> None:
        self.image_shape = image_shape
        self.n_bins = n_bins
        self.cell = cell
        self.block = block
        self.norm = norm
        self.signed = signed
        self.filter = filter
        self.sigma = sigma
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the shape of the images, and the number and names of the pixels.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Or an array of images, of shape (n_samples, height, width) or (n_samples, height, width, channels).
        y : ignored
        """
        rows, shape = _flattened(X)
        with self._fitting(rows, needs_y=False) as run:
            given = shape if self.image_shape is None else tuple(int(size) for size in self.image_shape)
            if shape is not None and shape != given:
                raise ParameterError(f"image_shape={given}, but the images in X have shape {shape}: pass that one.")
            self.__dict__.pop("image_shape_", None)
            self.image_shape_ = given or _squarish(run.source.n_features)
            self._store_size(run)
        return self

    def transform(self, X: Any) -> Any:
        """Compute the histograms of images.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Or an array of images, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs); for a scan an iterator of such blocks, which estimators take as X; a
        Dask array, not yet computed, for a Dask collection
        """
        return super().transform(self._rows_of(X))

    def _rows_of(self, X: Any) -> Any:
        """Return images as rows of pixels."""
        check_is_fitted(self)
        rows, shape = _flattened(X)
        if shape is not None and shape != tuple(self.image_shape_):
            raise DataError(f"The images in X have shape {shape}, but those of `fit` had {tuple(self.image_shape_)}.")
        return rows

    def histograms(self, X: Any) -> NDArray[np.float64]:
        """Return the histograms of the cells before normalisation.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Or an array of images, as in `fit`.

        Returns
        -------
        ndarray of shape (n_samples, rows of cells, columns of cells, n_bins)
        """
        source = self._reading(self._rows_of(X))
        if source.streams:
            raise DataError("histograms needs rows in memory: pass an array or a frame with some of the rows.")
        layout = self._layout()
        pixels = np.ascontiguousarray(source.chunk(0, source.n_rows).X, np.float64)
        if not np.isfinite(pixels).all():
            raise DataError(f"X has a missing or infinite value at row {int(np.argwhere(~np.isfinite(pixels))[0, 0])}.")
        return self._cells(pixels, layout)

    def _plot(self, X: Any, y: Any = None, *, row: int = 0, ax: Any = None) -> Any:
        """Plot the histograms of an image over it; called by `summula.plot`."""
        from summula.plotting.structure.oriented import oriented_histograms

        check_is_fitted(self)
        if X is None:
            raise DataError("The plot of HOG shows an image: pass rows, summula.plot(model, X, row=0).")
        source = self._reading(self._rows_of(X))
        if source.streams or not 0 <= row < source.n_rows:
            raise DataError(
                f"X has no row {row} in memory; pass an array or a frame, and the number of one of its rows."
            )
        pixels = np.asarray(source.chunk(row, row + 1).X, np.float64)
        layout = self._layout()
        image = pixels.reshape(*layout.image, layout.channels).mean(axis=2)
        sums = self._cells(np.ascontiguousarray(pixels), layout)[0]
        return oriented_histograms(sums, image, cell=layout.cell, signed=bool(self.signed), ax=ax)

    # ---------------------------------------------------------------------------------------------------------- layout

    def _layout(self) -> _Layout:
        shape = (int(self.image_shape_[0]), int(self.image_shape_[1]))
        channels = int(self.image_shape_[2]) if len(self.image_shape_) == 3 else 1
        cells = [-(-size // int(step)) for size, step in zip(shape, self.cell, strict=True)]
        block = [1, 1] if self.norm is None else [min(int(b), n) for b, n in zip(self.block, cells, strict=True)]
        cell = (int(self.cell[0]), int(self.cell[1]))
        blocks = (cells[0] - block[0] + 1, cells[1] - block[1] + 1)
        return _Layout(shape, channels, cell, (cells[0], cells[1]), (block[0], block[1]), blocks)

    def _n_lifted(self, n_features: int) -> int:
        if prod(self.image_shape_) != n_features:
            return 0
        layout = self._layout()
        return int(np.prod([int(self.n_bins), *layout.blocks, *layout.block], dtype=object))

    def _too_many(self, n: int, d: int) -> str:
        if n:
            return f"Images of {d} pixels would have {n} features, which is too many: use larger cells or fewer bins."
        return (
            f"image_shape={self.image_shape_} needs {prod(self.image_shape_)} columns, but X has {d}: pass the shape "
            "of the images, (height, width) or (height, width, channels)."
        )

    def _names(self, names: list[str]) -> list[str]:
        layout = self._layout()
        sizes = [*layout.blocks, *layout.block, int(self.n_bins)]
        names = []
        for at in np.ndindex(*sizes):
            block, row, column = f"block{at[0]}_{at[1]}_", at[0] + at[2], at[1] + at[3]
            names.append(f"{'' if self.norm is None else block}cell{row}_{column}_bin{at[4]}")
        return names

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return names such as "block0_0_cell0_1_bin11" (row and column of the block and of the cell)."""
        return super().get_feature_names_out(input_features)

    # ------------------------------------------------------------------------------------------------------- computing

    def _write_rows(self, chunk: Chunk, out: Array) -> None:
        layout = self._layout()
        step = max(_PIXELS // chunk.n_features, 1)
        for start in range(0, len(chunk), step):
            pixels = np.ascontiguousarray(chunk.X[start : start + step], np.float64)
            bad = np.asarray(~np.isfinite(pixels).all(axis=1))
            if bad.any():
                pixels = np.where(bad[:, None], 0.0, pixels)
            rows = out[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                rows[...] = self._features(pixels, layout)
            rows[bad] = np.nan

    def _features(self, pixels: Array, layout: _Layout) -> Array:
        cells = self._cells(pixels, layout)
        if self.norm is None:
            return cells.reshape(len(cells), -1)
        windows = sliding_window_view(cells, layout.block, axis=(1, 2))
        blocks = np.ascontiguousarray(np.moveaxis(windows, 3, 5))  # (image, blocks, cells, bin)
        flat = blocks.reshape(*blocks.shape[:3], -1)
        least = _ROUNDING * np.abs(pixels).max(axis=1)
        return np.asarray(_normalised(flat, self.norm, least[:, None, None, None]).reshape(len(pixels), -1))

    def _cells(self, pixels: Array, layout: _Layout) -> Array:
        """Return the histograms (1) of the cells, of shape (image, row, column, bin)."""
        n, bins = len(pixels), int(self.n_bins)
        chosen = filter_named(self.filter, float(self.sigma))
        if layout.channels == 1:
            dx, dy = gradient(pixels.reshape(n, *layout.image), chosen)
        else:
            colours = np.moveaxis(pixels.reshape(n, *layout.image, layout.channels), -1, 1)
            dx, dy = strongest_channel(*gradient(np.ascontiguousarray(colours), chosen))
        magnitude = np.hypot(dx, dy)
        period = 2 * np.pi if self.signed else np.pi
        t = np.arctan2(dy, dx)
        t *= bins / period
        floor = np.floor(t)
        upper = magnitude * (t - floor)
        first = floor.astype(np.int64) % bins
        second = (first + 1) % bins
        rows, columns = (np.arange(size) // step for size, step in zip(layout.image, layout.cell, strict=True))
        place = rows[:, None] * layout.cells[1] + columns
        base = (np.arange(n)[:, None, None] * (layout.cells[0] * layout.cells[1]) + place) * bins
        length = n * layout.cells[0] * layout.cells[1] * bins
        # `bincount` adds in the order of the pixels, for any number of images.
        sums = np.bincount((base + first).ravel(), (magnitude - upper).ravel(), length)
        sums += np.bincount((base + second).ravel(), upper.ravel(), length)
        return sums.reshape(n, *layout.cells, bins)


def _flattened(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return rows of pixels, and of an array of images their shape."""
    if isinstance(X, list | tuple):
        with suppress(ValueError):  # rows of unequal length are reported where rows are read
            X = np.asarray(X) if np.ndim(X) > 2 else X
    if not isinstance(X, np.ndarray) or X.ndim not in (3, 4):
        return X, None
    return X.reshape(len(X), prod(X.shape[1:])), X.shape[1:]


def _squarish(n_features: int) -> tuple[int, int]:
    """Return the shape nearest to a square with this number of pixels."""
    height = next(h for h in range(isqrt(n_features), 0, -1) if n_features % h == 0)
    return height, n_features // height


def _normalised(blocks: Array, norm: str, least: Array) -> Array:
    """Divide the blocks along the last axis by their norm (2); those that are 0 up to rounding become 0."""
    largest = blocks.max(axis=-1, keepdims=True)
    empty = largest <= least
    shares = np.where(empty, 0.0, blocks / np.where(empty, 1.0, largest))  # squares neither over- nor underflow
    if norm in ("l1", "l1-sqrt"):
        shares = shares / np.where(empty, 1.0, _added(shares))
        return shares if norm == "l1" else np.sqrt(shares)
    shares = shares / np.where(empty, 1.0, np.sqrt(_added(shares * shares)))
    if norm == "l2-hys":
        shares = np.minimum(shares, _CUT)
        shares = shares / np.where(empty, 1.0, np.sqrt(_added(shares * shares)))
    return shares


def _added(values: Array) -> Array:
    """Add along the last axis, which is contiguous: the same order for any number of blocks."""
    return np.asarray(values.sum(axis=-1, keepdims=True))
