"""Support vector classification.

For two classes y = -1, 1 and features phi of a kernel k

    minimise   1/2 ||w||^2 + sum_i C_i xi_i      subject to   y_i (w'phi(x_i) + b) >= 1 - xi_i,   xi_i >= 0     (1)

with C_i = C times the weights of row and class; C = inf is the hard margin. Its dual is that of `solver.py`. Rows with
beta_i = 0 could be omitted; the others are the support vectors. K > 2 classes have one machine for each pair, which
votes for one of its two classes; the class with the most votes is predicted, with ties going to the first.

Other scalings: ||w||^2 + C' sum xi is (1) with C = C'/2; lambda ||w||^2 + mean xi is C = 1/(2 lambda m);
(lambda/2) ||w||^2 + mean xi (Pegasos) is C = 1/(lambda m).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.callback import with_callbacks
from sklearn.utils.validation import check_is_fitted

from summula.core.docstrings import inherit_docs
from summula.core.errors import DataError, ParameterError
from summula.core.estimator.classifier import ScoreClassifier, weights_of_labels
from summula.core.estimator.parameters import Allowed, boolean, mapping, none, one_of, random_state, real
from summula.core.estimator.rows import RowFunction
from summula.core.model_files import schema
from summula.svm.dual.certificate import Machine, MachineTask, tasks_of
from summula.svm.dual.kernel_machine import KERNEL_PARAMETERS, KernelMachine
from summula.svm.generalization import ScenarioBound, scenario_bound

__all__ = ["SVC"]

Array = NDArray[Any]


def _pairs(classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes, in the order of their scores."""
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


def _votes(scores: Array, classes: int) -> Array:
    """Return the votes of all pairs for each class; a positive score is a vote for the first of the two."""
    votes = np.zeros((len(scores), classes))
    for column, (i, j) in enumerate(_pairs(classes)):
        first = scores[:, column] > 0
        votes[:, i] += first
        votes[:, j] += ~first
    return votes


def _one_vs_rest(scores: Array, classes: int) -> Array:
    """Return scikit-learn's class scores from those of pairs: votes plus the sum of confidences to break ties."""
    confidence = np.zeros((len(scores), classes))
    for column, (i, j) in enumerate(_pairs(classes)):
        confidence[:, i] += scores[:, column]
        confidence[:, j] -= scores[:, column]
    return np.asarray(_votes(scores, classes) + confidence / (3 * (np.abs(confidence) + 1)))


def _counts(model: Any, sizes: schema.Sizes) -> str | None:
    classes = sizes["n_classes"]
    if sizes["n_coefs"] != classes - 1 or sizes["n_machines"] != classes * (classes - 1) // 2:
        return f"dual_coef_ or intercept_ do not match {classes} classes"
    if int(model.n_support_.sum()) != sizes["n_support"]:
        return "n_support_ does not count the support vectors"
    return None


@inherit_docs()
@schema.saved(
    _counts,
    classes_=schema.Labels("n_classes", low=2),
    n_support_=schema.Array("int32", "n_classes", low=0),
    class_weight_=schema.Array("float64", "n_classes", low=0.0),
    n_iter_=schema.Array("int32", "n_machines", low=0),
    _has_row_weights=schema.Flag(),
)
class SVC(KernelMachine, ScoreClassifier):
    """Support vector classification with any kernel.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation; np.inf requests a hard margin, which raises an error if the classes overlap.
    kernel : {"linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed"}, Kernel or callable, default="rbf"
        A name, a kernel of `summula.kernels`, or a function of (X, Z) that returns the matrix of all pairs of rows.
    degree : int, default=3
        Degree of "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly", "sigmoid" and "laplacian": 1 / (n_features X.var()), 1 / n_features, or a number.
        The variance is that of the weighted rows.
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    shrinking : bool, default=True
        Whether to exclude variables at a bound temporarily. Affects speed only.
    probability : bool, default=False
        For compatibility with scikit-learn; True raises an error, since scores are not likelihoods; see Notes.
    tol : float, default=1e-3
        Tolerance for the violation of the KKT conditions. If it is at least 1e-4, kernel rows of more than 2,048 rows
        are stored in single precision (as in libsvm); sums are always in double precision.
    class_weight : dict of label to weight, "balanced" or None, default=None
    verbose : bool, default=False
        Ignored; use scikit-learn's callbacks for progress reports.
    max_iter : int, default=-1
        Maximum number of steps per pair of classes; -1 means no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With several classes: one score per class, or one per pair.
    break_ties : bool, default=False
        Whether `predict` breaks ties of votes by the scores of "ovr".
    random_state : int, Generator, RandomState or None, default=None
        Ignored; the fit is deterministic.
    fit_intercept : bool, default=True
        Whether to fit an intercept; without one the dual has no equality constraint.
    max_time : float, optional
        Time limit in seconds, after which the best point so far is kept.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    support_ : ndarray of shape (n_support,)
        Row numbers of the support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_support)
        beta, which has the sign of its class, in scikit-learn's layout.
    intercept_ : ndarray of shape (n_classes (n_classes - 1) / 2,)
    coef_ : ndarray of shape (n_classes (n_classes - 1) / 2, n_features)
        For a linear kernel.
    gamma_ : float
    class_weight_ : ndarray of shape (n_classes,)
    n_iter_ : ndarray
        Number of steps for each pair.
    fit_status_ : int
        0 if the tolerance was reached.
    certificate_ : SupportCertificate
        Primal, and primal minus dual, summed over the pairs.

    Notes
    -----
    For probabilities use `sklearn.calibration.CalibratedClassifierCV(SVC())`: the scores are not likelihoods.

    References
    ----------
    Vapnik (1998), Statistical learning theory. Fan, Chen and Lin (2005), Working set selection using second order
    information for training support vector machines. Campi and Garatti (2021), A theory of the risk for optimization
    with relaxation and its application to support vector machines.

    Examples
    --------
    >>> from summula.svm import SVC
    >>> X = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]
    >>> model = SVC(C=float("inf"), kernel="linear", tol=1e-9).fit(X, ["near", "far", "far"])
    >>> model.coef_.round(6).tolist(), model.intercept_.round(6).tolist()
    ([[-1.0, -1.0]], [1.0])
    >>> model.predict([[3.0, 3.0]])
    array(['far'], dtype='<U4')
    """

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        **KERNEL_PARAMETERS,
        "C": (real(0.0, open_low=True),),
        "class_weight": (none, one_of("balanced"), mapping),
        "decision_function_shape": (one_of("ovr", "ovo"),),
        "break_ties": (boolean,),
        "probability": (boolean, one_of("deprecated")),
        "random_state": (random_state,),
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        fit_intercept: bool = True,
        max_time: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.max_time = max_time

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        y : array-like of shape (n_samples,), or name of a column of X
            Class labels of any kind.
        """
        with self._fitting(X, y, sample_weight) as run:
            if self.probability is True:
                raise ParameterError(
                    "SVC(probability=True) is not supported: use sklearn.calibration.CalibratedClassifierCV(SVC(), "
                    "ensemble=False), which has predict_proba."
                )
            self._solve(run)
        return self

    def _task(self, weights: Array | None, y: Array | None) -> MachineTask:
        assert y is not None
        assert weights is not None
        self._has_row_weights = bool((weights != 1.0).any())
        present = np.unique(y[weights > 0])
        if not len(present):
            raise DataError("Invalid input - all samples have zero or negative weights.")
        if len(present) < len(self.classes_):
            raise DataError(
                "Invalid input - all samples with positive weights belong to the same class."
                if len(present) == 1
                else "Every row of some class has weight 0; drop these rows, or pass positive weights."
            )
        self.class_weight_ = self._weights_of_classes(y, weights)
        if not self.class_weight_.all():
            raise ParameterError("class_weight is 0 for some class; drop its rows, or pass a positive weight.")
        return MachineTask("classes", float(self.C), 0.0, 0.0, bool(self.fit_intercept), self.class_weight_)

    def _weights_of_classes(self, y: Array, weights: Array) -> Array:
        K = len(self.classes_)
        if self.class_weight is None:
            return np.ones(K)
        if isinstance(self.class_weight, str):
            return np.asarray(weights.sum() / (K * np.bincount(y.astype(np.intp), weights, minlength=K)))
        return weights_of_labels(self.class_weight, self.classes_)

    def _name_support(self, machines: tuple[Machine, ...], X: Any, y: Array | None, task: MachineTask) -> None:
        assert y is not None
        K = len(self.classes_)
        rows = np.unique(np.concatenate([machine.support for machine in machines])).astype(np.intp)
        codes = y[rows].astype(np.intp)
        order = np.argsort(codes, kind="stable")
        self.support_ = rows[order].astype(np.int32)
        self.n_support_ = np.bincount(codes, minlength=K).astype(np.int32)
        place = np.zeros(len(y), np.intp)
        place[self.support_] = np.arange(len(rows))
        coef = np.zeros((K - 1, len(rows)))
        for (i, j), machine in zip(tasks_of(task), machines, strict=True):
            # A support vector of class i has its coefficient against class j in row j - 1, one of class j in row i.
            first = y[machine.support] == i
            coef[np.where(first, j - 1, i), place[machine.support]] = machine.beta
        self._keep_vectors(X)
        self.dual_coef_ = self._like_rows(coef, X)
        self.intercept_ = np.array([machine.intercept for machine in machines])

    def _machine_coefficients(self) -> Array:
        coef, K = super()._machine_coefficients(), len(self.classes_)
        if K == 2:
            return coef
        codes = np.repeat(np.arange(K), self.n_support_)
        out = np.zeros((len(codes), K * (K - 1) // 2))
        for column, (i, j) in enumerate(_pairs(K)):
            first, second = codes == i, codes == j
            out[first, column], out[second, column] = coef[first, j - 1], coef[second, i]
        return out

    # ------------------------------------------------------------------------------------------------------ predicting

    def _score_function(self) -> RowFunction:
        """Return scores of pairs, or (to break ties) of classes, from which labels are predicted."""
        return self._value_function()

    def _winners_of(self, scores: Array) -> Array:
        K = len(self.classes_)
        if K == 2:
            return (scores[:, 0] > 0).astype(np.intp)
        ties = self.break_ties and self.decision_function_shape == "ovr"
        return np.asarray((_one_vs_rest(scores, K) if ties else _votes(scores, K)).argmax(axis=1))

    def predict(self, X: Any) -> Any:
        """Predict the class with the most votes.

        Parameters
        ----------
        X : {array-like, frame, sparse matrix} of shape (n_samples, n_features)
            With kernel="precomputed" the kernel between these rows and all training rows.

        Returns
        -------
        ndarray of shape (n_samples,) of labels
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ParameterError("break_ties must be False when decision_function_shape is 'ovo'")
        return self._by_row(X, self._score_function(), self._labels_of)

    def _labels_of(self, scores: Array) -> Array:
        return np.asarray(self.classes_[self._winners_of(scores)])

    def decision_function(self, X: Any) -> Any:
        """Compute the scores: w'phi(x) + b for two classes, positive for the second; else by `decision_function_shape`.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes (n_classes - 1) / 2)
        """
        check_is_fitted(self)
        return self._by_row(X, self._score_function(), self._shaped)

    def _shaped(self, scores: Array) -> Array:
        K = len(self.classes_)
        if K == 2:
            return scores[:, 0]
        return scores if self.decision_function_shape == "ovo" else _one_vs_rest(scores, K)

    # ----------------------------------------------------------------------------------------------------------- risk

    def generalization_bound(self, delta: float = 0.05) -> ScenarioBound:
        """Bound the probability that a new row violates the margin, y f(x) < 1, from the number of support vectors.

        With probability at least 1 - delta over the training rows it lies between the two bounds, for any distribution
        (Campi and Garatti 2021). This holds for two classes, independent rows of equal weight, and a kernel and C
        chosen independently of the data; these assumptions are checked where possible, and an error is raised
        otherwise.

        Parameters
        ----------
        delta : float, default=0.05

        Returns
        -------
        ScenarioBound
            `low` and `high` bound P(y f(x) < 1); a misclassified row violates the margin, so `high` bounds the error.
        """
        check_is_fitted(self)
        self._check_scenario()
        return scenario_bound(int(self.shape_fit_[0]), len(self.support_), delta)

    def _check_scenario(self) -> None:
        wrong = None
        if len(self.classes_) != 2:
            wrong = f"there are {len(self.classes_)} classes, and the theorem covers two only"
        elif self.class_weight == "balanced":
            wrong = "class_weight='balanced' depends on the data; pass fixed weights"
        elif self.gamma == "scale" and self.kernel in ("rbf", "poly", "sigmoid", "laplacian"):
            wrong = "gamma='scale' depends on the data; pass a number"
        elif self.certificate_.kind != "global":
            wrong = "the kernel is not positive semidefinite"
        elif self.fit_status_:
            wrong = "the fit has not converged"
        elif self._has_row_weights:
            wrong = "rows have different weights"
        if wrong is not None:
            raise DataError(f"The scenario bound does not apply: {wrong}.")
