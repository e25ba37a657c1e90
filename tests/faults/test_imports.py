"""Importing is cheap: nothing but the standard library for `summula`, nothing heavy for an estimator."""

from __future__ import annotations

import sys

import pytest

from tests.faults.scripts import run

LOADED = """
    import json, sys
    before = set(sys.modules)
    {statement}
    print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""
HEAVY = {"numba", "llvmlite", "pyarrow", "dask", "distributed", "ray", "matplotlib", "polars", "pandas", "duckdb", "safetensors"}


def loaded_by(statement: str) -> set[str]:
    """Top-level names of all modules an import brings in, in a fresh interpreter."""
    return set(run(LOADED.format(statement=statement)))


def test_the_package_imports_only_the_standard_library() -> None:
    assert loaded_by("import summula") <= {"summula", *sys.stdlib_module_names}


def test_its_names_are_there_without_being_loaded() -> None:
    loaded = loaded_by("import summula; assert 'load' in dir(summula); assert 'linear_model' in dir(summula)")
    assert loaded <= {"summula", *sys.stdlib_module_names}


@pytest.mark.parametrize("statement", [
    "from summula.linear_model import Ridge",
    "from summula.linear_model import LinearRegression, PolynomialRegression",
    "from summula.preprocessing import StandardScaler",
    "from summula.features import PolynomialLift",
    "import summula; summula.engine('threads')",
    "import summula; summula.linear_model.Ridge",
])  # fmt: skip
def test_an_estimator_loads_nothing_heavy_by_our_doing(statement: str) -> None:
    theirs = loaded_by("import sklearn.linear_model, sklearn.preprocessing, sklearn.callback")
    assert not (loaded_by(statement) - theirs) & HEAVY


def test_a_fit_to_an_array_loads_nothing_heavy_by_our_doing() -> None:
    theirs = loaded_by("import sklearn.linear_model; sklearn.linear_model.Ridge().fit([[1.0], [2.0]], [1.0, 2.0])")
    ours = loaded_by("from summula.linear_model import Ridge; Ridge().fit([[1.0], [2.0]], [1.0, 2.0]).predict([[3.0]])")
    assert not (ours - theirs) & HEAVY


def test_an_unknown_name_is_an_attribute_error() -> None:
    import summula

    with pytest.raises(AttributeError, match="module 'summula' has no attribute 'ridge'"):
        summula.ridge  # noqa: B018


def test_normal_use_says_nothing() -> None:
    """No warning (they are errors here) and no output, from arrays, frames and sparse data."""
    assert run("""
    import json
    import numpy as np, pandas as pd, polars as pl
    from scipy import sparse
    import summula
    from summula.features import PolynomialLift
    from summula.linear_model import LinearRegression, PolynomialRegression, Ridge
    from summula.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 3.0] + rng.normal(size=300)
    columns = dict(zip("abc", X.T))
    for data in (X, X.astype(np.float32), pd.DataFrame(columns), pl.DataFrame(columns), sparse.csr_array(X)):
        for model in (LinearRegression(), LinearRegression(positive=True), Ridge(), PolynomialRegression()):
            if not (sparse.issparse(data) and isinstance(model, PolynomialRegression)):
                model.fit(data, y).predict(data)
                model.score(data, y)
                assert model.certificate_.verify(data, y)
        StandardScaler(with_mean=False).fit_transform(data)
        PolynomialLift().fit_transform(data)
    str(LinearRegression().fit(X, y).summary())
    print(json.dumps(True))
    """)
