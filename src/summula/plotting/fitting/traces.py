"""Convergence plots of solvers.

Each solver has its own convergence criterion (see its docstring): the Newton decrement, which estimates the distance to
the minimum; the relative gradient norm of conjugate gradients; the objective of L-BFGS. The last does not converge to
zero, so for a trace of objectives f_0, f_1, ... the excess is plotted,

    f_i - min f,    min f the smallest objective reached by any of the solvers in the plot                     (1)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.plotting.style import AXES, axes, check_installed, colour, dress, key_text, keyed, marker

__all__ = ["convergence"]

Array = NDArray[np.float64]

_SAME = 1e-6  # a trace whose end agrees with the objective up to this relative error contains objectives


class _Trace(NamedTuple):
    """The trace of a solver, and its final objective (NaN if unknown)."""

    name: str
    values: Array
    end: float

    @property
    def of_objectives(self) -> bool:
        return bool(abs(self.values[-1] - self.end) <= _SAME * abs(self.end))


@inherit_docs(AXES)
def convergence(*solved: Any, labels: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Plot the convergence criterion of solvers against the step, on a logarithmic scale.

    Parameters
    ----------
    *solved : Solution, or fitted models of this package
        Solutions or models with a trace. Solvers in one plot should solve the same problem: objectives are plotted
        relative to the smallest one reached by any of them.
    labels : sequence of str, optional
        Names for the legend; by default the class names.

    Examples
    --------
    >>> from summula.linear_model import LogisticRegression
    >>> from summula.plotting import convergence
    >>> ax = convergence(LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]))
    >>> ax.get_yscale(), ax.get_xlabel()
    ('log', 'step')
    """
    check_installed()
    if not solved:
        raise ParameterError("convergence needs at least one Solution or fitted model.")
    if labels is not None and (isinstance(labels, str) or len(labels) != len(solved)):
        raise ParameterError(f"The 'labels' of convergence must be {len(solved)} names, one for each, not {labels!r}.")
    traces = [_traced(one, place) for place, one in enumerate(solved)]
    objectives = [trace.of_objectives for trace in traces]
    lowest = _lowest(traces)
    heights = [_heights(trace, lowest if shifted else 0.0) for trace, shifted in zip(traces, objectives, strict=True)]

    ax = axes(ax)
    for k, line in enumerate(heights):
        name = traces[k].name if labels is None else key_text(labels[k])
        ax.plot(np.arange(len(line)), line, color=colour(k), marker=marker(k), ms=4, lw=1.4, label=name)
    ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    dress(ax, "step", _measure(objectives))
    if len(solved) > 1 or labels is not None:
        keyed(ax, corner="best")  # traces are short
    return ax


def _lowest(traces: list[_Trace]) -> float:
    """Return the smallest objective reached by any of the solvers, as in (1)."""
    ends = [trace.end for trace in traces] + [float(t.values.min()) for t in traces if t.of_objectives]
    return min((end for end in ends if np.isfinite(end)), default=0.0)


def _heights(trace: _Trace, lowest: float) -> Array:
    """Return a trace minus the smallest value, with NaN for values that are not positive."""
    above = trace.values - lowest
    if not (above > 0).any():
        raise DataError(
            f"The trace of {trace.name} is zero throughout: it started at the solution, so there is nothing to plot."
        )
    return np.where(above > 0, above, np.nan)


def _measure(objectives: list[bool]) -> str:
    if all(objectives):
        return "objective above the smallest"
    return "convergence criterion"


def _traced(one: Any, place: int) -> _Trace:
    """Return the trace of a solution, or of the solution of a fitted model."""
    name = type(one).__name__
    # Solutions have `trace`, likelihood models store the fit that has it, least-squares models have `trace_`.
    holders = [one, getattr(one, "_fit", None)]
    holder = next((holder for holder in holders if isinstance(getattr(holder, "trace", None), tuple)), None)
    values = getattr(one, "trace_", None) if holder is None else holder.trace
    if values is None:
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import check_is_fitted

        if isinstance(one, BaseEstimator):
            check_is_fitted(one)
        raise ParameterError(f"{name} has no trace; convergence needs a Solution or an iteratively fitted model.")
    if not len(values):
        raise DataError(f"The trace of {name} is empty: it was solved without iterations, so there is nothing to plot.")
    end = float(getattr(holder, "value", np.nan))
    return _Trace(f"solution {place + 1}" if holder is one else name, np.asarray(values, np.float64), end)
