"""The kernel of `summula.optimize.solvers.stochastic_descent.kernels`, row by row on plain weights: no scale, no laziness."""

from __future__ import annotations

import numpy as np


def losses(name, epsilon=0.1):
    """A loss and its slope as functions of target and score."""
    hinge = {"hinge": 1.0, "perceptron": 0.0}.get(name)
    if hinge is not None:
        return lambda y, p: max(hinge - y * p, 0.0), lambda y, p: -y if y * p <= hinge else 0.0
    return {
        "squared_hinge": (lambda y, p: max(1 - y * p, 0) ** 2, lambda y, p: -2 * y * max(1 - y * p, 0)),
        "log_loss": (lambda y, p: np.logaddexp(0, -y * p), lambda y, p: -y / (1 + np.exp(y * p))),
        "modified_huber": (
            lambda y, p: -4 * y * p if y * p < -1 else max(1 - y * p, 0) ** 2,
            lambda y, p: -4 * y if y * p < -1 else -2 * y * max(1 - y * p, 0),
        ),
        "squared_error": (lambda y, p: (p - y) ** 2 / 2, lambda y, p: p - y),
        "huber": (
            lambda y, p: (p - y) ** 2 / 2 if abs(p - y) <= epsilon else epsilon * abs(p - y) - epsilon**2 / 2,
            lambda y, p: np.clip(p - y, -epsilon, epsilon),
        ),
        "epsilon_insensitive": (
            lambda y, p: max(abs(p - y) - epsilon, 0),
            lambda y, p: np.sign(p - y) if abs(p - y) > epsilon else 0.0,
        ),
        "squared_epsilon_insensitive": (
            lambda y, p: max(abs(p - y) - epsilon, 0) ** 2,
            lambda y, p: 2 * np.sign(p - y) * max(abs(p - y) - epsilon, 0),
        ),
    }[name]


def descend(X, y, weight, order, loss, *, l2=0.0, l1=0.0, eta=lambda t: 2.0**-7, batch=1, average=0, intercept=True):
    """Return weights, intercept, their averages, and the sums of losses and penalties over the steps."""
    value, slope = losses(loss)
    w, b, t, due = np.zeros(X.shape[1]), 0.0, 1, 0.0
    paid, total, total_b, count = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0.0, 0
    met = penalties = 0.0
    for at in range(0, len(order), batch):
        rows = order[at : at + batch]
        scores = X[rows] @ w + b
        met += sum(value(y[i], p) for i, p in zip(rows, scores, strict=True))
        penalties += len(rows) * l2 * w @ w / 2
        slopes = np.array([weight[i] * slope(y[i], p) for i, p in zip(rows, scores, strict=True)]) / len(rows)
        w = (1 - eta(t) * l2) * w - eta(t) * slopes @ X[rows]
        b -= eta(t) * slopes.sum() * intercept
        after = w.copy()  # averages are updated before the L1 penalty is applied
        due += eta(t) * l1
        for j in range(len(w)) if l1 else ():  # the penalty is applied to every column at every step
            new = max(0.0, w[j] - (due + paid[j])) if w[j] > 0 else min(0.0, w[j] + (due - paid[j]))
            paid[j] += new - w[j]
            w[j] = new
        if average and t >= average:
            total, total_b, count = total + after, total_b + b, count + 1
        t += 1
    penalties += len(order) * l1 * np.abs(w).sum()  # the final state
    return w, b, total / max(count, 1), total_b / max(count, 1), met, penalties
