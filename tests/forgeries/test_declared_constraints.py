"""Every declared constraint on arrays is enforced: a file that violates just that one is rejected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import summula
from summula.core.errors import DataError, ModelFileError
from summula.core.model_files import schema
from summula.kernel_ridge import KernelRidge
from tests.forgeries.forging import Forger
from tests.forgeries.kinds import KINDS


def declared_array(model: Any, path: str) -> schema.Array | None:
    """The only declaration of the array at a path of a model, such as `certificate_.coef`; None for alternatives."""
    value, field = model, None
    for name in path.split("."):
        if sparse.issparse(value) or name not in (fields := schema.schema_of(type(value)).fields):
            return None  # a parameter, or part of a sparse matrix
        value, field = getattr(value, name), fields[name]
    arrays = [one for one in _options(field) if isinstance(one, schema.Array)]
    fitting = [one for one in arrays if _fits(one, value)]
    return fitting[0] if len(fitting) == 1 else None


def _options(field: Any) -> Iterator[schema.Field]:
    if isinstance(field, schema.Maybe):
        yield from _options(field.field)
    elif isinstance(field, schema.Either):
        for option in field.options:
            yield from _options(option)
    else:
        yield field


def _fits(field: schema.Array, value: Any) -> bool:
    dimensions = len(field.shape)
    return isinstance(value, np.ndarray) and (field.shape == ("...",) or value.ndim == dimensions)


def violations(field: schema.Array, value: Any) -> Iterator[tuple[str, Any]]:
    """Arrays that violate one constraint each."""
    yield "dtype", value.astype("int8" if value.dtype.kind == "f" else "float16")
    if field.shape != ("...",):
        yield "shape", value[None, None]  # (one dimension more may be an alternative)
    if not value.size:
        return
    is_float = value.dtype.kind == "f"
    if field.finite and is_float:
        yield "finite", _changed(value, 0, np.nan)
        yield "finite", _changed(value, -1, np.inf)
    if field.low is not None and value.dtype.kind != "u":
        yield "low", _changed(value, 0, field.low - 1)
    if field.high is not None:
        yield "high", _changed(value, -1, field.high + 1)
    if field.below is not None:
        yield "below", _changed(value, -1, np.iinfo(value.dtype).max)
    if field.ascending and value.shape[-1] > 1:
        yield "ascending", _changed(value, -1, value.reshape(-1)[-2] - 1 if value.reshape(-1)[-2] < np.inf else 0.0)


def forger_by_hand(model: Any, folder: Path) -> Forger:
    """The saved file of a model, which is signed again after its tensors or its header were changed by hand."""
    summula.save(model, folder / "m")
    forger = Forger(folder / "m", seed=0)
    forger.changes = lambda number: []  # type: ignore[method-assign]
    return forger


def _changed(value: Any, place: int, entry: Any) -> Any:
    out = np.array(value, order="C")
    out.reshape(-1)[place] = entry
    return out


@pytest.mark.parametrize(
    ("kind", "variant"), [(kind, k) for kind, made in KINDS.items() for k in range(len(made))], ids=str
)
@pytest.mark.filterwarnings("ignore")
def test_every_declared_constraint_is_enforced(kind: str, variant: int, tmp_path: Path) -> None:
    model = KINDS[kind][variant]().model
    forger = forger_by_hand(model, tmp_path)
    honest = dict(forger.tensors)
    checked = 0
    for path, value in honest.items():
        field = declared_array(model, path) if "[" not in path and "'" not in path else None
        if field is None:
            continue
        for constraint, broken in violations(field, value):
            forger.tensors = {**honest, path: np.ascontiguousarray(broken)}
            forger.write(0, tmp_path / "forged")
            assert _is_refused(tmp_path / "forged"), f"{path} breaks its {constraint}, and the file was loaded"
            checked += 1
    if any(declared_array(model, path) for path in honest if "[" not in path and "'" not in path):
        assert checked > 0


def _is_refused(path: Path) -> bool:
    try:
        summula.load(path)
    except ModelFileError as error:
        return "does not contain a valid model" in str(error)
    return False


@pytest.mark.parametrize(
    ("kind", "variant", "name", "change"),
    [
        ("HistGradientBoostingClassifier", 0, "classes_", lambda a: a[:1]),
        ("GradientBoostingClassifier", 1, "classes_", lambda a: a[:1]),
        ("GaussianMixture", 1, "precisions_cholesky_", lambda a: np.where(a == a.max(), 1e308, a)),
    ],
)
def test_a_single_class_and_squares_that_overflow_are_refused(
    kind: str, variant: int, name: str, change: Any, tmp_path: Path
) -> None:
    forger = forger_by_hand(KINDS[kind][variant]().model, tmp_path)
    if name in forger.tensors:
        forger.tensors[name] = np.ascontiguousarray(change(forger.tensors[name]))
    else:
        items = forger.header["state"][name]["objects"]
        items["items"], items["shape"] = items["items"][:1], [1]
    forger.write(0, tmp_path / "m")
    with pytest.raises(ModelFileError, match="does not contain a valid model"):
        summula.load(tmp_path / "m")


def test_scores_are_written_to_columns_of_the_machine_s_classes(tmp_path: Path) -> None:
    """They are indices of an array: numbers past its end failed in `predict_proba`."""
    forger = forger_by_hand(KINDS["CalibratedSVC"][1]().model, tmp_path)
    for classes in ([0, 1, 3], [-1, 0, 1], [0, 1, np.iinfo(np.int64).max]):
        forger.tensors["machine_.classes_"] = np.array(classes)
        forger.write(0, tmp_path / "forged")
        with pytest.raises(ModelFileError, match="machine_ is not of the classes from 0 to 2"):
            summula.load(tmp_path / "forged")


def test_a_mixture_without_its_number_of_columns_is_refused(tmp_path: Path) -> None:
    forger = forger_by_hand(KINDS["BinomialMixture"][1]().model, tmp_path)
    del forger.header["state"]["n_features_in_"]
    forger.write(0, tmp_path / "m")
    with pytest.raises(ModelFileError, match="n_features_in_ is missing"):
        summula.load(tmp_path / "m")


def test_a_sketch_of_another_number_of_terms_is_refused(tmp_path: Path) -> None:
    """With `coef0` there is one more term than columns."""
    forger = forger_by_hand(KINDS["PolynomialCountSketch"][0]().model, tmp_path)
    forger.header["params"]["coef0"] = 7
    forger.write(0, tmp_path / "m")
    with pytest.raises(ModelFileError, match="indexHash_ has . terms for . columns"):
        summula.load(tmp_path / "m")


RELATIONS: dict[str, tuple[str, int, dict[str, Any], str]] = {
    "no targets": ("KNeighborsRegressor", 0, {"_y": lambda a: a[:, :0]}, "n_outputs is 0"),
    "no centres": (
        "KMeans",
        1,
        {"cluster_centers_": lambda a: a[:0], "certificate_.centres": lambda a: a[:0], "labels_": lambda a: a[:0]},
        "n_clusters is 0",
    ),
    "no training rows": (
        "KernelRidge",
        0,
        {name: lambda a: a[:0] for name in ("dual_coef_", "X_fit_", "certificate_.coef")},
        "n_rows is 0",
    ),
    "no draws": (
        "BayesianLogisticRegression",
        1,
        {"_draws": lambda a: a[:, :0], "_weights": lambda a: a[:0]},
        "n_draws is 0",
    ),
    "no factors": (
        "PolynomialCountSketch",
        0,
        {"indexHash_": lambda a: a[:0], "bitHash_": lambda a: a[:0]},
        "n_factors is 0",
    ),
    "a cluster without a centre": ("KMeans", 1, {"labels_": lambda a: a + 1}, "labels_.* must be below n_clusters"),
    "votes without weight": ("AdaBoostClassifier", 0, {"estimator_weights_": np.zeros_like}, "add up to 0"),
    "classes of a regression": (
        "SVR",
        0,
        {"certificate_.task.class_weight": lambda a: np.ones(3)},
        "class_weight does not",
    ),
    "other classes": (
        "SVC",
        1,
        {"classes_": lambda a: a[:2], "class_weight_": lambda a: a[:2]},
        "machines for 1 pairs",
    ),
    "information of other parameters": (
        "LogisticRegression",
        0,
        {"_fit.half_inverse": lambda a: a[:-1], "_fit.free": lambda a: a[:-1]},
        "_fit has 4 parameters, and information of 3",
    ),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_arrays_that_do_not_belong_together_are_refused(name: str, tmp_path: Path) -> None:
    """Kernels of k-means read and wrote other memory; methods of the others raised errors of NumPy."""
    kind, variant, changes, says = RELATIONS[name]
    forger = forger_by_hand(KINDS[kind][variant]().model, tmp_path)
    assert changes.keys() & forger.tensors.keys()
    for tensor, change in changes.items():
        if tensor in forger.tensors:
            forger.tensors[tensor] = np.ascontiguousarray(change(forger.tensors[tensor]))
    forger.write(0, tmp_path / "m")
    with pytest.raises(ModelFileError, match=says):
        summula.load(tmp_path / "m")


def test_probabilities_of_one_column_for_several_are_refused(tmp_path: Path) -> None:
    forger = forger_by_hand(KINDS["BinomialMixture"][0]().model, tmp_path)
    forger.header["state"]["n_features_in_"] = 2
    for tensor in ("certificate_.theta.probabilities", "certificate_.theta.trials"):
        forger.tensors[tensor] = np.repeat(forger.tensors[tensor], 2, axis=-1)
    forger.write(0, tmp_path / "m")
    with pytest.raises(ModelFileError, match="probabilities_ are of one column, not of 2"):
        summula.load(tmp_path / "m")


def test_sums_that_overflow_later_say_so(tmp_path: Path) -> None:
    saved = KINDS["PCA"][1]()
    forger = forger_by_hand(saved.model, tmp_path)
    forger.tensors["_sums.origin"] = np.full_like(forger.tensors["_sums.origin"], 1e154)
    forger.write(0, tmp_path / "m")
    with pytest.raises(DataError, match="overflow"):
        summula.load(tmp_path / "m").partial_fit(saved.X)


def test_widths_whose_squares_overflow_are_refused(tmp_path: Path) -> None:
    forger = forger_by_hand(KINDS["KernelRidge"][1]().model, tmp_path)
    for sigma in (1e308, 1e-200):
        forger.header["params"]["kernel"]["value"]["fields"]["sigma"] = sigma
        forger.write(0, tmp_path / "forged")
        with pytest.raises(ModelFileError, match="sigma of a Gaussian kernel must be positive, from 1e-150 to 1e150"):
            summula.load(tmp_path / "forged")


def test_certificates_of_precomputed_kernels_take_square_matrices() -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = KernelRidge(kernel="precomputed").fit(X @ X.T, X[:, 0])
    with pytest.raises(DataError, match="X has 3 columns, but the model was fitted to 20"):
        model.certificate_.verify(X, X[:, 0])
