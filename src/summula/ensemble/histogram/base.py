"""Common base of the histogram-based gradient boosting estimators: reading rows, boosting, early stopping, attributes.

The algorithm is in `boosting.py`, binning and trees in `summula.tree`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks

from summula.core.compilation.background import compile_meanwhile, expect_kernels
from summula.core.data.chunks import Chunk
from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.classifier import check_same_classes
from summula.core.estimator.input.argument_values import is_true
from summula.core.estimator.parameters import (
    Allowed,
    array_like,
    boolean,
    integer,
    mapping,
    none,
    one_of,
    random_state,
    real,
)
from summula.core.estimator.regressor import check_one_target
from summula.core.estimator.rows import RowFunction, RowwiseEstimator
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.ensemble.histogram.boosting import Booster, Rows
from summula.ensemble.histogram.boosting_losses import Loss, Squared
from summula.ensemble.histogram.interpretation import InterpretableTrees
from summula.ensemble.histogram.stopping import Watcher, held_out_rows
from summula.ensemble.stagewise.staged import StagedPredictions
from summula.tree.columns.binning import BinMap
from summula.tree.columns.categorical_columns import CategoricalColumns
from summula.tree.columns.constraints import interaction_groups, monotone_signs
from summula.tree.columns.rows import binned, check_weights, divided_rows, learned_bins, survey
from summula.tree.growing.nodes import Tree, TreeParameters
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import add_scores, find_leaves
from summula.tree.prediction.scoring_kernels import COMPILE_SCORING

__all__ = ["SHARED_PARAMETERS", "HistGradientBoosting"]

Array = NDArray[Any]

_LARGEST_TARGET = 1e30  # leaves room for large sample weights


def _is_open_fraction(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0.0 < value < 1.0)


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(0.0 < value <= 1.0)


_open_fraction = Allowed(_is_open_fraction, "a float in the range (0.0, 1.0)")
_fraction = Allowed(_is_fraction, "a float in the range (0.0, 1.0]")
_bins = Allowed(lambda value: integer(2).accepts(value) and value <= 255, "an int in the range [2, 255]")
_text = Allowed(lambda value: isinstance(value, str), "a str")
_callable = Allowed(callable, "a callable")

# Parameters of both estimators.
SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "learning_rate": (real(0.0, open_low=True),),
    "max_iter": (integer(1),),
    "max_leaf_nodes": (integer(2), none),
    "max_depth": (integer(1), none),
    "min_samples_leaf": (integer(1),),
    "l2_regularization": (real(0.0),),
    "max_features": (_fraction,),
    "max_bins": (_bins,),
    "categorical_features": (one_of("from_dtype"), array_like, none),
    "monotonic_cst": (array_like, mapping, none),
    "interaction_cst": (
        Allowed(lambda value: isinstance(value, list | tuple), "a list or tuple"),
        one_of("pairwise", "no_interactions"),
        none,
    ),
    "warm_start": (boolean,),
    "early_stopping": (one_of("auto"), boolean),
    "scoring": (_text, _callable, none),
    "validation_fraction": (_open_fraction, integer(1), none),
    "n_iter_no_change": (integer(1),),
    "tol": (real(0.0),),
    "verbose": (integer(0), boolean),
    "random_state": (random_state,),
    "n_jobs": (none, integer()),
    "max_time": (none, real(0.0)),
}


def raw_scores(nodes: Nodes, bins: BinMap, start: Array, chunk: Chunk) -> Array:
    """Return the raw scores of the rows of a chunk, of shape (rows, scores)."""
    X = bins.with_bins(chunk.X)
    out = np.tile(start, (len(X), 1))
    nodes.add_scores(X, out)
    return out


def leaves_of(nodes: Nodes, bins: BinMap, chunk: Chunk) -> Array:
    """Return the leaf of each tree that the rows of a chunk reach."""
    X = bins.with_bins(chunk.X)
    out = np.empty((len(X), nodes.n_trees), np.int64)
    find_leaves(X, nodes, 0, nodes.n_trees, out)
    return out


def _trees_fit_the_columns(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: the number of trees, and categorical splits on categorical columns only."""
    if model.n_iter_ * sizes["n_scores"] != sizes["n_trees"]:
        return f"there are {sizes['n_trees']} trees, not {model.n_iter_} times {sizes['n_scores']}"
    columns = model._nodes.column[model._nodes.category >= 0]
    if not model._bins.categorical[columns].all():
        return "a node has a categorical split on a numeric column"
    return None


@schema.state(
    _trees_fit_the_columns,
    n_trees_per_iteration_=schema.Integer(1, size="n_scores"),
    n_iter_=schema.Integer(0),
    is_categorical_=schema.Array("bool", "n_features") | None,
    do_early_stopping_=schema.Flag(),
    train_score_=schema.Array("float64", "n_train_scores", finite=False),
    validation_score_=schema.Array("float64", "n_validation_scores", finite=False),
    learning_curve_=schema.Dict(schema.Text("train", "validation"), schema.Array("float64", "...", finite=False)),
    _bins=schema.Object(BinMap, n_features="n_features"),
    _nodes=schema.Object(Nodes, n_features="n_features", n_trees="n_trees"),
    _start=schema.Array("float64", "n_scores"),
    _seed=schema.Integer(0, 2**32),
)
class HistGradientBoosting(InterpretableTrees, StagedPredictions, CategoricalColumns, RowwiseEstimator):
    """Base class of histogram-based gradient boosting estimators.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Shrinkage applied to each leaf value (learning rate).
    max_iter : int, default=100
        Maximum number of iterations, each of which adds one tree, or one per class for three or more classes.
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves per tree; None means no limit.
    max_depth : int or None, default=None
        Maximum depth of a tree; None means no limit.
    min_samples_leaf : int, default=20
        Minimum number of rows per leaf, regardless of sample weights.
    l2_regularization : float, default=0
        L2 penalty on leaf values, added to the sum of hessians of a leaf.
    max_features : float, default=1.0
        Fraction of columns, randomly chosen for each node, that are considered for splits.
    max_bins : int, default=255
        Maximum number of bins per column, not counting the bin of missing values.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, default="from_dtype"
        Categorical columns: by default those of categorical or text type in a frame or file; otherwise a mask, or
        indices or names of columns. If there are more than `max_bins` levels, the rarest share a bin; levels that did
        not occur in `fit` are treated as missing values.
    monotonic_cst : array-like of shape (n_features,), dict of names, or None, default=None
        Monotonicity constraints: 1 for predictions that increase with a column, -1 for decreasing ones, 0 for no
        constraint.
    interaction_cst : {"pairwise", "no_interactions"}, sequence of collections of int, or None, default=None
        Groups of columns that may interact, that is occur on the same path of a tree; columns in none of them form
        another group.
    warm_start : bool, default=False
        Whether to add trees to those of the previous fit, with the same bins.
    early_stopping : "auto" or bool, default="auto"
        Whether to stop when the score no longer improves; "auto" enables it for more than 10,000 rows.
    scoring : str, callable or None, default="loss"
        Score used for early stopping: the loss, a scikit-learn scorer, or (None) the method `score`. A callable is
        passed an estimator for the trees so far, and the binned rows (255 for missing values) as X.
    validation_fraction : int, float or None, default=0.1
        Number or fraction of rows held out for early stopping; None uses the training rows.
    n_iter_no_change : int, default=10
        Number of iterations without improvement after which to stop.
    tol : float, default=1e-7
        Minimum improvement of the score.
    random_state : int, Generator, RandomState or None, default=None
        Seed for rounding gradients, sampling rows for bin edges, held-out rows and columns.
    n_jobs : int, optional
        Maximum number of threads; None uses all. The model does not depend on it.
    max_time : float, optional
        Time limit in seconds, after which the trees so far are kept.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations.
    n_trees_per_iteration_ : int
        Number of trees per iteration.
    do_early_stopping_ : bool
        Whether early stopping was used.
    learning_curve_ : dict
        Mean loss before the first and after each iteration, for the training rows ("train") and the held-out rows
        ("validation").
    train_score_, validation_score_ : ndarray of shape (n_iter_ + 1,)
        Scores used for early stopping; the loss is negated. Empty without early stopping.
    feature_importances_ : ndarray of shape (n_features,)
        Total gain of the splits on each column, normalised to sum 1.
    is_categorical_ : ndarray of shape (n_features,), bool, or None
        Mask of the categorical columns.
    category_levels_ : dict
        Sorted levels of each text column, by name (x0, x1, ... for an array).
    """

    _accepts_sparse = False
    _allows_nan = True
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = SHARED_PARAMETERS

    loss: str
    _seed: int
    n_iter_: int
    n_trees_per_iteration_: int
    train_score_: Array
    validation_score_: Array
    learning_curve_: dict[str, Array]

    # ---------------------------------------------------------------------------------------------------------- targets

    def _make_loss(self) -> Loss:
        """Return the loss for the parameters and the targets."""
        raise NotImplementedError

    def _row_weights(self, y: Array, weight: Array | None) -> Array | None:
        """Return the sample weights, including those of classes."""
        return weight

    def _check_targets(self, loss: Loss, y: Array) -> None:
        """Raise DataError for targets that are invalid for the loss."""
        message = loss.refusal(y)
        if message is not None:
            raise DataError(message)
        top = float(np.abs(y).max())
        if top > _LARGEST_TARGET:
            raise DataError(
                f"The target y has values as large as {top:.2g}, whose gradients overflow single precision; rescale it "
                "first."
            )
        if isinstance(loss, Squared) and 0.0 < top < 1 / _LARGEST_TARGET:
            raise DataError(
                f"The target y has no value above {top:.2g}, and gradients underflow single precision; rescale it "
                "first."
            )

    # -------------------------------------------------------------------------------------------------------- reading

    @property
    def _goes_on(self) -> bool:
        """Return whether a fit adds trees to existing ones."""
        return is_true(self.warm_start) and hasattr(self, "_nodes")

    # -------------------------------------------------------------------------------------------------------- fitting

    def _tree_parameters(self, groups: tuple[frozenset[int], ...] | None) -> TreeParameters:
        return TreeParameters(
            max_leaves=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_rows=int(self.min_samples_leaf),
            l2=float(self.l2_regularization),
            learning_rate=float(self.learning_rate),
            interaction_groups=groups,
            feature_fraction=float(self.max_features),
        )

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, scan, Dask collection} of shape (n_samples, n_features)
            Training data; NaN is treated as missing, infinities as the extreme values of their column.
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any type, or targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows for early stopping, instead of a part of the training data. In a pipeline they are transformed by the
            previous steps with `Pipeline(..., transform_input=["X_val"])`.

        Returns
        -------
        self
        """
        given = X_val is not None or y_val is not None
        if given and y_val is None:
            raise ParameterError("X_val is provided, but y_val was not provided.")
        if given and X_val is None:
            raise ParameterError("y_val is provided, but X_val was not provided.")
        if given and self.early_stopping is False:
            raise ParameterError(
                "X_val and y_val are passed to fit while at the same time early_stopping is False. When passing X_val "
                "and y_val to fit, early_stopping should be set to either 'auto' or True."
            )
        warm = self._goes_on
        before = getattr(self, "classes_", None)
        with self._fitting(X, y, sample_weight) as run:
            if warm and before is not None:
                check_same_classes(before, self.classes_)
            check_one_target(run, y)
            validation = (X_val, y_val, sample_weight_val) if given else None
            self._boost(run, validation, warm=warm)
        return self

    def _boost(self, run: Run, validation: Any, *, warm: bool) -> None:
        expect_kernels("summula.tree.growing.grower:compile_grow")
        d, names = run.source.n_features, run.source.names
        categorical = np.zeros(d, bool) if self.is_categorical_ is None else self.is_categorical_
        loss = self._make_loss()
        monotone = monotone_signs(self.monotonic_cst, d, names, categorical, type(self).__name__)
        if loss.scores > 1 and monotone.any():
            raise ParameterError("monotonic constraints are not supported for multiclass classification.")
        parameters = self._tree_parameters(interaction_groups(self.interaction_cst, d))
        seed = self._seed if warm else draw_seed(self.random_state)
        stops = self.early_stopping if isinstance(self.early_stopping, bool) else run.source.n_rows > 10_000
        stops = bool(stops or validation is not None)

        found = survey(run, categorical, seed)
        self._check_targets(loss, found.y)
        weight = self._row_weights(found.y, found.weight)
        check_weights(found.y, weight, labelled=self._labelled)
        out = None
        if stops and validation is None and self.validation_fraction is not None:
            out = held_out_rows(self, found.y, weight, seed)
        bins = self._bins if warm else learned_bins(found, weight, out, self.max_bins)
        rows, held = divided_rows(run, bins, found.y, weight, out)
        del found
        start = self._start if warm else loss.start(rows[1], rows[2])
        learnt = Rows.at(rows[0], rows[1], rows[2], start)
        if validation is not None:
            held = self._validation_rows(loss, bins, *validation)
        watched = None if held is None else Rows.at(held[0], held[1], held[2], start)
        watcher = Watcher(self, loss, learnt, watched, stops=stops, warm=warm)
        booster = Booster(loss, learnt, bins, monotone, parameters, seed, self.n_jobs)
        scoring = f"{COMPILE_SCORING}:{run.source.dtype.name}"
        compile_meanwhile("summula.tree.growing.grower:compile_reading", scoring)
        self._add_trees(run, booster, watcher, self._nodes if warm else Nodes.none(), start)

    def _add_trees(self, run: Run, booster: Booster, watcher: Watcher, before: Nodes, start: Array) -> None:
        """Add trees up to `max_iter` iterations, or until early stopping."""
        scores, trees = booster.loss.scores, list[Tree]()
        iteration = before.n_trees // scores
        if iteration > self.max_iter:
            raise ParameterError(
                f"max_iter={self.max_iter} must be larger than or equal to n_iter_={iteration} when warm_start==True"
            )
        if iteration:
            for rows in (booster.rows, watcher.watched):
                if rows is not None:
                    rows.add_trees(before, 0, booster.threads)
        mean, largest = booster.compute_gradients()

        def nodes() -> Nodes:
            return Nodes.joined([before, Nodes.of(trees, booster.bins)])

        watcher.nodes, watcher.start = nodes, start
        if not iteration:
            watcher.note(mean)

        def assign() -> None:
            self._bins, self._seed, self._start = booster.bins, booster.seed, start
            self._nodes = nodes()
            self.n_trees_per_iteration_ = scores
            self.n_iter_ = self._nodes.n_trees // scores
            self.do_early_stopping_ = watcher.stops
            watcher.name(self)

        while iteration < self.max_iter:
            new = booster.add_trees(iteration, largest)
            mean, largest = booster.compute_gradients()
            if watcher.watched is not None:
                watcher.watched.add_trees(Nodes.of(new, booster.bins), 0, booster.threads)
            trees += new
            iteration += 1
            watcher.note(mean)
            run.offer(assign)
            if run.step() or watcher.is_enough():
                break
        assign()

    def _validation_rows(self, loss: Loss, bins: BinMap, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the validation rows passed by the user, binned."""
        with self._evaluating(X, y, sample_weight) as run:
            found = survey(run, np.zeros(run.source.n_features, bool), 0)
            self._check_targets(loss, found.y)
            check_weights(found.y, found.weight, labelled=self._labelled)
            return binned(run, bins)[0], found.y, found.weight

    # ------------------------------------------------------------------------------------------------------ predicting

    def _score_function(self) -> RowFunction:
        return functools.partial(raw_scores, self._nodes, self._bins, self._start)

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        source = self._in_memory(X, "A staged prediction")
        X = self._bins.with_bins(source.chunk(0, source.n_rows).X)
        out = np.tile(self._start, (len(X), 1))
        for k in range(self.n_iter_):
            add_scores(X, self._nodes, k * out.shape[1], (k + 1) * out.shape[1], out)
            yield out.copy()

    def _leaf_function(self) -> RowFunction:
        return functools.partial(leaves_of, self._nodes, self._bins)
