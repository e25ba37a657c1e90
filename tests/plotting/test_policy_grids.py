"""Values and policies on a grid."""

import numpy as np
import pytest
from matplotlib import pyplot

from summula import DataError
from summula.mdp import MDP
from summula.plotting import policy_grid


def test_values_arrows_and_walls_are_where_they_belong():
    values = np.arange(7.0)
    hidden = np.arange(6) == 4
    ax = policy_grid(
        values, (2, 3), policy=[0, 1, 2, 3, 0, 4], arrows=[(0, 1), (1, 0), (0, -1), (-1, 0), (0, 0)], hidden=hidden
    )
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3", "5"]
    shown = ax.images[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(shown, np.nan), [[0, 1, 2], [3, np.nan, 5]])
    dots, arrows = ax.collections
    np.testing.assert_allclose(dots.get_offsets()[:, 0], [2])
    # Up is towards smaller rows.
    np.testing.assert_allclose(np.c_[arrows.U, arrows.V], [[0, -0.5], [0.5, 0], [0, 0.5], [-0.5, 0]], atol=1e-12)
    pyplot.close(ax.figure)


def test_a_solution_plots_itself():
    stay = np.eye(4)[:, None, :].repeat(4, axis=1)
    ax = MDP(stay, [0.0, 1.0, 2.0, 3.0], 0.5).solve().plot((2, 2))
    assert [text.get_text() for text in ax.texts] == ["0", "2", "4", "6"]
    pyplot.close(ax.figure)


def test_sizes_are_checked():
    with pytest.raises(DataError, match="needs 6 values"):
        policy_grid([1.0, 2.0], (2, 3))
    with pytest.raises(DataError, match="hidden has 2 entries"):
        policy_grid(np.zeros(6), (2, 3), hidden=[True, False])
    with pytest.raises(DataError, match="actions up to 7, but there are 4 arrows"):
        policy_grid(np.zeros(2), (1, 2), policy=[7, 0])
    pyplot.close("all")
