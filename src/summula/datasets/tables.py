"""The data sets of the package by name, with their contents, sources and licences.

penguins       344 penguins of three species: islands, bills, flippers, mass, sex. Some values are missing. CC0 1.0;
               Gorman, Williams, Fraser (2014), PLoS ONE 9(3), e90081; Palmer Station LTER, by way of palmerpenguins.
election       944 answers to the American National Election Study of 1996: places on the scale from liberal to
               conservative, party, age, education, income, and the expected vote. Public domain.
doctor_visits  2,019 person-years of the RAND Health Insurance Experiment (every tenth of Cameron and Trivedi's table):
               how often people saw a doctor, and how they were insured. Public domain.
longley        16 years of United States employment and six economic series. Public domain; NIST.
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from typing import Any, NamedTuple

from summula.core.errors import ParameterError

__all__ = ["TABLES", "Described", "load"]


class Described(NamedTuple):
    """Description of a table: the usual target, its licence and its source."""

    target: str
    licence: str
    source: str


TABLES = {
    "penguins": Described("species", "CC0 1.0", "Gorman, Williams, Fraser (2014), PLoS ONE 9(3), e90081"),
    "election": Described("vote", "public domain", "American National Election Studies (1996)"),
    "doctor_visits": Described("visits", "public domain", "RAND Health Insurance Experiment, 1974-1982"),
    "longley": Described("employed", "public domain", "Longley (1967), JASA 62; NIST Statistical Reference Datasets"),
}


def load(name: str) -> Any:
    """Load a small real data set as a pyarrow Table, including the target.

    Parameters
    ----------
    name : {"penguins", "election", "doctor_visits", "longley"}
        `summula.datasets.TABLES` describes each, with its source and licence.

    Returns
    -------
    pyarrow.Table

    Examples
    --------
    >>> from summula.datasets import TABLES, load
    >>> penguins = load("penguins")
    >>> penguins.shape, TABLES["penguins"].target, TABLES["penguins"].licence
    ((344, 8), 'species', 'CC0 1.0')
    """
    if name not in TABLES:
        near = difflib.get_close_matches(str(name), TABLES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, TABLES))}."
        raise ParameterError(f"There is no table {name!r}; {hint}")
    import io

    from pyarrow import csv

    content = files("summula.datasets").joinpath(f"{name}.csv").read_bytes()
    return csv.read_csv(io.BytesIO(content), convert_options=csv.ConvertOptions(strings_can_be_null=True))
