"""The pictures of the documentation, from data made here: `python docs/pictures/make.py` writes them anew.

The files come out the same, byte for byte, with the same version of matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
# Identifiers and dates would differ each time. Text stays text: smaller, and readers can search and copy it.
SETTINGS = {"svg.hashsalt": "summula", "svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}
SIZE = (4.8, 3.6)


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

    from summula.optimize.limited_memory import lbfgs
    from summula.optimize.newton_method import Factor, Local, newton
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

        def away(self, u: Any) -> Any:
            return self.F @ u

        def back(self, g: Any) -> Any:
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


PICTURES = {
    "logistic-regions": logistic_regions,
    "softmax-regions": softmax_regions,
    "solvers": solvers,
    "poisson-mean": poisson_mean,
    "descent-paths": descent_paths,
    "optimisers": optimisers,
    "lasso-path": lasso_paths,
}


def main(folder: Path = FOLDER) -> None:
    """Write every picture into a folder."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        for name, draw in PICTURES.items():
            figure = Figure(figsize=SIZE, layout="constrained")
            draw(figure.subplots())
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
