"""Importing is cheap: nothing but the standard library for `summula`, nothing heavy for an estimator."""

from __future__ import annotations

import sys

import pytest

from tests.processes import run

HEAVY = "numba llvmlite pyarrow dask distributed ray matplotlib polars pandas duckdb safetensors"


def test_the_package_imports_only_the_standard_library() -> None:
    loaded = run("""
    import json, sys
    before = set(sys.modules)
    import summula
    assert "load" in dir(summula) and "linear_model" in dir(summula)
    print(json.dumps(sorted({name.partition(".")[0] for name in set(sys.modules) - before})))
    """)
    assert set(loaded) <= {"summula", *sys.stdlib_module_names}


def test_estimators_load_nothing_heavy_by_our_doing() -> None:
    """Modules imported by scikit-learn itself are ignored; no others may be added."""
    output = run(f"""
    import json, sys
    heavy = set("{HEAVY}".split())
    loaded = lambda: sorted(heavy & {{name.partition(".")[0] for name in sys.modules}})
    import sklearn.linear_model, sklearn.callback
    theirs = loaded()
    from summula.linear_model import Ridge
    imported = loaded()
    Ridge().fit([[1.0], [2.0]], [1.0, 2.0]).predict([[3.0]])
    fitted = loaded()
    import summula
    summula.features.PolynomialLift, summula.preprocessing.StandardScaler, summula.engine("threads")
    print(json.dumps([theirs, imported, fitted, loaded()]))
    """)
    theirs, *ours = output
    assert ours == [theirs] * 3


def test_an_unknown_name_is_an_attribute_error() -> None:
    import summula

    with pytest.raises(AttributeError, match="module 'summula' has no attribute 'ridge'"):
        summula.ridge  # noqa: B018


def test_normal_use_prints_nothing() -> None:
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
