"""Hold-out and folds: fractions, classes, groups, times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from summula.core.errors import DataError, ParameterError, RowError
from summula.training.data.split import HELD_OUT, LEFT_OUT, key_values, split_rows

N = 1_000
EVERY = np.ones(N, bool)


def test_rows_without_a_target_are_left_out_and_the_rest_is_split() -> None:
    known = np.arange(N) % 4 != 0
    split = split_rows(known, None, 0.2, 0)
    assert (split.folds[~known] == LEFT_OUT).all()
    assert split.held_out.sum() == 150
    assert np.bincount(split.folds[split.training]).tolist() == [120] * 5
    assert split.rounds == [
        ([1, 2, 3, 4], 0),
        ([0, 2, 3, 4], 1),
        ([0, 1, 3, 4], 2),
        ([0, 1, 2, 4], 3),
        ([0, 1, 2, 3], 4),
    ]


def test_each_fold_has_its_share_of_each_class() -> None:
    classes = np.array(["rare", *["usual"] * 9] * 100)
    split = split_rows(EVERY, classes, 0.2, 3)
    rare = [int(((split.folds == fold) & (classes == "rare")).sum()) for fold in range(5)]
    assert max(rare) - min(rare) <= 1


def test_the_seed_draws_and_nothing_else() -> None:
    first, again, other = (split_rows(EVERY, None, 0.2, seed).folds for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first == HELD_OUT, other == HELD_OUT)


def test_groups_are_never_on_both_sides() -> None:
    groups = np.random.default_rng(0).integers(0, 60, N)
    split = split_rows(EVERY, None, 0.2, 0, groups=groups)
    folds_of_group = [set(split.folds[groups == group]) for group in np.unique(groups)]
    assert all(len(folds) == 1 for folds in folds_of_group)
    assert 0.1 < split.held_out.mean() < 0.3
    sizes = np.bincount(split.folds[split.training])
    assert sizes.max() < 1.3 * sizes.min()
    assert split.groups is not None
    assert np.array_equal(split.groups, groups[split.held_out])


def test_the_latest_rows_are_held_out_and_folds_look_back() -> None:
    times = np.random.default_rng(0).permutation(N) // 5
    split = split_rows(EVERY, None, 0.2, 0, times=times)
    assert times[split.training].max() < times[split.held_out].min()
    assert split.held_out.sum() == 200
    for fit_on, validate_on in split.rounds:
        assert times[np.isin(split.folds, fit_on)].max() < times[split.folds == validate_on].min()
    # The longest past comes first.
    assert [len(fit_on) for fit_on, _ in split.rounds] == [5, 4, 3, 2, 1]


def test_what_cannot_be_split_is_refused() -> None:
    with pytest.raises(ParameterError, match="not both"):
        split_rows(EVERY, None, 0.2, 0, groups=np.arange(N), times=np.arange(N))
    with pytest.raises(DataError, match="There are 3 groups; holding some out needs at least 5"):
        split_rows(EVERY, None, 0.2, 0, groups=np.arange(N) % 3)
    with pytest.raises(DataError, match="has 2 different values"):
        split_rows(EVERY, None, 0.2, 0, times=np.arange(N) % 2)
    with pytest.raises(DataError, match="Only 9 rows"):
        split_rows(np.arange(N) < 9, None, 0.2, 0)
    with pytest.raises(RowError, match="Column 'site' has no value at row 1; every row needs one"):
        key_values(pa.chunked_array([["a", None, "b"]]), "site")
