"""Histograms of oriented gradients: edges of known direction, invariances, and a histogram computed pixel by pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

import summula
from summula import DataError, ParameterError
from summula.features import HOG, edges
from summula.svm import LinearSVC

IMAGES = np.random.default_rng(0).normal(size=(5, 16, 24))
NORMS = ("l2-hys", "l2", "l1", "l1-sqrt")


def flat(images):
    return np.asarray(images).reshape(len(images), -1)


def hog(images, **options):
    images = np.asarray(images)
    return HOG(images.shape[1:], **options).fit_transform(flat(images))


def plain(image, n_bins, cell, signed):
    """The histograms of cells, pixel by pixel."""
    found, (h, w) = edges(image, "tap"), image.shape
    sums = np.zeros((math.ceil(h / cell[0]), math.ceil(w / cell[1]), n_bins))
    period = 2 * math.pi if signed else math.pi
    for r in range(h):
        for c in range(w):
            for k in range(n_bins):
                distance = abs(found.orientation[r, c] - k * period / n_bins) % period
                distance = min(distance, period - distance) / (period / n_bins)
                sums[r // cell[0], c // cell[1], k] += found.magnitude[r, c] * max(1 - distance, 0)
    return sums


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("cell", [(8, 8), (5, 7)])
def test_histograms_pixel_by_pixel(signed, cell):
    model = HOG((16, 24), cell=cell, signed=signed).fit(flat(IMAGES))
    assert_allclose(model.histograms(flat(IMAGES))[1], plain(IMAGES[1], 12, cell, signed), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_blocks_have_norm_one_and_overlap(norm):
    found = hog(IMAGES, norm=norm, cell=(4, 4)).reshape(5, 3, 5, 4, 12)
    cells = HOG((16, 24), cell=(4, 4)).fit(flat(IMAGES)).histograms(flat(IMAGES))
    norms = {"l1": np.abs(found).sum(axis=(3, 4)), "l1-sqrt": (found**2).sum(axis=(3, 4))}
    assert_allclose(norms.get(norm, np.sqrt((found**2).sum(axis=(3, 4)))), 1.0)
    if norm == "l2":
        block = cells[2, 1:3, 2:4].reshape(4, 12)
        assert_allclose(found[2, 1, 2], block / np.linalg.norm(block))


def test_l2_hys_limits_the_share_of_one_bin():
    image = np.zeros((16, 16))
    image[:, 8:] = 1.0
    image[3, 3] = 0.1
    l2, hys = hog([image], norm="l2"), hog([image], norm="l2-hys")
    small = (l2 > 0) & (l2 < 0.1)
    assert small.any()
    assert (hys[small] > l2[small]).all()


@pytest.mark.parametrize("j", range(12))
def test_a_ramp_in_the_direction_of_a_bin_is_in_this_bin(j):
    """Also an edge: all pixels of a ramp have the same orientation, that of the centre of bin j."""
    rows, columns = np.mgrid[:32, :32].astype(float)
    ramp = np.cos(j * np.pi / 12) * columns + np.sin(j * np.pi / 12) * rows
    inside = HOG((32, 32)).fit(flat([ramp])).histograms(flat([ramp]))[0, 1:3, 1:3]  # of 8 x 8 pixels with gradient 1
    expected = np.zeros(12)
    expected[j] = 64.0
    assert_allclose(inside, np.broadcast_to(expected, (2, 2, 12)), atol=1e-10)


@pytest.mark.parametrize(("signed", "bins"), [(False, (0, 6)), (True, (0, 3, 6, 9))])
def test_steps_along_the_axes_are_in_one_bin(signed, bins):
    step = np.zeros((16, 16))
    step[:, 8:] = 1.0
    images = [step, step.T, 1 - step, 1 - step.T]  # brighter to the right, down, to the left, up
    cells = HOG((16, 16), cell=(16, 16), signed=signed).fit(flat(images)).histograms(flat(images))[:, 0, 0]
    for k, found in enumerate(cells):
        assert np.flatnonzero(found > 1e-12).tolist() == [bins[k % len(bins)]]
        assert found.sum() == pytest.approx(16.0)  # two columns of 16 pixels with gradient 1/2


def test_orientation_between_two_bins_is_shared():
    rows, columns = np.mgrid[:8, :8].astype(float)
    angle = np.pi / 12 * 2.25
    image = np.cos(angle) * columns + np.sin(angle) * rows
    model = HOG((8, 8), cell=(1, 1), norm=None).fit(flat([image]))
    found = model.transform(flat([image])).reshape(8, 8, 12)[4, 4]
    expected = np.zeros(12)
    expected[2:4] = 0.75, 0.25
    assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(("signed", "quarter"), [(False, 6), (True, 3)])
def test_turning_by_90_degrees_permutes_bins(signed, quarter):
    square = IMAGES[:, :, :16]
    model = HOG((16, 16), cell=(4, 4), signed=signed).fit(flat(square))
    cells = model.histograms(flat(square))
    turned = model.histograms(flat(np.rot90(square, axes=(1, 2))))
    # dx becomes dy of the turned image with the opposite sign: orientations turn by minus a quarter
    assert_allclose(turned, np.roll(np.rot90(cells, axes=(1, 2)), -quarter, axis=-1), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("filter", ["tap", "sobel", "gaussian"])
def test_brightness_and_contrast_change_nothing(norm, filter):
    found = hog(IMAGES, norm=norm, filter=filter)
    assert_allclose(hog(3.0 * IMAGES + 100.0, norm=norm, filter=filter), found, atol=1e-7)
    assert_array_equal(hog(2.0**-700 * IMAGES, norm=norm, filter=filter), found)
    assert_array_equal(hog(2.0**900 * IMAGES, norm=norm, filter=filter), found)


def test_unsigned_orientations_ignore_which_side_is_bright():
    assert_allclose(hog(-IMAGES), hog(IMAGES), atol=1e-12)
    assert np.abs(hog(-IMAGES, signed=True) - hog(IMAGES, signed=True)).max() > 0.1


def test_moving_by_a_cell_moves_the_cells():
    image = np.zeros((32, 32))
    image[9:15, 9:15] = IMAGES[0, :6, :6]
    model = HOG((32, 32)).fit(flat([image]))
    cells = model.histograms(flat([image, np.roll(image, (8, 16), axis=(0, 1))]))
    assert_array_equal(cells[1], np.roll(cells[0], (1, 2), axis=(0, 1)))


@pytest.mark.parametrize("filter", ["tap", "sobel", "gaussian"])
@pytest.mark.parametrize("norm", [*NORMS, None])
def test_images_without_edges_are_zero(norm, filter):
    assert_array_equal(hog(np.full((2, 9, 9), 0.1), norm=norm, filter=filter, cell=(3, 3)), 0.0)


def test_small_and_uneven_images_have_whole_cells():
    model = HOG((10, 3), cell=(8, 8)).fit(np.zeros((1, 30)))
    assert model.n_output_features_ == 2 * 12  # two cells, one block of both
    assert HOG().fit(np.zeros((1, 64))).image_shape_ == (8, 8)
    assert HOG().fit(np.zeros((1, 6))).image_shape_ == (2, 3)
    assert HOG().fit(np.zeros((1, 7))).image_shape_ == (1, 7)


def test_names():
    model = HOG((16, 24), n_bins=2).fit(flat(IMAGES))
    names = list(model.get_feature_names_out())
    assert len(names) == model.n_output_features_ == 2 * 4 * 2
    assert names[:3] == ["block0_0_cell0_0_bin0", "block0_0_cell0_0_bin1", "block0_0_cell0_1_bin0"]
    assert names[8] == "block0_1_cell0_1_bin0"
    assert next(iter(HOG((16, 24), norm=None).fit(flat(IMAGES)).get_feature_names_out())) == "cell0_0_bin0"


def test_many_images_are_computed_in_parts(monkeypatch):
    whole = hog(IMAGES)
    monkeypatch.setattr("summula.features.hog._PIXELS", 2 * 16 * 24)
    assert_array_equal(hog(IMAGES), whole)
    assert hog(IMAGES.astype(np.float32)).dtype == np.float32


def test_arrays_of_images_are_taken_as_they_are(tmp_path):
    wide = IMAGES.reshape(5, 8, 48)  # not the shape that is nearest to a square
    model = HOG(cell=(4, 4)).fit(wide)
    assert model.image_shape_ == (8, 48)
    expected = hog(wide, cell=(4, 4))
    for images in (wide, flat(wide), wide.tolist()):
        assert_array_equal(model.transform(images), expected)
    assert_array_equal(model.histograms(wide), model.histograms(flat(wide)))
    summula.save(model, tmp_path / "hog.summula")
    assert_array_equal(summula.load(tmp_path / "hog.summula").transform(flat(wide)), expected)
    with pytest.raises(DataError, match=r"shape \(16, 24\), but those of `fit` had \(8, 48\)"):
        model.transform(IMAGES)
    with pytest.raises(ParameterError, match=r"image_shape=\(8, 48\), but the images in X have shape \(16, 24\)"):
        HOG((8, 48)).fit(IMAGES)


@pytest.mark.parametrize("filter", ["tap", "sobel", "gaussian"])
def test_colour_images_have_the_gradient_of_the_strongest_channel(filter):
    colours = np.stack([IMAGES, IMAGES[::-1], 0.5 * IMAGES], axis=-1)
    model = HOG(filter=filter, cell=(16, 24)).fit(colours)
    assert model.image_shape_ == (16, 24, 3)
    assert_array_equal(
        HOG((16, 24, 3), filter=filter, cell=(16, 24)).fit_transform(flat(colours)), model.transform(colours)
    )
    totals = model.histograms(colours).sum(axis=(1, 2, 3))
    assert_allclose(totals, edges(colours, filter, channel_axis=-1).magnitude.sum(axis=(1, 2)))
    grey = np.repeat(IMAGES[..., None], 3, axis=-1)
    assert_array_equal(model.transform(grey), HOG((16, 24), filter=filter, cell=(16, 24)).fit_transform(flat(IMAGES)))


def test_digits_are_recognised_better_by_their_edges():
    X, y = load_digits(return_X_y=True)
    train, test = np.s_[:600], np.s_[600:1_200]
    pixels = LinearSVC().fit(X[train], y[train]).score(X[test], y[test])
    model = make_pipeline(HOG((8, 8), cell=(2, 2), block=(1, 1), signed=True), LinearSVC())
    assert model.fit(X[train], y[train]).score(X[test], y[test]) > pixels + 0.02


def test_what_is_refused():
    with pytest.raises(ParameterError, match=r"image_shape=\(8, 8\) needs 64 columns, but X has 10"):
        HOG((8, 8)).fit(np.ones((2, 10)))
    with pytest.raises(ParameterError, match="must be a pair of ints >= 1"):
        HOG((8, 8), cell=4).fit(np.ones((2, 64)))
    with pytest.raises(ParameterError, match="larger cells or fewer bins"):
        HOG(cell=(1, 1), n_bins=65_536).fit(np.ones((1, 200 * 200)))
    bad = np.ones((3, 64))
    model = HOG((8, 8)).fit(bad)
    bad[2, 5] = np.nan
    for compute in (model.transform, model.histograms):
        with pytest.raises(DataError, match="row 2"):
            compute(bad)
