"""Fit a small table, print what is known about the fit, and draw it: `python examples/demo.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import narwhals as nw
import numpy as np

from summula.datasets import longley
from summula.linear_model import LinearRegression


def main() -> None:
    """Run the demonstration."""
    X, y = longley()
    model = LinearRegression().fit(X, y)
    print(model.summary())
    print()
    print(model.certificate_)
    path = Path("demo.png")
    draw(model, X, y, path)
    print(f"\nThe plot is in {path.resolve()}.")


def draw(model, X, y, path: Path) -> None:
    """Draw the confidence intervals of the slopes, and the fitted against the observed values."""
    terms = nw.from_native(model.summary().to_frame(), eager_only=True)[1:]  # the intercept comes first
    names = terms["term"].to_list()
    # In units of the target, for a change of one standard deviation: so unlike columns can be compared.
    deviation = np.array([X[name].to_numpy().std() for name in names])
    estimate, low, high = (terms[name].to_numpy() * deviation for name in ("estimate", "ci_low", "ci_high"))
    fitted = model.predict(X)

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    places = np.arange(len(names))[::-1]
    left.errorbar(estimate, places, xerr=[estimate - low, high - estimate], fmt="o", capsize=4)
    left.axvline(0.0, color="grey", linewidth=1)
    left.set_yticks(places, names)
    left.set_xlabel("effect of one standard deviation, 95 % interval")
    left.set_title("Coefficients")

    ends = [min(y.min(), fitted.min()), max(y.max(), fitted.max())]
    right.plot(ends, ends, color="grey", linewidth=1)
    right.plot(fitted, y, "o")
    right.set_xlabel("fitted")
    right.set_ylabel("observed")
    right.set_title("Observed and fitted")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
