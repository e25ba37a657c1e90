"""Linear separability of classes, decided by linear programming.

With two classes and s_i = +1 or -1, the hyperplane w'x + b = 0 separates them if

    s_i (w'x_i + b) >= 0                               in every row i,                                           (1)

completely if all are > 0, trivially if all are = 0. For K classes with one direction each,

    (beta_{y_i} - beta_k)'x_i + b_{y_i} - b_k >= 0     in every row i, for every k other than y_i.               (2)

Write either as A theta >= 0. For a single column the answer follows from the minimum and maximum of each class;
otherwise from two linear programs (Albert and Anderson 1984; Konis 2007):

    max 1'A theta   s.t.  A theta >= 0,  |w|_1 <= 1    is 0 if and only if classes overlap,                      (3)
    max t           s.t.  A theta >= t,  |w|_1 <= 1    is positive if and only if separation is complete,        (4)

and if neither holds separation is quasi-complete. The maximum likelihood estimate of logistic regression exists only
if classes overlap. Solutions at vertices of the 1-norm ball use few columns.

Both programs are solved on a working set of inequalities, to which the most violated ones are added. The objective is
that of all rows, so relaxing constraints can only increase (3) and (4): a value of 0 is a proof for all rows. A
direction is accepted only after its signs have been recomputed on all rows. Differences below about 1e-8 of the spread
of the columns count as ties; single columns are compared exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from summula.core.docstrings import inherit_docs
from summula.core.engine.threads import one_blas_thread
from summula.core.errors import DataError
from summula.optimize.solvers.class_inequalities import ClassInequalities, Direction
from summula.optimize.solvers.class_rows import class_codes, finite_rows

__all__ = ["Separation", "is_linearly_separable", "separating_hyperplane", "separation_of_rows"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_TIE = 1e-9  # relative to the largest entry of a row: values that a linear program cannot distinguish from 0
_EPS = float(np.finfo(np.float64).eps)
_DENSE_CELLS = 20_000_000  # maximum size of the matrix of ties that is projected on
_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Separation:
    """Whether and how classes are linearly separated; true if separation is complete.

    Attributes
    ----------
    kind : {"complete", "quasi", "overlap"}
        "complete": some hyperplane has each class strictly on its own side. "quasi": no such hyperplane, but one with
        no row on the wrong side and some rows on it. "overlap": neither.
    coef : ndarray of shape (p,), or (K, p) for K > 2 classes, or None
        A separating direction in the units of X, scaled so that its largest absolute entry is 1; None if classes
        overlap. For two classes it points to the second; for more there is one row per class, and the true class has
        the largest score.
    intercept : float, ndarray of shape (K,), or None
    margin : float
        If separation is complete, the smallest distance of a row to the hyperplane (for several classes, to the one
        between its class and another); not the maximum margin. 0 if quasi-complete, NaN if classes overlap.
    columns : ndarray of int
        The columns with nonzero weight in `coef`: as few as were found, one if one suffices.
    classes : ndarray
        Sorted class labels.
    """

    kind: Literal["complete", "quasi", "overlap"]
    coef: Array | None
    intercept: float | Array | None
    margin: float
    columns: Integers
    classes: NDArray[Any]

    def __bool__(self) -> bool:
        return self.kind == "complete"


def separating_hyperplane(X: Any, y: ArrayLike, *, fit_intercept: bool = True) -> Separation:
    """Find a hyperplane that separates the classes of y, if there is one.

    Parameters
    ----------
    X : array, frame or sparse matrix of shape (n, p)
    y : array of shape (n,)
        Class labels of any type, with at least two distinct values.
    fit_intercept : bool, default=True
        Whether the hyperplane has an intercept; if False it passes through the origin.

    Returns
    -------
    Separation
        Its `kind` is "complete", "quasi" or "overlap"; `coef` and `intercept` give the hyperplane.

    References
    ----------
    A. Albert and J. A. Anderson, On the existence of maximum likelihood estimates in logistic regression models,
    Biometrika 71 (1984), 1-10. S. Boyd and L. Vandenberghe, Convex Optimization (2004), section 8.6.1.

    Examples
    --------
    >>> from summula.optimize import separating_hyperplane
    >>> X = [[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [3.0, 2.0]]
    >>> found = separating_hyperplane(X, ["no", "no", "yes", "yes"])
    >>> found.kind, found.coef.tolist(), found.intercept, found.margin
    ('complete', [1.0, 0.0], -1.5, 0.5)
    >>> separating_hyperplane(X, ["no", "yes", "yes", "no"]).kind
    'overlap'
    """
    rows = finite_rows(X)
    classes, codes = class_codes(y, rows.shape[0])
    found = separation_of_rows(rows, codes, len(classes), fit_intercept)
    return Separation(found.kind, found.coef, found.intercept, found.margin, found.columns, classes)


@inherit_docs(separating_hyperplane)
def is_linearly_separable(X: Any, y: ArrayLike, *, fit_intercept: bool = True) -> bool:
    """Return whether classes are linearly separable: some hyperplane has each class strictly on its own side.

    Returns
    -------
    bool

    Examples
    --------
    >>> from summula.optimize import is_linearly_separable
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> is_linearly_separable(corners, [0, 0, 0, 1]), is_linearly_separable(corners, [0, 1, 1, 0])
    (True, False)
    """
    return bool(separating_hyperplane(X, y, fit_intercept=fit_intercept))


def separation_of_rows(X: Any, codes: NDArray[Any], n_classes: int, fit_intercept: bool) -> Separation:
    """Return the separation of validated rows (used by solvers).

    Parameters
    ----------
    X : ndarray of float or CSR
        Finite values.
    codes : ndarray of int
        Class of each row, 0 to n_classes - 1; every class has at least one row.
    n_classes : int
        At least 2.
    fit_intercept : bool

    Returns
    -------
    Separation
        Its `classes` are the codes.
    """
    with one_blas_thread():  # products are small, so more threads would not help
        return _decide(ClassInequalities(X, np.asarray(codes, dtype=np.int64), n_classes, fit_intercept))


def _decide(rows: ClassInequalities) -> Separation:
    alone = _one_column(rows, strict=True)
    if alone is not None:
        return _found(rows, "complete", alone)
    weak = _one_column(rows, strict=False)
    pairs = rows.first_pairs()
    if weak is None:
        inside, pairs = _weakly(rows, pairs)
        if inside is None:
            return Separation("overlap", None, None, math.nan, np.empty(0, np.int64), np.arange(rows.n_classes))
    else:
        inside = None
    strict = _strictly(rows, pairs)
    if strict is not None:
        strict = _with_fewer_columns(rows, strict, _strictly, float(rows.margins(strict).min()) / 10)
        return _found(rows, "complete", rows.centred(rows.in_original_units(strict)))
    if inside is not None:
        weak = rows.in_original_units(_with_fewer_columns(rows, inside, _only_weakly, -_TIE / 10))
    assert weak is not None
    return _found(rows, "quasi", weak)


# ------------------------------------------------------------------------------------------------------ a single column


def _one_column(rows: ClassInequalities, *, strict: bool) -> Direction | None:
    """Return the best single column that separates completely (strict) or weakly, in the units of X."""
    return _cut(rows, strict) if rows.fit_intercept else _sign(rows, strict)


def _cut(rows: ClassInequalities, strict: bool) -> Direction | None:
    """Separate classes by thresholds on a column: weakly by at least one, strictly between all classes."""
    order = np.lexsort((rows.high, rows.low), axis=0)
    low = np.take_along_axis(rows.low, order, axis=0)
    high = np.maximum.accumulate(np.take_along_axis(rows.high, order, axis=0), axis=0)
    length = high[-1] / 2 - low[0] / 2
    gap = (low[1:] / 2 - high[:-1] / 2) / np.where(length > 0, length, 1.0)
    apart = low[1:] > high[:-1] if strict else low[1:] >= high[:-1]
    good = (apart.all(axis=0) if strict else apart.any(axis=0)) & (length > 0)
    if not good.any():
        return None
    j = int(np.argmax(np.where(good, gap.min(axis=0) if strict else gap.max(axis=0), -np.inf)))
    place = high[:-1, j] / 2 + low[1:, j] / 2
    if strict:
        slope, cuts = np.linspace(-1.0, 1.0, rows.n_classes), place
    else:
        cut = int(np.argmax(np.where(apart[:, j], gap[:, j], -np.inf)))
        slope, cuts = np.where(np.arange(rows.n_classes) <= cut, -1.0, 1.0), np.full_like(place, place[cut])
    # The scores of neighbouring classes are equal at the cut between them.
    b = np.append(0.0, np.cumsum(-np.diff(slope) * cuts))
    b = b - (slope[0] * cuts[0] + b[0])
    W = np.zeros((rows.n_classes, rows.p))
    intercept = np.zeros(rows.n_classes)
    W[order[:, j], j], intercept[order[:, j]] = slope, b
    if rows.width == 1:
        return Direction(W[1:], -W[1:, j] * place[:1])
    return Direction(W, intercept)


def _sign(rows: ClassInequalities, strict: bool) -> Direction | None:
    """Separate classes by the sign of a column, without an intercept."""
    plus, minus = rows.high > 0, rows.low < 0
    if strict:
        if rows.n_classes > 2:
            return None
        up, down = rows.low > 0, rows.high < 0
        good = (up[1] & down[0]) | (up[0] & down[1])
    else:
        good = ~(plus & minus).any(axis=0)  # no class has both signs
        good &= (plus | minus).any(axis=0) & ~plus.all(axis=0) & ~minus.all(axis=0)
    if not good.any():
        return None
    j = int(np.argmax(good))
    W = np.zeros((rows.n_classes, rows.p))
    W[:, j] = plus[:, j].astype(float) - minus[:, j]
    if rows.width == 1:
        W = W[1:] if W[1, j] else -W[:1]
    return Direction(W, np.zeros(rows.width))


# ------------------------------------------------------------------------------------------------------ linear programs


def _weakly(rows: ClassInequalities, pairs: Integers) -> tuple[Direction | None, Integers]:
    """Return a nontrivial weakly separating direction, by (3), and the working set that was needed."""
    w, b = rows.objective()
    largest = max(float(np.abs(w).max(initial=0.0)), float(np.abs(b).max()) if rows.fit_intercept else 0.0)
    if largest <= 1e-13 * rows.n:
        return None, pairs  # rows of A that sum to 0 prove that A theta >= 0 has only trivial solutions
    while True:
        direction, value = _solve(rows, pairs, (w / largest, b / largest))
        if value <= _TIE:
            return None, pairs
        margin = rows.margins(direction)
        if margin.min() >= -_TIE:
            direction = _on_its_ties(rows, direction, margin)
            margin = rows.margins(direction)
            margin = np.where(np.isinf(margin), 0.0, margin)
            kept = direction.W.any() and margin.min() >= -_TIE / 10 and margin.max() > _TIE
            return (direction if kept else None), pairs
        more = _worst(rows, margin, -_TIE)
        if not len(np.setdiff1d(more, pairs)):
            return None, pairs
        pairs = np.union1d(pairs, more)


def _strictly(rows: ClassInequalities, pairs: Integers) -> Direction | None:
    """Return a direction that separates completely, by (4)."""
    while True:
        direction, t = _solve(rows, pairs, None)
        margin = rows.margins(direction)
        # Bound on the rounding error of a product of p + 1 terms, with entries at most 1 and weights of sum at most 1.
        rounding = 2 * (rows.p + 4) * _EPS * (2 + float(np.abs(direction.b).max()))
        smallest = margin.min()
        if smallest > max(rounding, t / 10):
            return direction
        more = _worst(rows, margin, t / 2)
        if t <= _TIE or not len(np.setdiff1d(more, pairs)):
            return direction if smallest > rounding else None
        pairs = np.union1d(pairs, more)


def _only_weakly(rows: ClassInequalities, pairs: Integers) -> Direction | None:
    return _weakly(rows, pairs)[0]


def _with_fewer_columns(
    rows: ClassInequalities,
    direction: Direction,
    solve: Callable[[ClassInequalities, Integers], Direction | None],
    least: float,
) -> Direction:
    """Reduce a direction to the fewest columns, by weight, that keep margins of at least `least`, by bisection."""
    ranked, few = _by_weight(direction), 1  # one column alone has been tried
    while len(ranked) - few > 1:
        half = (few + len(ranked)) // 2
        chosen = np.sort(ranked[:half])
        some = rows.of_columns(chosen)
        shorter = solve(some, some.first_pairs())
        if shorter is not None:
            W = np.zeros((rows.width, rows.p))
            W[:, chosen] = shorter.W
            shorter = Direction(W, shorter.b)
        if shorter is not None and rows.margins(shorter).min() >= least:
            direction, ranked = shorter, _by_weight(shorter)
        else:
            few = half
    return direction


def _by_weight(direction: Direction) -> Integers:
    weight = np.abs(direction.W).max(axis=0)
    return np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)].astype(np.int64)


def _worst(rows: ClassInequalities, margin: Array, below: float) -> Integers:
    """Return some of the violated inequalities: the worst ones, and others spread evenly over all of them."""
    margin = margin.ravel()
    violated = np.flatnonzero(margin < below)
    several = 2 * rows.width * (rows.p + 1) + 50
    if len(violated) <= 2 * several:
        return violated
    worst = violated[np.argpartition(margin[violated], several - 1)[:several]]
    return np.union1d(worst, violated[np.linspace(0, len(violated) - 1, several).astype(np.int64)])


def _solve(rows: ClassInequalities, pairs: Integers, objective: tuple[Array, Array] | None) -> tuple[Direction, float]:
    """Solve (3) with an objective, (4) without, for some inequalities; variables u, v >= 0 with w = u - v, b, t."""
    A, B = rows.constraints(pairs)
    m, n_weights = A.shape
    parts, bounds = [-A, A], [(0.0, 1.0)] * (2 * n_weights)
    cost = np.zeros(2 * n_weights) if objective is None else np.append(-objective[0], objective[0])
    if rows.fit_intercept:
        parts.append(-B)
        bounds += [(-2 * rows.largest, 2 * rows.largest)] * rows.width
        cost = np.append(cost, np.zeros(rows.width) if objective is None else -objective[1])
        if rows.width > 1:  # a constant added to all intercepts has no effect
            bounds[2 * n_weights] = (0.0, 0.0)
    if objective is None:
        parts.append(sparse.csr_array(np.ones((m, 1))))
        bounds.append((0.0, 1.0))
        cost = np.append(cost, -1.0)
    ball = sparse.csr_array((np.arange(len(cost)) < 2 * n_weights).astype(float)[None, :])
    left = sparse.vstack([sparse.hstack(parts), ball]).tocsr()
    answer = _linear_program(cost, left, np.append(np.zeros(m), 1.0), bounds)
    W = (answer.x[:n_weights] - answer.x[n_weights : 2 * n_weights]).reshape(rows.width, rows.p)
    W[np.abs(W) < 1e-13] = 0.0
    b = answer.x[2 * n_weights :][: rows.width] if rows.fit_intercept else np.zeros(rows.width)
    return Direction(W, b), -float(answer.fun)


def _linear_program(cost: Array, left: Any, right: Array, bounds: list[tuple[float, float]]) -> Any:
    for method in ("highs-ds", "highs-ipm", "highs"):
        answer = scipy.optimize.linprog(cost, A_ub=left, b_ub=right, bounds=bounds, method=method, options=_HIGHS)
        if answer.status == 0:
            return answer
    raise DataError(
        f"Linear separability of the classes could not be decided ({answer.message.strip().rstrip('.')}); "
        "drop columns that are nearly linear combinations of others."
    )


def _on_its_ties(rows: ClassInequalities, direction: Direction, margin: Array) -> Direction:
    """Project a direction on the null space of the rows of A that are tied, so that they are tied to rounding."""
    tied = np.flatnonzero(np.abs(margin.ravel()) <= 10 * _TIE)
    weights = np.flatnonzero(direction.W.ravel())
    if not len(tied) or len(tied) * (len(weights) + rows.width) > _DENSE_CELLS:
        return direction
    A, B = rows.constraints(tied)
    theta = np.append(direction.W.ravel()[weights], direction.b if rows.fit_intercept else [])
    parts = [A.tocsc()[:, weights].toarray()] + ([B.toarray()] if rows.fit_intercept else [])
    ties = np.hstack(parts)
    theta = theta - np.linalg.lstsq(ties, ties @ theta, rcond=1e-10)[0]
    W = np.zeros_like(direction.W)
    W.ravel()[weights] = theta[: len(weights)]
    return Direction(W, theta[len(weights) :] if rows.fit_intercept else direction.b)


# ----------------------------------------------------------------------------------------------------------- the answer


def _found(rows: ClassInequalities, kind: Literal["complete", "quasi"], direction: Direction) -> Separation:
    """Return a direction in the units of X as a result, with its margin computed from all rows."""
    largest = np.abs(direction.W).max()
    W, b = direction.W / largest + 0.0, direction.b / largest + 0.0  # no -0
    margin = 0.0
    if kind == "complete":
        difference = rows.differences(rows.standardised(Direction(W, b)))
        if rows.width == 1:
            margin = float(difference.min() / np.linalg.norm(W))
        else:
            lengths = np.linalg.norm(W[:, None, :] - W[None, :, :], axis=2)
            margin = float((difference / np.where(lengths > 0, lengths, 1.0)[rows.codes]).min())
    columns = np.flatnonzero(W.any(axis=0)).astype(np.int64)
    classes = np.arange(rows.n_classes)
    if rows.width == 1:
        return Separation(kind, W[0], float(b[0]), margin, columns, classes)
    return Separation(kind, W, b, margin, columns, classes)
