"""Joint tests of terms: columns, or factors with all their levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summula.stats.summary import number_text, text_table

__all__ = ["TermTests"]


@dataclass(frozen=True)
class TermTests:
    """Joint tests of the terms of a model.

    Attributes
    ----------
    kind : {"wald", "likelihood_ratio"}
    terms : tuple of str
        Names of the terms; a factor is one term.
    df : ndarray of int
        Degrees of freedom: number of coefficients of each term.
    statistic, p_value : ndarray
        Test statistics, which have a chi-squared distribution with `df` degrees of freedom if the term has no effect,
        and their p-values.
    """

    kind: str
    terms: tuple[str, ...]
    df: NDArray[np.int64]
    statistic: NDArray[np.float64]
    p_value: NDArray[np.float64]

    def __str__(self) -> str:
        names = {"wald": "Wald tests", "likelihood_ratio": "Likelihood-ratio tests"}
        rows = [["term", "df", "chi2", "p"]]
        for term, df, statistic, p in zip(self.terms, self.df, self.statistic, self.p_value, strict=True):
            rows.append([term, str(df), number_text(statistic), number_text(p, 3)])
        return "\n".join([names[self.kind], *text_table(rows, names=1)])

    def to_frame(self) -> Any:
        """Return a data frame with one row per term (pandas if it is installed, else pyarrow)."""
        import importlib.util

        import narwhals

        columns = {"term": list(self.terms), "df": self.df, "statistic": self.statistic, "p_value": self.p_value}
        library: Any = "pandas" if importlib.util.find_spec("pandas") else "pyarrow"
        return narwhals.from_dict(columns, backend=library).to_native()
