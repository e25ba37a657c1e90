"""`summula cluster`: k-means on the encoded columns of a table."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.cli.console import Console
from summula.cli.predicting import check_output, files_of
from summula.cluster import KMeans
from summula.core.data.frames import no_such_column
from summula.core.data.output import write_batches
from summula.core.data.readers.opening import Reading, shown_name
from summula.core.errors import DataError, OutputError, ParameterError
from summula.preprocessing import TableEncoder
from summula.report import Content, Figure, Table, render
from summula.report.charts import Line, Scale, bars, lines, points
from summula.training.data.row_numbers import located_in
from summula.training.data.tables import open_table, read_table
from summula.training.pipeline import versions
from summula.training.results_folder import write_whole

__all__ = ["ClusterRequest", "cluster_file"]

Array = NDArray[Any]

_UNITS = "Numbers are in standard deviations about their mean; indicators are fractions of the rows of a cluster."
_STARTS = 5
_SHOWN = 20  # columns of the table of centres


class ClusterRequest(NamedTuple):
    """Options of the command line."""

    tables: list[str]
    reading: Reading
    k: int | None
    select: bool
    out: str
    report: str | None
    seed: int
    drop: tuple[str, ...]
    force: bool
    command: str


class Clustered(NamedTuple):
    """Encoded rows, and the model."""

    X: Array
    names: list[str]
    model: KMeans
    silhouette: float


def cluster_file(request: ClusterRequest, console: Console) -> None:
    """Cluster a table, write labels and report, and print a summary."""
    if (request.k is None) == (not request.select):
        raise ParameterError("Pass either the number of clusters (--k 5) or --select, which chooses it.")
    table = open_table(request.tables, console.remark, request.reading)
    report = _checked_report(request, files_of(table))
    for name in request.drop:
        if name not in table.columns:
            raise DataError(no_such_column(name, table.columns))
    with located_in(table):
        rows = read_table(table, [name for name in table.columns if name not in request.drop])
        if rows.num_rows < (least := 3 if request.select else 2):
            what = "--select" if request.select else "Clustering"
            raise DataError(f"{what} needs at least {least} rows, and the table has {rows.num_rows}; add some.")
        if request.k is not None and request.k > rows.num_rows:
            raise ParameterError(f"--k {request.k} is more than the {rows.num_rows} rows of the table; give fewer.")
        found = _clustered(request, rows)
    write_batches([found.model.labels_], ("cluster",), request.out)
    write_whole(report, render(_content(request, found)))
    sizes = np.bincount(found.model.labels_, minlength=found.model.n_clusters).tolist()
    console.table("Clusters", ["cluster", "rows"], [[a, n] for a, n in enumerate(sizes)])
    console.result(f"{_sentence(found)} The labels are in {request.out}, the report in {report}.")
    console.document(
        {
            "clusters": int(found.model.n_clusters),
            "rows": sizes,
            "inertia": found.model.inertia_,
            "lower bound": found.model.certificate_.dual,
            "silhouette": found.silhouette,
            "labels": request.out,
            "report": report,
        }
    )


def _checked_report(request: ClusterRequest, inputs: list[str]) -> str:
    """Return the name of the report; raise if it or the labels would overwrite another file, or each other."""
    report = os.path.splitext(request.out)[0] + ".html" if request.report is None else request.report
    if os.path.realpath(report) == os.path.realpath(request.out):
        raise OutputError(f"The labels and the report are both to be written to {report}; pass different names.")
    check_output(request.out, inputs, request.force, "--out")
    check_output(report, inputs, request.force, "--report")
    return report


def _clustered(request: ClusterRequest, rows: Any) -> Clustered:
    encoder = TableEncoder(standardize=True).fit(rows)
    X = np.ascontiguousarray(encoder.transform(rows), np.float64)
    names = [str(name) for name in encoder.get_feature_names_out()]
    model = KMeans(n_init=_STARTS, random_state=request.seed)
    if request.select:
        model = model.select(X, range(2, min(10, len(X) - 1) + 1))
    else:
        model = model.set_params(n_clusters=request.k).fit(X)
    return Clustered(X, names, model, model.silhouette(X))


def _sentence(found: Clustered) -> str:
    model = found.model
    if model.n_clusters == 1:
        return f"{len(found.X):,} rows in 1 cluster: inertia {model.inertia_:.6g}, the minimum for one centre."
    return (
        f"{len(found.X):,} rows in {model.n_clusters} clusters: inertia {model.inertia_:.6g} (no {model.n_clusters} "
        f"centres have less than {model.certificate_.dual:.6g}), mean silhouette {found.silhouette:.3f}."
    )


def _content(request: ClusterRequest, found: Clustered) -> Content:
    model, name = found.model, shown_name(request.tables)
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    names = [f"cluster {a}" for a in range(model.n_clusters)]
    spread = model.cluster_centers_.std(axis=0)
    shown = np.argsort(-spread, kind="stable")[:_SHOWN]
    centres = [[found.names[j], *model.cluster_centers_[:, j].tolist()] for j in shown]
    about = found.X - found.X.mean(axis=0)
    axes = np.linalg.svd(about, full_matrices=False)[2][:2]
    passes = np.arange(1.0, len(model.trace_) + 1)
    sections: list[tuple[str, list[Figure | Table]]] = [
        (
            "Clusters",
            [
                Figure("Rows", bars(names, sizes.tolist(), "rows of each cluster")),
                Table("Centres", ["column", *names], centres, _UNITS),
            ],
        ),
        (
            "The fit",
            [
                Figure(
                    "Inertia of each pass",
                    lines(
                        [Line("inertia", passes, np.array(model.trace_))], Scale("pass"), Scale("inertia"), dots=True
                    ),
                )
            ],
        ),
    ]
    if len(axes) == 2:
        first, second = (about @ axes.T).T
        drawn = Figure(
            "Rows on two axes",
            points(first, second, "first", "second", groups=model.labels_, names=names),
            "Along the directions of largest variance; colours are clusters.",
        )
        sections[0][1].append(drawn)
    if hasattr(model, "selection_"):
        sections.append(("Number of clusters", _selection(model)))
    return Content(
        title=f"{name}: {model.n_clusters} clusters",
        verdict=_sentence(found),
        promises=["The inertia is a local minimum, the best of several starts; the lower bound holds for any centres."],
        facts=[
            ("table", shown_name(request.tables)),
            ("rows", f"{len(found.X):,}"),
            ("columns", f"{len(found.names):,}"),
        ],
        sections=sections,
        command=request.command,
        versions=versions(),
    )


def _selection(model: KMeans) -> list[Figure | Table]:
    k = np.array(sorted(model.selection_), np.float64)
    inertia, silhouette = (np.array([model.selection_[int(one)][j] for one in k]) for j in range(2))
    rows = [[int(a), float(b), float(c)] for a, b, c in zip(k, inertia, silhouette, strict=True)]
    return [
        Figure("Inertia", lines([Line("inertia", k, inertia)], Scale("clusters"), Scale("inertia"), dots=True)),
        Figure(
            "Silhouette",
            lines([Line("silhouette", k, silhouette)], Scale("clusters"), Scale("mean silhouette"), dots=True),
        ),
        Table("", ["clusters", "inertia", "silhouette"], rows, "The silhouette is the mean over a sample of rows."),
    ]
