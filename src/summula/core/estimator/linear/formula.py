"""Formulas: the columns of a model in terms of those of a table, as in `lwage ~ educ + C(region) * exper`.

A formula is a sum of terms, a term a product of factors. A factor is a numeric or categorical column, or an expression
of numeric columns. The columns of a term are all products of the columns of its factors, where a category with the
levels l_0 < ... < l_m has an indicator for each level, except for l_0 if the model contains the term without this
factor (the intercept is the empty term), since its indicator is then redundant (treatment coding).

Formulas are parsed by formulaic. Expressions are evaluated by an interpreter of their syntax trees, so a model file
cannot execute other code, and predictions do not need formulaic.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from summula.core.data.factors import Factors
from summula.core.data.frames import column_numbers, is_category, is_frame, no_such_column, opened
from summula.core.data.numbers import FOR_LABELS, array_of
from summula.core.data.sources import Source
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.linear.factor_columns import LEVEL
from summula.core.estimator.parameters import Allowed
from summula.core.model_files import schema

__all__ = ["TEXT", "Design", "FormulaModel"]

Array = NDArray[Any]

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs", "sign")},
    "I": lambda values: values,
}
TEXT = Allowed(lambda value: isinstance(value, str), "an instance of 'str'")


class _Table:
    """Columns of a frame as numbers or as category codes."""

    def __init__(self, X: Any, name: str) -> None:
        if not is_frame(X):
            raise DataError(
                f"{name} has a formula, which needs a frame in memory (pandas, polars, pyarrow); got "
                f"{type(X).__name__}. For files and Dask collections leave the formula out, and select columns."
            )
        self.frame, self.name = opened(X), name

    def column(self, name: str) -> Any:
        """Return a column as a narwhals series."""
        if name not in self.frame.columns:
            raise DataError(no_such_column(name, self.frame.columns))
        return self.frame[name]

    def is_category(self, name: str) -> bool:
        """Return whether a column is categorical: text, boolean, or of a categorical type."""
        dtype = self.column(name).dtype
        return is_category(dtype) or str(dtype) == "Boolean"

    def numbers(self, name: str, advice: str | None = None) -> Array:
        """Return a column as float64."""
        return column_numbers(self.column(name), self.name, advice).astype(np.float64)


def _category_of(expression: str) -> str | None:
    """Return the column of an expression C(column), else None."""
    if expression.startswith("C(") and expression.endswith(")"):
        return expression[2:-1].strip().strip("`")
    return None


def _value(expression: str, table: _Table, advice: str | None = None) -> Array:
    """Evaluate an expression of numeric columns from its syntax tree."""
    if expression in table.frame.columns:
        return table.numbers(expression, advice)
    try:
        tree = ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise DataError(no_such_column(expression, table.frame.columns)) from None
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(_computed(tree, expression, table), np.float64), len(table.frame)).copy()


def _computed(node: ast.expr, expression: str, table: _Table) -> Any:
    if isinstance(node, ast.Name):
        return table.numbers(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _computed(node.operand, expression, table)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = (_computed(side, expression, table) for side in (node.left, node.right))
        return _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        function = node.func
        plain = function.attr if isinstance(function, ast.Attribute) and _is_numpy(function.value) else None
        name = function.id if isinstance(function, ast.Name) else plain
        if name in _FUNCTIONS:
            return _FUNCTIONS[str(name)](_computed(node.args[0], expression, table))
    raise ParameterError(
        f"The formula has {expression!r}, which is neither a column nor arithmetic of columns with "
        f"{', '.join(_FUNCTIONS)} and C(column): compute the column first, and name it."
    )


def _is_numpy(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "numpy")


@schema.saved(
    "linear_model.Design",
    formula=schema.Text(),
    target=schema.Text() | None,
    terms=schema.Items(schema.Items(schema.Text(), low=1)),
    full=schema.Items(schema.Items(schema.Flag(), low=1)),
    levels=schema.Dict(schema.Text(), schema.Items(LEVEL, low=1)),
)
@dataclass(frozen=True)
class Design:
    """The columns that a formula defines, fitted to a table.

    Attributes
    ----------
    formula : str
    target : str or None
        The left-hand side.
    terms : tuple of tuples of str
        The factors of each term.
    full : tuple of tuples of bool
        For each factor, whether every level of a category has an indicator, or all except the first.
    levels : dict
        The levels of each categorical factor.
    """

    formula: str
    target: str | None
    terms: tuple[tuple[str, ...], ...]
    full: tuple[tuple[bool, ...], ...]
    levels: dict[str, tuple[Any, ...]]

    @classmethod
    def learn(cls, formula: str, X: Any, intercept: bool, name: str, named: Collection[str] = ()) -> Self:
        """Parse a formula and learn the levels of its categories; a dot stands for all columns not in `named`."""
        table = _Table(X, name)
        target, terms, constant = _parsed(formula, [one for one in table.frame.columns if one not in named])
        if intercept and not constant:
            raise ParameterError(
                f"The formula {formula!r} has no intercept, and fit_intercept=True: set fit_intercept=False."
            )
        factors = Factors(name)
        for expression in dict.fromkeys(itertools.chain.from_iterable(terms)):
            column = _category_of(expression)
            if column is None and expression in table.frame.columns and table.is_category(expression):
                column = expression
            if column is not None:
                factors.codes(expression, _values_of(table.column(column)))
        return cls(formula, target, terms, _coding(terms, factors.levels, intercept), dict(factors.levels))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as in formulaic."""
        return tuple(itertools.chain.from_iterable(self._term_names(k) for k in range(len(self.terms))))

    def _term_names(self, k: int) -> list[str]:
        choices = []
        for expression, full in zip(self.terms[k], self.full[k], strict=True):
            levels = self.levels.get(expression)
            mark = "" if full else "T."
            choices.append(
                [expression] if levels is None else [f"{expression}[{mark}{one}]" for one in levels[0 if full else 1 :]]
            )
        return [":".join(parts) for parts in itertools.product(*choices)]

    def table(self, X: Any, name: str = "the model") -> Any:
        """Compute the columns of the formula for the rows of a frame.

        Parameters
        ----------
        X : frame

        Returns
        -------
        pyarrow.Table
        """
        import pyarrow as pa

        source, factors = _Table(X, name), Factors(name, self.levels)
        values: dict[str, Array] = {}
        for expression in dict.fromkeys(itertools.chain.from_iterable(self.terms)):
            if expression in self.levels:
                column = _category_of(expression) or expression
                values[expression] = factors.codes(expression, _values_of(source.column(column)))
            else:
                values[expression] = _value(expression, source)
        columns: list[Array] = []
        for term, full in zip(self.terms, self.full, strict=True):
            parts = [self._columns_of(one, whole, values[one]) for one, whole in zip(term, full, strict=True)]
            columns += [np.prod(chosen, axis=0) for chosen in itertools.product(*parts)]
        return pa.table([pa.array(np.asarray(column, np.float64)) for column in columns], names=list(self.names))

    def _columns_of(self, expression: str, full: bool, values: Array) -> list[Array]:
        if expression not in self.levels:
            return [values]
        return [(values == code).astype(np.float64) for code in range(0 if full else 1, len(self.levels[expression]))]

    def target_of(self, X: Any, labelled: bool, name: str) -> Any:
        """Return the left-hand side of the formula: numbers, or the labels of a classifier."""
        assert self.target is not None
        table = _Table(X, name)
        if labelled:
            return array_of(table.column(self.target).to_native())
        return _value(self.target, table, FOR_LABELS)


def _coding(terms: Any, levels: Mapping[str, Any], intercept: bool) -> tuple[tuple[bool, ...], ...]:
    """Return for each factor of each term whether all its levels have an indicator.

    Without an intercept, the first category that is a term by itself has all its indicators.
    """
    known: set[frozenset[str]] = {frozenset(term) for term in terms}
    if intercept:
        known.add(frozenset())
    full = []
    for term in terms:
        full.append(tuple(frozenset(term) - {one} not in known for one in term))
        if len(term) == 1 and term[0] in levels:
            known.add(frozenset())
    return tuple(full)


def _are_equal(one: Array, other: Array) -> bool:
    """Return whether arrays have the same values; missing ones are equal."""
    if "O" not in (one.dtype.kind, other.dtype.kind):
        return bool((np.asarray(one == other) | (np.asarray(one != one) & np.asarray(other != other))).all())
    pairs = zip(one.tolist(), other.tolist(), strict=True)  # (pandas.NA is neither equal nor unequal to anything)
    return all(a is b or (type(a) is type(b) and bool(a == b or (a != a and b != b))) for a, b in pairs)


def _values_of(column: Any) -> Any:
    values = column.to_native()
    return values if hasattr(values, "dictionary_encode") else column.to_list()


def _parsed(formula: str, columns: list[str]) -> tuple[str | None, tuple[tuple[str, ...], ...], bool]:
    """Return the target, the terms without the intercept, and whether there is an intercept."""
    try:
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise ParameterError("formula= needs the package formulaic: pip install formulaic.") from None
    try:
        context: Mapping[str, Any] = {"__formulaic_variables_available__": list(columns)}
        sides = DefaultFormulaParser().get_terms(formula, context=context)
    except (FormulaicError, SyntaxError, ValueError) as error:
        message = str(error).partition("\n")[0].strip()
        raise ParameterError(f"The formula {formula!r} cannot be read: {message}") from None
    structure = sides._structure
    terms = [[factor.expr for factor in term.factors] for term in structure.get("rhs", structure.get("root", ()))]
    left = [[factor.expr for factor in term.factors] for term in structure.get("lhs", ())]
    if len(left) > 1 or any(len(term) != 1 for term in left):
        raise ParameterError(f"The formula {formula!r} has several targets; fit one model for each.")
    chosen = tuple(tuple(term) for term in terms if term != ["1"])
    if not chosen:
        raise ParameterError(f"The formula {formula!r} names no columns; give at least one.")
    return (left[0][0] if left else None), chosen, ["1"] in terms


@schema.state(formula_=schema.Maybe(schema.Object(Design)))
class FormulaModel:
    """Mixin of models with a parameter `formula`, which converts data to the columns of the formula.

    `formula_` is the fitted design; `formula_.table(frame)` returns its columns, for use with `certificate_.verify`.

    Parameters
    ----------
    formula : str, optional
        Formula of the columns and the target, such as "y ~ age + C(region) * income"; `fit` and `predict` then take a
        frame. Without a left-hand side, as in "~ age + C(region)", the target is the argument `y` of `fit`. With one, a
        separate `y`, as cross-validation passes it, must have the same values.
    """

    formula: str | None = None
    fit_intercept: bool
    _labelled: bool

    def _learn_formula(self, X: Any, y: Any, *others: Any) -> tuple[Any, ...]:
        """Return the design, if there is a formula, and features, target and other columns as values."""
        if self.formula is None:
            return None, X, y, *others
        if not TEXT.accepts(self.formula):
            raise ParameterError(
                f"The 'formula' parameter of {type(self).__name__} must be {TEXT.words} or None. Got {self.formula!r} "
                "instead."
            )
        named = [one for one in (y, *others) if isinstance(one, str)]
        design = Design.learn(self.formula, X, self.fit_intercept, type(self).__name__, named)
        if y is None and design.target is None:
            right = self.formula.partition("~")[2].strip() or self.formula
            raise ParameterError(
                f"The formula {self.formula!r} names no target, and fitting requires y: write 'target ~ {right}' with "
                "the name of the target, or pass y."
            )
        return design, *self._by_formula(design, X, y, *others)

    def _by_formula(self, design: Design, X: Any, y: Any, *others: Any) -> tuple[Any, ...]:
        name = type(self).__name__
        if is_frame(X) and tuple(opened(X).columns) == design.names:
            return X, y, *others
        table = _Table(X, name)
        values = [table.numbers(one) if isinstance(one, str) else one for one in others]
        if design.target is None and isinstance(y, str):
            y = array_of(table.column(y).to_native()) if self._labelled else table.numbers(y, FOR_LABELS)
        elif design.target is not None and not self._is_column_left_out(design.target, table, y):
            y = self._target_by_formula(design, X, y)
        return design.table(X, name), y, *values

    @staticmethod
    def _is_column_left_out(target: str, table: _Table, y: Any) -> bool:
        """Return whether the frame lacks the left-hand side of a formula, and its values are passed as y."""
        return y is not None and not isinstance(y, str) and target.isidentifier() and target not in table.frame.columns

    def _target_by_formula(self, design: Design, X: Any, y: Any) -> Any:
        """Return the left-hand side of the formula; a separate y, as in cross-validation, must have these values."""
        right = "~ " + design.formula.partition("~")[2].strip()
        try:
            target = design.target_of(X, self._labelled, type(self).__name__)
        except DataError as error:
            if y is None or isinstance(y, str):
                raise
            raise DataError(f"{error} To fit to y, use formula={right!r}.") from None
        if y is None or (isinstance(y, str) and y == design.target):
            return target
        if not isinstance(y, str):
            given = array_of(y)
            if given.size == target.size and _are_equal(given.reshape(target.shape), target):
                return target
        raise ParameterError(
            f"y is given, and differs from {design.target!r}, the left-hand side of the formula {design.formula!r}: "
            f"leave y out, pass the values of {design.target!r}, or use formula={right!r} to fit to y."
        )

    def _keep_formula(self, design: Design | None) -> None:
        self.__dict__.pop("formula_", None)
        if design is not None:
            self.formula_ = design

    def _source(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = False, **options: Any) -> Source:
        design: Design | None = getattr(self, "formula_", None)
        if design is not None and not reset:
            X, y, sample_weight = self._by_formula(design, X, y, sample_weight)
        source: Source = super()._source(X, y, sample_weight, reset=reset, **options)  # type: ignore[misc]
        return source

    def _reading(self, X: Any) -> Source:
        design: Design | None = getattr(self, "formula_", None)
        if design is not None and not (is_frame(X) and tuple(opened(X).columns) == design.names):
            X = design.table(X, type(self).__name__)
        source: Source = super()._reading(X)  # type: ignore[misc]
        return source

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score: R2 of regressors, accuracy of classifiers.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or name of a column of X
            The true targets; not needed if the formula has a target.
        sample_weight : array-like of shape (n_samples,), or name of a column of X, optional

        Returns
        -------
        float
        """
        design: Design | None = getattr(self, "formula_", None)
        if design is not None:
            X, y, sample_weight = self._by_formula(design, X, y, sample_weight)
        return float(super().score(X, y, sample_weight))  # type: ignore[misc]
