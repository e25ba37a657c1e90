"""Objectives of linear models and their minima in decimal arithmetic of 60 digits: floats are decimals, so no rounding.

    P(b, V) = sum_i w_i l(y_i, b + V'x_i) + a |V|_1 + lambda/2 ||V||^2                                           (1)

A loss gives value, slope and curvature in the linear predictor (of one output, or of K classes). The minimum is found
by Newton's method on centred columns, on the support and signs that satisfy the optimality conditions.
"""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext
from typing import Any

ZERO, ONE = Decimal(0), Decimal(1)
_DIGITS = 60
_HALVINGS = 60
_TINY = Decimal("1e-45")


def squared(y, eta):
    """Half the squared error."""
    r = eta[0] - y
    return r * r / 2, [r], [[ONE]]


def poisson(y, eta):
    """Half the deviance of counts with a logarithmic link."""
    mu = eta[0].exp()
    return mu - y + (y * (y.ln() - eta[0]) if y else ZERO), [mu - y], [[mu]]


def gamma(y, eta):
    """Half the deviance of amounts with a logarithmic link."""
    ratio = y * (-eta[0]).exp()
    return ratio - 1 - (y.ln() - eta[0]), [1 - ratio], [[ratio]]


def logistic(y, eta):
    """The log-loss of two classes, y being 0 or 1."""
    e = (-abs(eta[0])).exp()
    p = 1 / (1 + e) if eta[0] >= 0 else e / (1 + e)
    return (1 + e).ln() + max(eta[0], ZERO) - y * eta[0], [p - y], [[p * (1 - p)]]


def multinomial(y, eta):
    """The log-loss of K classes, y being the number of one."""
    top = max(eta)
    e = [(z - top).exp() for z in eta]
    total = sum(e)
    p = [one / total for one in e]
    k = range(len(eta))
    slope = [p[j] - int(j == int(y)) for j in k]
    return total.ln() + top - eta[int(y)], slope, [[p[i] * (int(i == j) - p[j]) for j in k] for i in k]


def decimals(values: Any) -> Any:
    """Nested lists of exact decimals."""
    return [decimals(one) for one in values] if hasattr(values, "__len__") else Decimal(float(values))


def objective(loss, X, y, weight, coef, intercept, l1=0.0, l2=0.0) -> Decimal:
    """(1) at a point: `coef` of shape (K, d), `intercept` of length K."""
    with localcontext() as context:
        context.prec = _DIGITS
        X, y, weight, coef, intercept = map(decimals, (X, y, weight, coef, intercept))
        total = ZERO
        for row, target, w in zip(X, y, weight, strict=True):
            eta = [b + sum((x * c for x, c in zip(row, v, strict=True)), ZERO)
                   for b, v in zip(intercept, coef, strict=True)]  # fmt: skip
            total += w * loss(target, eta)[0]
        flat = [c for v in coef for c in v]
        return total + Decimal(float(l1)) * sum(map(abs, flat)) + Decimal(float(l2)) / 2 * sum(c * c for c in flat)


def minimum(loss, X, y, weight, start, l1=0.0, l2=0.0, *, intercept=True, positive=False) -> Decimal:
    """Return the minimum of (1); `start` (K, d) gives the zero pattern and signs to try first."""
    with localcontext() as context:
        context.prec = _DIGITS
        X, y, weight, start = map(decimals, (X, y, weight, start))
        l1, l2 = Decimal(float(l1)), Decimal(float(l2))
        n, d, K = len(X), len(X[0]), len(start)
        total = sum(weight)
        mean = [sum(w * row[j] for w, row in zip(weight, X, strict=True)) / total if intercept else ZERO
                for j in range(d)]  # fmt: skip
        X = [[x - m for x, m in zip(row, mean, strict=True)] for row in X]
        scale = [max(abs(row[j]) for row in X) or ONE for j in range(d)]
        X = [[x / s for x, s in zip(row, scale, strict=True)] for row in X]
        guess = [[(c > 0) - (c < 0) for c in v] for v in start]
        patterns = [guess]
        if l1 or positive:
            signs = (0, 1) if positive else (0, 1, -1)
            shape = [signs] * (K * d)
            patterns += [[list(flat[k * d : (k + 1) * d]) for k in range(K)] for flat in itertools.product(*shape)]
        else:
            patterns = [[[1] * d for _ in range(K)]]
        for pattern in patterns:
            found = _newton(loss, X, y, weight, scale, pattern, l1, l2, intercept, positive)
            if found is not None:
                return found
        raise AssertionError(f"no pattern of signs is optimal ({n} rows)")


def _newton(loss, X, y, weight, scale, pattern, l1, l2, intercept, positive):
    """Return the minimum of (1) for a support and signs, or None if it is not optimal."""
    d, K = len(X[0]), len(pattern)
    lead = int(intercept)
    use = [(k, j) for k in range(K) for j in range(d) if pattern[k][j] or not (l1 or positive)]
    free = [(k, -1) for k in range(K)] * lead + use
    theta = dict.fromkeys(free, ZERO)
    rows = [[ONE, *row] for row in X]

    def penalties(key):
        """Value, slope and curvature of the penalty in the units of scaled columns."""
        k, j = key
        if j < 0:
            return ZERO, ZERO, ZERO
        v, s = theta[key], scale[j]
        sign = Decimal(pattern[k][j])
        return l1 * sign * v / s + l2 / 2 * v * v / s**2, l1 * sign / s + l2 * v / s**2, l2 / s**2

    def sums(keys):
        value, slope = ZERO, dict.fromkeys(keys, ZERO)
        hessian = {(a, b): ZERO for a in free for b in free}
        curved = free if keys else ()
        for row, target, w in zip(rows, y, weight, strict=True):
            eta = [sum((theta[k, j] * row[j + 1] for kk, j in free if kk == k), ZERO) for k in range(K)]
            one, g, h = loss(target, eta)
            value += w * one
            for a in keys:
                slope[a] += w * g[a[0]] * row[a[1] + 1]
            for a in curved:
                for b in curved:
                    hessian[a, b] += w * h[a[0]][b[0]] * row[a[1] + 1] * row[b[1] + 1]
        return value, slope, hessian

    for _ in range(60):
        value, slope, hessian = sums(free)
        g = [slope[a] + penalties(a)[1] for a in free]
        H = [[hessian[a, b] + (penalties(a)[2] if a == b else ZERO) for b in free] for a in free]
        if K > 1 and lead:  # intercepts are free up to a common constant
            for i in range(K):
                for j in range(K):
                    H[i][j] += ONE
        step = _solve(H, [-x for x in g])
        decrement = -sum(a * b for a, b in zip(g, step, strict=True))
        before, whole = value + sum(penalties(a)[0] for a in free), dict(theta)
        if decrement <= _TINY * (abs(value) + 1):
            break
        for halvings in range(_HALVINGS):
            for a, s in zip(free, step, strict=True):
                theta[a] = whole[a] + s / 2**halvings
            if sums(())[0] + sum(penalties(a)[0] for a in free) <= before:
                break
    else:
        raise AssertionError("Newton's method has not converged")
    every = [(k, j) for k in range(K) for j in range(d)]
    value, slope, _ = sums(every)
    if l1 or positive:
        for k, j in every:
            sign, g = pattern[k][j], slope[k, j] * scale[j]
            if sign and theta[k, j] * sign < 0:
                return None
            if not sign and (-g > l1 * (1 + _TINY) or (g > l1 * (1 + _TINY) and not positive)):
                return None
    return value + sum(penalties(a)[0] for a in free)


def _solve(A, b):
    """Gaussian elimination with pivoting."""
    rows = [[*row, right] for row, right in zip(A, b, strict=True)]
    n = len(rows)
    for j in range(n):
        p = max(range(j, n), key=lambda i: abs(rows[i][j]))
        rows[j], rows[p] = rows[p], rows[j]
        if not rows[j][j]:
            continue
        for i in range(j + 1, n):
            f = rows[i][j] / rows[j][j]
            if f:
                rows[i] = [x - f * z for x, z in zip(rows[i], rows[j], strict=True)]
    x = [ZERO] * n
    for j in reversed(range(n)):
        rest = rows[j][n] - sum((rows[j][k] * x[k] for k in range(j + 1, n)), ZERO)
        x[j] = rest / rows[j][j] if rows[j][j] else ZERO
    return x
