"""Output of commands: results on standard output, progress and remarks on standard error.

With `--json` the output is one JSON document; with `--quiet` there are no remarks and no tables. Colours and a progress
bar are shown only on terminals.

Column names, labels, cells and file names come from untrusted sources: control characters in them (escape sequences,
line breaks, bidirectional overrides, invisible characters) could recolour, erase or forge what a terminal shows. All
output passes through `printable`, which writes them as escapes.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from summula.core.data.printable import printable, with_escapes

__all__ = ["Console"]


class Console:
    """Output of a command: standard output, standard error, verbosity."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet
        self._told: set[int] = set()

    def remark(self, text: str) -> None:
        """Print a remark on standard error, unless `--quiet`."""
        if not self.quiet:
            _write_line(sys.stderr, text)

    def report_compilation(self) -> None:
        """Print a remark while kernels are compiled, which happens once per machine."""
        logger = logging.getLogger("summula.compile")
        logger.setLevel(logging.INFO)
        logger.handlers[:] = [_Remarks(self)]

    def error(self, sentence: str) -> None:
        """Print an error message."""
        _write_line(sys.stderr, f"Error: {sentence}")

    def result(self, text: str) -> None:
        """Print the result."""
        if not self.as_json:
            _write_line(sys.stdout, text)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the result as JSON, if --json is given; invisible characters become JSON escapes."""
        if self.as_json:
            text = json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)
            sys.stdout.write(with_escapes(text, lambda character: json.dumps(character)[1:-1], lines=True) + "\n")

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a small table with right-aligned numbers."""
        if self.as_json or self.quiet:
            return
        from rich import box
        from rich.console import Console as Rich
        from rich.table import Table

        drawn = Table(title=printable(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for j, name in enumerate(columns):
            numbers = all(isinstance(row[j], int | float) for row in rows)
            drawn.add_column(printable(name), justify="right" if numbers else "left", overflow="fold")
        for row in rows:
            drawn.add_row(*(printable(shown(value)) for value in row))
        # (A pipe has no width: lines are not wrapped.)
        wide = {} if sys.stdout.isatty() else {"width": 160}
        Rich(file=sys.stdout, highlight=False, markup=False, emoji=False, **wide).print(drawn)  # type: ignore[arg-type]

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[int, str, int], None]]:
        """Yield a function of the current fold and model, and the number of completed steps.

        It moves on a terminal; elsewhere there is a line for each model in the first fold, and for each further fold.
        """
        if self.quiet or self.as_json:
            yield lambda number, name, done: None
            return
        if not sys.stderr.isatty():
            yield self._tell
            return
        from rich.console import Console as Rich
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Rich(file=sys.stderr), transient=True) as bar:
            task = bar.add_task("starting", total=total)
            yield lambda number, name, done: bar.update(task, description=f"fold {number + 1}: {name}", completed=done)

    def _tell(self, number: int, name: str, done: int) -> None:
        if not number:
            self.remark(f"Fold 1: {name}.")
        elif number not in self._told:
            self.remark(f"Fold {number + 1}.")
        self._told.add(number)


class _Remarks(logging.Handler):
    """Prints log messages."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.remark(record.getMessage())


def _write_line(stream: TextIO, text: str) -> None:
    stream.write(printable(text) + "\n")
    stream.flush()


def shown(value: Any) -> str:
    """Format a table cell."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def plain(value: Any) -> Any:
    """Convert a value to JSON types; non-finite numbers become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
