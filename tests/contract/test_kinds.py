"""Contract of clusterers and densities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import is_clusterer
from sklearn.utils import get_tags

from tests.contract import storage
from tests.contract.compare import assert_close, assert_same_bits
from tests.contract.registry import Case, over
from tests.contract.test_streams import named


@over("clusterer")
def test_the_clusters_of_the_training_rows_are_those_predicted_for_them(case: Case) -> None:
    X, _, _ = case.data("large")
    model = case.fit(X)
    assert is_clusterer(model)
    assert model.labels_.dtype.kind == "i"
    assert_same_bits(model.labels_, case.fit(X).fit_predict(X))
    if hasattr(model, "predict"):
        assert_same_bits(model.labels_, model.predict(X).astype(model.labels_.dtype))


@over("density")
def test_the_score_is_the_mean_log_density(case: Case, tmp_path: Path) -> None:
    data = case.data("large")
    X, _, weight = data
    model = case.model("large")
    assert get_tags(model).estimator_type == "density_estimator"
    values = model.score_samples(X)
    assert values.shape == (len(X),)
    assert model.score(X) == pytest.approx(values.mean(), rel=1e-12)
    assert model.score(X, sample_weight=weight) == pytest.approx(np.average(values, weights=weight), rel=1e-12)
    if case.streams:
        kept = storage.STREAMS["Parquet"](named(data), tmp_path)
        named_model = case.fit(storage.FRAMES["pyarrow"](X))
        assert named_model.score(kept) == pytest.approx(values.mean(), rel=1e-12)
        assert_close(values, np.concatenate(list(named_model.score_samples(kept))))
