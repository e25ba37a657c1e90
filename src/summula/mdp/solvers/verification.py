"""Verification of the bounds of a solution, without a solver.

T is monotone, so bounds that satisfy two inequalities, state by state, are bounds on all values:

    T U <= U         implies   V* <= U                                                                             (1)
    T_pi L >= L      implies   V^pi >= L                                                                           (2)

(repeat the backups; with discount 1, for policies that end with probability 1, of which pi has to be one).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from summula.core.errors import DataError
from summula.core.numerics.certificate import Verification
from summula.mdp.process import Process
from summula.mdp.solvers.evaluation import check_policy

__all__ = ["verify"]

_EPS = float(np.finfo(np.float64).eps)


def verify(solution: Any, process: Process) -> Verification:
    """Check (1) and (2) up to rounding errors of a backup, and that the values and the gap agree with the bounds."""
    S = process.n_states
    if len(solution.values) != S:
        raise DataError(f"The solution is of {len(solution.values)} states, but the process has {S}.")
    policy = check_policy(solution.policy, process)
    lower, upper = np.asarray(solution.lower), np.asarray(solution.upper)
    terms = int(np.diff(process.P.indptr).max(initial=0))
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in (process.r, lower, upper)]
    rounding = _EPS * (terms + 4) * (sizes[0] + 2.0 * max(sizes[1:]))
    holds = [
        process.q_values(upper).max(axis=1) <= upper + rounding,  # (1)
        process.q_values(lower)[np.arange(S), policy] >= lower - rounding,  # (2)
        (solution.values >= lower - rounding) & (solution.values <= upper + rounding),
    ]
    if process.gamma == 1.0:
        from summula.mdp.solvers.episodic import proper, without_absorbing

        holds.append(proper(without_absorbing(process), policy))
    gap = float((upper - lower).max())
    agrees = gap == solution.gap or abs(gap - solution.gap) <= 2.0 * rounding
    confirms = bool(agrees and all(part.all() for part in holds))
    return Verification(float(np.mean(solution.values)), gap, confirms)
