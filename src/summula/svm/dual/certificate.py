"""Certificate of support vector machines: primal minus dual, recomputed from the rows by `verify`.

Every beta within its bounds (and with the required sum) is feasible in the dual of `solver.py`, and every f in the
primal, so the optimal value lies between the two. One-vs-one classifiers sum the objectives of all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.estimator.input.validation import as_source
from summula.core.estimator.run import Unnamed
from summula.core.model_files import schema
from summula.core.numerics.certificate import Certificate, Verification
from summula.kernels.kernel import Kernel, centre_of
from summula.kernels.rows import rows_of
from summula.kernels.standard import Linear
from summula.svm.dual.kernel_matrix import CachedKernel, KernelMatrix, PrecomputedKernel
from summula.svm.dual.solver import DualProblem, linear_objectives, objectives

__all__ = ["Machine", "MachineTask", "SupportCertificate", "problem_of", "rounding_of", "rows_of_pair", "tasks_of"]

Array = NDArray[Any]
Index = NDArray[np.intp]

_EPS = float(np.finfo(np.float64).eps)
_ROUNDINGS = 16.0  # upper bound on the number of roundings in a score, which is summed over blocks


@schema.saved(
    kind=schema.Text("classes", "numbers", "one class"),
    C=schema.Real(0.0, finite=False),
    epsilon=schema.Real(0.0),
    nu=schema.Real(0.0, 1.0),
    intercept=schema.Flag(),
    class_weight=schema.Array("float64", "n_weights", low=0.0),
)
class MachineTask(NamedTuple):
    """Kind of problem (classification, regression, one class) and its parameters."""

    kind: str
    C: float
    epsilon: float
    nu: float
    intercept: bool
    class_weight: Array  # of each class


@schema.saved(
    support=schema.Array("int64", "n_support", low=0),
    beta=schema.Array("float64", "n_support"),
    intercept=schema.Real(),
    coef=schema.Array("float64", "n_columns") | None,
)
class Machine(NamedTuple):
    """One solved problem: the row numbers of the support vectors, their beta, and the intercept.

    With a linear kernel, `coef` may hold weights of the columns that are more accurate than those computed from beta.
    """

    support: Array
    beta: Array
    intercept: float
    coef: Array | None = None


def tasks_of(task: MachineTask) -> Iterator[tuple[int, int]]:
    """Return the pairs of classes (first, second); a single pair (0, 1) without classes."""
    K = max(len(task.class_weight), 2)
    return ((i, j) for i in range(K) for j in range(i + 1, K))


def rows_of_pair(task: MachineTask, pair: tuple[int, int], y: Array | None, weight: Array) -> Index:
    """Return the rows of a problem, those with positive weight."""
    if task.kind != "classes":
        return np.flatnonzero(weight > 0)
    assert y is not None
    return np.flatnonzero((weight > 0) & ((y == pair[0]) | (y == pair[1])))


def problem_of(task: MachineTask, pair: tuple[int, int], y: Array | None, weight: Array) -> DualProblem:
    """Return the dual of some rows, given their targets (or class codes) and weights."""
    n = len(weight)
    if task.kind == "one class":
        return DualProblem(
            np.zeros(n), np.zeros(n), weight.copy(), np.arange(n), task.nu * float(weight.sum()), task.intercept
        )
    assert y is not None
    if task.kind == "numbers":
        high, row = task.C * weight, np.tile(np.arange(n), 2)
        q = np.concatenate([task.epsilon - y, -task.epsilon - y])
        zero = np.zeros(n)
        return DualProblem(q, np.append(zero, -high), np.append(high, zero), row, 0.0, task.intercept)
    # With two classes, the second is positive; with several pairs, the first of each is (as in libsvm).
    positive = pair[1] if len(task.class_weight) == 2 else pair[0]
    sign = np.where(y == positive, 1.0, -1.0)
    most = weight * task.class_weight[y.astype(np.intp)]
    most = task.C * most if np.isfinite(task.C) else np.where(most > 0, np.inf, 0.0)
    return DualProblem(
        -sign, np.where(sign < 0, -most, 0.0), np.where(sign > 0, most, 0.0), np.arange(n), 0.0, task.intercept
    )


def rounding_of(problem: DualProblem, beta: Array, largest: float) -> float:
    """Bound the rounding error of the objectives of beta, for a kernel matrix with this largest diagonal value.

    No |k(x, z)| is larger.
    """
    sum_of_beta = float(np.abs(beta).sum())
    cost = problem.high - problem.low
    return _ROUNDINGS * _EPS * largest * sum_of_beta * (float(cost[np.isfinite(cost)].sum()) + sum_of_beta)


class Recomputed(NamedTuple):
    """Objectives of stated machines, whether they are feasible, and the rounding error of the objectives.

    With costs of 1e10, scores are sums of terms of that size, and their last digits are multiplied by the costs.
    """

    primal: float
    dual: float
    feasible: bool
    rounding: float

    def plus(self, other: Recomputed) -> Recomputed:
        """Return the sums over two machines."""
        return Recomputed(
            self.primal + other.primal,
            self.dual + other.dual,
            self.feasible and other.feasible,
            self.rounding + other.rounding,
        )


_NOT_A_POINT = Recomputed(np.nan, np.nan, False, 0.0)


def _one_machine_per_pair(certificate: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved certificate: weights of all classes (of one, where there are none), a machine for each pair."""
    task, classes = certificate.task, certificate.classes
    if (task.kind == "classes") != (classes is not None):
        return f"the certificate of {task.kind!r} has {'no ' if classes is None else ''}class labels"
    if len(task.class_weight) != (1 if classes is None else len(classes)):
        return "class_weight does not have a weight for each class"
    pairs = sum(1 for _ in tasks_of(task))
    if len(certificate.machines) != pairs:
        return f"the certificate has {len(certificate.machines)} machines for {pairs} pairs of classes"
    return None


@schema.saved(
    _one_machine_per_pair,
    task=schema.Object(MachineTask),
    machines=schema.Items(schema.Object(Machine), low=1),
    kernel=schema.Object(Kernel) | None,
    classes=schema.Labels("n_classes", low=2) | None,
    unit=schema.Real(0.0),
)
@dataclass(frozen=True)
class SupportCertificate(Certificate):
    """Primal minus dual of a support vector machine, summed over its pairs of classes.

    Attributes
    ----------
    kind : {"global", "stationary"}
        "stationary" if the kernel was found not to be positive semidefinite, in which case no bound holds.
    primal, gap : float
    """

    task: MachineTask
    machines: tuple[Machine, ...]
    kernel: Kernel | None
    classes: Array | None
    unit: float

    def verify(self, X: Any, y: Any = None, sample_weight: Any = None) -> Verification:
        """Recompute primal and dual from the data, without the solver; False if beta violates its bounds, too."""
        labels = None if self.classes is None else Labels("the certificate", self.classes)
        needs_y = self.task.kind != "one class"
        source = as_source(Unnamed(), X, y if needs_y else None, sample_weight, needs_y=needs_y, labels=labels)
        try:
            found = self._objectives(source)
        finally:
            source.release()
        rounding = found.rounding + self.unit * max(abs(self.primal), 1.0)
        same = bool(found.feasible and abs(found.primal - self.primal) <= rounding)
        if self.kind != "global":
            return Verification(found.primal, self.gap, same)
        gap = found.primal - found.dual
        return Verification(found.primal, gap, same and bool(gap <= self.gap + rounding))

    def _objectives(self, source: Source) -> Recomputed:
        chunk = source.chunk(0, source.n_rows)
        y = None if chunk.y is None and chunk.codes is None else chunk.target.astype(np.float64, copy=False)
        weight = np.ones(source.n_rows) if chunk.weight is None else chunk.weight
        X = chunk.X if chunk.is_sparse else chunk.block(np.float64)
        whole = Recomputed(0.0, 0.0, True, 0.0)
        for pair, machine in zip(tasks_of(self.task), self.machines, strict=True):
            rows = rows_of_pair(self.task, pair, y, weight)
            problem = problem_of(self.task, pair, None if y is None else y[rows], weight[rows])
            if len(machine.support) and int(machine.support.max()) >= source.n_rows:
                return _NOT_A_POINT
            whole = whole.plus(self._objectives_of(machine, problem, X, rows))
        return whole

    def _objectives_of(self, machine: Machine, problem: DualProblem, X: Any, rows: Index) -> Recomputed:
        place = np.full(X.shape[0], -1, np.intp)
        place[rows] = np.arange(len(rows))
        at = place[machine.support]
        if (at < 0).any():
            return _NOT_A_POINT
        whole = np.bincount(at, machine.beta, len(rows))
        beta = whole if len(problem.q) == len(rows) else np.append(np.maximum(whole, 0.0), np.minimum(whole, 0.0))
        slack = 1e-9 * np.abs(beta).sum() + 1e-12
        inside = bool(((beta >= problem.low - slack) & (beta <= problem.high + slack)).all())
        balanced = not problem.intercept or abs(float(beta.sum()) - problem.total) <= slack
        if machine.coef is not None and (not isinstance(self.kernel, Linear) or len(machine.coef) != X.shape[1]):
            return _NOT_A_POINT
        if machine.coef is not None:
            found = linear_objectives(problem, X[rows], beta, machine.coef, machine.intercept)
            return Recomputed(*found, inside and balanced, 0.0)
        K = self._matrix(X, rows)
        g = K.products(at.astype(np.intp), machine.beta, np.arange(len(rows)))
        found = objectives(problem, beta, g[problem.row] + problem.q, machine.intercept)
        rounding = rounding_of(problem, machine.beta, float(np.abs(K.diagonal()).max(initial=0.0)))
        return Recomputed(*found, inside and balanced, rounding)

    def _matrix(self, X: Any, rows: Index) -> KernelMatrix:
        if self.kernel is None:
            return PrecomputedKernel(np.asarray(X)[np.ix_(rows, rows)])
        mine = X[rows]
        return CachedKernel(self.kernel, rows_of(mine, centre_of(self.kernel, mine)), 0.0)
