"""What can go wrong, by name. Every message is one sentence: what, where, what to do."""

from __future__ import annotations

__all__ = ["CollinearityWarning", "DataError", "ModelFileError", "ParameterError", "TimeLimitError"]


class DataError(ValueError):
    """The data cannot be used as they are: missing values, text, unequal lengths, unknown columns."""


class ParameterError(ValueError, TypeError):
    """A parameter of an estimator has a value it cannot take."""


class ModelFileError(ValueError):
    """A model file is damaged, foreign or of another version."""


class TimeLimitError(TimeoutError):
    """`max_time` ran out before there was a first model to keep."""


class CollinearityWarning(UserWarning):
    """Some columns are combinations of others, so their coefficients are not determined by the data."""
