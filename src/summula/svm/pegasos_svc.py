"""Pegasos: stochastic descent for the linear soft-margin SVM, with averaging.

    minimise   lambda/2 ||w||^2 + mean_i max(0, 1 - y_i w'x_i)                                                   (1)

At step t a row is drawn, and w <- (1 - 1/t) w + [y w'x < 1] y x / (lambda t), a subgradient step of size 1 / (lambda
t); equivalently w = theta / (lambda t), with theta the sum of y x over violating rows. The result is the average of all
w, whose expected suboptimality is O(log(T) / (lambda T)). In the scale of `SVC`, C = 1 / (lambda m) for m rows.
Shalev-Shwartz, Singer, Srebro and Cotter (2011).

The steps, streams, several classes (one against the rest; ties go to the first) and the certificate are those of
`SGDClassifier` with these settings.
"""

from __future__ import annotations

from typing import Any, ClassVar

from summula.core.estimator.parameters import Allowed, boolean, integer, mapping, none, one_of, random_state, real
from summula.core.model_files import schema
from summula.optimize.solvers.stochastic_descent.classifier import StochasticClassifier

__all__ = ["PegasosSVC"]


@schema.saved()
class PegasosSVC(StochasticClassifier):
    """Linear support vector classification by Pegasos.

    Parameters
    ----------
    lambda_ : float, default=1e-4
        Strength of the penalty; C = 1 / (lambda_ n_samples).
    fit_intercept : bool, default=False
        Whether to fit an intercept, which is not penalised; the analysis of Pegasos assumes none.
    max_iter : int, default=20
        Number of passes over the rows.
    average : bool, default=True
        Whether to return the average of the weights over all steps.
    shuffle : bool, default=True
    class_weight : dict of label to weight, "balanced" or None, default=None
    random_state : int, Generator, RandomState or None, default=None
    n_jobs : int, optional
    max_time : float, optional

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, t_, certificate_ : as in `SGDClassifier`

    Examples
    --------
    >>> from summula.svm import PegasosSVC
    >>> X = [[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-3.0, -1.0]]
    >>> PegasosSVC(lambda_=0.1, random_state=0).fit(X, [1, 1, 0, 0]).predict([[1.0, 1.0], [-1.0, -1.0]])
    array([1, 0])
    """

    # Values of SGDClassifier's parameters.
    loss = "hinge"
    penalty = "l2"
    l1_ratio = 0.0
    tol = None
    epsilon = 0.1
    learning_rate = "invscaling"
    power_t = 1.0
    early_stopping = False
    validation_fraction = 0.1
    warm_start = False
    verbose = 0
    batch_size = None

    _parameters: ClassVar[dict[str, tuple[Allowed, ...]]] = {
        "lambda_": (real(0.0, open_low=True),),
        "fit_intercept": (boolean,),
        "max_iter": (integer(1),),
        "average": (boolean,),
        "shuffle": (boolean,),
        "class_weight": (none, one_of("balanced"), mapping),
        "random_state": (random_state,),
        "n_jobs": (none, integer()),
        "max_time": (none, real(0.0)),
    }

    def __init__(
        self,
        lambda_: float = 1e-4,
        *,
        fit_intercept: bool = False,
        max_iter: int = 20,
        average: bool = True,
        shuffle: bool = True,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        self.lambda_ = lambda_
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.average = average
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.max_time = max_time

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are coefficients (the parameter `lambda_` has a name like a fitted attribute)."""
        return hasattr(self, "coef_")

    @property
    def alpha(self) -> float:
        """SGDClassifier's name of lambda."""
        return float(self.lambda_)

    @property
    def eta0(self) -> float:
        """Initial step size, 1 / lambda."""
        return 1.0 / float(self.lambda_)
