"""Base class of forests: reading, growing, prediction and importances."""

from __future__ import annotations

import functools
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.compilation.background import expect_kernels
from summula.core.data.sources import Source
from summula.core.docstrings import inherit_docs
from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, ParameterError, warn
from summula.core.estimator.input.argument_values import is_fraction, is_true
from summula.core.estimator.parameters import Allowed, boolean, integer, none, one_of
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.ensemble.forest.bootstrap import Bootstrap
from summula.ensemble.forest.growing import ForestRows, bin_centres, grow_trees
from summula.ensemble.forest.members import ForestMembers
from summula.ensemble.forest.out_of_bag import OutOfBagImportances, oob_means, permutation_importances
from summula.ensemble.forest.streaming import bins_by_column, grow_trees_of_stream
from summula.ensemble.forest.walking import leaves_of_chunk, mean_values, tree_values
from summula.tree.binned.packed import PackedTrees
from summula.tree.binned.records import BinnedTable
from summula.tree.binned.scan_kernels import needed_kernels
from summula.tree.columns.binning import BinMap, dense_rows, learn_bins
from summula.tree.columns.categorical_columns import CategoricalColumns
from summula.tree.columns.constraints import monotone_signs
from summula.tree.columns.rows import Survey, binned, check_squares, survey
from summula.tree.exact.records import CRITERIA
from summula.tree.growing.limits import LIMITS, check_monotone, number_of_features
from summula.tree.named_importances import NamedImportances
from summula.tree.prediction.grown_trees import GrownTrees
from summula.tree.targets import TreeEstimator

if TYPE_CHECKING:
    from summula.stats.bounds import Bounds

__all__ = ["FOREST_PARAMETERS", "Forest", "check_same_number"]

Array = NDArray[Any]

_MOST_COLUMNS = 2**16 - 1
_BINNED = "summula.tree.binned"
_callable = Allowed(callable, "a callable")
_part = Allowed(
    lambda v: isinstance(v, float | np.floating) and bool(0.0 < v < np.inf), "a float in the range (0.0, inf)"
)

FOREST_PARAMETERS: dict[str, tuple[Allowed, ...]] = {
    "n_estimators": (integer(1),),
    **LIMITS,
    "bootstrap": (boolean,),
    "oob_score": (boolean, _callable),
    "n_jobs": (none, integer()),
    "verbose": (integer(0), boolean),
    "warm_start": (boolean,),
    "max_samples": (none, integer(1), _part),
    "splits": (one_of("bins", "exact"),),
    "max_bins": (integer(2, 255),),
}

_MOST_DRAWS = 2**26  # maximum rows per tree drawn from a table with few rows


def check_same_number(before: int, now: int) -> None:
    """Raise if a warm start has a different number of targets than the previous fit."""
    if before != now:
        raise DataError(
            f"y has {now} target{'s' if now > 1 else ''}, but had {before} in the previous fit, which warm_start=True "
            "continues; pass the same targets, or set warm_start=False."
        )


def _trees_fit_the_columns(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: there are trees, and only categorical columns are split by category."""
    if sizes["n_trees"] < 1:
        return "there are no trees"
    trees = model._trees
    is_set = trees.flags & 2 > 0
    if not model._bins.categorical[trees.column[is_set]].all() or model._bins.categorical[trees.column[~is_set]].any():
        return "a node splits a numeric column by category, or a categorical one by a threshold"
    return None


@inherit_docs()
@schema.state(
    _trees_fit_the_columns,
    is_categorical_=schema.Array("bool", "n_features") | None,
    oob_score_=schema.Maybe(schema.Real()),
    _bins=schema.Object(BinMap, n_features="n_features"),
    _trees=schema.Object(
        PackedTrees, n_features="n_features", n_trees="n_trees", n_values="n_values", n_weights="n_weights"
    ),
    _seed=schema.Integer(0, 2**32),
    _n_rows=schema.Integer(1),
    _draws_by_weight=schema.Flag(),
)
class Forest(ForestMembers, NamedImportances, CategoricalColumns, GrownTrees, TreeEstimator):
    """Base class of forests.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves per tree; the node of largest improvement is split first.
    bootstrap : bool, default=True for random forests, False for extra trees
        Whether each tree is grown from rows drawn with replacement, in proportion to their weights, or from all rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed for drawing rows, columns and thresholds; the forest does not depend on the number of threads.
    verbose : int, default=0
        Ignored.
    warm_start : bool, default=False
        Whether another call of `fit` adds trees to the existing ones.
    ccp_alpha : float, default=0
        Penalty per leaf; each tree is pruned to its optimal subtree.
    max_samples : int, float or None, default=None
        Number of draws per tree, or a fraction of the number (or weight) of rows; None draws as many as there are rows.
    max_bins : int, default=255
        Maximum number of bins per column.
    max_time : float, optional
        Time limit in seconds, after which the trees so far are kept.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Normalised decrease of impurity by the splits on each column; `oob_importances` is unbiased.
    n_outputs_ : int
        Number of targets.
    oob_score_ : float
        Only with `oob_score`.
    """

    _allows_nan = True
    _random_threshold: ClassVar[bool] = False
    _tree_class: ClassVar[Any]
    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = FOREST_PARAMETERS

    oob_score_: float
    _seed: int
    _n_rows: int
    _draws_by_weight: bool

    # -------------------------------------------------------------------------------------------------------- targets

    @property
    def _leaf_values(self) -> Array:
        return self._trees.values

    def _check_continues(self, before: Any, run: Run) -> None:
        """Raise if the targets of a warm start differ from those of the previous fit."""

    def _set_out_of_bag(self, means: Array, y: Array) -> None:
        """Set the out-of-bag predictions and their score."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------------- fitting

    @property
    def _goes_on(self) -> bool:
        """Return whether a fit adds trees to existing ones."""
        return is_true(self.warm_start) and hasattr(self, "_trees")

    @property
    def _is_exact(self) -> bool:
        return bool(self.splits == "exact" or self.criterion == "absolute_error")

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix, scan, Dask collection} of shape (n_samples, n_features)
            Training data; NaN is a missing value, infinities are the extreme values of their column.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or name of a column of X
            Class labels of any type, or targets.
        sample_weight : array-like of shape (n_samples,), float, or name of a column of X, optional
            Sample weights: with `bootstrap`, rows are drawn in proportion to them; otherwise they weight the rows of
            each tree.
        """
        warm, before = self._goes_on, getattr(self, "classes_", None)
        with self._fitting(X, y, sample_weight) as run:
            if warm:
                self._check_continues(before, run)
            self._check_together(run.source)
            self._grow_forest(run, warm=warm)
        return self

    def _check_together(self, source: Source) -> None:
        """Raise for parameters that are incompatible with each other or with the data."""
        if not self.bootstrap and self.max_samples is not None:
            raise ParameterError(
                "`max_samples` cannot be set if `bootstrap=False`: either switch to `bootstrap=True` or set "
                "`max_samples=None`."
            )
        if not self.bootstrap and self.oob_score:
            raise ParameterError("Out of bag estimation only available if bootstrap=True")
        if source.streams and self._is_exact:
            why = "splits='exact'" if self.splits == "exact" else "criterion='absolute_error'"
            raise DataError(
                f"{type(self).__name__} with {why} needs its rows in memory, and X is in files or a Dask collection: "
                f"use {'splits=' + repr('bins') if self.splits == 'exact' else 'criterion=' + repr('squared_error')}, "
                "or pass an array of some of the rows."
            )
        if source.n_features > _MOST_COLUMNS:
            raise DataError(
                f"X has {source.n_features} columns, but {type(self).__name__} supports at most {_MOST_COLUMNS}: "
                "select columns first."
            )

    def _grow_forest(self, run: Run, *, warm: bool) -> None:
        seed = self._seed if warm else draw_seed(self.random_state)
        first = self._trees.n_trees if warm else 0
        if first > self.n_estimators:
            raise ParameterError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={first} when "
                "warm_start==True"
            )
        if warm and first == self.n_estimators:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning)
        data, bins = self._rows_of(run, seed)
        trees = [self._trees] if warm else []

        def assign() -> None:
            self._bins, self._seed, self._n_rows = bins, seed, data.bootstrap.n
            self._draws_by_weight = data.bootstrap.weight is not None
            self._trees = PackedTrees.joined(trees)

        with closing(self._grown_trees(run, data, bins, range(first, int(self.n_estimators)))) as grown:
            for one in grown:
                trees.append(one)
                run.offer(assign)
                if run.step("tree"):
                    break
        assign()
        if self.oob_score:
            means, counts = oob_means(self._trees, bins, data.bootstrap, run)
            if (counts == 0).any():
                warn(
                    "Some inputs do not have OOB scores. This probably means too few trees were used to compute any "
                    "reliable OOB estimates.",
                    UserWarning,
                )
            self._set_out_of_bag(means, data.y)

    def _grown_trees(self, run: Run, data: ForestRows, bins: BinMap, numbers: range) -> Any:
        """Return an iterator over the trees with some numbers."""
        if data.table is not None and data.table.bins.shape[1] < data.bootstrap.n:
            return grow_trees_of_stream(self, data, numbers, run, bins)
        return grow_trees(self, data, numbers.start, numbers.stop)

    def _rows_of(self, run: Run, seed: int) -> tuple[ForestRows, BinMap]:
        """Read the rows: targets, weights and bin edges in one pass, bins in another."""
        d, names = run.source.n_features, run.source.names
        number_of_features(self.max_features, d)
        is_categorical = np.zeros(d, bool) if self.is_categorical_ is None else self.is_categorical_
        monotone = monotone_signs(self.monotonic_cst, d, names, is_categorical, type(self).__name__)
        outputs = self._outputs_of(run)
        check_monotone(monotone, outputs)
        if monotone.any() and self._is_exact:
            raise ParameterError("monotonic_cst needs thresholds from bins: set splits='bins' and another criterion.")
        if not self._is_exact:
            kernels = needed_kernels(CRITERIA[self.criterion], outputs, is_categorical, monotone)
            split = f"{_BINNED}.scan_kernels:compile_kernels:{','.join(kernels)}"
            expect_kernels(split, f"{_BINNED}.walk_kernels:warmup")
        found = survey(run, is_categorical, seed)
        y = found.y.reshape(outputs.n_outputs, -1)
        self._check_targets(y)
        weight = self._row_weights(y, found.weight)
        check_squares(y, None if self.bootstrap else weight)
        bins = self._bins if self._goes_on else self._learn_bins(found, weight)
        bootstrap = Bootstrap(run.source.n_rows, self._sample_size(run.source.n_rows, weight), weight, seed)
        if self._is_exact:
            values = bins.with_bins(dense_rows(run.source.chunk(0, run.source.n_rows)))
            return ForestRows(values, None, y, outputs, is_categorical, bootstrap), bins
        # Sums of squares about the mean are accurate.
        shift = np.average(y, axis=1, weights=weight) if self.criterion == "squared_error" else np.zeros(1)
        some = None if weight is None else weight[found.numbers]
        centres = bin_centres(found.rows, some, bins) if self._random_threshold else bins.edges
        del found
        kinds = is_categorical.astype(np.uint8)
        edges, centres = (np.require(of_bins, requirements="W") for of_bins in (bins.edges, centres))
        table = BinnedTable(bins_by_column(run, bins), edges, centres, kinds, monotone)
        return ForestRows(None, table, y, outputs, is_categorical, bootstrap, shift), bins

    def _learn_bins(self, found: Survey, weight: Array | None) -> BinMap:
        if self._is_exact:
            return learn_bins(found.rows[:0], None, found.categories, 255)
        some = None if weight is None else weight[found.numbers]
        return learn_bins(found.rows, some, found.categories, int(self.max_bins))

    def _sample_size(self, n: int, weight: Array | None) -> int | None:
        """Return the number of draws per tree."""
        if not self.bootstrap:
            return None
        if self.max_samples is None:
            return n
        if isinstance(self.max_samples, int | np.integer):
            if self.max_samples > max(4 * n, _MOST_DRAWS):
                raise ParameterError(
                    f"max_samples={self.max_samples} draws far more rows for each tree than there are ({n}); reduce it."
                )
            return int(self.max_samples)
        total = n if weight is None else float(weight.sum())
        size = max(int(self.max_samples * total), 1)
        if size < max(10, n ** (1 / 3)):
            what = "the number of samples" if weight is None else "the total sum of sample weights"
            warn(
                f"Using the fractional value max_samples={self.max_samples} when {what} is {total} results in a low "
                f"number ({size}) of bootstrap samples. We recommend passing `max_samples` as an integer instead.",
                UserWarning,
            )
        return size

    # ------------------------------------------------------------------------------------------------------ the trees

    def _score_function(self) -> Any:
        return functools.partial(mean_values, self._trees, self._bins)

    @property
    def feature_importances_(self) -> Array:
        """Normalised decrease of impurity by the splits on each column, averaged over the trees.

        It favours columns with many values, unlike `oob_importances`.
        """
        check_is_fitted(self)
        mean = self._trees.importances(self.n_features_in_).mean(axis=0)
        return np.asarray(mean / mean.sum() if mean.sum() > 0 else mean)

    def _leaf_function(self) -> RowFunction:
        return functools.partial(leaves_of_chunk, self._trees, self._bins)

    def decision_path(self, X: Any) -> Any:
        """Return which nodes each row passes through.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes), 1 for the nodes on the paths
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            The columns of tree t are indicator[:, n_nodes_ptr[t] : n_nodes_ptr[t + 1]].
        """
        leaves, trees = np.asarray(self.apply(X)), self._trees
        parent, child = np.full(len(trees.is_inner), -1), trees.children()
        for side in range(2):
            parent[child[child > 0] + side] = np.flatnonzero(child)
        at, which = (leaves + trees.roots[:-1]).reshape(-1), np.repeat(np.arange(len(leaves)), trees.n_trees)
        rows, columns = [], []
        while len(at):
            rows.append(which)
            columns.append(at)
            above = parent[at]
            at, which = above[above >= 0], which[above >= 0]
        row, column = np.concatenate(rows), np.concatenate(columns)
        shape = (len(leaves), len(parent))
        return sparse.csr_matrix((np.ones(len(row), np.int64), (row, column)), shape), trees.roots.copy()

    def infinite_forest_interval(self, X: Any, *, confidence: float = 0.95) -> Bounds:
        """Compute, for each row, an interval for the prediction of a forest with infinitely many trees.

        It bounds the change of the prediction as trees are added; it is not an interval for the target.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
        confidence : float, default=0.95
            Coverage probability of the interval of a row, over the random numbers of the trees.

        Returns
        -------
        Bounds
            `lower` and `upper`, in the shape of the prediction (for classifiers, of the probabilities; a list with one
            entry per target if there are several).
        """
        source = self._in_memory(X, "infinite_forest_interval")
        if not is_fraction(confidence):
            raise ParameterError(f"confidence must be between 0 and 1, both excluded; got {confidence!r}.")
        values = functools.partial(tree_values, self._trees, self._bins)
        return self._interval(self._map_rows(values, source), 1.0 - confidence)

    def _interval(self, values: Array, delta: float) -> Bounds:
        """Return bounds from the values of rows in every tree, shape (rows, trees, values per leaf)."""
        raise NotImplementedError

    def oob_importances(self, X: Any, y: Any, sample_weight: Any = None) -> OutOfBagImportances:
        """Compute the increase of the out-of-bag loss of each tree when a column is shuffled (permutation importance).

        Unlike `feature_importances_`, it does not favour columns with many values and is 0 on average for an
        uninformative column.

        Parameters
        ----------
        X, y, sample_weight : the training data, as passed to `fit`
            The out-of-bag rows of each tree are drawn again, so the rows must be the same, in the same order.

        Returns
        -------
        OutOfBagImportances
            `importances_mean`, its standard error `importances_std`, and `importances` of every tree.
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise ParameterError("oob_importances needs out-of-bag rows: set bootstrap=True.")
        source = self._source(X, y, sample_weight)
        try:
            if source.n_rows != self._n_rows:
                raise DataError(
                    f"X has {source.n_rows} rows, but the forest was fitted to {self._n_rows}: pass the training data."
                )
            run = Run(self, source, quiet=True)
            found = survey(run, np.zeros(source.n_features, bool), 0)
            if (n := found.y.size // source.n_rows) != self.n_outputs_:
                raise DataError(f"y has {n} targets, and the forest was fitted to {self.n_outputs_}: give its targets.")
            y = found.y.reshape(self.n_outputs_, -1)
            weight = self._row_weights(y, found.weight)
            if self._trees.is_exact:
                rows = self._bins.with_bins(dense_rows(source.chunk(0, source.n_rows)))
            else:
                rows = binned(run, self._bins)[0]
        finally:
            source.release()
        bootstrap = Bootstrap(len(rows), self._sample_size(len(rows), weight), weight, self._seed)
        data = ForestRows(rows, None, y, self._outputs, np.zeros(0, bool), bootstrap)
        return permutation_importances(self._trees, self._bins, data, self.n_jobs)
