"""The perceptron: misclassified rows update the hyperplane until none is left.

With labels y = -1 and 1, and a constant feature 1 for the intercept, x~ = (x, 1) and w~ = (w, b),

    stochastic   for each row in turn:  if y w~'x~ <= 0:   w~ <- w~ + eta0 y x~                                    (1)
    batch        w~ <- w~ + eta0 (sum of y x~ over all rows with y w~'x~ <= 0)                                     (2)

(2) is gradient descent on the perceptron risk, the sum of max(0, -y w~'x~) over the rows
(`summula.losses.perceptron_risk`). A row exactly on the hyperplane counts as misclassified, so that w~ = 0 is left.

**Mistake bound** (Novikoff 1962). Let |u| = 1 and y u'x~ >= gamma > 0, |x~| <= R for all rows. Each step of (1) from 0
adds at least eta0 gamma to u'w~, and at most eta0^2 R^2 to |w~|^2, since y w~'x~ <= 0. After M steps
eta0 gamma M <= u'w~ <= |w~| <= eta0 R sqrt(M), so

    M <= (R / gamma)^2                                                                                             (3)

for any order of the rows and any eta0. If the fitted w~ separates the rows, u = w~ / |w~| bounds the number of steps by
its own margin; the certificate states both. If the rows are not separable, (1) does not terminate.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.layout.blocks import product
from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.certificates import SummedCertificate
from summula.core.estimator.linear.linear_predictor import dense
from summula.core.estimator.parameters import Allowed, boolean, integer, mapping, none, one_of, real
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.core.numerics.certificate import Verification
from summula.core.numerics.exact import leads
from summula.core.numerics.sums import Sum, merged_by
from summula.optimize.solvers.stochastic_descent.certificate import DescentProblem
from summula.optimize.solvers.stochastic_descent.classifier import StochasticClassifier
from summula.optimize.solvers.stochastic_descent.model import SHARED_PARAMETERS
from summula.optimize.solvers.stochastic_descent.rows import rows_about, rows_in_order, score_origin, squared_lengths
from summula.optimize.solvers.stochastic_descent.rule import INTERCEPT, LOSS, UPDATES
from summula.optimize.solvers.stochastic_descent.solver import AfterEpoch, Column, Settings

__all__ = ["Perceptron", "PerceptronCertificate"]

Array = NDArray[Any]


@dataclass(frozen=True)
class WrongSide(Sum):
    """For each score: the update (2) from its misclassified rows, their number, and their risk."""

    pull: Array  # (K, d)
    shift: Array
    wrong: Array
    risk: Array

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[DescentProblem, Array, Array]) -> Self:
        """Return the sums over one chunk."""
        problem, coef, intercept = params
        X = rows_in_order(chunk) if chunk.is_sparse else chunk.block()
        margins, y, weight = _signed(X, chunk, problem, coef, intercept)
        wrong = (margins <= 0) & (weight > 0)
        push = np.where(wrong, weight * y, 0.0)
        pull = np.asarray(product(X.T, push), np.float64).T
        return cls(pull, push.sum(axis=0), wrong.sum(axis=0), (weight * np.maximum(-margins, 0.0)).sum(axis=0))


@dataclass(frozen=True)
class Margins(Sum):
    """For each score the smallest y w~'x~, the number of misclassified rows and their risk; the largest |x|^2.

    Rows of weight 0 are ignored.
    """

    least: Array = field(metadata=merged_by(np.minimum))
    wrong: Array
    risk: Array
    largest: float = field(metadata=merged_by(max))
    equal: bool = field(metadata=merged_by(operator.and_))  # whether all weights are 1

    @classmethod
    def map(cls, chunk: Chunk, params: tuple[DescentProblem, Array, Array, Array]) -> Self:
        """Return the values of one chunk; scores are computed about an origin, with the constant term there."""
        problem, coef, lead, origin = params
        X = rows_in_order(chunk) if chunk.is_sparse else chunk.block()
        near = rows_about(chunk, origin) if origin.any() else X
        margins, _, weight = _signed(near, chunk, problem, coef, lead)
        counts = weight > 0
        largest = np.where(counts.any(axis=1), squared_lengths(X).astype(np.float64), 0.0)
        return cls(
            np.where(counts, margins, np.inf).min(axis=0),
            ((margins <= 0) & counts).sum(axis=0),
            (weight * np.maximum(-margins, 0.0)).sum(axis=0),
            float(largest.max()),
            bool((weight == 1).all()),
        )


def _signed(X: Any, chunk: Chunk, problem: DescentProblem, coef: Array, intercept: Array) -> tuple[Array, Array, Array]:
    """Return y w~'x~ for each row and score, the labels y = -1 and 1, and the weights."""
    mine = chunk.target[:, None] == problem.positive
    y = np.where(mine, 1.0, -1.0)
    weight = np.where(mine, problem.inside, problem.outside)
    if chunk.weight is not None:
        weight = weight * chunk.weight[:, None]
    scores = np.asarray(product(X, coef.T) + intercept, np.float64)
    return y * scores, y, weight


@schema.saved(
    separated=schema.Flag(),
    functional_margin=schema.Array("float64", "n_scores", finite=False),
    geometric_margin=schema.Array("float64", "n_scores", finite=False),
    radius=schema.Real(0.0, finite=False),
    mistakes=schema.Array("int64", "n_scores", low=0),
    mistake_bound=schema.Array("float64", "n_scores", finite=False),
    bound_applies=schema.Flag(),
    coef=schema.Array("float", "n_scores", "n_features"),
    intercept=schema.Array("float", "n_scores"),
    problem=schema.Object(DescentProblem, n_scores="n_scores"),
    classes=schema.Labels("n_classes"),
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class PerceptronCertificate(SummedCertificate):
    """Whether a perceptron separates its rows, its margin, and the mistake bound.

    Attributes
    ----------
    separated : bool
        Whether all rows are classified correctly (and none is on a hyperplane), for all scores.
    primal, gap : float
        Perceptron risk, summed over the scores. Its minimum is 0, so the gap equals the risk.
    functional_margin : ndarray
        Smallest y w~'x~ of each score (one score for two classes).
    geometric_margin : ndarray
        Functional margin divided by |w~|: the distance of the nearest row, with the constant feature as a dimension.
    radius : float
        R, the largest |x~|.
    mistakes : ndarray of int
        Number of steps (1) of each score.
    mistake_bound : ndarray
        (R / gamma)^2 of equation (3), with gamma the geometric margin; inf if a score does not separate the rows.
    bound_applies : bool
        Whether (3) applies to these steps: stochastic, started from 0, unweighted and without a penalty.
    """

    _supervised: ClassVar[bool] = True

    separated: bool
    functional_margin: Array
    geometric_margin: Array
    radius: float
    mistakes: Array
    mistake_bound: Array
    bound_applies: bool
    coef: Array
    intercept: Array
    problem: DescentProblem
    classes: Array
    unit: float

    @property
    def bound_holds(self) -> bool:
        """Whether no score made more mistakes than (3) allows."""
        return bool((self.mistakes <= self.mistake_bound).all())

    @classmethod
    def of(
        cls,
        run: Run,
        problem: DescentProblem,
        coef: Array,
        intercept: Array,
        classes: Array,
        mistakes: Array,
        plain: bool,
    ) -> Self:
        """Create the certificate of a point in one pass; `plain` tells whether it was reached by steps (1) from 0."""
        origin = score_origin(run.source, problem.fit_intercept)
        lead = leads(coef, origin, intercept) if origin.any() else intercept
        margins = run.sum(Margins, (problem, coef, lead, origin), "certificate")
        extra = float(problem.fit_intercept)
        w, b = np.asarray(coef, np.float64), np.asarray(intercept, np.float64)
        largest = np.maximum(np.abs(w).max(axis=1, initial=0.0), extra * np.abs(b))
        # A power of 2, so that only overflow changes: weights of rows may be 1e300.
        unit = np.where(largest > 1e150, np.exp2(np.floor(np.log2(np.maximum(largest, 1.0)))), 1.0)
        length = unit * np.sqrt(((w / unit[:, None]) ** 2).sum(axis=1) + extra * (b / unit) ** 2)
        geometric = margins.least / np.where(length > 0, length, 1.0)
        radius = float(np.sqrt(margins.largest + extra))
        bound = np.where(geometric > 0, (radius / np.where(geometric > 0, geometric, 1.0)) ** 2, np.inf)
        risk = float(margins.risk.sum())
        return cls(
            kind="global",
            primal=risk,
            gap=risk,
            separated=bool(margins.wrong.sum() == 0),
            functional_margin=margins.least,
            geometric_margin=geometric,
            radius=radius,
            mistakes=mistakes,
            mistake_bound=bound,
            bound_applies=plain and margins.equal,
            coef=coef,
            intercept=intercept,
            problem=problem,
            classes=classes,
            unit=1e-4 if run.source.dtype == np.float32 else 1e-9,
        )

    def objective(self, run: Run) -> tuple[float, float]:
        """Return the perceptron risk on the rows of a run, twice: its minimum is 0."""
        again = self._recomputed(run)
        return again.primal, again.gap

    def compare(self, run: Run) -> Verification:
        """Recompute sides, margins, radius, bound and risk on the rows of a run, and compare them."""
        again = self._recomputed(run)
        close = all(
            np.allclose(getattr(self, name), getattr(again, name), rtol=self.unit, atol=self.unit * (1 + self.radius))
            for name in ("functional_margin", "geometric_margin", "radius", "primal")
        )
        bounded = not (self.bound_applies and again.separated) or again.bound_holds
        confirms = close and bounded and self.separated == again.separated
        return Verification(again.primal, again.gap, bool(confirms))

    def _recomputed(self, run: Run) -> Self:
        return type(self).of(
            run, self.problem, self.coef, self.intercept, self.classes, self.mistakes, self.bound_applies
        )

    def __str__(self) -> str:
        if not self.separated:
            return f"not separated: risk {self.primal:.6g} after {int(self.mistakes.sum())} mistakes"
        text = f"separated: geometric margin {self.geometric_margin.min():.4g}, radius {self.radius:.4g}"
        if not self.bound_applies:
            return f"{text}, {int(self.mistakes.sum())} mistakes"
        return f"{text}, {int(self.mistakes.sum())} mistakes of at most {self.mistake_bound.sum():.6g}"


@inherit_docs()
@schema.saved(
    certificate_=schema.Maybe(
        schema.Object(PerceptronCertificate, n_scores="n_scores", n_features="n_features", n_classes="n_classes")
    ),
    mistakes_=schema.Integer(0),
    mistakes_per_epoch_=schema.Array("int64", "n_epochs", low=0),
)
class Perceptron(StochasticClassifier):
    """Perceptron classifier, with its mistake bound.

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}, default=None
        Penalty on the weights.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        Weight of |w|_1 in "elasticnet".
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    tol : float or None, default=1e-3
        Stop when the mean risk of an epoch has not improved on the best by this much for `n_iter_no_change` epochs;
        None disables this. Without a penalty, an epoch without mistakes always stops the fit.
    eta0 : float, default=1.0
        Step size; without a penalty it only affects the norm of the weights.
    random_state : int, Generator, RandomState or None, default=0
        Seed for shuffling rows and for choosing held-out rows.
    batch : bool, default=False
        Whether to use batch steps (2) over all misclassified rows instead of single rows (1).
    require_separation : bool, default=False
        Whether to continue until all rows are classified correctly, regardless of `tol`, and raise an error if
        `max_iter` epochs do not suffice.

    Attributes
    ----------
    mistakes_ : int
        Total number of mistakes (updates) over all epochs and scores of the fit.
    mistakes_per_epoch_ : ndarray of shape (n_iter_,)
        Number of mistakes per epoch. The last is 0 if the fit stopped because the rows are separated.
    n_iter_ : int
    certificate_ : PerceptronCertificate
        Whether the rows are separated, margins, radius, and the mistake bound (3).

    References
    ----------
    Rosenblatt (1958), The perceptron. Novikoff (1962), On convergence proofs on perceptrons.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.linear_model import Perceptron
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = Perceptron(shuffle=False).fit(X, [0, 0, 0, 1])  # "and"
    >>> model.mistakes_, model.certificate_.separated, model.certificate_.bound_holds
    (18, True, True)
    """

    mistakes_: int
    mistakes_per_epoch_: Array
    loss = "perceptron"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        name: kinds
        for name, kinds in SHARED_PARAMETERS.items()
        if name not in ("learning_rate", "power_t", "average", "epsilon", "batch_size")
    } | {
        "l1_ratio": (real(0.0, 1.0),),
        "n_jobs": (none, integer()),
        "class_weight": (none, one_of("balanced"), mapping),
        "batch": (boolean,),
        "require_separation": (boolean,),
    }

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        batch: bool = False,
        require_separation: bool = False,
        max_time: float | None = None,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.batch = batch
        self.require_separation = require_separation
        self.max_time = max_time

    def _check_settings(self, *, by_parts: bool = False) -> None:
        super()._check_settings(by_parts=by_parts)
        for name in ("batch", "require_separation"):
            if getattr(self, name) and (self.penalty is not None or self.early_stopping):
                what = "a penalty" if self.penalty is not None else "early_stopping"
                raise ParameterError(
                    f"{name}=True cannot be combined with {what}: set penalty=None and early_stopping=False."
                )

    def _settings(self, whole: bool) -> Settings:
        settings = replace(super()._settings(whole), clean=self.penalty is None and not self.early_stopping)
        return replace(settings, clean_only=True) if whole and self.require_separation else settings

    def _epochs(
        self, run: Run, problem: DescentProblem, columns: list[Column], settings: Settings, after_epoch: AfterEpoch
    ) -> None:
        if not self.batch:
            super()._epochs(run, problem, columns, settings, after_epoch)
            return
        for _ in range(settings.max_epochs):
            coef, intercept = np.array([c.coef for c in columns]), np.array([c.intercept for c in columns])
            wrong = run.sum(WrongSide, (problem, coef, intercept), "rows on the wrong side")
            for k, column in enumerate(columns):
                if column.done:
                    continue
                # Equation (2); loss and mistakes are those at the start of the epoch.
                numbers = column.state.numbers
                numbers[LOSS], numbers[UPDATES] = wrong.risk[k], wrong.wrong[k]
                column.state.v[:] += self.eta0 * wrong.pull[k]
                numbers[INTERCEPT] += self.eta0 * wrong.shift[k] * float(self.fit_intercept)
                column.end_epoch(run.source.n_rows)
                column.judge(settings, column.trace[-1])
            after_epoch()
            if run.step("epoch") or all(column.done for column in columns):
                return

    def _name(self, run: Run, columns: list[Column], before: float) -> None:
        super()._name(run, columns, before)
        per_epoch = np.zeros(self.n_iter_, np.int64)
        for column in columns:
            per_epoch[: column.n_epochs] += column.updates
        continued = before > 1.0 and hasattr(self, "mistakes_")
        self.mistakes_per_epoch_ = np.append(self.mistakes_per_epoch_, per_epoch) if continued else per_epoch
        self.mistakes_ = int(self.mistakes_per_epoch_.sum())

    def _certified(self, run: Run, problem: DescentProblem, columns: list[Column]) -> Any:
        coef, intercept = np.atleast_2d(dense(self.coef_)), np.atleast_1d(self.intercept_)
        mistakes = np.array([sum(column.updates) for column in columns])
        plain = self.penalty is None and not self.batch and all(column.from_zero for column in columns)
        return PerceptronCertificate.of(run, problem, coef, intercept, self.classes_, mistakes, plain)

    def _check_result(self) -> None:
        certificate = getattr(self, "certificate_", None)
        if self.require_separation and certificate is not None and not certificate.separated:
            raise DataError(
                f"No hyperplane that separates the classes was found in {self.n_iter_} epochs (max_iter="
                f"{self.max_iter}) and {self.mistakes_} mistakes; increase max_iter, add columns (such as products of "
                "columns), or set require_separation=False."
            )
