"""The kernels of `summula.stats.bounds_kernels`, line by line from the equations."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm


def capital(x, m, u, prior=0.25, count=0):
    """Capital in units of the target after bets (3), with the normal profile itself and no goal."""
    n = len(x)
    for t in range(1, n + 1):
        past = x[: t - 1]
        means = np.cumsum(past) / np.arange(1, t)
        before = np.concatenate([[0.0], means])[:-1] if t > 1 else means
        sigma2 = (prior + np.sum((past - before) * (past - means))) / (count + t)
        sigma = min(np.sqrt(sigma2), np.sqrt(m * (1 - m)))
        stake = min(u / (1 - m), norm.pdf(norm.ppf(u)) / (sigma * np.sqrt(n - t + 1)), (1 - u) / m)
        u += stake * (m - x[t - 1])
    return u


def shared_capital(x, m, shares):
    """Capital after bets (5)."""
    return np.mean(np.prod(1 + shares[:, None] * (m - x), axis=1))


def watched(x, limit, shares):
    """Evidence E_t of the monitor after every row, one sum over the rows at which capital joins."""
    join = lambda t: 1 / (1 + np.log(1 + t))  # noqa: E731
    found = []
    for t in range(1, len(x) + 1):
        bets = [
            (join(s - 1) - join(s)) * np.prod(1 + shares[:, None] * (x[s - 1 : t] - limit), axis=1).mean()
            for s in range(1, t + 1)
        ]
        found.append(join(t) + sum(bets))
    return np.array(found)
