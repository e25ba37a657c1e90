"""The pictures of the documentation, from data made here: `python docs/pictures/make.py` writes them anew.

The files come out the same, byte for byte, with the same version of matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
# Identifiers and dates would differ each time. Text stays text: smaller, and readers can search and copy it.
SETTINGS = {"svg.hashsalt": "summula", "svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}
SIZE = (4.8, 3.6)


def _finish(
    ax: Any, across: str, up: str, title: str = "", corner: str = "upper right", **limits: tuple[float, float]
) -> None:
    """Set the limits given (`xlim`, `ylim`), label the axes and add a legend."""
    from summula.plotting.style import dress, keyed

    ax.set(**limits)
    dress(ax, across, up, title)
    keyed(ax, corner=corner)


def logistic_regions(ax: Any) -> None:
    """Two overlapping classes, and lines of equal probability."""
    from summula.linear_model import LogisticRegression
    from summula.plotting import decision_regions

    rng = np.random.default_rng(3)
    n = 80
    X = np.vstack([rng.normal([-0.9, -0.5], [1.0, 0.8], (n, 2)), rng.normal([0.9, 0.6], [0.9, 1.0], (n, 2))])
    y = np.repeat(["no", "yes"], n)
    decision_regions(LogisticRegression(C=np.inf).fit(X, y), X, y, ax=ax)


def softmax_regions(ax: Any) -> None:
    """Three classes and the borders between them, which are straight and meet in a point."""
    from summula.linear_model import LogisticRegression
    from summula.plotting import decision_regions

    rng = np.random.default_rng(5)
    n, centres = 60, ([-1.4, -0.7], [1.5, -0.8], [0.1, 1.5])
    X = np.vstack([rng.normal(centre, 0.85, (n, 2)) for centre in centres])
    y = np.repeat(["bus", "car", "train"], n)
    decision_regions(LogisticRegression().fit(X, y), X, y, ax=ax)


def solvers(ax: Any) -> None:
    """Newton and L-BFGS on a logistic likelihood whose columns differ in scale by a factor of 10,000."""
    from scipy.special import expit

    from summula.optimize.solvers.limited_memory import lbfgs
    from summula.optimize.solvers.newton_method import Factor, Local, newton
    from summula.plotting import convergence

    rng = np.random.default_rng(0)
    n, d = 4_000, 8
    scales = np.geomspace(1e-2, 1e2, d)
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d))) * scales
    y = rng.random(n) < expit(X @ (rng.normal(size=d) / scales))

    def at(w: Any, order: int, rows: int = n) -> Local:
        Z, t = X[:rows], y[:rows]
        eta = Z @ w
        p = expit(eta)
        value = float(np.logaddexp(0.0, eta).sum() - eta[t].sum())
        return Local(value, Z.T @ (p - t), Z.T @ (Z * (p * (1 - p))[:, None]) if order == 2 else None)

    class Round:
        """Variables u = F^-1 w."""

        def __init__(self, F: Any) -> None:
            self.F = F

        def solve(self, u: Any) -> Any:
            return self.F @ u

        def solve_transposed(self, g: Any) -> Any:
            return self.F.T @ g

    start = np.zeros(d)
    whole = Factor.of(at(start, 2).hessian)
    few = Factor.of(at(start, 2, rows=n // 8).hessian * 8)

    def enough(w: Any, value: float, g: Any) -> bool:
        return bool(g @ whole.solve(g) / 2 <= 1e-13 * value)

    def by_lbfgs(F: Any) -> Any:
        return lbfgs(lambda w: at(w, 1)[:2], start, Round(F), enough=enough, max_steps=40)

    convergence(
        newton(at, start, tolerance=1e-13),
        by_lbfgs(few.half_inverse()),
        by_lbfgs(np.eye(d)),
        labels=["Newton", "L-BFGS, rounded by the leading rows", "L-BFGS, columns as they are"],
        ax=ax,
    )


def poisson_mean(ax: Any) -> None:
    """Counts, and the mean exp(b + v x) of a Poisson regression."""
    from summula.linear_model import PoissonRegressor
    from summula.plotting import fitted_mean

    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, (150, 1))
    y = rng.poisson(np.exp(-0.3 + 0.3 * X[:, 0]))
    fitted_mean(PoissonRegressor(alpha=0).fit(X, y), X, y, ax=ax)


def descent_paths(ax: Any) -> None:
    """Four ways down a narrow valley that lies across the axes: curvatures 1 and 25."""
    from summula.optimize import conjugate_gradient, coordinate_descent, gradient_descent, newton
    from summula.plotting import descent_path

    P = np.array([[13.0, -12.0], [-12.0, 13.0]])
    start = [9.0, 6.0]

    def f(x: Any) -> Any:
        return x @ P @ x / 2

    def slope(x: Any) -> Any:
        return P @ x

    descent_path(
        f,
        gradient_descent(f, start, gradient=slope, step="secant", tolerance=1e-2),
        coordinate_descent((P, np.zeros(2)), start, tolerance=1e-2),
        conjugate_gradient(f, start, gradient=slope),
        newton(f, start, gradient=slope, hessian=lambda x: P),
        labels=["steepest descent", "one coordinate at a time", "conjugate gradients", "Newton"],
        ax=ax,
    )


def optimisers(ax: Any) -> None:
    """The minimisers on a logistic loss with columns of unlike size."""
    from scipy.special import expit

    from summula.optimize import bfgs, conjugate_gradient, gradient_descent, newton
    from summula.plotting import convergence

    rng = np.random.default_rng(0)
    n = 300
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 3)) * [1.0, 2.0, 4.0]])
    y = rng.random(n) < expit(X @ [0.5, 1.0, -0.5, 0.1])

    def f(w: Any) -> Any:
        return (np.logaddexp(0.0, X @ w).sum() - (X @ w)[y].sum()) / n

    def slope(w: Any) -> Any:
        return X.T @ (expit(X @ w) - y) / n

    def bend(w: Any) -> Any:
        p = expit(X @ w)
        return X.T @ (X * (p * (1 - p))[:, None]) / n

    start, L = np.zeros(4), float(np.linalg.eigvalsh(X.T @ X / n).max()) / 4
    convergence(
        gradient_descent(f, start, gradient=slope, lipschitz=L, max_steps=40),
        gradient_descent(f, start, gradient=slope, max_steps=40),
        conjugate_gradient(f, start, gradient=slope, max_steps=40),
        bfgs(f, start, gradient=slope),
        newton(f, start, gradient=slope, hessian=bend),
        labels=["gradient descent, 1/L", "gradient descent, backtracking", "conjugate gradients", "BFGS", "Newton"],
        ax=ax,
    )


def lasso_paths(ax: Any) -> None:
    """How ten coefficients leave zero, and the penalty that cross-validation chooses."""
    from summula.linear_model import LassoCV, lasso_path
    from summula.plotting import coefficient_paths

    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 10))
    y = X[:, :4] @ np.array([3.0, -2.0, 1.0, 0.5]) + rng.standard_normal(120)
    alphas, coefs, _ = lasso_path(X - X.mean(axis=0), y - y.mean(), alphas=60)
    coefficient_paths(alphas, coefs, chosen=LassoCV(cv=5, select="1se").fit(X, y).alpha_, ax=ax)


def _perceptron_steps() -> tuple[Any, Any, Any]:
    """Eight rows of two classes, and the weights of a perceptron after each mistake, 0 first."""
    from summula.linear_model import Perceptron

    rng = np.random.default_rng(58)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    X = X[np.abs(X @ np.array([0.8, 0.6])) > 0.12][:8]
    y = np.where(X @ np.array([0.8, 0.6]) > 0, 1, -1)
    model, steps = Perceptron(fit_intercept=False), [np.zeros(2)]
    for _ in range(20):
        for row, label in zip(X, y, strict=True):
            model.partial_fit([row], [label], classes=[-1, 1])
            if not np.array_equal(model.coef_[0], steps[-1]):
                steps.append(model.coef_[0].copy())
    return X, y, np.array(steps)


def perceptron_rows(ax: Any) -> None:
    """The borders a perceptron draws, from the first mistake to the last, among the rows."""
    from summula.plotting.style import GREY, INK, colour, marker

    X, y, steps = _perceptron_steps()
    for k, w in enumerate(steps[1:], 1):
        last = k == len(steps) - 1
        along = 2 * np.array([-w[1], w[0]]) / np.hypot(*w)
        ax.plot(*np.column_stack([-along, along]), color=INK if last else GREY, lw=1.6 if last else 0.8)
        ax.annotate(str(k), 0.55 * along, fontsize=7, color=INK if last else GREY)
    for k, name in enumerate((-1, 1)):
        ax.plot(*X[y == name].T, marker=marker(k), ls="none", color=colour(k), label=str(name))
    ax.set_aspect("equal")
    title = f"borders after each of {len(steps) - 1} mistakes"
    _finish(ax, "x0", "x1", title, xlim=(-1.2, 1.2), ylim=(-1.2, 1.2))


def perceptron_weights(ax: Any) -> None:
    """The same eight rows as lines, and the same weights as points, in the plane of weights."""
    from summula.plotting import weight_space

    weight_space(*_perceptron_steps(), ax=ax)


def certificate_bounds(ax: Any) -> None:
    """How far above an observed error of 5 % the upper bounds lie, against the number of held-out rows."""
    from summula.plotting.style import colour, marker
    from summula.stats import (
        bernstein_bounds,
        betting_bounds,
        chernoff_bounds,
        clopper_pearson_bounds,
        hoeffding_bounds,
    )

    n = np.array([100, 300, 1_000, 3_000, 10_000, 30_000, 100_000])
    rng = np.random.default_rng(0)

    def bet(rows: int) -> float:
        return float(np.mean([betting_bounds(rng.permutation(np.arange(rows) < rows // 20)).upper for _ in range(8)]))

    lines = {
        "Hoeffding": hoeffding_bounds(0.05, n).upper,
        "empirical Bernstein": bernstein_bounds(0.05, 0.0475, n).upper,
        "Chernoff": chernoff_bounds(0.05, n).upper,
        "betting": np.array([bet(int(rows)) for rows in n]),
        "Clopper-Pearson": clopper_pearson_bounds(n // 20, n).upper,
    }
    for k, (name, upper) in enumerate(lines.items()):
        ax.plot(n, upper - 0.05, color=colour(k), marker=marker(k), ms=4, lw=1.2, label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    _finish(ax, "held-out rows", "upper bound minus observed error", "observed error 5 %, confidence 95 %")


def certificate_coverage(ax: Any) -> None:
    """How often upper bounds lie below the true error, against how often they may."""
    from summula.plotting.style import GREY, colour, dress, keyed, marker
    from summula.stats import (
        bernstein_bounds,
        betting_rejects,
        chernoff_bounds,
        clopper_pearson_bounds,
        hoeffding_bounds,
    )

    p, n, times = 0.05, 2_000, 2_000
    x = (np.random.default_rng(0).random((times, n)) < p).astype(float)
    k, deltas = x.sum(axis=1), np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.4])
    variance = x.var(axis=1, ddof=1)
    wrong = {
        "Hoeffding": [np.mean(hoeffding_bounds(k / n, n, d).upper < p) for d in deltas],
        "empirical Bernstein": [np.mean(bernstein_bounds(k / n, variance, n, d).upper < p) for d in deltas],
        "Chernoff": [np.mean(chernoff_bounds(k / n, n, d).upper < p) for d in deltas],
        "betting": [np.mean(betting_rejects(x, p, d)) for d in deltas],
        "Clopper-Pearson": [np.mean(clopper_pearson_bounds(k, n, d).upper < p) for d in deltas],
    }
    ax.plot([0, 0.42], [0, 0.42], color=GREY, lw=0.8, ls="--")
    for i, (name, share) in enumerate(wrong.items()):
        ax.plot(deltas, share, color=colour(i), marker=marker(i), ms=4, lw=1.2, label=name)
    dress(ax, "delta: how often a bound may be wrong", "how often it was", "2,000 hold-outs of 2,000 rows, error 5 %")
    keyed(ax, corner="upper left")


def decision_risks(ax: Any) -> None:
    """Posterior and risk of taking an umbrella, by the humidity of the air."""
    from scipy.stats import norm

    from summula.bayes import DecisionProblem

    problem = DecisionProblem(
        priors={"rain": 0.2, "dry": 0.8},
        likelihoods={"rain": norm(0.8, 0.1), "dry": norm(0.5, 0.15)},
        costs={"take it": {"rain": 0.2, "dry": 0.3}, "leave it": {"rain": 1.0, "dry": 0.0}},
    )
    problem.plot(np.linspace(0.2, 1.0, 200), ax=ax)
    ax.set_xlabel("humidity")
    ax.get_legend().set_loc("upper left")


def normal_ellipses(ax: Any) -> None:
    """Draws from a normal distribution, and ellipses that hold half, nine tenths and 99 % of it."""
    from summula.plotting.style import GREY
    from summula.stats import MultivariateNormal

    distribution = MultivariateNormal([1.0, 0.5], [[3.0, 1.6], [1.6, 1.5]])
    ax.scatter(*distribution.sample(300, random_state=2).T, s=6, c=GREY, alpha=0.5, linewidths=0)
    distribution.plot(ax=ax)


def _three_clusters() -> Any:
    rng = np.random.default_rng(7)
    parts = [
        rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], 60),
        rng.multivariate_normal([3.0, 0.5], [[0.5, -0.4], [-0.4, 0.7]], 40),
        rng.multivariate_normal([1.0, 3.5], [[1.2, 0.0], [0.0, 0.2]], 40),
    ]
    return np.vstack(parts)


def em_ellipses(ax: Any) -> None:
    """A Gaussian mixture after 0, 1, 3, 10 and 40 steps from a bad start."""
    import warnings

    from summula.mixture import GaussianMixture
    from summula.plotting import mixture_ellipses

    X, models = _three_clusters(), []
    start = {"means_init": [[-1.0, 2.0], [0.0, 3.0], [1.0, 4.0]], "precisions_init": np.tile(np.eye(2), (3, 1, 1))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for steps in (0, 1, 3, 10, 40):
            models.append(GaussianMixture(3, max_iter=steps, tol=0.0, weights_init=[1 / 3] * 3, **start).fit(X))
    mixture_ellipses(*models, X=X, ax=ax)


def em_trace(ax: Any) -> None:
    """The log-likelihood per row of four random starts: it never falls, and starts end in different places."""
    from summula.mixture import GaussianMixture
    from summula.plotting import likelihood_trace

    X = _three_clusters()
    models = [
        GaussianMixture(3, init_params="random_from_data", tol=1e-5, max_iter=200, random_state=seed).fit(X)
        for seed in (0, 1, 2, 4)
    ]
    likelihood_trace(*models, labels=[f"start {k + 1}" for k in range(4)], ax=ax)


def _six_marks() -> Any:
    """Marks in six subjects that share a general factor and one of languages against mathematics."""
    import pandas as pd

    rng = np.random.default_rng(0)
    names = ["Gaelic", "English", "history", "arithmetic", "algebra", "geometry"]
    L = np.array([[0.55, 0.57, 0.39, 0.74, 0.72, 0.60], [0.43, 0.29, 0.45, -0.27, -0.21, -0.13]])
    noise = np.sqrt([0.51, 0.59, 0.64, 0.38, 0.43, 0.63])
    marks = rng.normal(size=(220, 2)) @ L + rng.normal(size=(220, 6)) * noise
    return pd.DataFrame(50 + 12 * marks, columns=names)


def scree_plot(ax: Any) -> None:
    """Variance and distortion of the principal components of marks in six subjects."""
    from summula.decomposition import PCA
    from summula.plotting import scree

    scree(PCA().fit(_six_marks()), ax=ax)


def factor_loadings(ax: Any) -> None:
    """Loadings of the six subjects on two factors, rotated by varimax."""
    from summula.decomposition import FactorAnalysis
    from summula.plotting import loadings

    loadings(FactorAnalysis(n_components=2, rotation="varimax").fit(_six_marks()), ax=ax)


def forest_importances(ax: Any) -> None:
    """Importances of a column of two values that matters, and of one of noise."""
    from summula.ensemble import RandomForestClassifier
    from summula.plotting.style import colour, dress, keyed

    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 500), rng.normal(size=500)])
    y = np.where(rng.random(500) < 0.25, 1 - X[:, 0], X[:, 0])
    model = RandomForestClassifier(max_features=1, random_state=0).fit(X, y)
    found, places = model.oob_importances(X, y), np.arange(2)
    ax.bar(places - 0.18, model.feature_importances_, 0.32, color=colour(1), label="decrease of impurity (share)")
    ax.bar(places + 0.18, found.importances_mean, 0.32, color=colour(0), label="shuffled out of bag (error)")
    ax.set_xticks(places, ["matters, two values", "noise, many values"])
    keyed(ax, corner="upper left")
    dress(ax, "", "importance")


def iris_tree(ax: Any) -> None:
    """A tree of depth two, with the record of every node."""
    from sklearn.datasets import load_iris

    from summula.tree import DecisionTreeClassifier

    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names
    DecisionTreeClassifier(max_depth=2).fit(X, names[y]).plot(ax)


def _two_rings() -> Any:
    """Rows of two classes that no stump tells apart."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] ** 2 + X[:, 1] ** 2 + 0.5 * rng.normal(size=400) > 1.3).astype(int)


def ada_boost_error(ax: Any) -> None:
    """The training error of AdaBoost and the bound on it, round by round."""
    from summula.ensemble import AdaBoostClassifier
    from summula.plotting.style import colour

    X, y = _two_rings()
    model = AdaBoostClassifier(n_estimators=60).fit(X, y)
    error, rounds = model.estimator_errors_, np.arange(1, len(model.estimator_errors_) + 1)
    wrong = [1 - score for score in model.staged_score(X, y)]
    ax.plot(rounds, np.cumprod(2 * np.sqrt(error * (1 - error))), color=colour(1), linestyle="--", label="bound")
    ax.plot(rounds, wrong, color=colour(0), label="training error")
    _finish(ax, "rounds", "share of rows", ylim=(0, 1))


def ada_boost_margins(ax: Any) -> None:
    """The distribution of the margins after a few rounds and after many."""
    from summula.ensemble import AdaBoostClassifier
    from summula.plotting.style import colour, keyed

    X, y = _two_rings()
    for k, rounds in enumerate((3, 20, 200)):
        AdaBoostClassifier(n_estimators=rounds).fit(X, y).certificate_.plot(ax)
        ax.lines[-2].set(color=colour(k), label=f"{rounds} rounds")
    keyed(ax, corner="lower right")


def staged_loss(ax: Any) -> None:
    """The loss of the training rows and of fresh ones after each stage, with and without shrinkage."""
    from sklearn.metrics import log_loss

    from summula.ensemble import GradientBoostingClassifier
    from summula.plotting.style import colour, legend_outside

    rng = np.random.default_rng(2)
    X = rng.normal(size=(1_500, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=1_500) > 0).astype(int)
    for k, rate in enumerate((1.0, 0.1)):
        model = GradientBoostingClassifier(learning_rate=rate, n_estimators=150).fit(X[:500], y[:500])
        fresh = [log_loss(y[500:], p) for p in model.staged_predict_proba(X[500:])]
        ax.plot(model.train_score_ / 2, color=colour(k), linestyle="--", label=f"training rows, rate {rate:g}")
        ax.plot(fresh, color=colour(k), label=f"fresh rows, rate {rate:g}")
    _finish(ax, "stages", "log-loss", ylim=(0, 1.2))
    legend_outside(ax)


def k_means_trace(ax: Any) -> None:
    """The inertia of each pass from four random starts: it never rises, and starts end in different places."""
    from summula.cluster import KMeans
    from summula.plotting import style

    rng = np.random.default_rng(2)
    X = np.vstack([rng.normal(centre, 0.5, (60, 2)) for centre in rng.uniform(-4, 4, (8, 2))])
    for k, seed in enumerate((0, 1, 2, 6)):
        trace = KMeans(8, init="random", n_init=1, tol=0.0, random_state=seed).fit(X).trace_
        passes = np.arange(1, len(trace) + 1)
        ax.plot(passes, trace, color=style.colour(k), marker=style.marker(k), markersize=4, label=f"start {k + 1}")
    ax.set_yscale("log")
    style.dress(ax, "pass", "inertia")
    style.keyed(ax)


def k_means_clusters(ax: Any) -> None:
    """Three clusters, and the way of their centres from a bad start."""
    from summula.cluster import KMeans
    from summula.plotting import style

    X, start, way = _three_clusters(), np.array([[-1.0, 2.0], [0.0, 3.0], [1.0, 4.0]]), []
    for passes in range(1, 12):
        way.append((model := KMeans(3, init=start, tol=0.0, max_iter=passes).fit(X)).cluster_centers_)
    path = np.array([start, *way])
    for a in range(3):
        rows = X[model.labels_ == a]
        ax.scatter(*rows.T, s=12, color=style.colour(a), marker=style.marker(a), alpha=0.6)
        ax.plot(*path[:, a].T, color=style.INK, linewidth=1.0, marker=".", markersize=4)
        ax.scatter(*path[-1, a], s=70, color=style.colour(a), edgecolor=style.INK, marker=style.marker(a), zorder=3)
    style.dress(ax, "x1", "x2")


def qda_regions(ax: Any) -> None:
    """Two normal classes with different covariances, the border between them and their ellipses."""
    from summula.discriminant_analysis import QuadraticDiscriminantAnalysis
    from summula.plotting import decision_regions
    from summula.plotting.structure.ellipses import draw_ellipses
    from summula.stats import MultivariateNormal

    wide = MultivariateNormal([0.0, 0.0], [[2.0, 1.2], [1.2, 1.6]])
    narrow = MultivariateNormal([1.6, -1.2], [[0.3, -0.1], [-0.1, 0.3]])
    X = np.vstack([wide.sample(120, random_state=1), narrow.sample(80, random_state=2)])
    y = np.repeat(["wide", "narrow"], [120, 80])
    model = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    decision_regions(model, X, y, levels=(0.5,), ax=ax)
    limits = ax.get_xlim(), ax.get_ylim()
    for mean, S in zip(model.means_, model.covariance_, strict=True):
        draw_ellipses(MultivariateNormal(mean, S), [0.5, 0.9], axes=False, ax=ax, label=False)
    ax.set_aspect("auto")
    ax.set_xlim(limits[0])
    ax.set_ylim(limits[1])


def gda_against_logistic(ax: Any) -> None:
    """Error on fresh rows by the number of training rows, for Gaussian and for Poisson columns."""
    import warnings

    from summula.discriminant_analysis import LinearDiscriminantAnalysis
    from summula.linear_model import LogisticRegression
    from summula.plotting.style import colour, marker

    def gaussian(rng: Any, y: Any) -> Any:
        return rng.normal(size=(len(y), 5)) + 0.45 * y[:, None]

    def poisson(rng: Any, y: Any) -> Any:
        return rng.poisson(np.where(y[:, None] == 1, 1.2, 0.4), (len(y), 5)).astype(float)

    sizes = (20, 40, 80, 160, 320)
    for k, (name, draw) in enumerate({"Gaussian": gaussian, "Poisson": poisson}.items()):
        rng = np.random.default_rng(k)
        fresh = rng.integers(0, 2, 5_000)
        Z = draw(rng, fresh)
        errors: dict[str, list[float]] = {"discriminant analysis": [], "logistic regression": []}
        for n in sizes:
            found = []
            for _ in range(60):
                y = np.arange(n) % 2
                X = draw(rng, y)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # small samples may be separable
                    models = LinearDiscriminantAnalysis().fit(X, y), LogisticRegression(C=100.0).fit(X, y)
                found.append([1 - model.score(Z, fresh) for model in models])
            for values, mean in zip(errors.values(), np.mean(found, axis=0), strict=True):
                values.append(mean)
        for j, (model, values) in enumerate(errors.items()):
            ax.plot(
                sizes,
                values,
                color=colour(j),
                ls=("-", "--")[k],
                marker=marker(k),
                ms=4,
                lw=1.4,
                label=f"{name}, {model}",
            )
    ax.set_xscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    _finish(ax, "training rows", "mean error on fresh rows")


def _two_clouds(n: int = 60) -> tuple[Any, Any]:
    """Two classes that overlap a little."""
    rng = np.random.default_rng(11)
    X = np.vstack([rng.normal([-1.0, -0.6], 0.75, (n // 2, 2)), rng.normal([1.0, 0.6], 0.75, (n // 2, 2))])
    return X, np.repeat([0, 1], n // 2)


def _disc(n: int, noise: float) -> tuple[Any, Any]:
    """Rows within a circle and around it, near whose border the classes overlap."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2))
    return X, (np.hypot(*X.T) + noise * rng.normal(size=n) > 1.15).astype(int)


def _plot_classes(ax: Any, X: Any, y: Any) -> None:
    from summula.plotting.style import colour, marker

    for k in (0, 1):
        ax.plot(*X[y == k].T, marker=marker(k), ls="none", ms=4, color=colour(k), label=f"class {k}")


def svm_slab(ax: Any) -> None:
    """The boundary, the edges of the margin and the support vectors of a linear machine."""
    from summula.plotting import margin_slab
    from summula.svm import SVC

    X, y = _two_clouds()
    margin_slab(SVC(kernel="linear", C=1.0).fit(X, y), X, y, ax=ax)


def svm_costs(ax: Any) -> None:
    """The margins of a linear machine for a small and a large C."""
    from summula.plotting.style import colour
    from summula.svm import SVC

    X, y = _two_clouds()
    _plot_classes(ax, X, y)
    across = np.array([-3.2, 3.2])
    for k, C in enumerate((0.02, 100.0), 2):
        model = SVC(kernel="linear", C=C).fit(X, y)
        (a, b), c = model.coef_[0], model.intercept_[0]
        for edge in (-1.0, 0.0, 1.0):
            style = "-" if edge == 0.0 else "--"
            ax.plot(
                across, (edge - c - a * across) / b, ls=style, lw=1.2, color=colour(k), label=f"C = {C:g}" * (not edge)
            )
    _finish(ax, "x0", "x1", "a large C narrows the margin", xlim=(-3.2, 3.2), ylim=(-3.2, 3.2))


def svm_gammas(ax: Any) -> None:
    """The boundaries of Gaussian machines for three values of gamma."""
    from summula.plotting.style import colour
    from summula.svm import SVC

    X, y = _disc(90, noise=0.25)
    _plot_classes(ax, X, y)
    line = np.linspace(-2.8, 2.8, 160)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    for k, gamma in enumerate((0.05, 0.5, 20.0), 2):
        scores = SVC(gamma=gamma, C=10.0).fit(X, y).decision_function(grid).reshape(160, 160)
        ax.contour(line, line, scores, levels=[0.0], colors=[colour(k)], linewidths=1.3)
        ax.plot([], [], color=colour(k), lw=1.3, label=f"gamma = {gamma:g}")
    _finish(ax, "x0", "x1", "a large gamma follows single rows")


def svm_weights(ax: Any) -> None:
    """The constraints y w'x >= 1 of a hard margin without an intercept, and the shortest w that meets them."""
    from summula.plotting.style import INK, colour
    from summula.svm import SVC

    X = np.array([[1.0, 0.4], [0.5, 1.2], [-0.9, -0.5], [1.4, 1.1], [-0.3, -1.0]])
    y = np.array([1, 1, -1, 1, -1])
    model = SVC(kernel="linear", C=np.inf, fit_intercept=False, tol=1e-9).fit(X, y)
    across = np.linspace(-0.5, 3.0, 200)
    least = np.full(200, -np.inf)
    for k, (row, label) in enumerate(zip(X, y, strict=True)):
        a, b = label * row
        edge = (1.0 - a * across) / b
        least = np.maximum(least, edge)
        ax.plot(
            across, edge, lw=1.0, color=colour(k), label=f"row {k}" + (", a support vector" * (k in model.support_))
        )
    ax.fill_between(across, least, 3.0, color=INK, alpha=0.08, lw=0)
    w = model.coef_[0]
    turn = np.linspace(0.0, 2 * np.pi, 100)
    ax.plot(np.hypot(*w) * np.cos(turn), np.hypot(*w) * np.sin(turn), color=INK, lw=0.8, ls=":")
    ax.plot(*w, marker="o", color=INK)
    ax.annotate("w", w + 0.06, color=INK)
    _finish(ax, "w0", "w1", "the shortest w with y w'x >= 1 for all rows", xlim=(-0.5, 3.0), ylim=(-0.5, 2.0))


def neighbours_curve(ax: Any) -> None:
    """Training and validation accuracy of k nearest neighbours over k."""
    from summula.model_selection import StratifiedKFold, validation_curve
    from summula.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + X[:, 1] ** 2 + rng.normal(size=300) > 1.0
    k = [1, 3, 5, 9, 15, 25, 41, 67, 111, 181]
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    curve = validation_curve(KNeighborsClassifier(), X, y, param_name="n_neighbors", param_range=k, cv=folds)
    curve.plot(ax)
    ax.set_ylabel("accuracy")


def grid_policy(ax: Any) -> None:
    """The best policy of a 4 x 3 world with two exits and a wall, and what it is worth from each state."""
    from summula.mdp import MDP

    rows, columns, wall, exits = 3, 4, 5, {3: 1.0, 7: -1.0}
    moves = ((-1, 0), (0, 1), (1, 0), (0, -1))
    S = rows * columns
    P, R, ends = np.zeros((S, 4, S)), np.full(S, -0.04), np.zeros(S)
    for s in range(S):
        for a in range(4):
            for turn, p in ((0, 0.8), (1, 0.1), (3, 0.1)):
                i, j = s // columns + moves[(a + turn) % 4][0], s % columns + moves[(a + turn) % 4][1]
                free = 0 <= i < rows and 0 <= j < columns and i * columns + j != wall
                P[s, a, i * columns + j if free else s] += p
    for s, value in {**exits, wall: 0.0}.items():
        P[s], R[s], ends[s] = 0.0, value, 1.0
    found = MDP(P, R, 1.0, termination=ends).solve()
    found.plot((rows, columns), hidden=[wall], final=list(exits), ax=ax)


def mountain_car(ax: Any) -> None:
    """How many steps a weak car needs to the top of a hill, from every position and speed, and what it should do."""
    import summula
    from summula.mdp import Grid, discretize

    def car(s: Any, force: Any, rng: Any) -> Any:
        x, v = s.T
        v = np.clip(v + 0.001 * force - 0.0025 * np.cos(3 * x), -0.07, 0.07)
        x = np.clip(x + v, -1.2, 0.6)
        return np.column_stack([x, np.where(x <= -1.2, 0.0, v)]), -np.ones(len(x)), x >= 0.5

    on_grid = discretize(car, Grid.uniform([-1.2, -0.07], [0.6, 0.07], 61), [-1, 0, 1], discount=1.0)
    summula.plot(on_grid, on_grid.mdp.solve(), names=["position", "speed"], ax=ax)


def neighbor_curve(ax: Any) -> None:
    """Training and leave-one-out error of nearest neighbours over k."""
    from summula.neighbors import KNeighborsClassifier
    from summula.plotting.style import colour

    X, y = _disc(300, noise=0.35)
    ks = np.arange(1, 61)
    model = KNeighborsClassifier().fit(X, y)
    curve = model.loo_curve(60)
    training = [1 - model.set_params(n_neighbors=int(k)).score(X, y) for k in ks]
    ax.plot(ks, training, color=colour(1), lw=1.3, label="training rows")
    ax.plot(ks, curve, color=colour(0), lw=1.3, label="leaving each row out")
    ax.plot(ks[curve.argmin()], curve.min(), marker="o", color=colour(0))
    _finish(ax, "k", "share of errors", "one neighbour knows its own row", corner="lower right")


def hog(ax: Any) -> None:
    """A digit, and the orientations of its edges in cells of 8 x 8 pixels."""
    from scipy import ndimage
    from sklearn.datasets import load_digits

    import summula
    from summula.features import HOG

    image = ndimage.zoom(load_digits().images[2], 8, order=3)
    rows = image.reshape(1, -1)
    summula.plot(HOG(image.shape).fit(rows), rows, ax=ax)


def shattered_points(ax: Any) -> None:
    """All labellings of four points in the plane, two of which no line realises."""
    import summula
    from summula.theory import Halfspaces

    summula.plot(Halfspaces(2), [[0.0, 0.0], [1.0, 0.1], [0.1, 1.0], [1.1, 0.9]], ax=ax)


def roc_curves(ax: Any) -> None:
    """Two classifiers of the same rows."""
    import summula
    from summula.linear_model import LogisticRegression
    from summula.svm import SVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (np.hypot(X[:, 0] - 0.6, X[:, 1]) + 0.3 * rng.normal(size=400) < 1.0).astype(int)
    models = [LogisticRegression().fit(X[:200], y[:200]), SVC(C=1.0).fit(X[:200], y[:200])]
    summula.plot(models, X[200:], y[200:], kind="roc", labels=["logistic regression", "SVC"], ax=ax)


def _curve_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (600, 1))
    return X, np.sin(4.0 * X[:, 0]) + 0.3 * rng.normal(size=600)


def learning_curves(ax: Any) -> None:
    """A polynomial of degree 5 fitted to more and more rows."""
    from sklearn.pipeline import make_pipeline

    from summula.features import PolynomialLift
    from summula.linear_model import LinearRegression
    from summula.plotting import learning_curve

    (X, y), sizes = _curve_data(), [20, 30, 50, 80, 120, 200, 300]
    model = make_pipeline(PolynomialLift(5), LinearRegression())
    errors = np.zeros((2, len(sizes), 10))
    for i, n in enumerate(sizes):
        for fold in range(10):
            rows = np.random.default_rng([fold, n]).permutation(400)[:n]
            fitted = model.fit(X[rows], y[rows])
            for k, (A, b) in enumerate(((X[rows], y[rows]), (X[400:], y[400:]))):
                errors[k, i, fold] = np.sqrt(np.mean((fitted.predict(A) - b) ** 2))
    learning_curve(sizes, *errors, measure="RMSE", ax=ax)


def validation_curves(ax: Any) -> None:
    """Ridge penalties for a polynomial of degree 15, on five folds of 60 rows."""
    from sklearn.pipeline import make_pipeline

    from summula.features import PolynomialLift
    from summula.linear_model import Ridge
    from summula.plotting import validation_curve

    (X, y), alphas = _curve_data(), np.geomspace(1e-5, 1e2, 15)
    X, y = X[:60], y[:60]
    errors = np.zeros((2, len(alphas), 5))
    for i, alpha in enumerate(alphas):
        for fold in range(5):
            test = np.arange(60) % 5 == fold
            model = make_pipeline(PolynomialLift(15), Ridge(alpha)).fit(X[~test], y[~test])
            for k, rows in enumerate((~test, test)):
                errors[k, i, fold] = np.sqrt(np.mean((model.predict(X[rows]) - y[rows]) ** 2))
    best = float(alphas[errors[1].mean(axis=1).argmin()])
    validation_curve(alphas, *errors, parameter="alpha", chosen=best, measure="RMSE", ax=ax)


def cluster_cells(ax: Any) -> None:
    """Three clusters, and the points nearest to each of their centres."""
    import summula
    from summula.cluster import KMeans

    X = _three_clusters()
    summula.plot(KMeans(3, random_state=0).fit(X), X, ax=ax)


def importances(ax: Any) -> None:
    """Importances of the columns of the table of wines."""
    from sklearn.datasets import load_wine

    import summula
    from summula.ensemble import RandomForestClassifier

    data = load_wine(as_frame=True)
    summula.plot(RandomForestClassifier(random_state=0).fit(data.data, data.target), ax=ax)


PICTURES = {
    "neighbours-curve": neighbours_curve,
    "grid-policy": grid_policy,
    "mountain-car": mountain_car,
    "neighbour-curve": neighbor_curve,
    "hog": hog,
    "shattering": shattered_points,
    "roc": roc_curves,
    "learning-curve": learning_curves,
    "validation-curve": validation_curves,
    "cluster-regions": cluster_cells,
    "importances": importances,
    "forest-importances": forest_importances,
    "iris-tree": iris_tree,
    "ada-boost-error": ada_boost_error,
    "ada-boost-margins": ada_boost_margins,
    "staged-loss": staged_loss,
    "scree": scree_plot,
    "loadings": factor_loadings,
    "k-means-trace": k_means_trace,
    "k-means-clusters": k_means_clusters,
    "qda-regions": qda_regions,
    "gda-logistic": gda_against_logistic,
    "decision-risks": decision_risks,
    "normal-ellipses": normal_ellipses,
    "em-ellipses": em_ellipses,
    "em-trace": em_trace,
    "logistic-regions": logistic_regions,
    "softmax-regions": softmax_regions,
    "solvers": solvers,
    "poisson-mean": poisson_mean,
    "descent-paths": descent_paths,
    "optimisers": optimisers,
    "lasso-path": lasso_paths,
    "perceptron-rows": perceptron_rows,
    "perceptron-weights": perceptron_weights,
    "svm-slab": svm_slab,
    "svm-costs": svm_costs,
    "svm-gammas": svm_gammas,
    "svm-weights": svm_weights,
    "certificate-bounds": certificate_bounds,
    "certificate-coverage": certificate_coverage,
}


def main(folder: Path = FOLDER, names: Iterable[str] = PICTURES) -> None:
    """Write pictures into a folder."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        for name in names:
            figure = Figure(figsize=SIZE, layout="constrained")
            PICTURES[name](figure.subplots())
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
