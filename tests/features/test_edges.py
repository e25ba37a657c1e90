"""Edges: gradients of images whose gradient is known, and the filters of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from summula import DataError, ParameterError
from summula.features import edges

FILTERS = ("tap", "sobel", "gaussian")
BORDERS = ("reflect", "mirror", "nearest", "wrap", "constant")
IMAGES = np.random.default_rng(0).integers(0, 256, (3, 11, 14)).astype(np.uint8)


@pytest.mark.parametrize("filter", FILTERS)
def test_a_ramp_has_a_constant_gradient(filter):
    rows, columns = np.mgrid[:30, :40].astype(float)
    found = edges(7.0 + 3.0 * columns - 4.0 * rows, filter)
    inside = np.s_[5:-5, 5:-5]
    assert_allclose(found.dx[inside], 3.0)
    assert_allclose(found.dy[inside], -4.0)
    assert_allclose(found.magnitude[inside], 5.0)
    assert_allclose(found.orientation[inside], np.arctan2(-4.0, 3.0))


@pytest.mark.parametrize("filter", FILTERS)
def test_a_constant_image_has_no_gradient(filter):
    found = edges(np.full((9, 8), 0.1), filter)
    assert_array_equal(found.magnitude, 0.0)
    assert_array_equal(found.orientation, 0.0)


@pytest.mark.parametrize("border", BORDERS)
def test_sobel_is_that_of_scipy(border):
    found = edges(IMAGES, "sobel", border=border)
    for axis, ours in ((-1, found.dx), (-2, found.dy)):
        # SciPy smooths first: zeros beyond the border of the smoothed image are other ones in the corners only
        theirs = np.stack([ndimage.sobel(image.astype(float), axis, mode=border) for image in IMAGES]) / 8
        assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("sigma", [0.7, 1.5, 6.0])
def test_gaussian_is_that_of_scipy_but_for_the_scale_of_a_ramp(sigma):
    found = edges(IMAGES, "gaussian", sigma=sigma)
    ramp = np.arange(100.0)
    slope = ndimage.gaussian_filter1d(ramp, sigma, order=1, truncate=4.0)[50]  # sampled: close to 1 but not equal
    for axes, ours in (((0, 1), found.dx), ((1, 0), found.dy)):
        theirs = np.stack([ndimage.gaussian_filter(im.astype(float), sigma, order=axes, truncate=4.0) for im in IMAGES])
        assert_allclose(ours, theirs / slope, atol=1e-10)


def test_the_tap_filter_is_the_central_difference():
    found = edges(IMAGES.astype(float), "tap", border="nearest")
    assert_allclose(found.dx[..., 1:-1], np.gradient(IMAGES.astype(float), axis=-1)[..., 1:-1])
    assert_allclose(found.dy[:, 1:-1], np.gradient(IMAGES.astype(float), axis=-2)[:, 1:-1])


@pytest.mark.parametrize("filter", FILTERS)
def test_one_image_and_a_batch_give_the_same_bits(filter):
    batch = edges(IMAGES, filter, orientations=4)
    for k, image in enumerate(IMAGES):
        for one, many in zip(edges(image.tolist(), filter, orientations=4), batch, strict=True):
            assert_array_equal(one, many[k])


@pytest.mark.parametrize("filter", FILTERS)
def test_turning_the_image_turns_the_gradient(filter):
    found, turned = edges(IMAGES[0], filter), edges(np.rot90(IMAGES[0]), filter)
    assert_allclose(turned.dx, np.rot90(found.dy), atol=1e-12)  # what was down is to the right now
    assert_allclose(turned.dy, -np.rot90(found.dx), atol=1e-12)


def test_the_oriented_filter_is_largest_across_the_edge():
    rows, columns = np.mgrid[:41, :41] - 20.0
    for j in range(12):
        angle = j * np.pi / 12
        step = np.tanh(np.cos(angle) * columns + np.sin(angle) * rows)
        found = edges(step, "gaussian", sigma=2.0, orientations=12)
        assert found.responses is not None
        assert int(found.responses[:, 20, 20].argmax()) == j
        assert_allclose(found.responses[0], found.dx)
        assert_allclose(found.responses[6], found.dy, atol=1e-12)


@pytest.mark.parametrize("filter", FILTERS)
def test_colour_images_have_the_gradient_of_the_strongest_channel(filter):
    colours = np.stack([IMAGES, IMAGES[::-1], 0.5 * IMAGES], axis=-1)  # (image, row, column, channel)
    found = edges(colours, filter, channel_axis=-1, orientations=3)
    each = [edges(colours[..., c], filter, orientations=3) for c in range(3)]
    magnitudes = np.stack([one.magnitude for one in each])
    assert_array_equal(found.magnitude, magnitudes.max(axis=0))
    strongest = magnitudes.argmax(axis=0)
    for name in ("dx", "dy", "orientation"):
        expected = np.choose(strongest, [getattr(one, name) for one in each])
        assert_array_equal(getattr(found, name), expected)
    first = edges(np.moveaxis(colours[0], -1, 0), filter, channel_axis=0, orientations=3)
    for one, many in zip(first, found, strict=True):
        assert_array_equal(one, many[0])


def test_images_smaller_than_the_filter():
    assert edges([[1.0]], "gaussian", sigma=3.0).magnitude.tolist() == [[0.0]]
    for border in BORDERS[:-1]:
        assert np.isfinite(edges([[1.0, 2.0]], "gaussian", sigma=3.0, border=border).magnitude).all()
    tiny = edges([[0.0, 1.0, 2.0]], "gaussian", sigma=1e-3).dx[0]
    assert_allclose(tiny, [0.5, 1.0, 0.5])  # the tap filter


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (np.ones(5), {}, DataError, r"shape \(height, width\)"),
        (np.ones((2, 3, 4, 3)), {}, DataError, "channel_axis=-1 for colour"),
        (np.ones((0, 4)), {}, DataError, r"got \(0, 4\)"),
        ([["a"]], {}, DataError, "array of numbers"),
        (np.ones((2, 2), complex), {}, DataError, "complex128"),
        ([[1.0, np.nan]], {}, DataError, r"first at \(0, 1\)"),
        (np.ones((2, 2)), {"filter": "canny"}, ParameterError, "'sobel', 'tap', 'gaussian'; got 'canny'"),
        (np.ones((2, 2)), {"filter": "gaussian", "sigma": 0.0}, ParameterError, "sigma must be a positive number"),
        (np.ones((2, 2)), {"orientations": 0}, ParameterError, "orientations must be an int >= 1"),
        (np.ones((2, 3)), {"channel_axis": -1}, DataError, "three or four axes"),
        (np.ones((2, 3, 3)), {"channel_axis": 3}, DataError, "three or four axes"),
        (np.ones((2, 3, 0)), {"channel_axis": -1}, DataError, "no channels"),
        (np.ones((2, 3, 3)), {"channel_axis": "last"}, ParameterError, "channel_axis must be an int"),
        (np.ones((2, 2)), {"border": "loop"}, ParameterError, "border must be one of 'reflect'"),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_what_is_refused(images, options, error, message):
    with pytest.raises(error, match=message):
        edges(images, **options)
