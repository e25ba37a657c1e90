"""AdaBoost: a weighted vote of learners, each focused on the rows that its predecessors misclassified.

With row weights p that sum to 1 and K classes, round t (SAMME; Zhu et al. 2009)

    1. fits a learner h_t to the rows with the weights p,
    2. computes its error  e_t = sum_i p_i [h_t(x_i) != y_i],
    3. gives it the weight  a_t = learning_rate (log((1 - e_t) / e_t) + log(K - 1)),                                (1)
    4. multiplies the weights of misclassified rows by exp(a_t), and normalises all to sum 1.

For two classes and learning rate 1 this is stage-wise minimisation of the exponential loss sum_i exp(-y_i f(x_i)), with
y_i = -1 or 1 and f = sum_t (a_t / 2) h_t. Boosting stops early at a learner with no errors, or one no better than
chance (e_t >= 1 - 1 / K).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.engine.engine import check_watch
from summula.core.engine.random import draw_seed
from summula.core.errors import DataError, warn
from summula.core.estimator.estimator import Estimator
from summula.core.estimator.parameters import Allowed, Parameters, integer, none, random_state, real
from summula.core.estimator.rows import RowFunction
from summula.core.estimator.run import Run
from summula.core.model_files import schema
from summula.ensemble.adaptive.certificate import BoostingCertificate, TrainingVotes
from summula.ensemble.adaptive.learners import AnyLearner, TreeLearner, is_plain_tree
from summula.ensemble.adaptive.votes import (
    learner_scores,
    learner_votes,
    scores_of_votes,
    staged_codes,
    tree_scores,
    tree_votes,
)
from summula.ensemble.stagewise.learner_sequence import LearnerSequence
from summula.ensemble.stagewise.staged import FIT_DOCS, StagedClassifier
from summula.tree.columns.rows import survey
from summula.tree.decision_tree_classifier import DecisionTreeClassifier
from summula.tree.exact.grower import ExactTree
from summula.tree.named_importances import NamedImportances
from summula.tree.prediction.predictor import Nodes
from summula.tree.prediction.tables import importances_by_tree, joined_trees, tree_estimators

__all__ = ["AdaBoostClassifier"]

Array = NDArray[Any]

_classifier = Allowed(
    lambda v: hasattr(v, "fit") and hasattr(v, "predict"), "an object implementing 'fit' and 'predict'"
)


def _learners_agree(model: Any, sizes: schema.Sizes) -> str | None:
    """Check a saved model: trees or other learners, one per weight, for the same columns and classes."""
    n = sizes["n_rounds"]
    if not model.estimator_weights_.sum() > 0.0:
        return "estimator_weights_ add up to 0"
    if (model._nodes is None) == (not model._learners):
        return "there must be either trees or other learners"
    if any((one is None) != (model._nodes is None) for one in (model._shares, model._impurity)):
        return "there are trees without class fractions, or class fractions without trees"
    if model._nodes is not None:
        if model._nodes.n_trees != n or len(model._shares) != len(model._nodes.column):
            return f"there are {model._nodes.n_trees} trees for {n} weights"
        if (model._nodes.category >= 0).any():
            return "a node splits a numeric column by category"
        if (model._shares < 0).any() or not np.allclose(model._shares.sum(axis=1), 1.0):
            return "the class proportions of a node do not sum to 1"
        return None
    if len(model._learners) != n:
        return f"there are {len(model._learners)} learners for {n} weights"
    for learner in model._learners:
        if getattr(learner, "n_features_in_", None) != sizes["n_features"]:
            return f"a learner does not have {sizes['n_features']} columns"
        if not np.isin(getattr(learner, "classes_", [None]), model.classes_).all():
            return "a learner predicts other classes"
    return None


@inherit_docs()
@schema.saved(
    _learners_agree,
    classes_=schema.Labels("n_classes"),
    estimator_weights_=schema.Array("float64", "n_rounds", low=0.0),
    estimator_errors_=schema.Array("float64", "n_rounds", low=0.0, high=1.0),
    _votes=schema.Object(TrainingVotes),
    _nodes=schema.Object(Nodes, n_features="n_features") | None,
    _shares=schema.Array("float64", "n_nodes", "n_classes", row_major=True) | None,
    _impurity=schema.Array("float64", "n_nodes") | None,
    _learners=schema.Items(schema.Object(Estimator)),
)
class AdaBoostClassifier(LearnerSequence, NamedImportances, StagedClassifier):
    """AdaBoost classifier: a weighted vote of learners that focus on misclassified rows (SAMME).

    Parameters
    ----------
    estimator : classifier, optional
        Base learner: any classifier whose `fit` supports `sample_weight`. By default a decision stump, a tree with
        one split. Trees (`summula.tree.DecisionTreeClassifier`) share columns that are sorted once.
    n_estimators : int, default=50
        Maximum number of rounds.
    learning_rate : float, default=1.0
        Shrinkage of the weights of the learners; smaller values need more rounds.
    random_state : int, Generator, RandomState or None, default=None
        Seed for learners with a `random_state`.
    max_time : float, optional
        Time limit in seconds, after which the learners so far are kept.

    Attributes
    ----------
    estimator_ : estimator
        Base learner that is cloned in each round.
    estimators_ : list of classifiers
        The fitted learners.
    estimator_weights_, estimator_errors_ : ndarray of shape (n_rounds,)
        Weight (1) and weighted error of each learner.
    classes_ : ndarray of shape (n_classes,)
    n_classes_ : int
    certificate_ : BoostingCertificate
        Training error, the product bound on it, and the distribution of the margins; `verify(X, y)` recomputes them.
    feature_importances_ : ndarray of shape (n_features,)
        Weighted mean of the learners' importances; only if they have any.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when all columns have names.

    References
    ----------
    Freund and Schapire, A decision-theoretic generalization of on-line learning and an application to boosting, 1997.
    Zhu, Zou, Rosset and Hastie, Multi-class AdaBoost, Statistics and its Interface 2, 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from summula.ensemble import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    >>> model.certificate_.training_error <= model.certificate_.bound
    True
    >>> bool(model.certificate_.verify(X, y))
    True
    """

    _allows_nan = True
    _fewest_classes = 1
    _streaming_alternative = "HistGradientBoostingClassifier"
    _parameters: ClassVar[Parameters] = {
        "estimator": (_classifier, none),
        "n_estimators": (integer(1),),
        "learning_rate": (real(0.0, open_low=True),),
        "random_state": (random_state,),
        "max_time": (none, real(0.0)),
    }

    estimator_weights_: Array
    estimator_errors_: Array
    _votes: TrainingVotes
    _nodes: Nodes | None
    _shares: Array | None
    _impurity: Array | None
    _learners: list[Any]

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        random_state: Any = None,
        max_time: float | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.max_time = max_time

    # -------------------------------------------------------------------------------------------------------- fitting

    @with_callbacks
    @inherit_docs(FIT_DOCS)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model."""
        with self._fitting(X, y, sample_weight) as run:
            found = survey(run, np.zeros(run.source.n_features, bool), 0)
            codes, chunk = found.y.astype(np.intp), run.source.chunk(0, run.source.n_rows)
            seed = draw_seed(self.random_state)
            if is_plain_tree(self.estimator):
                rows = np.ascontiguousarray(chunk.dense())
                learner: Any = TreeLearner(self._learner(), rows, codes, len(self.classes_), seed, check_watch)
            else:
                learner = AnyLearner(self.estimator, chunk.X, codes, self.classes_, seed)
            self._boost(run, learner, codes, found.weight)
        return self

    def _boost(self, run: Run, learner: Any, codes: Array, weight: Array | None) -> None:
        """Add learners until there are enough, or boosting stops early."""
        n, k = len(codes), len(self.classes_)
        p = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
        votes, rows = np.zeros((n, k)), np.arange(n)
        alphas: list[float] = []
        errors: list[float] = []

        def assign() -> None:
            self.estimator_weights_, self.estimator_errors_ = np.array(alphas), np.array(errors)
            is_tree = isinstance(learner, TreeLearner)
            table = joined_trees(learner.trees) if is_tree else (None, None, None)
            self._nodes, self._impurity, self._shares = table
            self._learners = [] if is_tree else list(learner.fitted)
            self._votes = TrainingVotes.of(votes, codes, weight)

        while len(alphas) < self.n_estimators:
            predicted = learner.fit(p, len(alphas))
            is_wrong = predicted != codes
            error = float(p[is_wrong].sum())
            if error >= 1.0 - 1.0 / k and k > 1:
                if not alphas:
                    raise DataError(
                        "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can not be fit: "
                        f"{type(self._learner()).__name__} is wrong on {error:.0%} of the weight with {k} classes. "
                        "Use a stronger estimator, or other columns."
                    )
                break
            alpha = self.learning_rate * (np.log((1.0 - error) / error) + np.log(k - 1.0)) if error > 0.0 else 1.0
            learner.keep()
            alphas.append(float(alpha))
            errors.append(error)
            votes[rows, predicted] += alpha
            run.offer(assign)
            if error <= 0.0 or run.step():
                break
            with np.errstate(over="ignore"):
                p = np.where(is_wrong, p * np.exp(alpha), p)
            if not np.isfinite(p.sum()):
                warn(
                    f"Sample weights have reached infinite values after {len(alphas)} rounds, so boosting stopped; "
                    "try a lower learning_rate.",
                    UserWarning,
                )
                break
            p /= p.sum()
        assign()

    @property
    def estimator_(self) -> Any:
        """Base learner that is cloned in each round."""
        check_is_fitted(self)
        return self._learner()

    def _learner(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else clone(self.estimator)

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted learners."""
        check_is_fitted(self)
        if self._nodes is None or self._impurity is None or self._shares is None:
            return list(self._learners)
        table = ExactTree(self._nodes, self._impurity, self._shares)
        return tree_estimators(self._learner(), table, self.n_features_in_, classes_=self.classes_)

    @property
    def certificate_(self) -> BoostingCertificate:
        """Training error, the product bound on it, and the distribution of the margins."""
        check_is_fitted(self)
        return BoostingCertificate(self._votes.error, self._votes.bound, self._votes.margins, self)

    def _judged(self, X: Any, y: Any, sample_weight: Any) -> TrainingVotes:
        """Return error, bound and margins on some rows."""
        with self._evaluating(X, y, sample_weight) as run:
            found = survey(run, np.zeros(run.source.n_features, bool), 0)
            chunk = run.source.chunk(0, run.source.n_rows)
            rows = chunk.X if self._nodes is None else chunk.dense()
            return TrainingVotes.of(self._votes_of(rows), found.y.astype(np.intp), found.weight)

    @property
    def feature_importances_(self) -> Array:
        """Weighted mean of the importances of the learners."""
        check_is_fitted(self)
        alpha = self.estimator_weights_ / self.estimator_weights_.sum()
        if self._nodes is not None:
            return np.asarray((alpha[:, None] * importances_by_tree(self._nodes, self.n_features_in_)).sum(axis=0))
        if not all(hasattr(learner, "feature_importances_") for learner in self._learners):
            raise AttributeError(
                "Unable to compute feature importances since estimator does not have a feature_importances_ attribute"
            )
        shares = [
            a * np.asarray(learner.feature_importances_) for a, learner in zip(alpha, self._learners, strict=True)
        ]
        return np.asarray(np.sum(shares, axis=0))

    # ------------------------------------------------------------------------------------------------------ predicting

    @property
    def _winner(self) -> Array:
        """Return the class of each node of the trees."""
        return np.empty(0, np.intp) if self._shares is None else self._shares.argmax(axis=1)

    def _votes_of(self, X: Any) -> Array:
        if self._nodes is None:
            return learner_votes(self._learners, self.classes_, self.estimator_weights_, X)
        return tree_votes(self._nodes, self._winner, self.estimator_weights_, len(self.classes_), X)

    def _score_function(self) -> RowFunction:
        if self._nodes is None:
            return functools.partial(learner_scores, self._learners, self.classes_, self.estimator_weights_)
        return functools.partial(tree_scores, self._nodes, self._winner, self.estimator_weights_, len(self.classes_))

    def _winners(self, scores: Array) -> Array:  # type: ignore[override]
        if len(self.classes_) == 1:
            return np.zeros(len(scores), np.intp)
        return super()._winners(scores)

    def _probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        return np.asarray(np.exp(self._log_probabilities(scores)))

    def _log_probabilities(self, scores: Array) -> Array:  # type: ignore[override]
        if len(self.classes_) == 1:
            return np.zeros_like(scores)
        if scores.shape[1] == 1:
            return super()._log_probabilities(scores)
        return np.asarray(special.log_softmax(scores / (len(self.classes_) - 1), axis=1))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        source = self._reading(X)
        chunk = source.chunk(0, source.n_rows)
        rows = chunk.X if self._nodes is None else chunk.dense(chunk.dtype)
        votes, total, every = np.zeros((len(chunk), len(self.classes_))), 0.0, np.arange(len(chunk))
        stages = staged_codes(self._nodes, self._winner, self._learners, self.classes_, rows)
        for codes, alpha in zip(stages, self.estimator_weights_, strict=True):
            votes[every, codes] += alpha
            total += alpha
            yield scores_of_votes(votes, total)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Compute the accuracy after each round.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Yields
        ------
        float
        """
        from sklearn.metrics import accuracy_score

        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))
