"""The inequalities A theta >= 0 of a separating direction, with A computed in blocks of rows.

With theta = (w, b), two classes and s_i = +1 or -1, or K classes with a direction each, the rows of A theta are

    s_i (w'x_i + b),     or     (beta_{y_i} - beta_k)'x_i + b_{y_i} - b_k   for every k other than y_i.           (1)

Columns of X are shifted, and scaled by powers of two, which is exact; each row of A is divided by its largest entry,
which preserves signs. X itself is neither copied nor modified.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from summula.core.errors import DataError

__all__ = ["ClassInequalities", "Direction"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK = 1 << 15  # rows standardised at a time
_ALL_AT_ONCE = 2_000  # with at most this many inequalities no working set is used
_LEAST_SQUARES_COLUMNS = 1_000  # with at most this many columns a least-squares fit selects the first working set


class Direction(NamedTuple):
    """A weight per column and an intercept: one row for two classes, else one per class."""

    W: Array
    b: Array


class ClassInequalities:
    """The inequalities A theta >= 0 of (1), with columns standardised and each row divided by its largest entry.

    Inequalities are identified by their flat index in a table of n rows and `width` columns: one column for two
    classes, else K, with the entry of a row's own class unused (infinity).
    """

    def __init__(self, X: Any, codes: Integers, n_classes: int, fit_intercept: bool) -> None:
        self.X = sparse.csr_array(X) if sparse.issparse(X) else X
        self.codes, self.n_classes, self.fit_intercept = codes, n_classes, fit_intercept
        self.n, self.p = X.shape
        self.is_sparse = sparse.issparse(X)
        self.width = 1 if n_classes == 2 else n_classes
        self.low, self.high = self._ranges()
        self._standardise()
        self._measure()

    def _ranges(self) -> tuple[Array, Array]:
        """The smallest and largest value of each column in each class."""
        if len(absent := np.flatnonzero(np.bincount(self.codes, minlength=self.n_classes) == 0)):
            raise DataError(f"Class {absent[0]} has no rows; remove it before testing whether classes are separated.")
        low, high = np.empty((self.n_classes, self.p)), np.empty((self.n_classes, self.p))
        for k in range(self.n_classes):
            own = self.X[self.codes == k]
            low[k], high[k] = (
                (own.min(axis=0).toarray().ravel(), own.max(axis=0).toarray().ravel())
                if self.is_sparse
                else (own.min(axis=0), own.max(axis=0))
            )
        return low, high

    def _standardise(self) -> None:
        """Compute the shift (midrange, if a shift is possible) and scale (about the standard deviation) of columns."""
        low, high = self.low.min(axis=0), self.high.max(axis=0)
        shifted = self.fit_intercept and not self.is_sparse
        self.shift = low / 2 + high / 2 if shifted else np.zeros(self.p)
        half = high / 2 - low / 2 if shifted else np.maximum(np.abs(low), np.abs(high))
        self.scale = np.where(half > 0, half, 1.0)
        total = np.zeros(self.p)
        for rows in self._blocks():
            Z = self.block(rows)
            total += np.asarray(Z.multiply(Z).sum(axis=0)).ravel() if self.is_sparse else (Z * Z).sum(axis=0)
        spread = self.scale * np.sqrt(np.where(total > 0, total / self.n, 1.0))
        self.scale = np.ldexp(1.0, np.maximum(np.frexp(spread)[1], -1000))

    def _measure(self) -> None:
        """Compute the largest entry of each row of A, and the sums of the scaled rows per class."""
        self.size = np.ones(self.n)
        self.sums = np.zeros((self.n_classes, self.p + 1))
        self.largest = 1.0
        for rows in self._blocks():
            Z = self.block(rows)
            size = abs(Z).max(axis=1).toarray().ravel() if self.is_sparse else np.abs(Z).max(axis=1, initial=0.0)
            self.largest = max(self.largest, float(size.max(initial=0.0)))
            self.size[rows] = np.maximum(size, 1.0) if self.fit_intercept else np.where(size > 0, size, 1.0)
            for k in range(self.n_classes):
                share = np.where(self.codes[rows] == k, 1 / self.size[rows], 0.0)
                self.sums[k] += np.append(Z.T @ share, share.sum())

    def _blocks(self) -> Iterator[slice]:
        for start in range(0, self.n, _BLOCK):
            yield slice(start, min(start + _BLOCK, self.n))

    def block(self, rows: Any) -> Any:
        """Some rows, standardised: dense or CSR as X is."""
        X = self.X[rows]
        if self.is_sparse:
            return (X @ sparse.diags_array(1 / self.scale)).tocsr()
        return (X.astype(np.float64, copy=False) - self.shift) / self.scale

    def differences(self, direction: Direction) -> Array:
        """The left-hand sides (1), infinite for a row's own class."""
        out = np.empty((self.n, self.width))
        for rows in self._blocks():
            score = np.asarray(self.block(rows) @ direction.W.T) + direction.b
            codes = self.codes[rows]
            if self.width == 1:
                out[rows] = np.where(codes == 1, 1.0, -1.0)[:, None] * score
            else:
                place = np.arange(len(codes))
                out[rows] = score[place, codes][:, None] - score
                out[place + rows.start, codes] = np.inf
        return out

    def margins(self, direction: Direction) -> Array:
        """A theta, each row divided by its largest entry."""
        return self.differences(direction) / self.size[:, None]

    def objective(self) -> tuple[Array, Array]:
        """The sum of all rows of A: the parts of w and of b."""
        total = self.sums[1] - self.sums[0] if self.width == 1 else self.n_classes * self.sums - self.sums.sum(axis=0)
        total = np.atleast_2d(total)
        return total[:, :-1].ravel(), total[:, -1]

    def constraints(self, pairs: Integers) -> tuple[Any, Any]:
        """Those rows of A, sparse: the parts of w and of b."""
        i, k = np.divmod(pairs, self.width)
        Z = sparse.coo_array(self.block(i))
        values, own = Z.data / self.size[i[Z.row]], self.codes[i]
        shape, places = (len(i), self.width * self.p), np.arange(len(i))
        if self.width == 1:
            sign = np.where(own == 1, 1.0, -1.0)
            A = sparse.csr_array((values * sign[Z.row], (Z.row, Z.col)), shape=shape)
            return A, sparse.csr_array((sign / self.size[i])[:, None])
        columns = np.append(own[Z.row] * self.p + Z.col, k[Z.row] * self.p + Z.col)
        A = sparse.csr_array((np.append(values, -values), (np.append(Z.row, Z.row), columns)), shape=shape)
        unit = 1 / self.size[i]
        entries = (np.append(unit, -unit), (np.append(places, places), np.append(own, k)))
        return A, sparse.csr_array(entries, shape=(len(i), self.width))

    def first_pairs(self) -> Integers:
        """Return the initial working set: the worst under least squares, an even sample, one per pair of classes."""
        every = np.arange(self.n * self.width)
        if self.width > 1:
            every = every[every % self.width != np.repeat(self.codes, self.width)]
        if len(every) <= _ALL_AT_ONCE:
            return every
        margin = self.margins(self._least_squares()).ravel()[every]
        several = min(len(every), 4 * self.width * (self.p + 1) + 100)
        worst = every[np.argpartition(margin, several - 1)[:several]]
        even = every[np.linspace(0, len(every) - 1, several).astype(np.int64)]
        kind = self.codes[every // self.width] * self.width + every % self.width
        return np.unique(np.concatenate([worst, even, every[np.unique(kind, return_index=True)[1]]]))

    def _least_squares(self) -> Direction:
        """Return the least-squares fit to +1 and -1 (or class indicators), an estimate of the class boundary."""
        if self.p > _LEAST_SQUARES_COLUMNS:
            return Direction(np.zeros((self.width, self.p)), np.zeros(self.width))
        gram, cross = np.zeros((self.p + 1, self.p + 1)), np.zeros((self.p + 1, self.width))
        targets = np.array([[-1.0], [1.0]]) if self.width == 1 else np.eye(self.n_classes)
        for rows in self._blocks():
            Z = self.block(rows)
            Z = np.column_stack([Z.toarray() if self.is_sparse else Z, np.full(Z.shape[0], float(self.fit_intercept))])
            gram += Z.T @ Z
            cross += Z.T @ targets[self.codes[rows]]
        gram[np.diag_indices_from(gram)] += 1e-8 * self.n
        solution = np.linalg.solve(gram, cross)
        return Direction(solution[:-1].T, solution[-1] if self.fit_intercept else np.zeros(self.width))

    def of_columns(self, columns: Integers) -> ClassInequalities:
        """The same rows with fewer columns."""
        return ClassInequalities(self.X[:, columns], self.codes, self.n_classes, self.fit_intercept)

    def in_original_units(self, direction: Direction) -> Direction:
        """Return the hyperplane in the units of X."""
        W, b = direction
        used = np.flatnonzero(W.any(axis=0))
        unit = self.scale[used].min()  # factored out so that quotients do not overflow
        coef = np.zeros_like(W)
        coef[:, used] = W[:, used] * (unit / self.scale[used])
        b = np.array([math.fsum([c * unit, *(-w * self.shift)]) for w, c in zip(coef, b, strict=True)])
        rounding = 4 * np.finfo(np.float64).eps * (np.abs(coef) @ np.abs(np.vstack([self.low, self.high])).max(axis=0))
        return Direction(coef, np.where(np.abs(b) > rounding, b, 0.0))

    def standardised(self, direction: Direction) -> Direction:
        """Return a hyperplane in the units of X in standardised units; the signs of its scores are unchanged."""
        W, b = direction
        return Direction(
            W * self.scale, np.array([math.fsum([c, *(w * self.shift)]) for w, c in zip(W, b, strict=True)])
        )

    def centred(self, direction: Direction) -> Direction:
        """Shift a hyperplane between two classes to be equally far from both."""
        if self.width > 1 or not self.fit_intercept:
            return direction
        side = np.where(self.codes == 1, 1.0, -1.0)
        score = side * self.differences(self.standardised(direction))[:, 0]
        middle = score[side > 0].min() / 2 + score[side < 0].max() / 2
        return Direction(direction.W, direction.b - middle)
