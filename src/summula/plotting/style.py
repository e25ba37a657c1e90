"""The one look of all pictures: colours, markers, axes. Nothing global is changed.

The colours are those of Okabe and Ito (2008), told apart with every common kind of colour blindness. They begin with a
dark and a light one, and classes differ in their markers too, so that a grey print can be read.
"""

from __future__ import annotations

from typing import Any

__all__ = ["GREY", "INK", "axes", "check_installed", "colour", "dress", "keyed", "marker"]

INK = "#222222"
GREY = "#767676"

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # as many as share no divisor with the colours: pairs repeat after 56
_TEXT = 9.0
_SMALL = 8.0

# Documentation shared by the functions that plot: see `summula.core.docstrings`.
AXES = """
Parameters
----------
ax : matplotlib Axes, optional
    Axes to plot on; by default new ones.

Returns
-------
matplotlib Axes
"""


def colour(k: int) -> str:
    """Return the colour of the k-th class or line."""
    return _COLOURS[k % len(_COLOURS)]


def marker(k: int) -> str:
    """Return the marker of the k-th class or line."""
    return _MARKERS[k % len(_MARKERS)]


def check_installed() -> None:
    """Raise if matplotlib is not installed, before any work is done."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise ModuleNotFoundError(
            "Plots need matplotlib, which is not installed: pip install matplotlib.", name="matplotlib"
        ) from None


def axes(ax: Any = None) -> Any:
    """Return the given axes, or new ones in a new figure."""
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(5.0, 3.75), layout="constrained")[1] if ax is None else ax


def dress(ax: Any, across: str, up: str, title: str = "") -> None:
    """Label the axes and apply the common style."""
    ax.set_xlabel(across, fontsize=_TEXT, color=INK)
    ax.set_ylabel(up, fontsize=_TEXT, color=INK)
    if title:
        ax.set_title(title, fontsize=_SMALL, color=GREY)
    ax.tick_params(which="both", labelsize=_SMALL, color=GREY, labelcolor=INK)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)


def keyed(ax: Any, handles: Any = None, title: str | None = None, corner: str = "upper right") -> None:
    """Add a legend of the artists given, or of all that have a label."""
    # In a fixed corner, since searching for the best location is slow with many points.
    options = {"loc": corner, "fontsize": _SMALL, "title_fontsize": _SMALL, "framealpha": 0.9, "title": title}
    legend = ax.legend(**options) if handles is None else ax.legend(handles=handles, **options)
    legend.get_frame().set_edgecolor(GREY)
    legend.get_frame().set_linewidth(0.5)
