"""`summula.train`: from a table to a certified model in one call."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

from summula.core.errors import ParameterError
from summula.training.checks import check_request
from summula.training.data.tables import open_data
from summula.training.pipeline import run
from summula.training.request import Request
from summula.training.result import TrainingResult

__all__ = ["train"]

logger = logging.getLogger("summula.training")


def train(
    data: Any,
    target: str,
    *,
    time: float = 60.0,
    metric: str | None = None,
    costs: Any = None,
    groups: str | None = None,
    time_column: str | None = None,
    models: Sequence[str] | None = None,
    class_weight: Any = None,
    drop: Sequence[str] = (),
    task: str | None = None,
    holdout: float = 0.2,
    delta: float = 0.05,
    random_state: int = 0,
    stream: bool = False,
    progress: bool = True,
) -> TrainingResult:
    """Compare models on a table, refit the best, and certify it on held-out rows.

    Parameters
    ----------
    data : {frame, path, scan}
        A pandas, polars or pyarrow frame, the path of a file or folder, or `summula.scan(...)`.
    target : str
        The column to predict.
    time : float, default=60
        Time limit in seconds; compilation of kernels, once per machine, is not counted.
    metric : str, optional
        Metric of the comparison. Classes: "accuracy" (default), "balanced_accuracy", "f1", "auc",
        "average_precision", "log_loss", "expected_cost" (default with costs). Numbers: "absolute" (default), "squared",
        "poisson".
    costs : {path, mapping, array-like of shape (n_classes, n_classes)}, optional
        costs[predicted class, true class]: cost of each prediction (row) for each true class (column), in sorted
        order; or a mapping {predicted: {true: cost}}; or a CSV file whose header is "predicted" and the true classes.
    groups : str, optional
        A column whose values name groups of rows (patients, sites): hold-out and folds take whole groups. It is not
        used as a feature.
    time_column : str, optional
        A column of times: the latest rows are held out, and folds are evaluated on later rows than they are fitted on.
        It is not used as a feature.
    models : list of str, optional
        Candidates, such as ["logistic", "boosting"]; None for all that apply to the target.
    class_weight : dict or "balanced", optional
        Passed to the candidates that support it.
    drop : list of str
        Columns to leave out.
    task : {"classes", "numbers"}, optional
        Type of the target, if not as detected.
    holdout : float, default=0.2
        Fraction of the rows held out.
    delta : float, default=0.05
        Probability that a bound of the certificate is wrong.
    random_state : int, default=0
        Seed of the hold-out and the folds.
    stream : bool, default=False
        Train from scratch files, as for tables larger than memory.
    progress : bool, default=True
        Whether to show a progress bar, on terminals and in notebooks.

    Returns
    -------
    TrainingResult
        With `model`, `certificate`, `verdict`, `leaderboard`, `report(path)`, `save(folder)`.

    Examples
    --------
    >>> import summula
    >>> penguins = summula.datasets.load("penguins")
    >>> result = summula.train(penguins, "species", models=["logistic"], time=600)
    >>> result.model.predict(penguins.slice(0, 2)).tolist()
    ['Adelie', 'Adelie']
    >>> result.certificate.upper < result.baseline
    True
    """
    command = _command(locals())
    request = Request(
        target=_column_name("target", target),
        time=_seconds(time),
        models=[models] if isinstance(models, str) else None if models is None else list(models),
        metric=metric,
        costs=costs,
        delta=delta,
        seed=_seed(random_state),
        task=task,
        holdout=holdout,
        groups=None if groups is None else _column_name("groups", groups),
        time_column=None if time_column is None else _column_name("time_column", time_column),
        class_weight=class_weight,
        drop=(drop,) if isinstance(drop, str) else tuple(drop),
        stream=stream,
        command=command,
    )
    listener = _PythonListener(progress)
    table = open_data(data, listener.remark)
    return run(request, check_request(request, table), listener)


def _seed(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, Integral) or not 0 <= int(given) < 2**32:
        raise ParameterError(f"random_state must be an int from 0 to {2**32 - 1}; got {given!r}.")
    return int(given)


def _seconds(given: Any) -> float:
    if not isinstance(given, Real) or not float(given) > 0:
        raise ParameterError(f"time must be a positive number of seconds, such as 60; got {given!r}.")
    return float(given)


def _column_name(option: str, given: Any) -> str:
    """Return the name of a column; names in pandas may be integers."""
    if isinstance(given, str | Integral):
        return str(given)
    raise ParameterError(
        f"{option} is a {type(given).__name__}; give the name of a column (add the values to the data as one first)."
    )


def _command(given: dict[str, Any]) -> str:
    """Return the call as text, without default arguments, and with data and costs by name."""
    target = given["target"]
    parts = [f"summula.train(data, {target!r}" if isinstance(target, str | Integral) else "summula.train(data, target"]
    for name, parameter in inspect.signature(train).parameters.items():
        default, value = parameter.default, given[name]
        plain = isinstance(value, str | int | float | tuple)
        if default is inspect.Parameter.empty or value is default or (plain and value == default):
            continue
        parts.append("costs=costs" if name == "costs" else f"{name}={value!r}")
    return ", ".join(parts) + ")"


class _PythonListener:
    """Logs remarks, and shows progress on terminals and in notebooks."""

    def __init__(self, progress: bool) -> None:
        self._progress = progress

    def remark(self, text: str) -> None:
        """Log a remark."""
        logger.info("%s", text)

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[int, str, int], None]]:
        """Show a progress bar on a terminal or in a notebook, if rich is installed."""
        moves = self._progress and (sys.stderr.isatty() or _in_notebook())
        try:
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            moves = False
        if not moves:
            yield lambda number, name, done: logger.debug("fold %d: %s", number + 1, name)
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, transient=True) as bar:
            task = bar.add_task("starting", total=total)
            yield lambda number, name, done: bar.update(task, description=f"fold {number + 1}: {name}", completed=done)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"
