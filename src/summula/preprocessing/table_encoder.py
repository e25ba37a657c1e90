"""Encode tables of numbers, categories, booleans and dates as numeric columns, learned in one pass.

The statistics of a column are sums over rows (`table_encoder_sums.py`): counts, means, standard deviations, frequencies
of texts. They determine its kind and encoding (`table_encoder_plans.py`), in the same way for frames in memory and
files of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from summula.core.data.frames import is_frame, no_such_column, opened, pop_columns
from summula.core.data.scan import Scan, checked_weight
from summula.core.engine.engine import local_engine
from summula.core.errors import DataError
from summula.core.estimator.input.validation import as_weights, collection_reader
from summula.core.estimator.parameters import Allowed, boolean, check_parameters, integer, one_of
from summula.core.model_files import schema
from summula.preprocessing.table_encoder_blocks import Blocks, Columns, Piece, blocks_in_order, table_blocks, wide_texts
from summula.preprocessing.table_encoder_plans import ColumnPlan, encode_together, plan_column
from summula.preprocessing.table_encoder_sums import ColumnSums

__all__ = ["TableEncoder", "apply_encoded", "column_sums", "encoded_blocks", "merged", "weight_of"]

_NAMED = 3  # maximum number of columns named in an error for each reason

Array = NDArray[Any]


def column_sums(blocks: Blocks, weight: Array | str | None = None) -> dict[str, ColumnSums]:
    """Compute the sums of each column in one pass; weights are an array, or the name of a column of the blocks."""

    def of_piece(piece: Piece) -> dict[str, ColumnSums]:
        columns = piece.columns()
        w = None if weight is None else weight_of(columns, weight, piece.start, piece.stop)
        texts = _texts_of_columns(columns) if w is None else {}
        with np.errstate(over="ignore", invalid="ignore"):
            known = _sums_of_wide_numbers(columns) if w is None else {}
            return {
                name: known.get(name) or ColumnSums.of(one, name, piece.start, w, texts.get(name))
                for name, one in columns.items()
            }

    total: dict[str, ColumnSums] = local_engine().map_reduce(of_piece, blocks.pieces(), merged)
    return total


def _texts_of_columns(columns: Columns) -> dict[str, Any]:
    """Distinct texts and the index of each row's text, for all text columns of a wide block."""
    if (found := wide_texts(columns)) is None:
        return {}
    return {name: found[1].column(j) for j, name in enumerate(found[0])}


def _sums_of_wide_numbers(columns: Columns) -> dict[str, ColumnSums | None]:
    """Sums of the columns of numbers without missing values, for a block with more columns than rows."""
    names = [name for name, one in columns.items() if isinstance(one, np.ndarray) and one.dtype == np.float64]
    if not names or not 0 < len(columns[names[0]]) < len(columns):
        return {}
    return dict(zip(names, ColumnSums.of_wide_numbers(np.stack([columns[name] for name in names])), strict=True))


def weight_of(columns: Columns, weight: Array | str, start: int, stop: int) -> Array:
    """Return the weights of a block; a column of weights is removed from it."""
    if not isinstance(weight, str):
        return weight[start:stop]
    values = columns.pop(weight)
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        raise DataError(f"The weight column {weight!r} is not numeric; weights must be numbers.")
    return checked_weight(values, start)


def merged(a: dict[str, ColumnSums], b: dict[str, ColumnSums]) -> dict[str, ColumnSums]:
    """Return the sums of the union of two sets of rows, column by column."""
    return {name: a[name].merge(b[name]) for name in a}


def apply_encoded(encoder: Any, X: Any, work: Callable[[Array], Array] | None) -> Any:
    """Apply a function to the encoded rows of X; see `TableEncoder.then`."""
    check_is_fitted(encoder)
    if collection_reader(X) is not None:
        from summula.preprocessing.table_encoder_dask import lazily

        return lazily(encoder, X, work)
    blocks = table_blocks(*encoder._checked(X, fitting=False), as_stored=True)
    batches = encoder.encoded(blocks, work)
    return batches if blocks.streams else np.concatenate(list(batches))


def encoded_blocks(
    encode: Callable[[Columns, int], Array], blocks: Blocks, work: Callable[[Array], Array] | None
) -> Iterator[Array]:
    """Yield the encoded rows of blocks, or a function of them, block by block."""

    def done(columns: Columns, start: int) -> Array:
        rows = encode(columns, start)
        return rows if work is None else work(rows)

    with closing(blocks_in_order(blocks, done, to_user=blocks.streams)) as batches:  # type: ignore[type-var]
        yield from batches


def _columns_agree(encoder: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: each column has one plan, and at least one column is encoded."""
    names = [column.name for column in encoder.columns_]
    if len(set(names)) != len(names) or len(names) != sizes.get("n_features", len(names)):
        return f"columns_ has {len(names)} plans, not one per column"
    if not any(column.width(encoder.categories == "codes") for column in encoder.columns_):
        return "columns_ leaves no column to encode"
    return None


@schema.saved(_columns_agree, columns_=schema.Items(schema.Object(ColumnPlan), low=1))
class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a mixed table as numbers, with descriptive names.

    Parameters
    ----------
    categories : {"indicators", "codes"}, default="indicators"
        Indicators are for linear models: one column per level except the most frequent; missing numbers are replaced
        by the mean and indicated in an extra column. Codes are for trees: one column per category, and missing values
        remain missing (NaN).
    standardize : bool, default=False
        Whether to standardise numbers (with indicators only).
    unknown : {"ignore", "error"}, default="ignore"
        How to handle levels that did not occur in the training rows: ignore them (all indicators are 0, or "other" if
        rare levels are grouped), or raise an error.
    max_levels : int, default=100
        Maximum number of levels of a category; rarer ones are grouped as "other".
    drop : bool, default=True
        Whether to drop constant columns and row identifiers; `dropped_` lists them with the reason.

    Attributes
    ----------
    columns_ : list of ColumnPlan
        Kind and encoding of each column.
    dropped_ : dict of str to str
        Dropped columns and the reasons.
    categorical_features_ : list of int
        With codes, the indices of the categorical columns.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Kinds are inferred: numbers, booleans (numbers that are 0 or 1), categories (text), dates (dates, or text in the
    form 2024-12-31 with or without a time). Tables may have their columns in another order than in `fit`, and more.
    Frames, files (`scan`) and Dask collections give bit-identical encodings; a collection is encoded lazily.

    Examples
    --------
    >>> from summula.datasets import load
    >>> from summula.preprocessing import TableEncoder
    >>> encoder = TableEncoder().fit(load("penguins").select(["island", "body_mass_g", "sex"]))
    >>> encoder.get_feature_names_out().tolist()
    ['island[Dream]', 'island[Torgersen]', 'body_mass_g', 'body_mass_g[missing]', 'sex[female]', 'sex[missing]']
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "categories": (one_of("indicators", "codes"),),
        "standardize": (boolean,),
        "unknown": (one_of("ignore", "error"),),
        "max_levels": (integer(2),),
        "drop": (boolean,),
    }

    def __init__(
        self,
        *,
        categories: str = "indicators",
        standardize: bool = False,
        unknown: str = "ignore",
        max_levels: int = 100,
        drop: bool = True,
    ) -> None:
        self.categories = categories
        self.standardize = standardize
        self.unknown = unknown
        self.max_levels = max_levels
        self.drop = drop

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> TableEncoder:
        """Learn kinds, levels and means of all columns, in one pass.

        Parameters
        ----------
        X : {frame, scan, array-like, Dask collection} of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights, used for means and frequencies of levels.

        Returns
        -------
        self
        """
        check_parameters(self, self._parameters)
        before = dict(vars(self))
        try:
            if collection_reader(X) is not None:
                from summula.preprocessing.table_encoder_dask import dask_sums, named_like

                validate_data(self, named_like(X, sample_weight), reset=True, skip_check_array=True)
                sums = dask_sums(X, sample_weight, type(self).__name__)
                return self.use_sums(sums, list(sums) if hasattr(X, "columns") else None)
            weight, X = (sample_weight, X) if isinstance(X, Scan) else self._weighted(X, sample_weight)
            named = X.columns if isinstance(X, Scan) else None
            if isinstance(weight, str):
                if weight not in X.columns:
                    raise DataError(no_such_column(weight, X.columns))
                named = [name for name in X.columns if name != weight]
            blocks = table_blocks(*self._checked(X, fitting=True))
            if not (weight is None or isinstance(weight, str)):
                weight = as_weights(weight, blocks.n_rows, type(self).__name__)
            sums = column_sums(blocks, weight)
            if isinstance(weight, str) and not next(iter(sums.values())).rows:
                raise DataError(f"All weights in {weight!r} are zero: at least one row needs a positive weight.")
            return self.use_sums(sums, named)
        except BaseException:  # never leave a partial fit
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _weighted(self, X: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return the weights of a frame or an array, and X without them."""
        if not isinstance(sample_weight, str):
            return sample_weight, X
        if not is_frame(X):
            raise DataError(f"X is not a frame with a column {sample_weight!r}; pass sample_weight as an array.")
        rest, (column,) = pop_columns(X, [sample_weight])
        return column.to_numpy(), rest

    def use_sums(self, sums: dict[str, ColumnSums], named: list[str] | None = None) -> TableEncoder:
        """Determine the encoding from precomputed sums; `named` are the names of the columns."""
        columns = [plan_column(name, one, self.max_levels, self.drop) for name, one in sums.items()]
        if not any(column.width(self.categories == "codes") for column in columns):
            rows = next(iter(sums.values())).rows
            why = "n_samples=1" if rows == 1 else _reasons(columns)
            raise DataError(f"All columns were dropped ({why}); at least one column must vary between rows.")
        self.columns_ = columns
        if named is not None:
            self.n_features_in_ = len(named)
            self.feature_names_in_ = np.array(named, dtype=object)
        return self

    @property
    def dropped_(self) -> dict[str, str]:
        """Dropped columns and the reasons."""
        check_is_fitted(self)
        return {column.name: column.why for column in self.columns_ if column.kind == "dropped"}

    @property
    def categorical_features_(self) -> list[int]:
        """With codes, the indices of the categorical columns."""
        check_is_fitted(self)
        kept = [column for column in self.columns_ for _ in range(column.width(True))]
        return [j for j, column in enumerate(kept) if column.kind == "category"] if self.categories == "codes" else []

    def transform(self, X: Any) -> Any:
        """Encode rows.

        Parameters
        ----------
        X : {frame, scan, array-like, Dask collection} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_columns); an iterator of such blocks for a scan, a Dask array for a collection
        """
        return self.then(X, None)

    def then(self, X: Any, work: Callable[[Array], Array] | None) -> Any:
        """Apply a function, such as a model's `predict`, to the encoded rows.

        Parameters
        ----------
        X : {frame, scan, array-like, Dask collection} of shape (n_samples, n_features)
        work : callable or None
            Maps a block of encoded rows to one result per row; called from several threads. None returns the rows.

        Returns
        -------
        ndarray, iterator of ndarray, or Dask array
        """
        return apply_encoded(self, X, work)

    def encoded(self, blocks: Blocks, work: Callable[[Array], Array] | None = None) -> Iterator[Array]:
        """Yield the encoded rows of blocks, or a function of them, block by block."""
        return encoded_blocks(self.block_encoder(), blocks, work)

    def block_encoder(self) -> Callable[[Columns, int], Array]:
        """Return the function that encodes a block of columns, given its first row."""
        check_is_fitted(self)
        used = [column for column in self.columns_ if column.kind != "dropped"]
        options, places = self.get_params(), list(self.places().values())

        def encode(columns: Columns, start: int) -> Array:
            rows: Array = np.empty((len(next(iter(columns.values()))), places[-1].stop))
            done = encode_together(used, places, columns, options, rows) if len(rows) < len(used) else set()
            for plan, place in zip(used, places, strict=True):
                if plan.name not in done:
                    plan.encode(columns[plan.name], start, options, rows[:, place])
            return rows

        return encode

    def places(self) -> dict[str, slice]:
        """Return the positions of the encoded columns of each column that is not dropped."""
        check_is_fitted(self)
        codes = self.categories == "codes"
        used = {column.name: column.width(codes) for column in self.columns_ if column.kind != "dropped"}
        ends = [0, *accumulate(used.values())]
        return {name: slice(a, b) for name, (a, b) in zip(used, pairwise(ends), strict=True)}

    def encode_column(self, name: str, values: Any) -> Array:
        """Encode values of one column.

        Parameters
        ----------
        name : str
        values : pyarrow array

        Returns
        -------
        ndarray of shape (n_values, n_columns)
            The columns at `places()[name]`.
        """
        import pyarrow as pa

        check_is_fitted(self)
        plan = next((column for column in self.columns_ if column.name == name), None)
        if plan is None:
            raise DataError(no_such_column(name, (column.name for column in self.columns_)))
        column = table_blocks(pa.table({name: values})).read(0, len(values))[name]
        rows = np.empty((len(values), plan.width(self.categories == "codes")))
        plan.encode(column, 0, self.get_params(), rows)
        return rows

    def _checked(self, X: Any, *, fitting: bool) -> tuple[Any, list[str] | None]:
        """Return the data and the names of the columns to read; raise for missing columns."""
        if isinstance(X, Scan):
            self._check_size(X.n_rows, X.columns)
            return X, X.columns if fitting else self._used_columns(X.columns)
        if is_frame(X):
            frame = opened(X)
            present = [str(name) for name in frame.columns]
            self._check_size(len(frame), present)
            if fitting or not hasattr(self, "feature_names_in_"):
                validate_data(self, X, reset=fitting, skip_check_array=True)
                return X, present if fitting else self._used_columns(present, by_place=True)
            return X, self._used_columns(present)
        rows = check_array(X, dtype=None, ensure_all_finite=False, estimator=self, input_name="X")
        validate_data(self, rows, reset=fitting, skip_check_array=True)
        self._check_size(len(rows), range(rows.shape[1]))
        return rows, None if fitting else [column.name for column in self.columns_]

    def _used_columns(self, present: list[str], *, by_place: bool = False) -> list[str]:
        used = [column.name for column in self.columns_ if column.kind != "dropped"]
        known = set(present)
        lacking = [name for name in used if name not in known]
        if lacking and by_place:
            raise DataError(f"TableEncoder was fitted on an array; pass columns {', '.join(map(repr, lacking))}.")
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise DataError(f"The table has no column {lacking[0]!r}{more}, which the training data had: add it.")
        return used

    def _check_size(self, rows: int, columns: Any) -> None:
        if not len(columns):
            raise DataError("The table has no columns; TableEncoder needs at least one.")
        if not rows:
            raise DataError("The table has no rows; TableEncoder needs at least one.")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the encoded columns: `age`, `sex[female]`, `when[month]`, `age[missing]`.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        codes = self.categories == "codes"
        return np.array([name for column in self.columns_ for name in column.names(codes)], dtype=object)

    @property
    def n_columns_out(self) -> int:
        """Number of encoded columns."""
        check_is_fitted(self)
        codes = self.categories == "codes"
        return sum(column.width(codes) for column in self.columns_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "columns_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _reasons(columns: list[ColumnPlan]) -> str:
    """Return why columns were dropped: the columns for each reason, a few of them by name."""
    names: dict[str, list[str]] = {}
    for column in columns:
        names.setdefault(column.why or "a category of one level", []).append(column.name)
    return "; ".join(f"{_listed(those)}: {why}" for why, those in names.items())


def _listed(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:_NAMED]))
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"
