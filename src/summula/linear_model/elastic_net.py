"""Lasso and elastic net: least squares with an L1 penalty, which gives sparse coefficients.

    min  1/(2 n) ||y - X v - b||^2 + alpha l1_ratio |v|_1 + alpha (1 - l1_ratio)/2 |v|^2                        (1)

The lasso is l1_ratio = 1. Solved in `optimize/solvers/l1_quadratic.py`, along a path of alphas in `l1_path.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import MultiOutputMixin
from sklearn.callback import with_callbacks
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import warn
from summula.core.estimator.input.argument_values import is_true
from summula.core.estimator.linear.linear_predictor import LinearPredictor, one_row_one_target
from summula.core.estimator.parameters import Allowed, array_like, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.linear_model.l1.paths import enet_path, lasso_path, relative_gap
from summula.linear_model.l1.problem import Centred, L1Certificate, quadratics_of, returned
from summula.optimize.solvers.l1_quadratic import L1Solution, minimise_l1, nothing
from summula.penalties import Penalty

__all__ = ["ElasticNet", "L1Model", "Lasso"]

Array = NDArray[Any]

_UNIT = {"float64": 1e-10, "float32": 1e-4}


@schema.state(
    one_row_one_target,
    coef_=schema.Array("float", "n_features") | schema.Array("float", "n_targets", "n_features"),
    intercept_=schema.Real() | schema.Array("float", "n_targets"),
    certificate_=schema.Object(L1Certificate, n_features="n_features", n_targets="n_targets"),
    dual_gap_=schema.Real(finite=False) | schema.Array("float", "n_targets", finite=False),
    n_iter_=schema.Integer(0) | schema.Items(schema.Integer(0), "n_targets"),
    _target_names=schema.Items(schema.Text(), "n_targets") | None,
)
class L1Model(LinearPredictor):
    """Base class of the lasso, the elastic net and their cross-validated versions.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    positive : bool, default=False
        Whether to constrain coefficients to be non-negative.
    """

    coef_: Array
    intercept_: Any
    certificate_: L1Certificate
    dual_gap_: Any

    def _plot(self, X: Any = None, y: Any = None, *, alphas: int = 60, ax: Any = None) -> Any:
        """Plot the regularisation path of the rows, and the penalty of the fit; called by `summula.plot`."""
        from summula.linear_model.regularisation_pictures import draw_path

        return draw_path(self, X, y, alphas, ax)

    def _solved(
        self, run: Run, found: list[Centred], alpha: float, l1_ratio: float, start: Array | None = None
    ) -> None:
        """Solve for each target and set the fitted attributes; intermediate solutions are offered after each round."""
        penalty = Penalty.of_ratio(alpha, l1_ratio, self.positive)
        solutions: list[L1Solution | None] = [None] * len(found)

        def offered(here: L1Solution) -> bool:
            solutions[j] = here
            now = [nothing(found[k].quadratic, penalty) if s is None else s for k, s in enumerate(solutions)]

            def name() -> None:
                self._named(run.source, found, now, alpha, l1_ratio)

            run.offer(name)
            return run.step()

        for j, one in enumerate(found):
            solutions[j] = minimise_l1(
                one.quadratic,
                penalty,
                start=None if start is None else start[j],
                tolerance=relative_gap(self.tol),
                max_sweeps=1_000 if self.max_iter is None else self.max_iter,
                on_round=offered,
            )
        solved = [one for one in solutions if one is not None]
        if self._named(run.source, found, solved, alpha, l1_ratio):

            def name_solved() -> None:
                self._named(run.source, found, solved, alpha, l1_ratio)

            run.offer(name_solved)  # if the passes for the residuals are interrupted
            self.certificate_, gaps = self.certificate_.from_residuals(run)
            self.dual_gap_ = gaps if np.ndim(self.dual_gap_) else float(gaps[0])
        self._warn_of(solved, self.tol)

    def _named(
        self, source: Source, found: list[Centred], solutions: list[L1Solution], alpha: float, l1_ratio: float
    ) -> bool:
        """Set the fitted attributes, and return whether the objective lost digits; shapes and dtype follow y and X."""
        dtype = source.dtype
        penalty = Penalty.of_ratio(alpha, l1_ratio, self.positive)
        points = [returned(one, s, penalty, self.fit_intercept, dtype) for one, s in zip(found, solutions, strict=True)]
        coef, intercept = np.stack([point.coef for point in points]), np.array([point.intercept for point in points])
        one = source.one_target
        self.coef_ = (coef[0] if one or len(coef) == 1 else coef).astype(dtype)
        self.intercept_ = (intercept[0] if one else intercept).astype(dtype) if self.fit_intercept else 0.0
        gaps, counts = [point.gap for point in points], [s.sweeps for s in solutions]
        self.dual_gap_ = gaps[0] if one or len(gaps) == 1 else np.array(gaps)
        self.n_iter_ = counts[0] if one or len(counts) == 1 else counts
        self._target_names = source.target_names
        self.certificate_ = L1Certificate(
            kind="global",
            primal=float(sum(point.value for point in points)),
            gap=float(sum(gaps)),
            coef=coef,
            intercept=intercept,
            alpha=float(alpha),
            l1_ratio=float(l1_ratio),
            fit_intercept=self.fit_intercept,
            positive=self.positive,
            zeros=np.stack([point.zeros for point in points]),
            unit=_UNIT[dtype.name],
        )
        return any(point.is_rounded for point in points)

    def _warn_of(self, solutions: Sequence[L1Solution], tol: float) -> None:
        if not all(s.converged for s in solutions):
            worst = max(solutions, key=lambda s: s.gap)
            warn(
                f"Objective did not converge. You might want to increase the number of iterations, or the penalty of "
                f"{type(self).__name__}: after {worst.sweeps} sweeps (max_iter={self.max_iter}) the duality gap is "
                f"{worst.gap:.3e} for an objective of {worst.value:.3e}, which is above the tolerance (tol={tol}).",
                ConvergenceWarning,
            )

    @property
    def sparse_coef_(self) -> Any:
        """`coef_` as a sparse matrix."""
        return sparse.csr_array(np.atleast_2d(self.coef_))

    def _named_targets(self) -> tuple[str, ...] | None:
        return self._target_names


@inherit_docs()
@schema.saved()
class ElasticNet(MultiOutputMixin, L1Model):
    """Linear regression with L1 and L2 penalties.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Weight of the L1 penalty: 1 is the lasso, 0 ridge regression (with alpha per row).
    precompute, copy_X, selection, random_state
        For compatibility with scikit-learn; they do not affect the result.
    max_iter : int, default=1000
        Maximum number of sweeps of coordinate descent.
    tol : float, default=1e-4
        Tolerance: the duality gap is at most 1e-6 tol ||y||^2 / n (about eight digits of the coefficients).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or ndarray of shape (n_targets,)
    dual_gap_ : float or ndarray of shape (n_targets,)
        Duality gap: a bound on the suboptimality of the objective.
    n_iter_ : int or list of int
        Number of sweeps of coordinate descent.
    certificate_ : L1Certificate
        Objective (summed over targets), gap, and `zeros`: coefficients that are zero in every minimiser.

    References
    ----------
    Hastie, Tibshirani, Wainwright, Statistical Learning with Sparsity (2015), chapters 2 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import ElasticNet
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> ElasticNet(alpha=0.5, l1_ratio=0.5).fit(X, [2.0, 0.5, -2.0, -0.5]).coef_.round(6)
    array([1., 0.])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "alpha": (real(0.0),),
        "l1_ratio": (real(0.0, 1.0),),
        "fit_intercept": (boolean,),
        "precompute": (boolean, array_like),
        "copy_X": (boolean,),
        "max_iter": (none, integer(1)),
        "tol": (real(0.0),),
        "warm_start": (boolean,),
        "positive": (boolean,),
        "random_state": (random_state,),
        "selection": (one_of("cyclic", "random"),),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = 1000,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or name(s) of columns of X
            Target values.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights; only their ratios matter.
        check_input : bool, default=True
            Ignored; the input is always checked.

        Returns
        -------
        self
        """
        before = (
            np.atleast_2d(self.coef_).astype(np.float64)
            if is_true(self.warm_start) and hasattr(self, "coef_")
            else None
        )
        with self._fitting(X, y, sample_weight) as run, one_blas_thread():
            if self.alpha == 0:
                warn(
                    "With alpha=0, this algorithm does not converge well. You are advised to use the "
                    "LinearRegression estimator",
                    UserWarning,
                )
            found = quadratics_of(run, self.fit_intercept)
            fits = before is not None and before.shape == (len(found), run.source.n_features)
            self._solved(run, found, self.alpha, self.l1_ratio, before if fits else None)
        return self

    path = staticmethod(enet_path)


@inherit_docs()
@schema.saved()
class Lasso(ElasticNet):
    """Linear regression with an L1 penalty, which gives sparse coefficients.

    Parameters
    ----------
    fit_intercept, precompute, copy_X, max_iter, tol, warm_start, positive, random_state, selection, max_time
        As in `ElasticNet`.

    Attributes
    ----------
    coef_, intercept_, dual_gap_, n_iter_, certificate_
        As in `ElasticNet`.

    References
    ----------
    Tibshirani (1996), Regression shrinkage and selection via the lasso.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import Lasso
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> model = Lasso(alpha=0.5).fit(X, [2.0, 0.5, -2.0, -0.5])
    >>> model.coef_.round(6)
    array([1., 0.])
    >>> model.certificate_.zeros
    array([[False,  True]])
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        name: allowed for name, allowed in ElasticNet._parameters.items() if name != "l1_ratio"
    }
    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.max_time = max_time

    path = staticmethod(lasso_path)


# --------------------------------------------------------------------------------------------------------------- paths
