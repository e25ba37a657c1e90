"""Continuous states: grids, discretisation, learned dynamics, fitted values. The regulator has a closed form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_discrete_are
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import PolynomialFeatures

from summula import DataError, ParameterError
from summula.linear_model import LinearRegression, PolynomialRegression
from summula.mdp import FittedValueIteration, Grid, LinearDynamics, discretize

# A linear regulator in one dimension: x' = 0.9 x + a + noise, reward -(x^2 + a^2).
A, B, GAMMA, SIGMA = 0.9, 1.0, 0.9, 0.1
ACTIONS = np.linspace(-1, 1, 81)


def regulator(noise):
    def step(x, a, rng):
        after = A * x + B * a[:, None] + noise * rng.standard_normal(x.shape)
        return after, -(x[:, 0] ** 2) - a**2, np.zeros(len(x), bool)

    return step


def riccati(noise):
    """V(x) = -p x^2 - c from Riccati's equation with sqrt(gamma) A and sqrt(gamma) B."""
    root = np.sqrt(GAMMA)
    p = solve_discrete_are([[root * A]], [[root * B]], [[1.0]], [[1.0]])[0, 0]
    return p, GAMMA * p * noise**2 / (1 - GAMMA)


def test_interpolation_is_exact_for_multilinear_functions():
    rng = np.random.default_rng(0)
    grid = Grid(np.sort(rng.random(5)), np.sort(rng.random(4)) * 3, [0.0, 1.0])
    x = np.array([axis[0] + rng.random(50) * np.ptp(axis) for axis in grid.axes]).T

    def f(x):
        return 1 + x[:, 0] - 2 * x[:, 1] + 3 * x[:, 0] * x[:, 1] * x[:, 2]

    assert_allclose(grid.interpolate(f(grid.points), x), f(x), rtol=1e-12)
    numbers, weights = grid.weights(x)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights >= 0).all()
    assert_array_equal(grid.cell(grid.points), np.arange(len(grid)))
    assert_allclose(grid.interpolate(np.eye(len(grid)), grid.points), np.eye(len(grid)), atol=1e-12)


def test_the_nearest_point_is_nearest_along_each_axis():
    grid = Grid.uniform([0, -1], [1, 1], [4, 7])
    x = np.random.default_rng(1).random((200, 2)) * 2 - 0.5
    expected = [np.argmin(((grid.points - one) ** 2).sum(axis=1)) for one in x]
    assert_array_equal(grid.cell(x), expected)
    assert grid.cell([0.0, 0.0]) == 3


def test_a_single_point_on_an_axis_and_bad_grids():
    grid = Grid([0.0, 1.0], [5.0])
    assert_allclose(grid.interpolate([1.0, 3.0], [[0.5, 7.0]]), [2.0])
    with pytest.raises(DataError, match="Axis 1 of the grid"):
        Grid([0.0, 1.0], [1.0, 0.0])
    with pytest.raises(DataError, match="must have 2 columns"):
        grid.cell(np.zeros((3, 3)))
    with pytest.raises(DataError, match="coordinate 1 of state 0"):
        grid.cell([[0.0, np.nan]])


def test_the_regulator_on_a_grid():
    found = discretize(regulator(0.0), [np.linspace(-1, 1, 201)], ACTIONS, GAMMA)
    solution = found.mdp.solve()
    p, _ = riccati(0.0)
    x = np.linspace(-0.9, 0.9, 19)
    # Interpolating between points h apart adds an error of p h^2 / 4 in each of about 1 / (1 - gamma) steps.
    bound = p * 0.01**2 / 4 / (1 - GAMMA) + (ACTIONS[1] - ACTIONS[0]) ** 2 * (1 + p) / (1 - GAMMA) / 4
    assert np.abs(found.values(solution, x) + p * x**2).max() < bound
    gain = GAMMA * p * A * B / (1 + GAMMA * p * B**2)
    assert np.abs(found.act(solution, x) + gain * x).max() < 2 * (ACTIONS[1] - ACTIONS[0])


def test_noise_and_the_nearest_cell():
    found = discretize(
        regulator(SIGMA),
        [np.linspace(-2, 2, 81)],
        ACTIONS[::4],
        GAMMA,
        interpolation="nearest",
        n_samples=100,
        random_state=0,
    )
    solution = found.mdp.solve()
    p, c = riccati(SIGMA)
    x = np.linspace(-0.8, 0.8, 9)
    assert_allclose(found.values(solution, x), -p * x**2 - c, atol=0.05)
    assert found.act(solution, x).shape == (9,)


def test_a_process_that_ends():
    # Walk right on [0, 1] at a cost of 1 for each step of 0.1; the end is at 1.
    def step(x, a, rng):
        after = x + a[:, None]
        return after, -np.ones(len(x)), after[:, 0] > 0.999

    found = discretize(step, Grid(np.linspace(0, 0.9, 10)), [0.1, -0.1], 0.9)
    V = found.mdp.solve().values
    assert_allclose(V, -(1 - 0.9 ** np.arange(10, 0, -1)) / 0.1, atol=1e-9)
    model = FittedValueIteration(KNeighborsRegressor(1), [0.1, -0.1], discount=0.9).fit(step, np.linspace(0, 0.9, 10))
    assert_allclose(model.predict(np.linspace(0, 0.9, 10)), V, atol=1e-3)
    assert model.converged_


def test_linear_dynamics_recover_the_system():
    rng = np.random.default_rng(0)
    true_A, true_B = rng.normal(size=(3, 3)) / 3, rng.normal(size=(3, 2))
    root = np.tril(rng.normal(size=(3, 3))) * 0.1
    s, a = rng.normal(size=(20_000, 3)), rng.normal(size=(20_000, 2))
    after = s @ true_A.T + a @ true_B.T + rng.normal(size=s.shape) @ root.T
    model = LinearDynamics().fit(s, a, after)
    assert_allclose(model.A_, true_A, atol=0.01)
    assert_allclose(model.B_, true_B, atol=0.01)
    assert_allclose(model.noise_covariance_, root @ root.T, atol=1e-3)
    X = np.hstack([s, a])
    coef = np.linalg.lstsq(X, after, rcond=None)[0]
    e = after - X @ coef
    assert_allclose(np.hstack([model.A_, model.B_]), coef.T, atol=1e-10)
    assert_allclose(model.noise_covariance_, e.T @ e / (len(s) - 5), rtol=1e-9)
    drawn = model.sample(np.zeros((50_000, 3)), np.zeros((50_000, 2)), random_state=0)
    assert_allclose(np.cov(drawn.T), model.noise_covariance_, atol=1e-3)
    assert_array_equal(drawn[:5], model.sample(np.zeros((50_000, 3)), np.zeros((50_000, 2)), random_state=0)[:5])


def test_weights_are_repetitions():
    rng = np.random.default_rng(1)
    s, a, after = rng.normal(size=(30, 2)), rng.normal(size=30), rng.normal(size=(30, 2))
    w = rng.integers(1, 4, 30)
    one = LinearDynamics(fit_intercept=True).fit(s, a, after, sample_weight=w)
    other = LinearDynamics(fit_intercept=True).fit(*(np.repeat(x, w, axis=0) for x in (s, a, after)))
    for name in ("A_", "B_", "intercept_", "noise_covariance_"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-12)


def test_features_make_dynamics_nonlinear():
    # A pendulum: the angle's acceleration is sin(angle) + force.
    rng = np.random.default_rng(2)
    s, a = rng.uniform(-3, 3, (400, 2)), rng.normal(size=(400, 1))
    after = np.c_[s[:, 0] + 0.1 * s[:, 1], s[:, 1] + 0.1 * np.sin(s[:, 0]) + 0.1 * a[:, 0]]
    model = LinearDynamics(state_features=lambda x: np.c_[x, np.sin(x[:, 0])]).fit(s, a, after)
    assert_allclose(model.A_, [[1, 0.1, 0], [0, 1, 0.1]], atol=1e-9)
    assert_allclose(model.noise_covariance_, 0.0, atol=1e-20)
    path = model.rollout([0.5, 0.0], np.zeros(20))
    assert path.shape == (21, 2)
    assert_allclose(path[1], [0.5, 0.1 * np.sin(0.5)], atol=1e-9)
    cubic = clone(LinearDynamics(state_features=PolynomialFeatures(3, include_bias=False), fit_intercept=True))
    cubic.fit(s, a, after)
    assert cubic.A_.shape == (2, 9)
    trajectories = [(path, np.zeros(20))] * 3 + [(s, a[:-1])]
    assert LinearDynamics().fit_trajectories(trajectories).A_.shape == (2, 2)


def test_dynamics_refuse_bad_input():
    s, a = np.zeros((5, 2)), np.zeros(5)
    with pytest.raises(DataError, match="equal numbers of rows"):
        LinearDynamics().fit(s, a[:4], s)
    bad = s.copy()
    bad[3, 1] = np.nan
    with pytest.raises(DataError, match="next_states is missing or infinite at row 3, column 1"):
        LinearDynamics().fit(s, a, bad)
    with pytest.raises(ParameterError, match="state_features"):
        LinearDynamics(state_features=3).fit(s, a, s)
    rng = np.random.default_rng(0)
    s, a = rng.normal(size=(3, 2)), rng.normal(size=3)
    with pytest.raises(DataError, match="3 transitions do not determine the noise"):
        LinearDynamics().fit(s, a, s)


def test_fitted_values_of_the_regulator():
    model = FittedValueIteration(PolynomialRegression(2), ACTIONS, discount=GAMMA, tol=1e-8)
    x = np.linspace(-1, 1, 41)
    model.fit(regulator(0.0), x)
    p, _ = riccati(0.0)
    # The values are quadratic, so the regression is exact but for the grid of actions.
    assert_allclose(model.predict(x), -p * x**2, atol=3e-3)
    assert model.converged_
    assert model.bellman_residual_ < 1e-3
    assert model.trace_[-1] <= 1e-8
    gain = GAMMA * p * A * B / (1 + GAMMA * p * B**2)
    assert np.abs(model.act(x) + gain * x).max() < 0.03
    assert model.q_values(x[:3]).shape == (3, 81)


def test_the_maximum_comes_after_the_mean():
    # The reward is pure noise: max_a E q = 0, but E max_a q > 0.
    def noise(x, a, rng):
        return x, rng.standard_normal(len(x)), np.ones(len(x), bool)

    model = FittedValueIteration(LinearRegression(), [0, 1], n_samples=20_000, random_state=0)
    model.fit(noise, [0.0, 1.0, 2.0])
    assert np.abs(model.predict([0.0, 1.0, 2.0])).max() < 4 / np.sqrt(20_000)


def test_fitted_values_from_learned_dynamics():
    rng = np.random.default_rng(0)
    x, a = rng.uniform(-1, 1, (2_000, 1)), rng.uniform(-1, 1, 2_000)
    after, _, _ = regulator(SIGMA)(x, a, rng)
    simulator = LinearDynamics().fit(x, a, after).simulator(lambda x, a: -(x[:, 0] ** 2) - a**2)
    model = FittedValueIteration(
        PolynomialRegression(2), ACTIONS[::4], discount=GAMMA, n_samples=30, resample=True, max_iter=60, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="max_iter=60"):
        model.fit(simulator, np.linspace(-1, 1, 21))
    p, c = riccati(SIGMA)
    x = np.linspace(-1, 1, 5)
    assert_allclose(model.predict(x), -p * x**2 - c, atol=0.06)


def test_divergence_is_reported():
    # Tsitsiklis and Van Roy (1996): w -> 2 w, with values w and 2 w; least squares of two states diverges.
    def step(x, a, rng):
        return np.full_like(x, 2.0), np.full(len(x), 0.1), np.zeros(len(x), bool)

    model = FittedValueIteration(LinearRegression(fit_intercept=False), [0], discount=0.99, max_iter=10_000)
    with pytest.warns(ConvergenceWarning, match="diverged and kept its last finite values"):
        model.fit(step, [[1.0], [2.0]])
    assert np.isfinite(model.predict([[1.0]])).all()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda x, a, rng: x, "must return a tuple"),
        (lambda x, a, rng: (x[:1], a, False), "next states of shape"),
        (lambda x, a, rng: (x, np.zeros(3), False), "one reward and one bool"),
        (lambda x, a, rng: (x * np.nan, a, False), "not finite, for state"),
    ],
)
def test_simulators_are_checked(step, message):
    with pytest.raises(DataError, match=message):
        discretize(step, [np.linspace(0, 1, 5)], [0.0, 1.0], 0.9)
    model = FittedValueIteration(LinearRegression(), [0.0, 1.0])
    with pytest.raises(DataError, match=message):
        model.fit(step, np.linspace(0, 1, 5))
    assert not hasattr(model, "regressor_")


def test_ctrl_c_keeps_the_fitted_values():
    calls = []

    class Interrupting(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return super().fit(X, y, sample_weight)

    model = FittedValueIteration(Interrupting(), ACTIONS, discount=GAMMA)
    with pytest.raises(KeyboardInterrupt):
        model.fit(regulator(0.0), np.linspace(-1, 1, 11))
    assert model.n_iter_ == 3
    assert np.isfinite(model.predict([0.5])).all()


def test_an_error_leaves_the_earlier_fit():
    calls = []

    def step(x, a, rng):
        calls.append(1)
        return x * (np.nan if len(calls) > 3 else 0.5), -(x[:, 0] ** 2), np.zeros(len(x), bool)

    model = FittedValueIteration(PolynomialRegression(2), ACTIONS[::20], discount=GAMMA, resample=True, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model.fit(step, np.linspace(-1, 1, 11))
    before = model.predict([0.5])
    with pytest.raises(DataError, match="not finite"):
        model.fit(step, np.linspace(-1, 1, 11))
    assert_array_equal(model.predict([0.5]), before)
