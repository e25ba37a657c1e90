"""Sparse matrices whose index arrays contradict their shape: rejected before compiled code reads them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import summula
from summula.cluster import KMeans
from summula.core.data import sparse_format
from summula.core.data.sparse_format import check_sparse
from summula.core.errors import DataError
from summula.linear_model import LinearRegression, Ridge, SGDRegressor
from summula.losses import perceptron_risk
from summula.optimize import linear_program, quadratic_program, separating_hyperplane
from summula.preprocessing import KBinsDiscretizer
from summula.tree import DecisionTreeRegressor
from tests.contract.registry import Case, over


def matrix(kind: str = "csr") -> Any:
    X = sparse.random_array((30, 4), density=0.6, rng=np.random.default_rng(0), format="csr")
    return X.asformat(kind)


def _set(part: str, k: int, value: int) -> Callable[[Any], None]:
    def change(X: Any) -> None:
        getattr(X, part)[k] = value

    return change


def _cut(part: str) -> Callable[[Any], None]:
    def change(X: Any) -> None:
        setattr(X, part, getattr(X, part)[:-1])

    return change


COMPRESSED: dict[str, tuple[Callable[[Any], None], str]] = {
    "huge index": (_set("indices", 3, 2**31 - 1), "stored value 3 has the .* index 2147483647"),
    "index at the size": (_set("indices", 0, 30), "index 30, and"),
    "negative index": (_set("indices", -1, -1), "index -1, and .* numbered from 0"),
    "negative start": (_set("indptr", 0, -4), "indptr goes from -4 to"),
    "start above 0": (_set("indptr", 0, 1), "indptr goes from 1 to"),
    "end past the values": (_set("indptr", -1, 10**6), "indptr goes from 0 to 1000000"),
    "falling": (_set("indptr", 1, 2**31 - 1), "indptr decreases from 2147483647"),
    "negative inside": (_set("indptr", 2, -(2**31)), "indptr decreases from"),
    "short indptr": (_cut("indptr"), "indptr has .* entries where its shape"),
    "short data": (_cut("data"), "indices and .* stored values"),
    "indices of floats": (lambda X: setattr(X, "indices", X.indices.astype(float)), "indices is not a vector"),
    "indices a table": (lambda X: setattr(X, "indices", X.indices[:, None]), "indices is not a vector"),
}


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("fault", COMPRESSED)
def test_damaged_compressed_matrices(fault: str, kind: str, index: type) -> None:
    X = matrix(kind)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    change, message = COMPRESSED[fault]
    change(X)
    with pytest.raises(DataError, match=f"The sparse matrix X is damaged: .*{message}.*; build it again") as caught:
        check_sparse(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("part", "value"), [("row", 30), ("row", -1), ("col", 4), ("col", -(2**31))])
def test_damaged_coordinates(part: str, value: int) -> None:
    X = matrix("coo")
    getattr(X, part)[2] = value
    with pytest.raises(DataError, match=f"stored value 2 has the (row|column) index {value}"):
        check_sparse(X)
    with pytest.raises(DataError, match="is damaged"):
        LinearRegression().fit(X, np.arange(30.0))


def test_damaged_blocks() -> None:
    X = matrix().tobsr((2, 2))
    check_sparse(X)
    X.indices[1] = 2
    with pytest.raises(DataError, match="column index 2, and columns are numbered from 0 to 1"):
        check_sparse(X)


def test_damaged_lists() -> None:
    X = matrix("lil")
    X.rows[3] = [0, 4_000_000]
    X.data[3] = [1.0, 1.0]
    with pytest.raises(DataError, match="column index 4000000"):
        LinearRegression().fit(X, np.arange(30.0))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sound_matrices_of_any_format_pass(kind: str) -> None:
    X = matrix()
    unsorted = sparse.csr_array((X.data[::-1].copy(), X.indices[::-1].copy(), X.indptr), shape=X.shape)
    for given in (X.asformat(kind), unsorted.asformat(kind), sparse.csr_array((30, 4)).asformat(kind)):
        check_sparse(given)
        Ridge().fit(given, np.arange(30.0))


@over("sparse")
def test_estimators_refuse_damaged_matrices(case: Case) -> None:
    """In fit and in all later methods with rows."""
    X, y, _ = case.data()
    damaged = []
    for kind, part, value in (("csr", "indices", 10**9), ("csr", "indptr", 10**9), ("csc", "indices", -(10**9))):
        damaged.append(sparse.csr_array(X).asformat(kind))
        getattr(damaged[-1], part)[5] = value
    model = case.model()
    uses = [name for name in METHODS if hasattr(model, name)]
    for rows in damaged:
        with pytest.raises(DataError, match="The sparse matrix X is damaged"):
            clone(case.estimator).fit(rows, y)
        for name in uses:
            arguments = (rows, y) if name == "score" else (rows,)
            with pytest.raises(DataError, match="The sparse matrix X is damaged"):
                getattr(model, name)(*arguments)


METHODS = ("predict", "predict_proba", "decision_function", "transform", "inverse_transform", "score")


def test_methods_that_densify_refuse_damaged_matrices() -> None:
    """They crashed the process."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), np.arange(30.0)
    bins = KBinsDiscretizer(n_bins=3).fit(X)
    coded = bins.transform(X)
    damaged, square = matrix(), sparse.csr_array(np.eye(4))
    coded.indices[5] = damaged.indices[5] = square.indices[1] = 10**9
    for call, name in (
        (lambda: bins.inverse_transform(coded), "X"),
        (lambda: DecisionTreeRegressor(max_depth=2).fit(X, y).tree_.apply(damaged), "X"),
        (lambda: KMeans(4, init=square).fit(X), "init"),
        (lambda: SGDRegressor().fit(X, y, coef_init=square), "coef_init"),
        (lambda: quadratic_program(square, np.ones(4)), "P"),
    ):
        with pytest.raises(DataError, match=f"The sparse matrix {name} is damaged"):
            call()


def test_functions_refuse_damaged_matrices() -> None:
    X, signs = matrix(), np.where(np.arange(30) % 2, 1.0, -1.0)
    X.indices[0] = 10**9
    model = LinearRegression().fit(matrix(), np.arange(30.0))
    for call in (
        lambda: perceptron_risk(np.ones(4), X, signs),
        lambda: separating_hyperplane(X, signs),
        lambda: summula.certify(model, X, np.arange(30.0), loss="squared", range=(0, 10**6)),
    ):
        with pytest.raises(DataError, match="The sparse matrix X is damaged"):
            call()
    with pytest.raises(DataError, match="The sparse matrix A_ub is damaged"):
        linear_program(np.ones(4), X, np.ones(30))


def test_dask_blocks_are_checked() -> None:
    array = pytest.importorskip("dask.array")
    X = matrix()
    table = array.from_array(X.toarray(), chunks=(10, 4))

    def damaged(block: Any) -> Any:
        rows = sparse.csr_array(block)
        if rows.nnz:
            rows.indices[0] = 10**9
        return rows

    y = array.from_array(np.arange(30.0), chunks=10)
    Ridge().fit(table.map_blocks(sparse.csr_array), y)
    with pytest.raises(DataError, match="The sparse matrix in a block of X is damaged"):
        Ridge().fit(table.map_blocks(damaged), y)


def test_canonical_form_is_recognised_across_blocks_and_empty_rows(monkeypatch):
    rng = np.random.default_rng(0)
    recognised = {True: 0, False: 0}
    for _ in range(1_000):
        monkeypatch.setattr(sparse_format, "_BLOCK", int(rng.integers(1, 12)))
        counts = rng.integers(0, 5, rng.integers(0, 9)) * (rng.random() < 0.9)
        counts[rng.random(len(counts)) < 0.3] = 0
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        columns = [np.sort(rng.choice(8, count, replace=False)) for count in counts]
        indices = np.concatenate([*columns, np.empty(0)]).astype(np.int32)
        if len(indices) and rng.random() < 0.5:
            indices[rng.integers(len(indices))] = rng.integers(8)
        expected = all((np.diff(indices[a:b]) > 0).all() for a, b in itertools.pairwise(indptr))
        assert sparse_format._is_canonical(indices, indptr) == expected
        recognised[expected] += 1
    assert min(recognised.values()) > 100
