"""Edge detection: the gradient of the brightness of an image, by finite differences.

With I[r, c] the brightness in row r and column c, a filter estimates the derivatives dx (to the right) and dy (down).
All filters are a difference along one axis and weights along the other, which add up to 1,

    dx[r, c] = sum_j s_j sum_{k > 0} a_k (I[r + j, c + k] - I[r + j, c - k]),       sum_k 2 k a_k = 1           (1)

so that a ramp of slope 1 has derivative 1. They differ in the coefficients:

    tap        a = (1/2)                             s = (1)
    Sobel      a = (1/2)                             s = (1, 2, 1) / 4
    Gaussian   a_k ~ k exp(-k^2 / (2 sigma^2))       s_j ~ exp(-j^2 / (2 sigma^2))

Differences come first: they are exactly 0 where the brightness is constant. Magnitude and orientation are the polar
coordinates of the gradient, and the response to a filter turned by theta is a combination of two (the filters are
steerable; Freeman and Adelson, IEEE PAMI 13, 1991):

    magnitude = sqrt(dx^2 + dy^2),    orientation = atan2(dy, dx),    d_theta = cos(theta) dx + sin(theta) dy     (2)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from summula.core.errors import DataError, ParameterError

__all__ = ["BORDERS", "FILTERS", "Edges", "Filter", "edges", "filter_named", "gradient", "strongest_channel"]

Array = NDArray[np.float64]

FILTERS = ("sobel", "tap", "gaussian")
# Names as in scipy.ndimage, and those of numpy.pad.
BORDERS = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}
_REACH = 4.0  # standard deviations after which a Gaussian is cut off


class Filter(NamedTuple):
    """The coefficients of (1): differences a_1, a_2, ..., and smoothing s_0, s_1 = s_-1, ..."""

    differences: tuple[float, ...]
    smoothing: tuple[float, ...]


class Edges(NamedTuple):
    """The gradient of the brightness of images.

    Attributes
    ----------
    magnitude : ndarray of the shape of the images
        Length of the gradient: change of brightness per pixel.
    orientation : ndarray of the shape of the images
        Direction of the gradient, in which the image becomes brighter, in radians from -pi to pi: 0 to the right, pi/2
        down. The edge itself is orthogonal to it. 0 where the gradient is 0.
    dx, dy : ndarray of the shape of the images
        Derivatives to the right and down.
    responses : ndarray of shape (..., orientations, height, width), or None
        Derivatives in the directions 0, pi / orientations, 2 pi / orientations, ...; None if not requested.
    """

    magnitude: Array
    orientation: Array
    dx: Array
    dy: Array
    responses: Array | None = None


def edges(
    images: ArrayLike,
    filter: str = "sobel",
    *,
    sigma: float = 1.0,
    orientations: int | None = None,
    border: str = "reflect",
    channel_axis: int | None = None,
) -> Edges:
    """Estimate the gradient of the brightness of one or several images.

    Parameters
    ----------
    images : array-like of shape (height, width) or (n_images, height, width), with a further axis for colour images
        Brightness as floats, integers (such as uint8) or booleans.
    filter : {"sobel", "tap", "gaussian"}, default="sobel"
        "tap" is the central difference of neighbouring pixels, "sobel" smooths it over three rows or columns, and
        "gaussian" is the derivative of a Gaussian, which suppresses noise. A ramp of slope 1 has gradient 1 in all of
        them.
    sigma : float, default=1.0
        Standard deviation of the Gaussian, in pixels; other filters ignore it.
    orientations : int, optional
        Number of directions in which to compute derivatives too: a bank of oriented filters.
    border : {"reflect", "mirror", "nearest", "wrap", "constant"}, default="reflect"
        Extension of the image beyond its border, with the names of `scipy.ndimage`: reflected about the edge or the
        centre of the last pixels, their value, the opposite border, or zeros.
    channel_axis : int, optional
        Axis of the channels of colour images, such as -1 for the shape (height, width, 3). The gradient of a pixel is
        that of the channel with the largest magnitude.

    Returns
    -------
    Edges

    Examples
    --------
    >>> import numpy as np
    >>> from summula.features import edges
    >>> image = np.zeros((5, 6), np.uint8)
    >>> image[:, 3:] = 200  # dark on the left, bright on the right
    >>> found = edges(image, "tap")
    >>> found.magnitude[0].tolist()
    [0.0, 0.0, 100.0, 100.0, 0.0, 0.0]
    >>> float(found.orientation[0, 2])
    0.0
    >>> edges(image, "gaussian", sigma=1.5, orientations=12).responses.shape
    (12, 5, 6)
    """
    pixels = _pixels(images, channel_axis)
    if border not in BORDERS:
        raise ParameterError(f"border must be one of {', '.join(map(repr, BORDERS))}; got {border!r}.")
    if orientations is not None and (isinstance(orientations, bool) or not _is_count(orientations)):
        raise ParameterError(f"orientations must be an int >= 1 or None; got {orientations!r}.")
    dx, dy = gradient(pixels, filter_named(filter, sigma), border)
    if channel_axis is not None:
        dx, dy = strongest_channel(dx, dy)
    responses = None
    if orientations is not None:
        angles = np.arange(orientations) * np.pi / orientations
        cosines, sines = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
        responses = cosines * dx[..., None, :, :] + sines * dy[..., None, :, :]  # (2)
    return Edges(np.hypot(dx, dy), np.arctan2(dy + 0.0, dx + 0.0), dx, dy, responses)


def filter_named(name: str, sigma: float = 1.0) -> Filter:
    """Return the coefficients of a filter."""
    if name == "tap":
        return Filter((0.5,), (1.0,))
    if name == "sobel":
        return Filter((0.5,), (0.5, 0.25))
    if name != "gaussian":
        raise ParameterError(f"filter must be one of {', '.join(map(repr, FILTERS))}; got {name!r}.")
    if isinstance(sigma, bool) or not isinstance(sigma, float | int | np.number) or not 0 < float(sigma) < np.inf:
        raise ParameterError(f"sigma must be a positive number; got {sigma!r}.")
    k = np.arange(max(int(_REACH * sigma + 0.5), 1) + 1)
    bell = np.exp(-0.5 * (k / float(sigma)) ** 2)
    slopes = k * bell
    slopes = slopes / (2 * (k * slopes).sum()) if slopes.any() else np.where(k == 1, 0.5, 0.0)  # a tiny sigma
    bell /= bell[0] + 2 * bell[1:].sum()
    return Filter(tuple(slopes[1:].tolist()), tuple(bell.tolist()))


def gradient(images: Array, filter: Filter, border: str = "reflect") -> tuple[Array, Array]:
    """Return the derivatives (1) of images of shape (..., height, width), to the right and down."""
    dx = _smoothed(_differences(images, filter, border, -1), filter, border, -2)
    dy = _smoothed(_differences(images, filter, border, -2), filter, border, -1)
    return dx, dy


def strongest_channel(dx: Array, dy: Array) -> tuple[Array, Array]:
    """Return the gradient of the channel with the largest magnitude; channels are the third axis from the end."""
    largest = np.hypot(dx, dy).argmax(axis=-3, keepdims=True)
    return tuple(np.take_along_axis(one, largest, axis=-3).squeeze(-3) for one in (dx, dy))  # type: ignore[return-value]


def _differences(images: Array, filter: Filter, border: str, axis: int) -> Array:
    reach = len(filter.differences)
    wide = _extended(images, reach, border, axis)
    total = np.zeros(images.shape)
    for k, a in enumerate(filter.differences, 1):
        total += a * (_shifted(wide, reach + k, images.shape, axis) - _shifted(wide, reach - k, images.shape, axis))
    return total


def _smoothed(values: Array, filter: Filter, border: str, axis: int) -> Array:
    centre, *others = filter.smoothing
    if not others:
        return values
    reach = len(others)
    wide = _extended(values, reach, border, axis)
    total = centre * values
    for k, s in enumerate(others, 1):
        total += s * (_shifted(wide, reach + k, values.shape, axis) + _shifted(wide, reach - k, values.shape, axis))
    return total


def _extended(images: Array, reach: int, border: str, axis: int) -> Array:
    widths = [(0, 0)] * images.ndim
    widths[axis] = (reach, reach)
    return np.pad(images, widths, mode=BORDERS[border])  # type: ignore[call-overload, no-any-return]


def _shifted(wide: Array, start: int, shape: tuple[int, ...], axis: int) -> Array:
    size = shape[axis]
    return wide[..., start : start + size] if axis == -1 else wide[..., start : start + size, :]


def _pixels(images: ArrayLike, channel_axis: int | None) -> Array:
    """Return finite pixels of shape (..., height, width), or (..., channels, height, width)."""
    try:
        given = np.asarray(images)
        pixels = given.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError("images must be an array of numbers: the brightness of each pixel.") from None
    if given.dtype.kind not in "fiub":
        raise DataError(f"images must contain real numbers, but they are of type {given.dtype}.")
    if channel_axis is not None:
        if isinstance(channel_axis, bool) or not isinstance(channel_axis, int | np.integer):
            raise ParameterError(f"channel_axis must be an int or None; got {channel_axis!r}.")
        if pixels.ndim not in (3, 4) or not -pixels.ndim <= channel_axis < pixels.ndim:
            raise DataError(
                f"channel_axis={channel_axis} needs images with three or four axes, of which it is one; got shape "
                f"{pixels.shape}."
            )
        pixels = np.ascontiguousarray(np.moveaxis(pixels, channel_axis, -3))
    if pixels.ndim not in ((2, 3) if channel_axis is None else (3, 4)) or 0 in pixels.shape[-2:]:
        raise DataError(
            f"images must have shape (height, width) or (n_images, height, width); got {given.shape}. Pass "
            "channel_axis=-1 for colour images of shape (..., height, width, channels), and reshape rows of pixels."
        )
    if channel_axis is not None and not pixels.shape[-3]:
        raise DataError(f"images of shape {given.shape} have no channels.")
    if not np.isfinite(pixels).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(pixels))[0])
        raise DataError(f"images have a missing or infinite value, first at {place}: replace it, or drop the image.")
    return pixels


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and bool(value >= 1)
