"""Decision regions: colours and opacity against the model's predictions, contour levels, every kind of data."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.contour import ContourSet
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from summula import DataError, ParameterError
from summula.linear_model import GeneralizedLinearRegressor, LinearRegression, LogisticRegression
from summula.plotting import decision_regions
from summula.plotting.style import colour


def data(K=2, d=2, n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    X = rng.normal(size=(n, d))
    X[:, 0] += 2 * np.cos(2 * np.pi * y / K)
    X[:, 1] += 2 * np.sin(2 * np.pi * y / K)
    return X, y


def frame_data(d=3):
    X, y = data(d=d)
    return {name: X[:, j] for j, name in enumerate(("height", "weight", "age")[:d])}, y


def contours(ax):
    return [artist for artist in ax.collections if isinstance(artist, ContourSet)]


def points(ax):
    return [artist for artist in ax.collections if not isinstance(artist, ContourSet)]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def grid(ax):
    """The middles of the cells of the image, and their colours."""
    (image,) = ax.get_images()
    rgba = np.asarray(image.get_array())
    left, right, bottom, top = image.get_extent()
    rows, columns = rgba.shape[:2]
    u = left + (np.arange(columns) + 0.5) * (right - left) / columns
    v = bottom + (np.arange(rows) + 0.5) * (top - bottom) / rows
    return np.column_stack([side.ravel() for side in np.meshgrid(u, v)]), rgba.reshape(-1, 4)


def colours_of(labels, classes):
    return np.array([to_rgb(colour(list(classes).index(label))) for label in labels])


# -------------------------------------------------------------------------------------------------------------- regions


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("Model", [LogisticRegression, Theirs, KNeighborsClassifier])
def test_colours_are_predictions_and_opacity_follows_the_probability(K, Model):
    X, y = data(K)
    model = Model().fit(X, y)
    cells, rgba = grid(decision_regions(model, X, y, resolution=31))
    assert len(cells) == 31 * 31
    P = model.predict_proba(cells)
    own = P[np.arange(len(cells)), model.predict(cells)]
    clear = np.sort(P, axis=1)[:, -1] - np.sort(P, axis=1)[:, -2] > 1e-9  # ties may fall either way
    np.testing.assert_allclose(rgba[clear, :3], colours_of(model.predict(cells), model.classes_)[clear], atol=1e-6)
    assert len(np.unique(rgba[:, :3], axis=0)) == K
    share = (own - 1 / K) / (1 - 1 / K)
    slope, intercept = np.polyfit(share, rgba[:, 3], 1)
    assert slope > 0.3
    np.testing.assert_allclose(rgba[:, 3], intercept + slope * share, atol=1e-6)


def test_the_picture_covers_the_points():
    X, y = data()
    ax = decision_regions(LogisticRegression().fit(X, y), X, y)
    assert ax.get_xlim()[0] < X[:, 0].min() < X[:, 0].max() < ax.get_xlim()[1]
    assert ax.get_ylim()[0] < X[:, 1].min() < X[:, 1].max() < ax.get_ylim()[1]
    left, right, bottom, top = ax.get_images()[0].get_extent()
    assert left < ax.get_xlim()[0] < ax.get_xlim()[1] < right
    assert bottom < ax.get_ylim()[0] < ax.get_ylim()[1] < top


def test_a_threshold_moves_the_regions():
    """The regions are those of predict, also where it is not the most probable class."""
    X, y = data()
    model = FixedThresholdClassifier(Theirs(), threshold=0.9, response_method="predict_proba").fit(X, y)
    cells, rgba = grid(decision_regions(model, X, y, resolution=25))
    np.testing.assert_allclose(rgba[:, :3], colours_of(model.predict(cells), model.classes_), atol=1e-6)


def test_one_class_is_one_region_without_lines():
    X, _ = data()
    ax = decision_regions(DummyClassifier().fit(X, np.ones(len(X))), X, np.ones(len(X)))
    assert len(np.unique(grid(ax)[1], axis=0)) == 1
    assert not contours(ax)


# ---------------------------------------------------------------------------------------------------------------- lines


def test_two_classes_have_labelled_lines_of_equal_probability():
    X, y = data()
    model = LogisticRegression().fit(X, y)
    ax = decision_regions(model, X, y)
    (lines,) = contours(ax)
    np.testing.assert_array_equal(lines.levels, [0.1, 0.25, 0.5, 0.75, 0.9])
    assert {text.get_text() for text in lines.labelTexts} == {"0.1", "0.25", "0.5", "0.75", "0.9"}
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        # Between points of the grid p is interpolated linearly; the error is half a cell, 1/400 of the plot.
        np.testing.assert_allclose(model.predict_proba(path.vertices)[:, 1], level, atol=2e-3)
    widths = lines.get_linewidths()
    assert widths[2] > max(widths[0], widths[4])


def test_labels_lie_on_their_lines_inside_the_picture():
    X, y = data()
    model = LogisticRegression().fit(X, y)
    ax = decision_regions(model, X, y)
    for text in contours(ax)[0].labelTexts:
        x = np.array([text.get_position()])
        assert model.predict_proba(x)[0, 1] == pytest.approx(float(text.get_text()), abs=0.02)
        assert ax.get_xlim()[0] < x[0, 0] < ax.get_xlim()[1]


def test_levels_may_be_chosen_and_those_not_reached_are_left_out():
    X, y = data()
    model = LogisticRegression().fit(X, y)
    (lines,) = contours(decision_regions(model, X, y, levels=[0.8, 0.2, 1.5]))
    np.testing.assert_array_equal(lines.levels, [0.2, 0.8])
    assert not contours(decision_regions(model, X, y, levels=()))


@pytest.mark.parametrize("K", [3, 4])
def test_more_classes_have_borders(K):
    """On a boundary the two largest probabilities are equal."""
    X, y = data(K)
    model = LogisticRegression().fit(X, y)
    drawn = contours(decision_regions(model, X, y))
    assert len(drawn) == K - 1
    for border in drawn:
        assert not border.labelTexts
        for path in border.get_paths():
            P = np.sort(model.predict_proba(path.vertices), axis=1)
            assert np.quantile(P[:, -1] - P[:, -2], 0.9) < 0.01  # where three classes meet the cell is cut off


def test_a_score_alone_has_lines_at_its_border_and_margins():
    X, y = data()
    model = LinearSVC().fit(X, y)
    ax = decision_regions(model, X, y)
    (lines,) = contours(ax)
    np.testing.assert_array_equal(lines.levels, [-1.0, 0.0, 1.0])
    for level, path in zip(lines.levels, lines.get_paths(), strict=True):
        np.testing.assert_allclose(model.decision_function(path.vertices), level, atol=1e-6)
    (lines,) = contours(decision_regions(model, X, y, levels=(-0.5, 0.5)))
    np.testing.assert_array_equal(lines.levels, [-0.5, 0.5])
    cells, rgba = grid(ax)
    sizes = np.abs(model.decision_function(cells))
    assert np.corrcoef(sizes, rgba[:, 3])[0, 1] == pytest.approx(1.0)


MODELS = [
    LinearSVC(),
    RidgeClassifier(),
    SVC(),
    SVC(decision_function_shape="ovo"),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(5, random_state=0),
    make_pipeline(StandardScaler(), Theirs()),
    VotingClassifier([("a", Theirs()), ("b", KNeighborsClassifier())]),
    make_pipeline(StandardScaler(), LogisticRegression()),
]


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_any_classifier(model, K):
    """Also those with scores of pairs of classes, or with nothing but predict."""
    X, y = data(K)
    labels = np.array(["north", "east", "south", "west"])[y]
    model.fit(X, labels)
    ax = decision_regions(model, X, labels, resolution=40)
    cells, rgba = grid(ax)
    same = np.isclose(rgba[:, :3], colours_of(model.predict(cells), model.classes_), atol=1e-6).all(axis=1)
    assert same.mean() > 0.99  # all but ties, which rounding of the middles of cells may break differently
    assert contours(ax)
    assert legend(ax) == list(model.classes_)
    ax.figure.canvas.draw()


# --------------------------------------------------------------------------------------------------------------- points


def test_points_are_drawn_by_class_with_a_legend():
    X, y = data(3)
    labels = np.array(["one", "two", "three"])[y]
    ax = decision_regions(LogisticRegression().fit(X, labels), X, labels)
    classes = ["one", "three", "two"]
    assert legend(ax) == classes
    for k, (drawn, label) in enumerate(zip(points(ax), classes, strict=True)):
        np.testing.assert_allclose(drawn.get_offsets(), X[labels == label])
        np.testing.assert_allclose(drawn.get_facecolors()[0, :3], to_rgb(colour(k)))
    assert len({drawn.get_paths()[0].vertices.shape for drawn in points(ax)}) > 1  # markers differ


def test_without_targets_the_legend_names_the_regions():
    X, y = data(3)
    ax = decision_regions(LogisticRegression().fit(X, y), X)
    assert not points(ax)
    assert legend(ax) == ["0", "1", "2"]


def test_truth_values_are_classes():
    X, y = data()
    ax = decision_regions(LogisticRegression().fit(X, y > 0), X, y > 0)
    assert legend(ax) == ["False", "True"]


# -------------------------------------------------------------------------------------------------- columns and storage


@pytest.mark.parametrize("Model", [LogisticRegression, Theirs])
def test_frames_give_names_and_the_same_picture(constructor, Model):
    columns, y = frame_data()
    frame, X = constructor(columns), np.column_stack(list(columns.values()))
    ax = decision_regions(Model().fit(frame, y), frame, y, columns=("age", "weight"), resolution=30)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "weight")
    same = decision_regions(Model().fit(X, y), X, y, columns=(2, 1), resolution=30)
    assert (same.get_xlabel(), same.get_ylabel()) == ("x2", "x1")
    np.testing.assert_allclose(grid(ax)[1], grid(same)[1], atol=1e-9)
    np.testing.assert_allclose(points(ax)[0].get_offsets(), points(same)[0].get_offsets())


def test_other_columns_are_fixed_at_their_median_as_the_title_states():
    X, y = data(d=4)
    X[:, 2:] = np.random.default_rng(1).exponential(size=(len(X), 2))
    model = LogisticRegression(C=10.0).fit(X, y)
    ax = decision_regions(model, X, y, resolution=20)
    cells, rgba = grid(ax)
    rows = np.hstack([cells, np.tile(np.median(X[:, 2:], axis=0), (len(cells), 1))])
    share = 2 * model.predict_proba(rows).max(axis=1) - 1
    assert np.corrcoef(share, rgba[:, 3])[0, 1] == pytest.approx(1.0)
    assert ax.get_title() == "other columns at their median"
    assert decision_regions(LogisticRegression().fit(X[:, :3], y), X[:, :3]).get_title() == (
        "the other column at its median"
    )
    assert decision_regions(LogisticRegression().fit(X[:, :2], y), X[:, :2]).get_title() == ""


def test_missing_values_do_not_count():
    X, y = data(d=3)
    model = LogisticRegression().fit(X, y)
    holes = X.copy()
    holes[::7, 2], holes[3, 0] = np.nan, np.nan
    cells, rgba = grid(decision_regions(model, holes, y, resolution=15))
    rows = np.column_stack([cells, np.full(len(cells), np.nanmedian(holes[:, 2]))])
    assert np.corrcoef(2 * model.predict_proba(rows).max(axis=1) - 1, rgba[:, 3])[0, 1] == pytest.approx(1.0)


def test_the_target_may_be_a_column_of_the_frame(constructor):
    columns, y = frame_data()
    frame = constructor({"sex": np.array(["f", "m"])[y], **columns})
    model = LogisticRegression().fit(frame, "sex")
    ax = decision_regions(model, frame, "sex")
    assert ax.get_xlabel() == "height"
    assert legend(ax) == ["f", "m"]
    assert ax.get_legend().get_title().get_text() == "sex"


def test_a_model_reads_its_own_columns_in_its_order():
    pandas = pytest.importorskip("pandas")
    columns, y = frame_data()
    frame = pandas.DataFrame(columns)
    model = Theirs().fit(frame[["weight", "height"]], y)
    ax = decision_regions(model, frame, y)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("weight", "height", "")


def test_a_frame_of_whole_numbers_and_numbered_columns():
    pandas = pytest.importorskip("pandas")
    X, y = data(d=3)
    frame = pandas.DataFrame(np.round(3 * X).astype(int))
    ax = decision_regions(Theirs().fit(frame, y), frame, pandas.Series(y, name="kind"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("0", "1")
    assert ax.get_legend().get_title().get_text() == "kind"


def test_categories_are_fixed_at_the_most_frequent(constructor):
    """For a model with categories: a pipeline, whose encoder supports known categories only."""
    if constructor.__name__ == "pyarrow_frame":
        pytest.skip("scikit-learn's ColumnTransformer does not read it")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    columns, y = frame_data(2)
    colours = ["red"] * 20 + ["blue"] * 50 + ["green"] * 20
    frame = constructor({**columns, "colour": colours, "old": [True] * 60 + [False] * 30})
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    model = make_pipeline(encoder, Theirs()).fit(frame, y)
    ax = decision_regions(model, frame, y, resolution=12)
    assert ax.get_title() == "other columns at their median or most frequent value"
    cells, rgba = grid(ax)
    n = len(cells)
    columns = {"height": cells[:, 0], "weight": cells[:, 1], "colour": ["blue"] * n, "old": [True] * n}
    share = 2 * model.predict_proba(constructor(columns)).max(axis=1) - 1
    assert np.corrcoef(share, rgba[:, 3])[0, 1] == pytest.approx(1.0)
    with pytest.raises(DataError, match="Column 'colour' has string values; decision_regions needs a numeric column"):
        decision_regions(model, frame, y, columns=("height", "colour"))


def test_pandas_categories_keep_their_type():
    pandas = pytest.importorskip("pandas")
    from sklearn.ensemble import HistGradientBoostingClassifier

    columns, y = frame_data(2)
    kind = pandas.Categorical(np.array(["a", "b", "c"])[np.arange(len(y)) % 3], categories=["c", "b", "a", "unseen"])
    frame = pandas.DataFrame({**columns, "kind": kind})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=3).fit(frame, y)
    decision_regions(model, frame, y, resolution=10)


def test_float32_stays_float32():
    X, y = data(d=3)
    seen = []

    class Watched(Theirs):
        def predict(self, X):
            seen.append(X.dtype)
            return super().predict(X)

    decision_regions(Watched().fit(X, y), X.astype(np.float32), y, resolution=5)
    assert seen == [np.float32]


def test_wide_data_are_given_in_blocks():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3_000)), np.arange(30) % 2
    sizes = []

    class Watched(Theirs):
        def predict(self, X):
            sizes.append(X.size)
            return super().predict(X)

    decision_regions(Watched().fit(X, y), X, y, resolution=60)
    assert len(sizes) > 1
    assert max(sizes) <= 1 << 22
    assert sum(sizes) == 3_600 * 3_000


# ---------------------------------------------------------------------------------------------------------------- house


def test_it_draws_on_the_given_axes_without_showing_them(monkeypatch):
    monkeypatch.setattr(pyplot, "show", lambda *a, **k: pytest.fail("shown"))
    X, y = data()
    model = LogisticRegression().fit(X, y)
    figure, (left, right) = pyplot.subplots(1, 2)
    assert decision_regions(model, X, y, ax=right) is right
    assert not left.get_images()
    assert pyplot.get_fignums() == [figure.number]
    new = decision_regions(model, X, y)
    assert new.figure is not figure


def fitted():
    X, y = data()
    return LogisticRegression().fit(X, y), X, y


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"columns": (0,)}, ParameterError, r"The 'columns' of decision_regions must be two columns, not \(0,\)"),
        ({"columns": (1, 1)}, ParameterError, r"must be different, not \(1, 1\)"),
        ({"columns": (0, 2)}, ParameterError, "must be a name or an int from 0 to 1, not 2"),
        ({"columns": (0, 0.5)}, ParameterError, "must be a name or an int from 0 to 1, not 0.5"),
        ({"columns": ("x0", "x9")}, DataError, "no column 'x9'; its columns are 'x0', 'x1'"),
        ({"levels": ("half",)}, ParameterError, "The 'levels' of decision_regions must be numbers"),
        ({"levels": (np.nan,)}, ParameterError, "must be finite"),
        ({"resolution": 1}, ParameterError, "must be an int >= 2, not 1"),
        ({"resolution": 20.5}, ParameterError, "must be an int >= 2, not 20.5"),
        ({"y": [0, 1]}, DataError, "X has 90 rows but y has 2"),
        ({"y": [7] * 90}, DataError, "y is 7 at row 0, which is not a class of the model; its classes are 0, 1"),
        ({"y": "kind"}, DataError, "y='kind' is a column name, but X is not a frame"),
        ({"y": np.zeros((90, 2))}, DataError, r"y has shape \(90, 2\); decision_regions plots one target"),
        ({"X": np.ones(90)}, DataError, "X has 1 dimension; decision_regions needs a 2d array"),
        ({"X": np.ones((90, 1))}, DataError, "X has one column, but decision_regions needs two"),
        ({"X": np.ones((0, 2)), "y": None}, DataError, "X has no rows"),
        ({"X": [["a", "b"]] * 90}, DataError, "X is not numeric"),
        ({"X": np.full((90, 2), np.nan)}, DataError, "Column 'x0' has no finite values"),
    ],
)
def test_errors_are_one_sentence(options, error, sentence):
    model, X, y = fitted()
    given = {"X": X, "y": y, **options}
    with pytest.raises(error, match=sentence):
        decision_regions(model, **given)
    assert not pyplot.get_fignums()  # and no empty figure remains


def test_what_is_no_fitted_classifier_is_refused():
    X, y = data()
    with pytest.raises(NotFittedError, match="not fitted"):
        decision_regions(LogisticRegression(), X, y)
    for model in (LinearRegression(), GeneralizedLinearRegressor()):
        with pytest.raises(ParameterError, match=f"needs a classifier, but {type(model).__name__} has no classes_"):
            decision_regions(model.fit(X, y), X, y)
    several = KNeighborsClassifier().fit(X, np.column_stack([y, y]))
    with pytest.raises(ParameterError, match="plots one target, but KNeighborsClassifier has 2"):
        decision_regions(several, X, y)


def test_rows_that_are_not_in_memory_are_refused():
    from scipy import sparse

    model, X, y = fitted()
    with pytest.raises(DataError, match="X is of type csr_array; decision_regions needs rows in memory"):
        decision_regions(model, sparse.csr_array(X), y)


def test_a_frame_without_a_column_of_the_model(constructor):
    columns, y = frame_data()
    model = LogisticRegression().fit(constructor(columns), y)
    with pytest.raises(DataError, match="no column 'weight'; did you mean 'weigth'"):
        decision_regions(model, constructor({("weigth" if n == "weight" else n): c for n, c in columns.items()}), y)
