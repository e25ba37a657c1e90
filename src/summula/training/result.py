"""Result of a training run."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.core.data.output import spreadsheet_safe
from summula.preprocessing import TableModel
from summula.training.comparison.leaderboard import Leaderboard
from summula.training.comparison.linear_fits import LinearFit
from summula.training.comparison.metrics import Metric
from summula.training.data.target import Task
from summula.training.request import Request
from summula.training.verdicts import verdict

__all__ = ["RESULT_NAMES", "WARNING", "TrainingResult"]

Array = NDArray[Any]

RESULT_NAMES = ("model.summula", "report.html", "leaderboard.csv", "certificate.json")  # files of a results folder
WARNING = "Warning: "  # prefix of remarks that the report shows first


@dataclass(frozen=True)
class Labelled:
    """Rows of the table in memory and their targets; only the first if there are very many."""

    X: Any
    y: Array

    def head(self, rows: int) -> Labelled:
        """Return the first rows."""
        return Labelled(self.X.slice(0, rows), self.y[:rows])


@dataclass
class TrainingResult:
    """A trained model with its certificate and report.

    Attributes
    ----------
    model : TableModel
        The best candidate, fitted to all training rows; `predict` and `predict_proba` accept raw frames.
    certificate : RiskCertificate
        Bounds on the true risk of the model, from the held-out rows.
    baseline : float
        The risk of always predicting the most frequent class (with costs the cheapest), or the mean, on the held-out
        rows.
    beats_baseline : bool
        Whether the held-out rows show, at the confidence of the certificate, that the model is better than that.
    leaks : dict of str to str
        Columns that look like target leakage, with the evidence.
    remarks : list of str
        Remarks on the table.
    metric : str
        Metric of the comparison.
    n_rows, n_training : int
        Number of rows in the table, and of training rows.
    seconds : float
    interrupted : bool
        Whether Ctrl-C ended the comparison early.
    """

    model: TableModel
    certificate: Any
    baseline: float
    beats_baseline: bool
    leaks: dict[str, str]
    remarks: list[str]
    n_rows: int
    n_training: int
    seconds: float
    _board: Leaderboard = field(repr=False)
    _request: Request = field(repr=False)
    _task: Task = field(repr=False)
    _table: str = field(repr=False)
    _sums: dict[str, Any] = field(repr=False)
    _holdout: Labelled = field(repr=False)
    _sample: Labelled = field(repr=False)
    _linear: LinearFit | None = field(repr=False)
    _finished: str = field(repr=False)
    _versions: dict[str, str] = field(repr=False)
    _streamed: bool = field(repr=False, default=False)
    _encoded_holdout: Array | None = field(repr=False, default=None)  # `_holdout.X` encoded by the model's encoder

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        return verdict(self)

    @property
    def metric(self) -> str:
        """Metric of the comparison."""
        return self._metric.name

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the comparison early."""
        return self._board.interrupted

    @property
    def _metric(self) -> Metric:
        return self._board.metric

    @property
    def leaderboard(self) -> Any:
        """All candidates, best first: a pandas frame, or a pyarrow Table if pandas is not installed."""
        rows = self._board.rows()
        try:
            import pandas as pd
        except ImportError:
            import pyarrow as pa

            return pa.Table.from_pylist(rows)
        return pd.DataFrame(rows).astype({"rank": "Int64"})

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a self-contained HTML file.

        Parameters
        ----------
        path : path
            An existing file is replaced once the new one is complete.
        """
        from summula.core.data.output import check_folder
        from summula.core.errors import OutputError
        from summula.training.results_folder import write_whole

        check_folder(path)
        if os.path.isdir(path):
            raise OutputError(f"{os.fspath(path)} is a folder; give the name of a file, such as report.html.")
        write_whole(os.fspath(path), self._page())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write model.summula, report.html, leaderboard.csv and certificate.json to a folder, all or none.

        Parameters
        ----------
        folder : path
            Created if it does not exist. Results of an earlier run are replaced.
        """
        from summula.training.results_folder import exclusive, output_folder

        place = output_folder(os.fspath(folder))
        with exclusive(place):
            self._write(place)

    def _write(self, folder: str) -> None:
        """Write all results; the caller has locked the folder."""
        import summula
        from summula.training.results_folder import write_together, write_whole

        # All content is computed before anything is written.
        page, board, certificate = self._page(), _as_csv(self._board.rows()), self.certificate.to_json() + "\n"
        writers = (
            lambda path: summula.save(self.model, path),
            lambda path: write_whole(path, page),
            lambda path: write_whole(path, board),
            lambda path: write_whole(path, certificate),
        )
        write_together(folder, dict(zip(RESULT_NAMES, writers, strict=True)))

    def _page(self) -> str:
        from summula.core.data.printable import printable
        from summula.report import render
        from summula.training.reporting import content_of

        return printable(render(content_of(self)), lines=True)

    def __repr__(self) -> str:
        return f"TrainingResult: {self.verdict}"

    def _repr_html_(self) -> str:
        """HTML representation for notebooks."""
        rows = self._board.rows()
        names = list(rows[0])
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in names) + "</tr>" for row in rows
        )
        warnings = "".join(f"<p><b>Warning:</b> {html.escape(one)}</p>" for one in self.remarks if "leakage" in one)
        return f"<p><b>{html.escape(self.verdict)}</b></p>{warnings}<table><tr>{head}</tr>{body}</table>"


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _as_csv(rows: list[dict[str, Any]]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _csv_cell(value) for key, value in row.items()})
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return spreadsheet_safe(value)
    if value is None or value != value:
        return ""
    return float(value) if isinstance(value, np.floating) else value
