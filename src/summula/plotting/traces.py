"""Convergence: what a solver drives down, step by step.

Each solver has its own measure (see its docstring): the decrement of Newton's method, which estimates what is left to
gain; the relative slope of conjugate gradients; the objective of L-BFGS. The last does not go to zero, so of a trace of
objectives f_0, f_1, ... the excess is drawn,

    f_i - min f,    min f the lowest objective that any of the solvers in the picture reached                  (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, ParameterError
from summula.plotting.style import axes, check_installed, colour, dress, keyed, marker

__all__ = ["convergence"]

Array = NDArray[np.float64]

_SAME = 1e-6  # a trace that ends this near the objective (as a share of it) is one of objectives


class _Trace(NamedTuple):
    """The trace of one solver, and the objective it ended at (NaN: not known)."""

    name: str
    values: Array
    end: float

    @property
    def of_objectives(self) -> bool:
        return bool(abs(self.values[-1] - self.end) <= _SAME * abs(self.end))


def convergence(*solved: Any, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Draw what solvers drive down, step by step, on a logarithmic scale.

    Parameters
    ----------
    *solved : Solution, or fitted models of this package
        Whose traces to draw. Solvers in one picture should solve one problem: a trace of objectives is drawn as what
        it is above the lowest that any of them reached.
    labels : sequence of str, optional
        Their names, for the legend; names of classes by default.
    ax : matplotlib Axes, optional
        Where to draw; new axes by default.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib import pyplot
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.plotting import convergence
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> ax = convergence(LogisticRegression().fit(X, X[:, 0] > X[:, 1] ** 2))
    >>> ax.get_yscale(), ax.get_xlabel()
    ('log', 'step')
    >>> pyplot.close(ax.figure)
    """
    check_installed()
    if not solved:
        raise ParameterError("convergence has nothing to draw; give it at least one Solution or fitted model.")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(solved)):
        raise ParameterError(f"The 'labels' of convergence must be {len(solved)} names, one for each, not {labels!r}.")
    traces = [_traced(one, place) for place, one in enumerate(solved)]
    objectives = [trace.of_objectives for trace in traces]
    lowest = _lowest(traces)
    heights = [_heights(trace, lowest if shifted else 0.0) for trace, shifted in zip(traces, objectives, strict=True)]

    ax = axes(ax)
    for k, line in enumerate(heights):
        name = traces[k].name if labels is None else str(labels[k])
        ax.plot(np.arange(len(line)), line, color=colour(k), marker=marker(k), ms=4, lw=1.4, label=name)
    ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "step", _measure(objectives))
    if len(solved) > 1 or labels is not None:
        keyed(ax, corner="best")  # traces are short
    return ax


def _lowest(traces: list[_Trace]) -> float:
    """The lowest objective any of the solvers reached, of (1)."""
    ends = [trace.end for trace in traces] + [float(t.values.min()) for t in traces if t.of_objectives]
    return min((end for end in ends if np.isfinite(end)), default=0.0)


def _heights(trace: _Trace, lowest: float) -> Array:
    """A trace above the lowest value, without what has no place on a logarithmic scale."""
    above = trace.values - lowest
    if not (above > 0).any():
        raise DataError(
            f"The trace of {trace.name} is zero throughout: it began at the answer; there is nothing to draw."
        )
    return np.where(above > 0, above, np.nan)


def _measure(objectives: list[bool]) -> str:
    if all(objectives):
        return "objective above the lowest reached"
    return "what each solver drives down" if len(objectives) > 1 else "what the solver drives down"


def _traced(one: Any, place: int) -> _Trace:
    """The trace of a solution, or of the one a model was fitted by."""
    name = type(one).__name__
    # Solutions have a trace, likelihood models keep the fit that has it, least-squares models have it named.
    holders = [one, getattr(one, "_fit", None)]
    holder = next((holder for holder in holders if isinstance(getattr(holder, "trace", None), tuple)), None)
    values = getattr(one, "trace_", None) if holder is None else holder.trace
    if values is None:
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import check_is_fitted

        if isinstance(one, BaseEstimator):
            check_is_fitted(one)
        raise ParameterError(f"{name} keeps no trace; convergence needs a Solution or a model fitted in steps.")
    if not len(values):
        raise DataError(
            f"The trace of {name} is empty: it was solved at once, without steps; there is nothing to draw."
        )
    end = float(getattr(holder, "value", np.nan))
    return _Trace(f"solution {place + 1}" if holder is one else name, np.asarray(values, np.float64), end)
