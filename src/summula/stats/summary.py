"""The coefficient table returned by `summary()` of a model.

One row per term, starting with the intercept; for several targets the rows of the first target, then those of the
next. It prints as plain text, renders as HTML in notebooks, and `to_frame()` converts it to a data frame.
"""

from __future__ import annotations

import html
import importlib
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SUMMARY_DOCS", "Summary", "number_text", "text_table"]

Array = NDArray[np.float64]

# Documentation of the parameters of `summary` that all models share.
SUMMARY_DOCS = """
Parameters
----------
X, y, sample_weight : optional
    Training data, needed for all but classical errors if the model no longer has access to them (it keeps small data,
    and a reference to large data while the caller keeps them; loaded models have none).
groups : array-like of shape (n_samples,), or name of a column of X, optional
    Groups within which rows may be dependent, for cov="cluster".
weights : {"frequency", "precision"}
    Interpretation of `sample_weight`: number of repetitions of a row, or inverse variance.
level : float
    Confidence level of the intervals.
"""

_LABELS = {
    "n": "rows",
    "df_model": "model df",
    "df_residual": "residual df",
    "r2": "R2",
    "adjusted_r2": "adjusted R2",
    "residual_sd": "residual SD",
    "log_likelihood": "log-likelihood",
    "aic": "AIC",
    "bic": "BIC",
    "pearson_chi2": "Pearson chi2",
    "pseudo_r2": "pseudo R2",
}
# Statistics that are printed together with their p-values.
_TESTS = {"f_statistic": ("F (p)", "f_p_value"), "lr_statistic": ("LR chi2 (p)", "lr_p_value")}
_HEAD, _TAIL = 30, 10  # number of leading and trailing rows printed of a long table
_TARGETS = 10  # maximum number of targets printed
_NAME_WIDTH = 40  # maximum number of characters of a name that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Estimates with standard errors, tests and confidence intervals, and statistics of the fit.

    Every entry of `facts` is also an attribute: `summary.r2`.

    Attributes
    ----------
    title : str
        One-line description of the model.
    terms : tuple of str
        Term of each row, "intercept" first.
    targets : tuple of str or None
        Target of each row if there are several targets, else None.
    estimate, std_error, statistic, p_value, ci_low, ci_high : ndarray
        One value per row; NaN if undefined.
    facts : mapping
        Statistics of the fit (`n`, `df_residual`, `r2`, ...); arrays with one value per target if there are several.
    notes : tuple of str
        Remarks on how the values were computed.
    statistic_name : str
        Name of the test statistic: "t" or "z".
    level : float
        Level of the confidence intervals.
    frame_library : str or None
        Library of the frame the model was fitted on: "pandas", "polars", "pyarrow" or None.

    Examples
    --------
    >>> import numpy as np
    >>> from summula.stats.summary import Summary
    >>> column = np.array([2.0, 0.5])
    >>> s = Summary("Ridge: 9 rows", ("intercept", "age"), None, *[column] * 6, facts={"n": 9, "r2": 0.75})
    >>> s.r2
    0.75
    >>> s.to_frame().columns.tolist()
    ['term', 'estimate', 'std_error', 'statistic', 'p_value', 'ci_low', 'ci_high']
    """

    title: str
    terms: tuple[str, ...]
    targets: tuple[str, ...] | None
    estimate: Array
    std_error: Array
    statistic: Array
    p_value: Array
    ci_low: Array
    ci_high: Array
    facts: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    statistic_name: str = "t"
    level: float = 0.95
    frame_library: str | None = None

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes; `facts` itself may be missing during copy and unpickling.
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"Summary has no attribute '{name}'; its facts are: {', '.join(facts) or 'none'}.")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.facts]

    def __len__(self) -> int:
        return len(self.terms)

    def __str__(self) -> str:
        blocks = [[self.title], _two_columns(self._fact_cells()), text_table(self._target_table(), names=1)]
        table = text_table(self._rows(), names=1 if self.targets is None else 2, hidden=self._hidden())
        blocks += [table, list(self.notes)]
        return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = "".join(f"<tr>{_td(label, 'left')}{_td(value)}</tr>" for label, value in self._fact_cells())
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"<div><p><b>{html.escape(self.title)}</b></p>"
            + (f"<table>{facts}</table>" if facts else "")
            + _html_table(self._target_table(), names=1)
            + _html_table(self._rows(), names=1 if self.targets is None else 2, hidden=self._hidden())
            + f"{notes}</div>"
        )

    def to_frame(self) -> Any:
        """Return a data frame with one row per term.

        Returns
        -------
        frame : DataFrame or Table
            A pandas DataFrame if pandas is installed, else a frame of the library of the training data, else a pyarrow
            Table. Columns: term, estimate, std_error, statistic, p_value, ci_low, ci_high, preceded by `target` if
            there are several targets.
        """
        import narwhals

        columns: dict[str, Any] = {} if self.targets is None else {"target": list(self.targets)}
        columns["term"] = list(self.terms)
        for name in ("estimate", "std_error", "statistic", "p_value", "ci_low", "ci_high"):
            columns[name] = np.asarray(getattr(self, name), dtype=np.float64)
        libraries: list[Any] = ["pandas", self.frame_library or "pyarrow", "pyarrow"]
        library = next(filter(_is_importable, libraries))
        return narwhals.from_dict(columns, backend=library).to_native()

    def _hidden(self) -> int:
        return len(self.terms) - _HEAD - _TAIL if len(self.terms) > _HEAD + _TAIL + 1 else 0

    def _rows(self) -> list[list[str]]:
        """Return the cells of the coefficient table, headings first, without the hidden rows."""
        low = (1 - self.level) / 2
        heads = ["term", "estimate", "std error", self.statistic_name, "p", f"[{low:.4g}", f"{1 - low:.4g}]"]
        shown = list(range(len(self.terms)))
        if self._hidden():
            shown = shown[:_HEAD] + shown[-_TAIL:]
        rows = [heads if self.targets is None else ["target", *heads]]
        before = None
        for i in shown:
            numbers = [self.estimate[i], self.std_error[i], self.statistic[i]]
            cells = [number_text(x) for x in numbers]
            cells += [number_text(self.p_value[i], 3), number_text(self.ci_low[i]), number_text(self.ci_high[i])]
            cells.insert(0, _name(self.terms[i]))
            if self.targets is not None:
                cells.insert(0, "" if self.targets[i] == before else _name(self.targets[i]))
                before = self.targets[i]
            rows.append(cells)
        return rows

    def _facts_shown(self) -> Iterator[tuple[str, Any, Any]]:
        """Yield label, value and associated p-value of each fact."""
        p_values = {p_value for key, (_, p_value) in _TESTS.items() if key in self.facts}
        for key, value in self.facts.items():
            if key in p_values:
                continue
            if key in _TESTS:
                label, p_value = _TESTS[key]
                yield label, value, self.facts.get(p_value)
            else:
                yield _LABELS.get(key, key.replace("_", " ")), value, None

    def _fact_cells(self) -> list[tuple[str, str]]:
        """Return label and text of the facts that do not have one value per target."""
        names = self._target_names()
        return [(k, _fact(v, p)) for k, v, p in self._facts_shown() if not _is_column(v, names)]

    def _target_table(self) -> list[list[str]]:
        """Return the table of facts with one value per target: one row per target, headings first."""
        names = self._target_names()
        columns = [fact for fact in self._facts_shown() if _is_column(fact[1], names)]
        if not columns:
            return []
        rows = [["target", *(label for label, _, _ in columns)]]
        for j, name in enumerate(names[:_TARGETS]):
            row = [_fact(v[j], None if p is None else np.broadcast_to(p, len(names))[j]) for _, v, p in columns]
            rows.append([_name(name), *row])
        if len(names) > _TARGETS:
            rows.append([f"… {len(names) - _TARGETS:,} more", *[""] * len(columns)])
        return rows

    def _target_names(self) -> list[str]:
        return [] if self.targets is None else list(dict.fromkeys(self.targets))


def _is_importable(library: str) -> bool:
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


def _is_column(value: Any, names: Sequence[str]) -> bool:
    return isinstance(value, np.ndarray | list | tuple) and np.shape(value) == (len(names),) and bool(names)


def number_text(x: Any, digits: int = 6) -> str:
    """Format a number with a number of significant digits; "-" for NaN."""
    x = float(x)
    if 1e6 <= abs(x) < 1e10:  # an integer is easier to read than 3.48226e+06
        return f"{x:.0f}"
    return "-" if math.isnan(x) else f"{x:.{digits}g}"


def _fact(value: Any, p_value: Any = None) -> str:
    """Format a fact, with its p-value in brackets."""
    if np.ndim(value) > 0:
        text = ", ".join(_fact(x) for x in np.ravel(value)[:5])
        return text + (", …" if np.size(value) > 5 else "")
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return _name(str(value))
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if not isinstance(value, float | np.floating):
        return _name(str(value))
    text = number_text(value)
    return text if p_value is None or np.ndim(p_value) else f"{text} ({number_text(p_value, 3)})"


def _name(name: str) -> str:
    """Format a name for one line: escape control characters and shorten long names in the middle."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(name))
    if len(text) <= _NAME_WIDTH:
        return text
    half = _NAME_WIDTH // 2
    return f"{text[:half]}…{text[-half + 1 :]}"


def _width(text: str) -> int:
    """Return the display width of a text on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _left(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _right(text: str, width: int) -> str:
    return " " * (width - _width(text)) + text


def _two_columns(cells: Sequence[tuple[str, str]]) -> list[str]:
    """Arrange facts in two columns."""
    half = -(-len(cells) // 2)
    columns = []
    for part in (cells[:half], cells[half:]):
        label = max((_width(key) for key, _ in part), default=0)
        value = max((_width(text) for _, text in part), default=0)
        columns.append([f"{_left(key, label)}  {_right(text, value)}" for key, text in part])
    columns[1] += [""] * (half - len(columns[1]))
    return [f"{a}    {b}" for a, b in zip(*columns, strict=True)]


def _aligned(cells: Sequence[str]) -> list[str]:
    """Pad numbers on the right so that their decimal points are aligned."""
    fractions = []
    for cell in cells:
        point = min((i for i in (cell.find("."), cell.find("e"), cell.find(" (")) if i >= 0), default=len(cell))
        fractions.append(len(cell) - point)
    longest = max(fractions, default=0)
    return [cell + " " * (longest - fraction) for cell, fraction in zip(cells, fractions, strict=True)]


def text_table(rows: Sequence[Sequence[str]], names: int, hidden: int = 0) -> list[str]:
    """Format a table whose first `names` columns are names; the first row contains the headings."""
    if not rows:
        return []
    columns = []
    for j, (head, *cells) in enumerate(zip(*rows, strict=True)):
        texts = [head, *(cells if j < names else _aligned(cells))]
        width = max(map(_width, texts))
        columns.append([_left(t, width) if j < names else _right(t, width) for t in texts])
    lines = ["  ".join(cells) for cells in zip(*columns, strict=True)]
    lines.insert(1, "-" * max(map(_width, lines)))
    if hidden:
        lines.insert(2 + _HEAD, _hidden_line(hidden))
    return lines


def _hidden_line(hidden: int) -> str:
    return f"… {hidden:,} more terms; see to_frame() for all …"


def _td(text: str, align: str = "right", tag: str = "td") -> str:
    return f'<{tag} style="text-align: {align}">{html.escape(text)}</{tag}>'


def _html_table(rows: Sequence[Sequence[str]], names: int, hidden: int = 0) -> str:
    if not rows:
        return ""
    lines = []
    for i, row in enumerate(rows):
        cells = (_td(c, "left" if j < names else "right", "td" if i else "th") for j, c in enumerate(row))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    if hidden:
        lines.insert(1 + _HEAD, f'<tr><td colspan="{len(rows[0])}">{_hidden_line(hidden)}</td></tr>')
    return f"<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>"
