"""Conversion of values to real numbers, with errors that state what they are instead and how to convert them.

Integers, booleans, floats, decimals, and numbers stored as Python objects are accepted; None and `pandas.NA` are NaN.
Text is not converted, even if it represents a number. Dates, durations, complex numbers and records raise an error:
NumPy would convert them silently, NaT to -9.2e18 and a complex number to its real part.
"""

from __future__ import annotations

import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from summula.core.errors import DataError, RowError

__all__ = [
    "TARGET",
    "WEIGHT",
    "Origin",
    "array_of",
    "column_values",
    "is_wide_integer",
    "real_numbers",
    "refuse_silent_conversions",
    "text_error",
]

Array = NDArray[Any]

_LONGEST = 60  # maximum number of characters of a value in an error message
_DAYS = "({} - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')"
_HOURS = "{} / np.timedelta64(1, 'h')"
# Types of objects that NumPy converts to float64 silently, but wrongly.
_SILENT = (np.datetime64, np.timedelta64, np.complexfloating, datetime.date, datetime.timedelta, complex)
_ENCODE = "encode the column (for example with OneHotEncoder) or leave it out"
# The advice of estimators whose columns are categories, which indicators would take apart.
_ENCODE_CATEGORIES = {"CategoricalNB": "encode the column with OrdinalEncoder, or pass a frame to MixedNB"}


class Origin(NamedTuple):
    """Origin of values, for error messages.

    Attributes
    ----------
    label : str
        Name in messages: "Column 'age'", "The target y".
    code : str
        Expression for them in the user's code: "X['age']", "y".
    library : str
        "numpy", or the library of the frame or series: "pandas", "polars", "pyarrow".
    advice : str
        Remedy for text.
    """

    label: str
    code: str
    library: str = "numpy"
    advice: str = "encode it"

    @classmethod
    def column(cls, name: Any, library: str) -> Origin:
        """Return the origin of a column of a frame."""
        return cls(f"Column {name!r}", f"X[{name!r}]", library, _ENCODE)

    @classmethod
    def features(cls, X: Any) -> Origin:
        """Return the origin of an array of features."""
        return cls("X", "X" if hasattr(X, "dtype") else "np.asarray(X)", advice=_ENCODE)

    def at(self, place: tuple[int, ...]) -> Origin:
        """Return the origin of the column of a value, given its index in the array."""
        if self.label != "X" or len(place) < 2:
            return self
        return self._replace(label=f"Column {place[1]}", code=f"{self.code}[:, {place[1]}]")

    def array(self, dtype: str) -> str:
        """Return the expression that converts the values to a NumPy array."""
        if self.library == "pandas":
            return f"{self.code}.to_numpy({dtype!r})"  # also with a time zone, or stored by Arrow
        return self.code if self.library == "numpy" else f"{self.code}.to_numpy()"


FOR_LABELS = "for class labels use a classifier, such as LogisticRegression, or encode them"
TARGET = Origin("The target y", "y", advice=FOR_LABELS)
WEIGHT = Origin("sample_weight", "sample_weight")


def is_wide_integer(dtype: Any) -> bool:
    """Return whether a dtype of a frame library is an integer type that NumPy lacks."""
    return str(dtype) in ("Int128", "UInt128")


def array_of(values: Any, label: str = "The data") -> Array:
    """Return an array, a sequence or a series of any library as a NumPy array; wide integers become Python integers.

    `label` names the values in errors.
    """
    library = type(values).__module__.partition(".")[0]
    if library == "polars" and hasattr(values, "to_list"):
        if values.dtype.is_nested():
            raise DataError(f"{label} contains {values.dtype} values; pass each part of them as a separate column.")
        if is_wide_integer(values.dtype):
            return np.array(values.to_list(), object)
    if library == "polars" and hasattr(values, "get_columns"):
        return np.column_stack([array_of(column, label) for column in values.get_columns()])
    try:
        return np.asarray(_decoded(values) if library == "pyarrow" else values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise DataError(f"{label} has entries of different lengths; pass one number or label per row.") from None


def _decoded(values: Any) -> Any:
    """Return a pyarrow column without its dictionary, with which pyarrow converts missing values differently."""
    import pyarrow as pa

    if not isinstance(values, pa.ChunkedArray) or not pa.types.is_dictionary(values.type):
        return values
    return pa.chunked_array([chunk.dictionary_decode() for chunk in values.chunks], values.type.value_type)


def column_values(column: Any) -> Array:
    """Return a narwhals column as a NumPy array; wide integers and booleans with missing values become float64."""
    import narwhals as nw

    dtype = column.dtype
    if dtype.is_nested():
        raise DataError(
            f"Column {column.name!r} contains {dtype} values (first at row 0); pass each part of them as a separate "
            "column, or leave it out."
        )
    if is_wide_integer(dtype):
        return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    native = column.to_native()
    decoded = _decoded(native) if type(native).__module__.startswith("pyarrow") else native
    try:
        values = np.asarray(column.to_numpy() if decoded is native else decoded.to_numpy())
    except NotImplementedError:  # of Arrow
        raise DataError(f"Column {column.name!r} contains {dtype} values; convert it, or leave it out.") from None
    if str(dtype) == "Boolean" and values.dtype.kind == "O":
        return np.asarray(column.cast(nw.Float64).to_numpy(), np.float64)
    return values


def real_numbers(values: Array, origin: Origin, estimator: str) -> Array:
    """Return values as float64, float32, integers or booleans; raise an error for anything else.

    Parameters
    ----------
    values : ndarray
    origin : Origin
    estimator : str
        Name of the estimator, for messages.
    """
    kind = values.dtype.kind
    if kind in "fiub":
        return _of_usual_width(values)
    if kind == "O":
        return _of_objects(values, origin, estimator)
    if kind == "M":
        raise _dates(
            f"{origin.label} contains dates ({values.dtype})", _DAYS, origin.array("datetime64[us]"), estimator
        )
    if kind == "m":
        problem = f"{origin.label} contains durations ({values.dtype})"
        raise _durations(problem, _HOURS, origin.array("timedelta64[us]"), estimator)
    if kind == "c":
        code = origin.code if origin.library == "numpy" else f"{origin.code}.to_numpy()"
        raise _complex(f"{origin.label} contains complex numbers", code, estimator)
    if kind == "V":
        raise DataError(
            f"{origin.label} contains records ({values.dtype}); {estimator} needs numbers: convert it with "
            f"numpy.lib.recfunctions.structured_to_unstructured({origin.code})."
        )
    raise _first_text(values, origin, estimator)


def refuse_silent_conversions(values: Any, origin: Origin, estimator: str) -> None:
    """Raise the error of `real_numbers` only for dates, durations, complex numbers and records."""
    if values.dtype.kind in "MmcV" or (
        values.dtype.kind == "O" and any(issubclass(kind, _SILENT) for kind in set(map(type, values.flat)))
    ):
        real_numbers(values, origin, estimator)


def _of_usual_width(values: Array) -> Array:
    """Return half and extended precision as float64, as scikit-learn does, and others in native byte order."""
    dtype = values.dtype.newbyteorder("=")
    unusual = dtype.kind == "f" and dtype.itemsize not in (4, 8)
    return values.astype(np.float64 if unusual else dtype, copy=False)


def _dates(problem: str, cure: str, code: str, estimator: str) -> DataError:
    return DataError(
        f"{problem}; {estimator} needs numbers: convert them, for example to days with {cure.format(code)}."
    )


def _durations(problem: str, cure: str, code: str, estimator: str) -> DataError:
    return DataError(
        f"{problem}; {estimator} needs numbers: convert them, for example to hours with {cure.format(code)}."
    )


def _complex(problem: str, code: str, estimator: str) -> DataError:
    return DataError(
        f"Complex data not supported: {problem}; {estimator} needs real numbers: pass the parts {code}.real and "
        f"{code}.imag instead."
    )


# ---------------------------------------------------------------------------------------------- values kept as objects


def _of_objects(values: Array, origin: Origin, estimator: str) -> Array:
    kinds = set(map(type, values.flat))
    if any(kind.__name__ == "NAType" for kind in kinds):
        values = np.array([np.nan if type(one).__name__ == "NAType" else one for one in values.flat]).reshape(
            values.shape
        )
        return real_numbers(values, origin, estimator)
    try:
        if not any(issubclass(kind, _SILENT) or hasattr(kind, "__len__") for kind in kinds):
            return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    for place, value in np.ndenumerate(values):
        if (error := _object_error(value, origin.at(place), place[0] if place else 0, estimator)) is not None:
            raise error
    raise DataError(f"{origin.label} contains something that is not a number; {estimator} needs numbers.")


def _object_error(value: Any, origin: Origin, row: int, estimator: str) -> DataError | None:
    """Return the error message for an object that is not a real number; None if it is one."""
    problem = f"{origin.label} contains {_shown(value)} at row {row}"
    if isinstance(value, np.datetime64):
        return _dates(f"{problem}, a date", _DAYS, "value", estimator)
    if isinstance(value, datetime.date):
        return _dates(f"{problem}, a date", "{}.toordinal()", "value", estimator)
    if isinstance(value, np.timedelta64):
        return _durations(f"{problem}, a duration", _HOURS, "value", estimator)
    if isinstance(value, datetime.timedelta):
        return _durations(f"{problem}, a duration", "{} / datetime.timedelta(hours=1)", "value", estimator)
    if isinstance(value, complex | np.complexfloating):
        return _complex(f"{problem}, a complex number", "value", estimator)
    try:
        if not hasattr(type(value), "__len__"):
            np.float64(value)
            return None
    except (TypeError, ValueError, OverflowError):
        pass
    return text_error(origin.label, value, row, estimator, origin.advice)


def _first_text(values: Array, origin: Origin, estimator: str) -> DataError:
    place = (0,) * values.ndim
    if not values.size:
        return DataError(
            f"{origin.label} contains text; {estimator} needs numbers: {_advice(estimator, origin.advice)}."
        )
    return text_error(origin.at(place).label, values[place], 0, estimator, origin.advice)


def text_error(label: str, value: Any, row: int, estimator: str, advice: str = _ENCODE) -> RowError:
    """Return the error message for a column that is not numeric."""
    return RowError(
        f"{label} contains {_shown(value)}",
        row,
        f", could not convert it to a number; {estimator} needs numbers: {_advice(estimator, advice)}.",
    )


def _advice(estimator: str, advice: str) -> str:
    """Return the remedy for text."""
    return _ENCODE_CATEGORIES.get(estimator, advice) if advice == _ENCODE else advice


def _shown(value: Any) -> str:
    """Format a value for an error message: shortened, and NumPy strings as text."""
    value = str(value) if isinstance(value, str) else value
    text = " ".join(repr(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
