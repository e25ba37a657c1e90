"""Least squares in rational numbers: floats are fractions, so results are rounded only once, at the end."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def least_squares(X, y, *, weight=None, intercept=True, alpha=0.0):
    """The shortest v (and the intercept b) that minimise sum w (y - x'v - b)^2 + alpha ||v||^2; the minimum too."""
    X = [[Fraction(float(x)) for x in row] for row in np.asarray(X)]
    y = [Fraction(float(v)) for v in np.asarray(y)]
    w = [Fraction(1)] * len(y) if weight is None else [Fraction(float(v)) for v in weight]
    d, W = len(X[0]), sum(w)
    xbar = [sum(w[i] * X[i][j] for i in range(len(y))) / W if intercept else Fraction(0) for j in range(d)]
    ybar = sum(a * b for a, b in zip(w, y, strict=True)) / W if intercept else Fraction(0)
    Xc = [[row[j] - xbar[j] for j in range(d)] for row in X]
    S = [[sum(w[i] * Xc[i][j] * Xc[i][k] for i in range(len(y))) for k in range(d)] for j in range(d)]
    s = [sum(w[i] * Xc[i][j] * (y[i] - ybar) for i in range(len(y))) for j in range(d)]
    for j in range(d):
        S[j][j] += Fraction(float(alpha))
    v = _shortest_solution(S, s)
    b = ybar - _dot(xbar, v)
    rss = sum(w[i] * (y[i] - b - _dot(X[i], v)) ** 2 for i in range(len(y)))
    return np.array([float(x) for x in v]), float(b), float(rss + Fraction(float(alpha)) * _dot(v, v))


def inverse(S):
    """The inverse of a regular matrix of floats, rounded once at the end."""
    S = [[Fraction(float(x)) for x in row] for row in S]
    columns = [_shortest_solution(S, [Fraction(int(i == j)) for i in range(len(S))]) for j in range(len(S))]
    return np.array([[float(x) for x in column] for column in columns]).T


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def _shortest_solution(S, s):
    """Return the minimum-norm solution of the consistent system S v = s: v = E'(E E')^-1 e, E the nonzero reduced rows."""
    rows, pivots = [[*row, right] for row, right in zip(S, s, strict=True)], []
    for j in range(len(S[0])):
        k = len(pivots)
        i = next((i for i in range(k, len(rows)) if rows[i][j]), None)
        if i is None:
            continue
        rows[k], rows[i] = rows[i], rows[k]
        rows[k] = [x / rows[k][j] for x in rows[k]]
        rows = [row if i == k or not row[j] else [x - row[j] * p for x, p in zip(row, rows[k], strict=True)]
                for i, row in enumerate(rows)]  # fmt: skip
        pivots.append(j)
    E, e = [row[:-1] for row in rows[: len(pivots)]], [row[-1] for row in rows[: len(pivots)]]
    if len(pivots) == len(S[0]):
        return e
    z = _shortest_solution([[_dot(a, b) for b in E] for a in E], e) if E else []
    return [sum((z[i] * E[i][j] for i in range(len(E))), Fraction(0)) for j in range(len(S[0]))]
