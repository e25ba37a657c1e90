"""Base class of all estimators: validate the input, compute sums over a run, assign the fitted attributes.

    with self._fitting(X, y, sample_weight) as run:
        gram = run.sum(Gram, origin)
        ...

An estimator is never left partially fitted: after an error it is restored to its previous state. After Ctrl-C, when
`max_time` is exceeded or when a cluster is lost, the best model offered so far is kept.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning

from summula.core.data.factors import Factors
from summula.core.data.labels import Labels
from summula.core.data.sources import Source
from summula.core.engine.engine import watched
from summula.core.engine.threads import ONE_THREAD_BELOW, one_blas_thread
from summula.core.errors import DataError, TimeLimitError, warn
from summula.core.estimator.input.validation import as_source, check_fitted, collection_reader
from summula.core.estimator.parameters import Allowed, check_parameters
from summula.core.estimator.run import OutOfTime, Run, check_clock
from summula.core.model_files import schema
from summula.core.numerics.statistics import Statistic

__all__ = ["Estimator"]

S = TypeVar("S", bound=Statistic)
Array = NDArray[Any]


@schema.state(
    n_features_in_=schema.Integer(1, size="n_features"),
    _not_features=schema.Maybe(schema.Items(schema.Text())),
)
class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base class of all estimators: validation, fit lifecycle and feature names, but no mathematics.

    Parameters
    ----------
    verbose : int, default=0
        Ignored; use scikit-learn's callbacks for progress reports.
    warm_start : bool, default=False
        Whether to start from the solution of the previous fit.
    n_jobs : int, optional
        Maximum number of threads; None uses all.
    max_time : float, optional
        Time limit in seconds, after which the best model so far is kept.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when all columns have names.
    """

    # Allowed values of each parameter.
    _parameters: ClassVar[Mapping[str, tuple[Allowed, ...]]] = {}
    _accepts_sparse: ClassVar[bool] = True
    # Whether y consists of class labels.
    _labelled: ClassVar[bool] = False
    _fewest_classes: ClassVar[int] = 2
    classes_: Any
    # Whether categorical columns are converted to factors.
    _factored: ClassVar[bool] = False
    factor_levels_: dict[str, tuple[Any, ...]]
    # Whether NaN is allowed in X, in `fit` and in results for rows.
    _allows_nan: ClassVar[bool] = False
    # Estimators that need their rows in memory name an alternative for files and Dask collections.
    _streaming_alternative: ClassVar[str | None] = None
    # A constructor and the names of its parameters.
    _known_parameters: ClassVar[tuple[Any, tuple[str, ...]]]
    # Attributes that are dropped by pickle, copy and save.
    _transient: ClassVar[tuple[str, ...]] = ("_training",)

    @contextmanager
    def _fitting(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        needs_y: bool = True,
        reset: bool = True,
        **options: Any,
    ) -> Iterator[Run]:
        """Validate parameters and data, run the body, and leave either a complete model or the previous state."""
        before = dict(vars(self))
        run: Run | None = None
        try:
            check_parameters(self, self._parameters)
            max_time = getattr(self, "max_time", None)
            deadline = None if max_time is None else time.monotonic() + max_time
            # Overflow propagates to sums, losses and gaps, which are checked: it raises an error there, or is harmless.
            with watched(functools.partial(check_clock, deadline)), np.errstate(over="ignore"):
                source = self._source(X, y, sample_weight, needs_y=needs_y, reset=reset, **options)
                self._note_columns(y, sample_weight, reset)
                run = Run(self, source, X, y, deadline=deadline)
                with self._blas_threads(source):
                    yield run
                run.finish()
        except OutOfTime as error:
            if not self._keep_or_restore(run, error, before):
                raise TimeLimitError(
                    f"max_time={self.max_time} s was exceeded before {type(self).__name__} had a first model; "
                    "increase max_time or fit fewer rows."
                ) from None
            certificate = getattr(self, "certificate_", None)
            warn(
                f"{type(self).__name__} stopped after max_time={self.max_time} s and kept the best model so far"
                f"{'' if certificate is None else f' ({certificate})'}; increase max_time for a better one.",
                ConvergenceWarning,
            )
        except BaseException as error:
            self._keep_or_restore(run, error, before)
            raise
        finally:
            if run is not None:
                run.source.release()

    def _blas_threads(self, source: Source) -> AbstractContextManager[None]:
        """Limit BLAS to one thread during a fit; many columns are left to the parts of the fit (`solving`)."""
        return nullcontext() if source.n_features >= ONE_THREAD_BELOW else one_blas_thread()

    def _keep_or_restore(self, run: Run | None, error: BaseException, before: dict[str, Any]) -> bool:
        """Keep the best model of an interrupted fit, or restore the previous state; return whether one was kept."""
        fitted = dict(vars(self))
        if run is not None and run.keep_offered(error):
            return True
        self._restore(before, fitted)
        return False

    def _source(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        needs_y: bool = True,
        reset: bool = False,
        **options: Any,
    ) -> Source:
        """Return the data to fit (`reset`) or to evaluate as a source; labels become indices into `classes_`.

        Options are `offset`, added to linear predictors; `classes`, the classes if they are known in advance;
        `unknown`, the code of labels that are not among the classes (without it they raise an error); and `encoded`,
        whether y consists of codes already.
        """
        encoded = options.get("encoded", False)
        labels = None if encoded else self._open_labels(reset, options.get("classes"), options.get("unknown"))
        named = [c for c in (*self._target_columns(y), sample_weight) if isinstance(c, str)]
        X, factors = self._open_factors(X if reset else self._drop_non_features(X, named), named, reset)
        source = as_source(
            self,
            X,
            y,
            sample_weight,
            needs_y=needs_y,
            reset=reset and self._starts_anew,
            accept_sparse=self._accepts_sparse,
            labels=labels,
            factors=factors,
            offset=options.get("offset"),
        )
        self._check_memory(source)
        self._close_factors(X, source, factors, reset)
        if labels is not None:
            self.classes_ = labels.classes
        return source

    @contextmanager
    def _evaluating(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Iterator[Run]:
        """Run a block over rows that the fitted model is evaluated on; options are those of `_source`."""
        source = self._source(X, y, sample_weight, **options)
        try:
            yield Run(self, source, quiet=True)
        finally:
            source.release()

    def _reading(self, X: Any) -> Source:
        """Return the rows to predict or transform as a source, with features checked against those of the fit."""
        check_fitted(self)
        X, factors = self._open_factors(self._drop_non_features(X, ()), [], False)
        source = as_source(self, X, needs_y=False, reset=False, accept_sparse=self._accepts_sparse, factors=factors)
        self._check_memory(source)
        self._close_factors(X, source, factors, False)
        return source

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters, read once per constructor: searches request them many times per fit."""
        known = cls.__dict__.get("_known_parameters")
        if known is None or known[0] is not cls.__init__:
            known = cls._known_parameters = (cls.__init__, tuple(super()._get_param_names()))
        return list(known[1])

    @property
    def _starts_anew(self) -> bool:
        """Whether `fit` accepts columns other than those of the previous fit."""
        return True

    def _open_labels(self, reset: bool, classes: Any, unknown: int | None) -> Labels | None:
        if not self._labelled:
            return None
        known = classes if classes is not None else None if reset else self.classes_
        return Labels(type(self).__name__, known, unknown, fewest=self._fewest_classes)

    def _open_factors(self, X: Any, others: list[str], reset: bool) -> tuple[Any, Factors | None]:
        """Return X and the levels of its categorical columns, which are learned if `reset`."""
        if not self._factored:
            return X, None
        # (Models saved by versions without factors lack the attribute.)
        return X, Factors(type(self).__name__, None if reset else getattr(self, "factor_levels_", {}))

    def _close_factors(self, X: Any, source: Source, factors: Factors | None, reset: bool) -> None:
        """Store the levels of categorical columns found in the data."""
        if factors is not None and reset:
            self.factor_levels_ = dict(factors.levels)

    def _target_columns(self, y: Any) -> tuple[Any, ...]:
        """Return y as a tuple of column names if it may name columns; a list of strings may also be labels."""
        return tuple(y) if isinstance(y, list | tuple) and (len(y) == 1 or not self._labelled) else (y,)

    def _note_columns(self, y: Any, sample_weight: Any, reset: bool) -> None:
        """Store which columns of the frame were target and weight, so that `predict` ignores them."""
        named = [c for c in (*self._target_columns(y), sample_weight) if isinstance(c, str)]
        before = () if reset else getattr(self, "_not_features", ())
        if named or before:
            self._not_features = tuple(dict.fromkeys([*before, *named]))
        else:
            self.__dict__.pop("_not_features", None)

    def _restore(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        # Attributes that scikit-learn's callbacks set during a fit are removed by scikit-learn.
        theirs = {k: v for k, v in now.items() if k in ("_callback_fit_ctx", "_skl_callbacks_to_teardown")}
        self.__dict__.clear()
        self.__dict__.update(before | theirs)

    def _check_memory(self, source: Source) -> None:
        """Raise for files and collections if the estimator needs its rows in memory."""
        if source.streams and self._streaming_alternative is not None:
            source.release()
            raise DataError(
                f"{type(self).__name__} needs its rows in memory, but X is in files or a Dask collection: "
                f"use {self._streaming_alternative}, or pass an array with a subset of the rows."
            )

    def _drop_non_features(self, X: Any, kept: Iterable[Any]) -> Any:
        """Return a frame without the columns that were target or weight in `fit`, except those in `kept`."""
        dropped = [c for c in getattr(self, "_not_features", ()) if c not in list(kept)]
        if not dropped:
            return X
        if collection_reader(X) is not None:
            present = [c for c in dropped if c in getattr(X, "columns", ())]
            return X.drop(columns=present) if present else X
        from summula.core.data.frames import is_frame, opened, pop_columns

        if not is_frame(X):
            return X
        columns = opened(X).columns
        present = [c for c in dropped if c in columns]
        return pop_columns(X, present)[0] if present else X

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        for name in self._transient:
            state.pop(name, None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = self._allows_nan
        return tags
