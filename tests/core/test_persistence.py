"""Saving and loading: round trips, rejected models, atomic writes, golden files."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import Ridge as ForeignRidge

from summula.core.errors import ModelFileError
from summula.core.model_files import json_limits, model_file, persistence
from summula.core.model_files.classes import register_name, saved_classes
from summula.core.model_files.persistence import load, save
from summula.core.moved_modules import MOVED
from summula.core.numerics.solution import Solution
from tests.core.fake_models import Derived, Model, Pair, Point, Slotted, made, same

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def round_trip(model: Any, folder: Path) -> Any:
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors")


# ----------------------------------------------------------------------------------------------------
# Round trips

DTYPES = ["bool", *(f"{kind}{8 * n}" for kind in ("int", "uint") for n in (1, 2, 4, 8))]
DTYPES += ["float16", "float32", "float64"]

numeric_arrays = st.sampled_from(DTYPES).flatmap(
    lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
orders = st.sampled_from(["C", "F"])
# NumPy strings cannot end in a null character, so none is made.
short_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
text_arrays = hnp.arrays("U5", hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3), elements=short_text)
scalars = st.sampled_from(DTYPES).flatmap(lambda d: hnp.from_dtype(np.dtype(d)))
object_arrays = st.lists(st.text() | st.none() | st.floats() | st.booleans()).map(
    lambda items: np.array([*items, None], dtype=object)[:-1]
)
keys = st.text() | st.integers() | st.booleans() | st.tuples(st.integers(), st.text())
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | short_text.map(np.str_)
    | scalars | st.tuples(numeric_arrays, orders).map(lambda t: np.asarray(t[0], order=t[1]))
    | st.tuples(text_arrays, orders).map(lambda t: np.asarray(t[0], order=t[1])) | object_arrays
)  # fmt: skip
trees = st.recursive(
    leaves,
    lambda t: st.lists(t) | st.lists(t).map(tuple) | st.dictionaries(keys, t) | t.map(Pair) | t.map(Slotted),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(state=trees, param=trees)
@example(state="\ud800 lone surrogate", param={"a": [-0.0, float("nan"), float("-inf"), 10**300]})
def test_any_tree_returns_the_same(state: Any, param: Any, tmp_path: Path) -> None:
    model = made(state_=state)
    model.alpha = param
    again = round_trip(model, tmp_path)
    assert type(again) is Model
    assert same(again.alpha, param)
    assert same(again.state_, state)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_keep_dtype_order_and_are_writeable(dtype: str, order: str, tmp_path: Path) -> None:
    array = np.asarray(np.arange(6).reshape(2, 3), dtype=dtype, order=order)  # type: ignore[call-overload]
    again = round_trip(made(coef_=array), tmp_path).coef_
    assert same(again, array)
    again[0, 0] = 1


def test_strided_foreign_endian_and_mapped_arrays_become_plain(tmp_path: Path) -> None:
    wide = np.arange(24.0).reshape(4, 6)
    mapped = np.memmap(tmp_path / "m", dtype="f4", mode="w+", shape=(3,))
    mapped[:] = [1, 2, 3]
    again = round_trip(made(a_=wide[::2, ::3], b_=wide.astype(">f8"), c_=mapped, d_=np.array("é", ">U3")), tmp_path)
    np.testing.assert_array_equal(again.a_, wide[::2, ::3])
    np.testing.assert_array_equal(again.b_, wide)
    np.testing.assert_array_equal(again.c_, [1, 2, 3])
    assert type(again.c_) is np.ndarray
    assert again.d_.dtype == "U3"
    assert again.d_ == "é"


def test_an_array_held_twice_stays_one(tmp_path: Path) -> None:
    coef = np.arange(1000.0)
    again = round_trip(made(coef_=coef, point_=Point(coef), names_=[coef]), tmp_path)
    assert again.coef_ is again.point_.x
    assert again.coef_ is again.names_[0]
    assert os.path.getsize(tmp_path / "model.safetensors") < 10_000


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "csc_array"])
@pytest.mark.parametrize("shape", [(5, 7), (0, 3), (3, 0)])
def test_sparse(kind: str, shape: tuple[int, int], tmp_path: Path) -> None:
    dense = np.random.default_rng(0).integers(0, 2, shape).astype("f4")
    matrix = getattr(scipy.sparse, kind)(dense)
    again = round_trip(made(coef_=matrix), tmp_path).coef_
    assert type(again) is type(matrix)
    assert again.dtype == np.float32
    np.testing.assert_array_equal(again.toarray(), dense)


def test_value_classes(tmp_path: Path) -> None:
    point = Point(np.float32(2), "q")
    object.__setattr__(point, "norm", 2.0)
    solution = Solution(np.arange(3.0), 1.5, float("nan"), "optimal", True, 3, (3.0, 2.0))
    again = round_trip(made(a_=point, b_=Pair(1, Pair("x")), c_=Slotted([point]), s_=solution), tmp_path)
    assert again.a_ == point
    assert again.b_ == Pair(1, Pair("x"))
    assert again.c_ == Slotted([point])
    assert type(again.s_) is Solution
    np.testing.assert_array_equal(again.s_.x, solution.x)
    assert again.s_.trace == (3.0, 2.0)


def test_nested_estimators_parameters_and_settings(tmp_path: Path) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        inner = made(coef_=np.arange(2.0)).set_fit_request(sample_weight=True)
        model = Model(alpha=np.array([1.0, 2.0]), inner=inner).set_output(transform="pandas")
        model.steps_ = [("a", made(coef_=np.ones(2)))]
        again = round_trip(model, tmp_path)
        assert again.inner.get_metadata_routing().fit.requests == {"sample_weight": True}
    assert again.inner.coef_.tolist() == [0, 1]
    assert again.steps_[0][1].coef_.tolist() == [1, 1]
    assert again._sklearn_output_config == {"transform": "pandas"}
    assert repr(again) == repr(model)


def test_transient_attributes_and_callbacks_stay_behind(tmp_path: Path) -> None:
    again = round_trip(made(_training=object(), _skl_callbacks=[print], coef_=1.0), tmp_path)
    assert vars(again) == {"alpha": 1.0, "inner": None, "coef_": 1.0}


def test_saving_is_deterministic_and_the_path_is_free(tmp_path: Path) -> None:
    model = made(coef_=np.arange(3.0), d_={"b": 1, "a": 2})
    save(model, str(tmp_path / "one"))
    save(load(tmp_path / "one"), tmp_path / "with spaces é.model")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "with spaces é.model").read_bytes()


# ----------------------------------------------------------------------------------------------------
# Rejected by save


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.random.RandomState(0), "is a numpy.random.*RandomState; set it to an integer seed"),
        (np.random.default_rng(0), "is a numpy.random.*Generator; set it to an integer seed"),
        (len, "is a builtin_function_or_method; files contain no code"),
        (functools.partial(len), "is a functools.partial; files contain no code"),
        (lambda x: x, "is a function; files contain no code"),
        (Model, "files contain no code"),
        (ForeignRidge(), r"is a sklearn.*Ridge; only Summula estimators"),
        (Derived(), "Derived; only Summula estimators"),
        ({1, 2}, "is a set; replace it"),
        (np.ma.masked_array([1.0], [True]), "MaskedArray; replace it"),
        (np.longdouble(1), "is a numpy.longdouble; replace it"),
        (1j, "is a complex; replace it"),
        (10**2000, "is a int; replace it"),
        (scipy.sparse.coo_array((2, 2)), "coo_array; replace it"),
        (scipy.sparse.csr_array(np.eye(2) * 1j), "replace it"),
    ],
)
@pytest.mark.parametrize("place", ["alpha", "state_"])
def test_foreign_values_are_refused_by_name(value: Any, message: str, place: str, tmp_path: Path) -> None:
    for wrap, path in ((lambda v: v, place), (lambda v: {"a": [0, v]}, rf"{place}\['a'\]\[1\]")):
        with pytest.raises(ModelFileError, match=rf"Model cannot be saved: its attribute '{path}.*' .*{message}") as e:
            save(made(**{place: wrap(value)}), tmp_path / "m")
        assert "\n" not in str(e.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "array", [np.array([1j]), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "f8,i4"), np.array([b"a"])]
)
def test_arrays_of_other_kinds_are_refused(array: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'a_\[0\]' is an array of .*; convert it"):
        save(made(a_=[array]), tmp_path / "m")


def test_object_arrays_hold_only_plain_values(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"'a_\[\.\.\.\]' is a set"):
        save(made(a_=np.array([{1}, "b"], dtype=object)), tmp_path / "m")


@pytest.mark.parametrize("model", [Derived(), ForeignRidge(), 5, None, Model, Point(1), np.ones(3)])
def test_only_our_own_estimators_are_saved(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"cannot be saved: save\(\) takes Summula estimators"):
        save(model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_odd_names_cycles_and_depth_are_refused(tmp_path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ModelFileError, match="contains itself or is nested"):
        save(made(a_=loop), tmp_path / "m")
    with pytest.raises(ModelFileError, match="'not a name' is not a valid attribute name"):
        save(made(**{"not a name": 1}), tmp_path / "m")
    with pytest.raises(ModelFileError, match="'predict' would hide a method of Model"):
        save(made(predict=1), tmp_path / "m")
    assert os.listdir(tmp_path) == []


# ----------------------------------------------------------------------------------------------------
# Atomic writes


def test_a_refused_model_leaves_the_old_file(tmp_path: Path) -> None:
    save(made(coef_=1.0), tmp_path / "m")
    with pytest.raises(ModelFileError):
        save(made(coef_=len), tmp_path / "m")
    assert load(tmp_path / "m").coef_ == 1.0
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_while_writing_leaves_the_old_file(
    error: BaseException, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(made(coef_=1.0), tmp_path / "m")

    def fail(*args: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(model_file.os, step, fail)
        with pytest.raises(type(error)):
            save(made(coef_=2.0), tmp_path / "m")
    assert load(tmp_path / "m").coef_ == 1.0
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX resource limits")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A limit on file sizes makes the real write fail half way, as a full disk does."""
    code = """
    import os, resource, signal
    import numpy as np
    from sklearn.base import BaseEstimator
    from summula.core.model_files import schema
    from summula.core.model_files.persistence import load, save

    @schema.saved("test.Model", coef_=schema.Array("float64", "n_features"))
    class Model(BaseEstimator):
        pass

    model = Model()
    model.coef_ = np.arange(3.0)
    save(model, "m")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    model.coef_ = np.zeros(1_000_000)
    try:
        save(model, "m")
    except OSError as error:
        print(error)
    print(os.listdir(), load("m").coef_)
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    src = str(Path(persistence.__file__).parents[3])
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": src}, check=False
    )
    assert done.stderr == ""
    assert re.match(r"'m' could not be written \(.*File too large.*\); nothing was changed.\n", done.stdout)
    assert done.stdout.splitlines()[1] == "['m'] [0. 1. 2.]"


def test_too_much_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(json_limits, "MAX_BYTES", 1000)
        with pytest.raises(
            ModelFileError, match=r"cannot be saved \(its header has .* bytes; the maximum is 1,000\): convert"
        ):
            save(made(text_="x" * 2000), tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"cannot be saved \(its header contains more than 400,000 lists"):
        save(made(lists_=[[]] * 400_000), tmp_path / "m")
    monkeypatch.setattr(model_file, "_TENSOR_LIMIT", 10)
    with pytest.raises(ModelFileError, match="it contains 11 arrays; the maximum is 10"):
        save(made(arrays_=[np.zeros(k) for k in range(11)]), tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        save(made(), tmp_path / "m")
    finally:
        os.umask(old)
    assert os.stat(tmp_path / "m").st_mode & 0o777 == 0o640
    os.chmod(tmp_path / "m", 0o604)
    os.symlink("m", tmp_path / "link")
    save(made(coef_=3), tmp_path / "link")
    assert os.path.islink(tmp_path / "link")
    assert load(tmp_path / "m").coef_ == 3
    assert os.stat(tmp_path / "m").st_mode & 0o777 == 0o604


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"The folder '.*nowhere' does not exist: create it"):
        save(made(), tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder or a device"):
        save(made(), tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder or a device"):
        load(tmp_path)


# ----------------------------------------------------------------------------------------------------
# Golden files


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # rows are stored without names
@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.safetensors")), ids=lambda path: path.stem)
def test_golden_files_predict_as_they_did(path: Path) -> None:
    """Files of earlier releases (tests/data/make_golden.py) load and predict what they predicted then."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as expected:
        result = getattr(load(path), str(expected["method"]))(expected["X"])
        if result.dtype.kind == "U":
            np.testing.assert_array_equal(result, expected["result"])
            return
        # The stored model is the same to the bit; the product X w may round differently on another BLAS.
        np.testing.assert_allclose(result, expected["result"], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_class_is_found_by_its_name_where_nothing_is_loaded_yet() -> None:
    names = list(saved_classes())
    assert {"linear_model.Ridge", "linear_model.Fit", "stats.links.Log", "core.statistics.Gram", "tree.Nodes"} <= set(
        names
    )
    code = """
    import os, sys
    import numpy, scipy.linalg, scipy.sparse, scipy.special, sklearn.base, sklearn.callback  # so that children are quick
    from summula.core.model_files.classes import class_named, name_of
    for prefix in {name.rpartition(".")[0] for name in sys.argv[1:]}:
        child = os.fork()
        if not child:
            for name in sys.argv[1:]:
                if name.rpartition(".")[0] == prefix:
                    assert name_of(class_named(name)) == name
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, prefix
    """
    src = str(Path(persistence.__file__).parents[3])
    run = [sys.executable, "-c", textwrap.dedent(code), *names]
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": src}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_are_taken_once() -> None:
    with pytest.raises(TypeError, match="would both be saved as 'test.Model'"):
        register_name(Derived, "test.Model")
    with pytest.raises(TypeError, match="Derived is defined outside summula"):
        register_name(Derived)


def test_importing_is_light() -> None:
    code = "import sys, summula.core.model_files.persistence; print(*sys.modules)"
    src = str(Path(persistence.__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": src}
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert not {"sklearn", "scipy", "safetensors", "pandas", "pyarrow"} & set(loaded.stdout.split())


@pytest.mark.parametrize("old", sorted(MOVED))
def test_pickles_of_versions_before_a_module_moved_are_loaded(old):
    found = importlib.import_module(MOVED[old])
    name = next(name for name in found.__all__ if inspect.isclass(getattr(found, name)))
    pickled = f"c{old}\n{name}\n.".encode()  # protocol 0: a class by module and name
    assert pickle.loads(pickled) is getattr(found, name)
