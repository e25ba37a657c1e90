"""Compute the standard errors and intervals of tests/data/dependent_rows.json with statsmodels.

python -m tests.data.make_dependent_rows
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "dependent_rows.json"
LAGS = (0, 1, 4)


def rows() -> tuple[Any, Any, Any]:
    """Brownlee's stack loss plant, 21 days in order; weeks of five days as groups."""
    table = np.loadtxt(Path(__file__).parent / "glm" / "stackloss.csv", delimiter=",", skiprows=1)
    return table[:, 1:], table[:, 0], np.arange(21) // 5


def main() -> None:
    """Write the file."""
    import statsmodels.api as sm

    X, y, week = rows()
    fit = sm.OLS(y, sm.add_constant(X)).fit()
    cluster = fit.get_robustcov_results("cluster", groups=week)
    test = cluster.wald_test(np.eye(4)[1:], use_f=True, scalar=True)
    series = {str(lags): fit.get_robustcov_results("HAC", maxlags=lags).bse.tolist() for lags in LAGS}
    predicted = fit.get_prediction(sm.add_constant(X[:3] + 1.0)).summary_frame(alpha=0.1)
    found = {
        "statsmodels": version("statsmodels"),
        "cluster": {"bse": cluster.bse.tolist(), "p": cluster.pvalues.tolist(), "f_p": float(test.pvalue)},
        "HAC": series,
        "interval": predicted[["mean", "obs_ci_lower", "obs_ci_upper"]].to_numpy().tolist(),
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
