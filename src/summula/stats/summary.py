"""The coefficient table: what `summary()` of a model returns.

One row for each term, the intercept first; for several targets the rows of the first target, then those of
the next. It prints as plain text, renders as HTML in notebooks, and `to_frame()` gives a data frame.
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

__all__ = ["Summary"]

Array = NDArray[np.float64]

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
# Statistics that are shown with their p-values beside them.
_TESTS = {"f_statistic": ("F (p)", "f_p_value"), "lr_statistic": ("LR chi2 (p)", "lr_p_value")}
_HEAD, _TAIL = 30, 10  # rows printed of a longer table
_TARGETS = 10  # targets printed in the table of facts
_NAME_WIDTH = 40  # characters of a name that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Estimates with their standard errors, tests and confidence intervals, and facts about the whole fit.

    Every entry of `facts` is also an attribute: `summary.r2`.

    Attributes
    ----------
    title : str
        One line that says what was fitted to what.
    terms : tuple of str
        The term of each row, "intercept" first.
    targets : tuple of str or None
        The target of each row when y has several, else None.
    estimate, std_error, statistic, p_value, ci_low, ci_high : ndarray
        One value for each row; NaN where there is none.
    facts : mapping
        Numbers about the fit (`n`, `df_residual`, `r2`, ...); arrays, one value a target, when y has several.
    notes : tuple of str
        Sentences about how the numbers were computed.
    statistic_name : str
        The heading of the test statistic: "t" or "z".
    level : float
        The probability content of the confidence intervals.
    frame_library : str or None
        The library of the frame the model was fitted on: "pandas", "polars", "pyarrow" or None.

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
        # Reached only when there is no such attribute; `facts` is not there yet while copy and pickle work.
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"This summary has no '{name}'; its facts are: {', '.join(facts) or 'none'}.")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.facts]

    def __len__(self) -> int:
        return len(self.terms)

    def __str__(self) -> str:
        blocks = [[self.title], _two_columns(self._fact_cells()), _text_table(self._target_table(), names=1)]
        table = _text_table(self._rows(), names=1 if self.targets is None else 2, hidden=self._hidden())
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
        """One row for each term, as a data frame.

        Returns
        -------
        frame : DataFrame or Table
            Of pandas where it is installed, else of the library of the frame the model was fitted on, else of
            pyarrow. Columns: term, estimate, std_error, statistic, p_value, ci_low, ci_high; with several
            targets, `target` comes first.
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
        """The cells of the coefficient table, headings first, without the hidden rows."""
        low = (1 - self.level) / 2
        heads = ["term", "estimate", "std error", self.statistic_name, "p", f"[{low:.4g}", f"{1 - low:.4g}]"]
        shown = list(range(len(self.terms)))
        if self._hidden():
            shown = shown[:_HEAD] + shown[-_TAIL:]
        rows = [heads if self.targets is None else ["target", *heads]]
        before = None
        for i in shown:
            numbers = [self.estimate[i], self.std_error[i], self.statistic[i]]
            cells = [_number(x) for x in numbers]
            cells += [_number(self.p_value[i], 3), _number(self.ci_low[i]), _number(self.ci_high[i])]
            cells.insert(0, _name(self.terms[i]))
            if self.targets is not None:
                cells.insert(0, "" if self.targets[i] == before else _name(self.targets[i]))
                before = self.targets[i]
            rows.append(cells)
        return rows

    def _facts_shown(self) -> Iterator[tuple[str, Any, Any]]:
        """Label, value, and the p-value that stands beside it, of each fact."""
        beside = {p_value for key, (_, p_value) in _TESTS.items() if key in self.facts}
        for key, value in self.facts.items():
            if key in beside:
                continue
            if key in _TESTS:
                label, p_value = _TESTS[key]
                yield label, value, self.facts.get(p_value)
            else:
                yield _LABELS.get(key, key.replace("_", " ")), value, None

    def _fact_cells(self) -> list[tuple[str, str]]:
        """Label and text of the facts that are one number (or anything but one number a target)."""
        names = self._target_names()
        return [(k, _fact(v, p)) for k, v, p in self._facts_shown() if not _is_column(v, names)]

    def _target_table(self) -> list[list[str]]:
        """The facts that are one number a target: a row for each target, headings first."""
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


def _number(x: Any, digits: int = 6) -> str:
    x = float(x)
    if 1e6 <= abs(x) < 1e10:  # a whole number reads better than 3.48226e+06
        return f"{x:.0f}"
    return "-" if math.isnan(x) else f"{x:.{digits}g}"


def _fact(value: Any, p_value: Any = None) -> str:
    """A fact as text, with its p-value in brackets."""
    if np.ndim(value) > 0:
        text = ", ".join(_fact(x) for x in np.ravel(value)[:5])
        return text + (", …" if np.size(value) > 5 else "")
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return _name(str(value))
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if not isinstance(value, float | np.floating):
        return _name(str(value))
    text = _number(value)
    return text if p_value is None or np.ndim(p_value) else f"{text} ({_number(p_value, 3)})"


def _name(name: str) -> str:
    """A name for one line: control characters escaped, the middle of a long one left out."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(name))
    if len(text) <= _NAME_WIDTH:
        return text
    half = _NAME_WIDTH // 2
    return f"{text[:half]}…{text[-half + 1 :]}"


def _width(text: str) -> int:
    """The columns a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


def _left(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _right(text: str, width: int) -> str:
    return " " * (width - _width(text)) + text


def _two_columns(cells: Sequence[tuple[str, str]]) -> list[str]:
    """Facts side by side, down the first column, then down the second."""
    half = -(-len(cells) // 2)
    columns = []
    for part in (cells[:half], cells[half:]):
        label = max((_width(key) for key, _ in part), default=0)
        value = max((_width(text) for _, text in part), default=0)
        columns.append([f"{_left(key, label)}  {_right(text, value)}" for key, text in part])
    columns[1] += [""] * (half - len(columns[1]))
    return [f"{a}    {b}" for a, b in zip(*columns, strict=True)]


def _aligned(cells: Sequence[str]) -> list[str]:
    """Numbers padded on the right so that their decimal points stand in one column."""
    fractions = []
    for cell in cells:
        point = min((i for i in (cell.find("."), cell.find("e"), cell.find(" (")) if i >= 0), default=len(cell))
        fractions.append(len(cell) - point)
    longest = max(fractions, default=0)
    return [cell + " " * (longest - fraction) for cell, fraction in zip(cells, fractions, strict=True)]


def _text_table(rows: Sequence[Sequence[str]], names: int, hidden: int = 0) -> list[str]:
    """Lines of a table whose first `names` columns are names; the first row is the headings."""
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
    return f"… {hidden:,} more terms: to_frame() has them all …"


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
