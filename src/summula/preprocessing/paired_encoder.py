"""Encode a table in two ways at once, for models that need codes and models that need indicators.

encoded row = [codes of the row, indicators of the row]                                                      (1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone

from summula.core.model_files import schema
from summula.preprocessing.table_encoder import TableEncoder, apply_encoded, encoded_blocks
from summula.preprocessing.table_encoder_blocks import Blocks, Columns
from summula.preprocessing.table_encoder_plans import ColumnPlan

__all__ = ["PairedEncoder"]

Array = NDArray[Any]


def _encoders_agree(pair: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: both encoders have the same columns, in two encodings."""
    if (pair.codes.categories, pair.indicators.categories) != ("codes", "indicators"):
        return "the first encoder has to return codes, and the second indicators"
    if not pair.__sklearn_is_fitted__():
        return None
    first, second = ([(one.name, one.kind) for one in encoder.columns_] for encoder in (pair.codes, pair.indicators))
    return None if first == second else "the two encoders have different columns"


@schema.saved(_encoders_agree, codes=schema.Object(TableEncoder), indicators=schema.Object(TableEncoder))
class PairedEncoder(TransformerMixin, BaseEstimator):
    """Two encoders of the same table; the columns of the first come first.

    Parameters
    ----------
    codes, indicators : TableEncoder
        With categories "codes" and "indicators".

    Examples
    --------
    >>> from summula.datasets import load
    >>> from summula.preprocessing import TableEncoder
    >>> from summula.preprocessing.paired_encoder import PairedEncoder
    >>> pair = PairedEncoder(TableEncoder(categories="codes"), TableEncoder())
    >>> pair.fit(load("penguins").select(["island"])).get_feature_names_out().tolist()
    ['island', 'island[Dream]', 'island[Torgersen]']
    """

    def __init__(self, codes: Any, indicators: Any) -> None:
        self.codes = codes
        self.indicators = indicators

    def fit(self, X: Any, y: Any = None) -> PairedEncoder:
        """Fit both encoders.

        Parameters
        ----------
        X : {frame, scan}
        y : ignored

        Returns
        -------
        self
        """
        self.codes, self.indicators = clone(self.codes).fit(X), clone(self.indicators).fit(X)
        return self

    @property
    def columns_(self) -> list[ColumnPlan]:
        """Kind and encoding of each column."""
        return list(self.codes.columns_)

    @property
    def dropped_(self) -> dict[str, str]:
        """Dropped columns and the reasons."""
        return dict(self.codes.dropped_)

    @property
    def max_levels(self) -> int:
        """Maximum number of levels of a category."""
        return int(self.codes.max_levels)

    @property
    def widths(self) -> tuple[int, int]:
        """Number of columns that each encoder returns."""
        return self.codes.n_columns_out, self.indicators.n_columns_out

    @property
    def n_columns_out(self) -> int:
        """Number of encoded columns."""
        return sum(self.widths)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of all encoded columns."""
        names = [encoder.get_feature_names_out(input_features) for encoder in (self.codes, self.indicators)]
        return np.concatenate(names)

    def transform(self, X: Any) -> Any:
        """Encode rows, as `TableEncoder.transform` does."""
        return self.then(X, None)

    def then(self, X: Any, work: Callable[[Array], Array] | None) -> Any:
        """Apply a function to the encoded rows, as `TableEncoder.then` does."""
        return apply_encoded(self, X, work)

    def encoded(self, blocks: Blocks, work: Callable[[Array], Array] | None = None) -> Iterator[Array]:
        """Yield the encoded rows of blocks, or a function of them, block by block."""
        first, second = self.codes.block_encoder(), self.indicators.block_encoder()

        def encode(columns: Columns, start: int) -> Array:
            return np.hstack([first(columns, start), second(columns, start)])

        return encoded_blocks(encode, blocks, work)

    def places(self) -> dict[str, NDArray[np.intp]]:
        """Return the positions of the encoded columns of each column that is not dropped."""
        width, every = self.widths[0], np.arange(sum(self.widths))
        first, second = self.codes.places(), self.indicators.places()
        return {name: np.concatenate([every[first[name]], width + every[second[name]]]) for name in first}

    def encode_column(self, name: str, values: Any) -> Array:
        """Encode values of one column, as `TableEncoder.encode_column` does."""
        return np.hstack([self.codes.encode_column(name, values), self.indicators.encode_column(name, values)])

    def _checked(self, X: Any, *, fitting: bool) -> tuple[Any, list[str] | None]:
        found: tuple[Any, list[str] | None] = self.codes._checked(X, fitting=fitting)
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.codes.__sklearn_is_fitted__() and self.indicators.__sklearn_is_fitted__())
