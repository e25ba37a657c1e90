"""The common style of all plots: colours, markers, axes. No global setting is changed.

The colours are those of Okabe and Ito (2008), distinguishable with every common form of colour blindness. They begin
with a dark and a light one, and classes also differ in their markers, so that plots can be printed in grey.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    *("GREY", "INK", "axes", "legend_outside", "check_installed", "colour", "colour_bar", "dress", "key_text", "keyed"),
    "marker",
]

INK = "#222222"
GREY = "#767676"

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # their number is coprime to that of the colours: pairs repeat after 56
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

    if ax is not None:
        return ax
    # White, since lines and texts are dark in any style.
    look: dict[str, Any] = {"figsize": (5.0, 3.75), "layout": "constrained", "facecolor": "white"}
    return pyplot.subplots(subplot_kw={"facecolor": "white"}, **look)[1]


def dress(ax: Any, across: str, up: str, title: str = "") -> None:
    """Label the axes and apply the common style."""
    # Dollar signs in column names do not start formulas.
    ax.set_xlabel(across, fontsize=_TEXT, color=INK, parse_math=False)
    ax.set_ylabel(up, fontsize=_TEXT, color=INK, parse_math=False)
    if title:
        ax.set_title(title, fontsize=_SMALL, color=GREY, parse_math=False)
    ax.tick_params(which="both", labelsize=_SMALL, color=GREY, labelcolor=INK)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(GREY)


def key_text(name: Any) -> str:
    """Return the text of a legend entry; matplotlib omits those that begin with an underscore."""
    text = str(name)
    return f" {text}" if text.startswith("_") else text


def keyed(
    ax: Any, handles: Any = None, title: str | None = None, corner: str = "upper right", columns: int = 1
) -> None:
    """Add a legend of the artists given, or of all that have a label."""
    # In a fixed corner, since searching for the best location is slow with many points.
    options: dict[str, Any] = {
        "loc": corner,
        "fontsize": _SMALL,
        "title_fontsize": _SMALL,
        "framealpha": 0.9,
        "title": title,
    }
    options |= {"ncols": columns, "facecolor": "white", "labelcolor": INK}
    legend = ax.legend(**options) if handles is None else ax.legend(handles=handles, **options)
    legend.get_frame().set_edgecolor(GREY)
    legend.get_frame().set_linewidth(0.5)
    legend.get_title().set_color(INK)
    for text in (*legend.get_texts(), legend.get_title()):
        text.set_parse_math(False)


def legend_outside(ax: Any) -> None:
    """Move the legend to the right of the axes."""
    legend = ax.get_legend()
    if legend is not None:
        legend.set_loc("upper left")
        legend.set_bbox_to_anchor((1.0, 1.0))


def colour_bar(ax: Any, image: Any, label: str) -> None:
    """Add a colour bar in the common style."""
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
    bar.set_label(label, fontsize=_TEXT, color=INK)
    bar.ax.tick_params(labelsize=_SMALL, color=GREY, labelcolor=INK)
    bar.outline.set_visible(False)
