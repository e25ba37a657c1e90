"""The tables and models whose estimates stand in tests/data/glm/references.json: one place for script and tests."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "glm"
REFERENCES = FOLDER / "references.json"

# Public domain: stored here. The others are copyrighted and distributed with statsmodels, from which they are read.
OWN = {"anes96": "anes96.csv", "stackloss": "stackloss.csv"}
OF_STATSMODELS = {
    "scotland": "scotland/scotvote.csv",
    "star98": "star98/star98.csv",
    "spector": "spector/spector.csv",
    "cpunish": "cpunish/cpunish.csv",
    "fair": "fair/fair.csv",
}

Columns = dict[str, Any]


def path(table: str) -> Path | None:
    """Where the file of a table is; None when statsmodels, which has it, is not installed."""
    if table in OWN:
        return FOLDER / OWN[table]
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "datasets" / OF_STATSMODELS[table]


def fingerprint(table: str) -> str:
    """Of the cells as text, with any separator."""
    cells = "\n".join(",".join(row) for row in _rows(table))
    return hashlib.sha256(cells.encode()).hexdigest()


def read(table: str) -> Columns:
    """The columns by name: numbers, or text where they are not."""
    head, *rows = _rows(table)
    columns: Columns = {}
    for name, values in zip(head, zip(*rows, strict=True), strict=True):
        try:
            columns[name] = np.array(values, dtype=float)
        except ValueError:
            columns[name] = np.array(values)
    return columns


def _rows(table: str) -> list[list[str]]:
    where = path(table)
    assert where is not None, "statsmodels is not installed"
    text = where.read_text(encoding="utf-8-sig").replace("\t", ",").replace("'", "").replace('"', "")
    if table == "spector":  # separated by blanks
        text = "\n".join(",".join(line.split()) for line in text.splitlines())
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]


class Model(NamedTuple):
    """What is fitted: columns, target, weights that are numbers of rows, exposure, groups of dependent rows."""

    family: str  # "gamma", "bernoulli", "poisson" or "multinomial"
    link: str
    table: str
    terms: list[str]
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    exposure: np.ndarray | None = None
    groups: np.ndarray | None = None


def _columns(t: Columns, *names: str) -> tuple[list[str], np.ndarray]:
    return list(names), np.column_stack([t[name] for name in names])


def _scotland(link: str) -> Model:
    t = read("scotland")
    names = ("COUTAX", "UNEMPF", "MOR", "ACT", "GDP", "AGE", "COUTAX_FEMALEUNEMP")
    return Model("gamma", link, "scotland", *_columns(t, *names), t["YES"])


def _star98(*, long: bool) -> Model:
    """Shares of pupils above the median, weighted by numbers of pupils; long: a row for either kind of pupil."""
    t = read("star98")
    names, X = _columns(t, *[name for name in t if name not in ("MATHTOT", "PR50M")])
    total, above = t["MATHTOT"], t["PR50M"]
    if not long:
        return Model("bernoulli", "logit", "star98", names, X, above / total, weight=total)
    y = np.repeat([1.0, 0.0], len(X))
    districts = np.tile(np.arange(len(X)), 2)
    weight = np.concatenate([above, total - above])
    return Model("bernoulli", "logit", "star98", names, np.vstack([X, X]), y, weight=weight, groups=districts)


def _spector(link: str) -> Model:
    t = read("spector")
    return Model("bernoulli", link, "spector", *_columns(t, "GPA", "TUCE", "PSI"), t["GRADE"])


def _cpunish(*, exposure: bool) -> Model:
    t = read("cpunish")
    names = ("PERPOVERTY", "PERBLACK", "VC100k96", "SOUTH", "DEGREE")
    if exposure:
        return Model("poisson", "log", "cpunish", *_columns(t, *names), t["EXECUTIONS"], exposure=t["INCOME"])
    return Model("poisson", "log", "cpunish", *_columns(t, "INCOME", *names), t["EXECUTIONS"])


def _fair(family: str) -> Model:
    """Rows are grouped by both occupations together."""
    t = read("fair")
    groups = (10 * t["occupation"] + t["occupation_husb"]).astype(int)
    names = ("age", "yrs_married", "children", "religious", "educ")
    if family == "multinomial":
        return Model(family, "logit", "fair", *_columns(t, *names), t["rate_marriage"].astype(int), groups=groups)
    terms, X = _columns(t, "rate_marriage", *names)
    if family == "poisson":
        return Model(family, "log", "fair", terms, X, t["affairs"], groups=groups)
    return Model(family, "logit", "fair", terms, X, (t["affairs"] > 0).astype(float), groups=groups)


def _anes96(family: str) -> Model:
    t = read("anes96")
    t["logpopul"] = np.log(t["popul"] + 0.1)
    if family == "multinomial":
        names = ("logpopul", "selfLR", "age", "educ", "income")
        return Model(family, "logit", "anes96", *_columns(t, *names), t["PID"].astype(int))
    groups = t["educ"].astype(int)
    if family == "poisson":
        names = ("logpopul", "selfLR", "PID", "age", "income")
        return Model(family, "log", "anes96", *_columns(t, *names), t["TVnews"], groups=groups)
    names = ("logpopul", "TVnews", "selfLR", "ClinLR", "DoleLR", "age", "income")
    return Model(family, "logit", "anes96", *_columns(t, *names), t["vote"], groups=groups)


def _stackloss(link: str) -> Model:
    t = read("stackloss")
    return Model("gamma", link, "stackloss", *_columns(t, "AIRFLOW", "WATERTEMP", "ACIDCONC"), t["STACKLOSS"])


CASES: dict[str, Callable[[], Model]] = {
    "scotland-log": lambda: _scotland("log"),
    "scotland-inverse": lambda: _scotland("inverse"),
    "star98-shares": lambda: _star98(long=False),
    "star98-pupils": lambda: _star98(long=True),
    "spector-logit": lambda: _spector("logit"),
    "spector-probit": lambda: _spector("probit"),
    "cpunish": lambda: _cpunish(exposure=False),
    "cpunish-exposure": lambda: _cpunish(exposure=True),
    "fair-logit": lambda: _fair("bernoulli"),
    "fair-poisson": lambda: _fair("poisson"),
    "fair-multinomial": lambda: _fair("multinomial"),
    "anes96-logit": lambda: _anes96("bernoulli"),
    "anes96-poisson": lambda: _anes96("poisson"),
    "anes96-multinomial": lambda: _anes96("multinomial"),
    "stackloss-log": lambda: _stackloss("log"),
    "stackloss-inverse": lambda: _stackloss("inverse"),
}
