"""Base class of gradient boosting: reading, the loop over stages, scores.

The algorithm is in `stagewise/boosting.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from summula.core.data.chunks import Chunk
from summula.core.data.layout.stored_rows import SparseRows
from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import check_watch
from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.classifier import check_same_classes
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.input.argument_values import is_true
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of, random_state, real
from summula.core.estimator.regressor import check_one_target
from summula.core.estimator.rows import RowFunction, RowwiseEstimator
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.dummy import DummyClassifier, DummyRegressor
from summula.ensemble.histogram.stopping import held_out_rows
from summula.ensemble.stagewise.additive_model import (
    AdditiveModel,
    constant_start,
    fitted_start,
    learner_scores,
    predictions_of,
    tree_scores,
)
from summula.ensemble.stagewise.boosting import Patience, Rows, Stages
from summula.ensemble.stagewise.learner_sequence import LearnerSequence
from summula.ensemble.stagewise.learners import AnyLearner, TreeLearner
from summula.ensemble.stagewise.losses import StageLoss
from summula.ensemble.stagewise.staged import FIT_DOCS, StagedPredictions
from summula.tree.columns.rows import check_squares, survey
from summula.tree.decision_tree import SHARED_PARAMETERS as TREE_PARAMETERS
from summula.tree.decision_tree_regressor import DecisionTreeRegressor
from summula.tree.exact.grower import ExactTree
from summula.tree.named_importances import NamedImportances
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.predictor_kernels import add_scores, find_leaves
from summula.tree.prediction.tables import importances_by_tree, tree_estimators

__all__ = ["SHARED_PARAMETERS", "GradientBoosting", "grows_trees"]

Array = NDArray[Any]

_share = Allowed(
    lambda v: isinstance(v, float | np.floating) and bool(0.0 < v < 1.0), "a float in the range (0.0, 1.0)"
)
_fits = Allowed(lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "an object implementing 'fit' and 'predict'")
_OF_TREES = (
    *("min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_depth", "min_impurity_decrease"),
    *("max_features", "max_leaf_nodes", "ccp_alpha"),
)

SHARED_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "learning_rate": (real(0.0),),
    "n_estimators": (integer(1),),
    "subsample": (real(0.0, 1.0, open_low=True),),
    "criterion": (one_of("deprecated", "squared_error", "friedman_mse"),),
    **{name: TREE_PARAMETERS[name] for name in _OF_TREES},
    "init": (one_of("zero"), _fits, none),
    "random_state": (random_state,),
    "verbose": (integer(0), boolean),
    "warm_start": (boolean,),
    "validation_fraction": (_share,),
    "n_iter_no_change": (integer(1), none),
    "tol": (real(0.0),),
    "estimator": (_fits, none),
    "max_time": (none, real(0.0)),
}


def _stages_agree(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: trees or other learners, as many as there are stages, for the same columns."""
    n = model.n_estimators_ * sizes["n_scores"]
    if (model._nodes is None) == (not model._learners):
        return "there must be either trees or other learners"
    if any((one is None) != (model._nodes is None) for one in (model._values, model._impurity)):
        return "there are trees without values, or values without trees"
    if len(model._steps) != n:
        return f"there are {len(model._steps)} steps, not {n}"
    if model._nodes is not None:
        if model._nodes.n_trees != n:
            return f"there are {model._nodes.n_trees} trees, not {n}"
        if (model._nodes.category >= 0).any():
            return "a node splits a numeric column by category"
    elif len(model._learners) != n:
        return f"there are {len(model._learners)} learners, not {n}"
    for learner in [*model._learners, *([] if isinstance(model.init_, str) else [model.init_])]:
        if getattr(learner, "n_features_in_", None) != sizes["n_features"]:
            return f"a learner does not have {sizes['n_features']} columns"
    return None


def grows_trees(model: Any) -> bool:
    """Return whether the base learners are trees; other estimators have no leaves."""
    if model.estimator is not None:
        raise AttributeError("apply is only available for trees, not for other learners")
    return True


@inherit_docs()
@schema.state(
    _stages_agree,
    n_trees_per_iteration_=schema.Integer(1, size="n_scores"),
    n_estimators_=schema.Integer(1),
    max_features_=schema.Integer(1),
    train_score_=schema.Array("float64", "n_stages", finite=False),
    oob_scores_=schema.Maybe(schema.Array("float64", "n_stages", finite=False)),
    oob_improvement_=schema.Maybe(schema.Array("float64", "n_stages", finite=False)),
    init_=schema.Text("zero") | schema.Object(Estimator),
    _nodes=schema.Object(Nodes, n_features="n_features", n_nodes="n_nodes") | None,
    _impurity=schema.Array("float64", "n_nodes") | None,
    _values=schema.Array("float64", "n_nodes", 1) | None,
    _learners=schema.Items(schema.Object(Estimator)),
    _steps=schema.Array("float64", "n_steps"),
    _seed=schema.Integer(0, 2**32),
)
class GradientBoosting(NamedImportances, LearnerSequence, StagedPredictions, RowwiseEstimator):
    """Base class of gradient boosting: stages of learners fitted to the negative gradient of a loss.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Shrinkage applied to each stage.
    n_estimators : int, default=100
        Number of stages.
    subsample : float, default=1.0
        Fraction of rows, drawn at random, that each stage uses; the others are used for `oob_improvement_`.
    criterion : str, default="deprecated"
        Ignored, as in scikit-learn: splits use the squared error.
    min_samples_split, min_samples_leaf, min_weight_fraction_leaf, max_depth, min_impurity_decrease : int or float
        Limits of the trees, as in `DecisionTreeRegressor`; `max_depth` is 3 by default.
    random_state : int, Generator, RandomState or None, default=None
        Seed for drawing rows and columns, and for choosing held-out rows.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number of columns tried at each node, drawn at random, or their fraction; None tries all.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves of a tree.
    warm_start : bool, default=False
        Whether to add stages to those of the previous fit.
    validation_fraction : float, default=0.1
        Fraction of rows held out for early stopping, with `n_iter_no_change`.
    n_iter_no_change : int or None, default=None
        Number of stages without improvement of the held-out loss after which to stop; None disables early stopping.
    tol : float, default=1e-4
        Minimum improvement of the loss.
    ccp_alpha : float, default=0
        Penalty per leaf; trees are pruned.
    estimator : regressor, optional
        Base learner fitted to the negative gradients instead of a tree: any regressor. Each is multiplied by the
        factor that minimises the loss.
    max_time : float, optional
        Time limit in seconds, after which the stages so far are kept.

    Attributes
    ----------
    estimators_ : ndarray of shape (n_estimators_, n_trees_per_iteration_)
        The learners.
    n_estimators_ : int
        Number of stages.
    n_trees_per_iteration_ : int
    init_ : estimator or "zero"
        Initial estimator.
    train_score_ : ndarray of shape (n_estimators_,)
        Mean loss on the rows used, after each stage.
    oob_scores_, oob_improvement_ : ndarray of shape (n_estimators_,)
        Mean loss on the rows not used, after each stage, and its decrease; only if `subsample` is below 1.
    oob_score_ : float
        The last of `oob_scores_`.
    feature_importances_ : ndarray of shape (n_features,)
        Normalised decrease of the squared error of the gradients by the splits on each column.
    max_features_ : int
    """

    _allows_nan = True
    _streaming_alternative = "HistGradientBoostingClassifier or HistGradientBoostingRegressor"
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = SHARED_PARAMETERS

    n_estimators_: int
    n_trees_per_iteration_: int
    train_score_: Array
    init_: Any
    _nodes: Nodes | None
    _impurity: Array | None
    _values: Array | None
    _learners: list[Any]
    _steps: Array
    _seed: int

    # -------------------------------------------------------------------------------------------------------- targets

    def _make_loss(self) -> StageLoss:
        """Return the loss of the parameters and the targets."""
        raise NotImplementedError

    def _coded(self, y: Array) -> Array:
        """Return the targets in the form that the loss expects."""
        return y

    def _default_start(self) -> Any:
        """Return the default initial estimator."""
        raise NotImplementedError

    def _check_rows(self, y: Array, weight: Array | None) -> None:
        """Raise for targets or weights that are invalid for the loss."""

    # -------------------------------------------------------------------------------------------------------- fitting

    @property
    def _goes_on(self) -> bool:
        """Return whether a fit adds stages to existing ones."""
        return is_true(self.warm_start) and hasattr(self, "n_estimators_")

    @property
    def _starts_anew(self) -> bool:
        return not self._goes_on

    @with_callbacks
    @inherit_docs(FIT_DOCS)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, monitor: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        monitor : callable, optional
            Called after each stage with its number, the model so far and a dict; the fit stops if it returns True.
        """
        warm, before = self._goes_on, getattr(self, "classes_", None)
        with self._fitting(X, y, sample_weight) as run:
            if self.criterion != "deprecated":
                warn("criterion of gradient boosting is deprecated and has no effect; omit it.", FutureWarning)
            if warm and before is not None:
                check_same_classes(before, self.classes_)
            check_one_target(run, y)
            if warm and self.n_estimators < self.n_estimators_:
                raise ParameterError(
                    f"n_estimators={self.n_estimators} must be larger or equal to estimators_.shape[0]="
                    f"{self.n_estimators_} when warm_start==True"
                )
            found = survey(run, np.zeros(run.source.n_features, bool), 0)
            self._check_rows(found.y, found.weight)
            check_squares(found.y, found.weight)
            seed = self._seed if warm else draw_seed(self.random_state)
            chunk = run.source.chunk(0, run.source.n_rows)
            rows = np.ascontiguousarray(chunk.dense()) if self.estimator is None else chunk.X
            self._boost(run, rows, found.y, found.weight, seed, monitor)
        return self

    def _boost(self, run: Run, X: Any, y: Array, weight: Array | None, seed: int, monitor: Any) -> None:
        """Split off held-out rows, compute the initial scores, and add stages."""
        warm, loss, out = self._goes_on, self._make_loss(), None
        if self.n_iter_no_change is not None:
            out = held_out_rows(self, y, weight, seed)
            if self._labelled and len(np.unique(y[~out])) < len(self.classes_):
                raise DataError(
                    "The training data after the early stopping split is missing some classes. Try using another "
                    "random seed, or pass more rows of each class."
                )
        kept = slice(None) if out is None else ~out
        w = None if weight is None else weight[kept]
        init = self.init_ if warm else self._fitted_init(X[kept], y[kept], w)
        start = self._start_function(init, loss)
        learnt = Rows(X[kept], self._coded(y[kept]), w, self._scores_so_far(start, X[kept]))
        learner = self._learner(learnt, seed)
        stages = Stages(loss, learner, learnt, float(self.learning_rate), float(self.subsample), seed)
        held, patience = None, None
        if out is not None:
            held = Rows(X[out], self._coded(y[out]), None if weight is None else weight[out],
                        self._scores_so_far(start, X[out]))  # fmt: skip
            watched = held
            patience = Patience(
                int(self.n_iter_no_change), float(self.tol), lambda: loss.mean(watched.y, watched.f, watched.weight)
            )
        self._add_stages(run, stages, init, held, patience, monitor)

    def _fitted_init(self, X: Any, y: Array, weight: Array | None) -> Any:
        if isinstance(self.init, str):
            return self.init
        init = self._default_start() if self.init is None else clone(self.init)
        if weight is not None and not has_fit_parameter(init, "sample_weight"):
            raise ParameterError(f"The initial estimator {type(init).__name__} does not support sample weights.")
        return init.fit(X, y, **({} if weight is None else {"sample_weight": weight}))

    def _learner(self, rows: Rows, seed: int) -> Any:
        n, d = rows.X.shape
        if self.estimator is not None:
            self.max_features_ = d
            return AnyLearner(self.estimator, rows.X, rows.weight is not None, seed)
        prototype = self._prototype()
        limits = prototype._exact_parameters(n, d, n if rows.weight is None else float(rows.weight.sum()))
        self.max_features_ = prototype.max_features_
        return TreeLearner(rows.X, limits, float(self.ccp_alpha), seed, check_watch)

    def _prototype(self) -> DecisionTreeRegressor:
        return DecisionTreeRegressor(**{name: getattr(self, name) for name in _OF_TREES})

    def _scores_so_far(self, start: Any, X: Any) -> Array:
        """Return the scores of rows before the next stage, shape (n_scores, n)."""
        scores = (self._row_scores(start) if self._goes_on else start)(_chunk_of(X))
        return np.ascontiguousarray(scores.T)

    def _add_stages(
        self, run: Run, stages: Stages, init: Any, held: Rows | None, patience: Patience | None, monitor: Any
    ) -> None:
        """Add stages until there are enough, or early stopping."""
        model = AdditiveModel.of(self) if self._goes_on else AdditiveModel()
        stages.out_of_bag = model.history.last_out_of_bag()

        def assign() -> None:
            model.pad_history(self.subsample < 1.0)
            model.assign_to(self)
            self._seed, self.init_, self.n_trees_per_iteration_ = stages.seed, init, stages.loss.n_scores

        while model.n_stages < self.n_estimators:
            model.pad_history(self.subsample < 1.0)
            model.add_stage(stages, held)
            run.offer(assign)
            if run.step() or (patience is not None and patience.is_over()):
                break
            if monitor is not None:
                assign()
                number = model.n_stages - 1
                if monitor(number, self, {"i": number, "self": self}):
                    break
        assign()

    # ------------------------------------------------------------------------------------------------------ predicting

    def _start_function(self, init: Any, loss: StageLoss) -> Callable[[Chunk], Array]:
        if isinstance(init, str):
            return functools.partial(constant_start, np.zeros(loss.n_scores))
        drawn = isinstance(init, DummyClassifier) and init.strategy == "stratified"
        if isinstance(init, DummyRegressor | DummyClassifier) and not drawn:  # one prediction for all rows
            row = np.zeros((1, init.n_features_in_))
            return functools.partial(constant_start, loss.scores(predictions_of(init, row))[:, 0])
        return functools.partial(fitted_start, init, loss)

    def _row_scores(self, start: Callable[[Chunk], Array]) -> RowFunction:
        if self._nodes is None:
            return functools.partial(learner_scores, self._learners, self._steps, start)
        return functools.partial(tree_scores, self._nodes, start)

    def _score_function(self) -> RowFunction:
        return self._row_scores(self._start_function(self.init_, self._make_loss()))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        source = self._reading(X)
        chunk = source.chunk(0, source.n_rows)
        out, k = self._start_function(self.init_, self._make_loss())(chunk), self.n_trees_per_iteration_
        rows = chunk.X if self._nodes is None else chunk.dense(chunk.dtype)
        for stage in range(self.n_estimators_):
            if self._nodes is not None:
                add_scores(rows, self._nodes, stage * k, (stage + 1) * k, out)
            else:
                for t in range(stage * k, (stage + 1) * k):
                    out[:, t % k] += self._steps[t] * self._learners[t].predict(rows)
            yield out.copy()

    @property
    def estimators_(self) -> Array:
        """Fitted learners, shape (n_estimators_, n_trees_per_iteration_)."""
        check_is_fitted(self)
        if self._nodes is None or self._impurity is None or self._values is None:
            flat = list(self._learners)
        else:
            table = ExactTree(self._nodes, self._impurity, self._values)
            flat = tree_estimators(self._prototype(), table, self.n_features_in_)
        out = np.empty(len(flat), object)
        out[:] = flat
        return out.reshape(self.n_estimators_, self.n_trees_per_iteration_)

    @property
    def oob_score_(self) -> float:
        """Mean loss on the rows that the last stage did not use."""
        if not hasattr(self, "oob_scores_"):
            raise AttributeError("oob_score_ is only available if subsample < 1")
        return float(self.oob_scores_[-1])

    @property
    def feature_importances_(self) -> Array:
        """Normalised decrease of the squared error of the gradients by the splits on each column."""
        check_is_fitted(self)
        if self._nodes is None:
            raise AttributeError("feature_importances_ is only available for trees, not for other learners")
        gains = importances_by_tree(self._nodes, self.n_features_in_, shares=False).sum(axis=0)
        return np.asarray(gains / gains.sum() if gains.sum() > 0 else gains)

    @available_if(grows_trees)
    def apply(self, X: Any) -> Any:
        """Return the leaf of each tree that rows reach.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_estimators_, n_trees_per_iteration_) of node numbers within the tree
        """
        check_is_fitted(self)
        assert self._nodes is not None
        leaves = self._by_row(X, functools.partial(_leaves_of, self._nodes))
        return leaves.reshape(len(leaves), self.n_estimators_, self.n_trees_per_iteration_)


def _chunk_of(X: Any) -> Chunk:
    """Return training rows as a chunk."""
    n = int(X.shape[0])
    return Chunk(X if isinstance(X, np.ndarray) else SparseRows(X, 0, n), None, None, 0, n, X.dtype)


def _leaves_of(nodes: Nodes, chunk: Chunk) -> Array:
    out = np.empty((len(chunk), nodes.n_trees), np.int64)
    find_leaves(chunk.dense(chunk.dtype), nodes, 0, nodes.n_trees, out)
    return out
