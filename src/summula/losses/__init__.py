"""Loss functions: value, slope and curvature for each row.

Reading order: `loss` (the base class), `classes` and `log_links` (the common families and links), `likelihoods` (any
family and link, for Newton's method), `scores` (losses of a score by name, for stochastic gradient descent and support
vector machines) and `kernels` (the same, compiled, by number), `perceptron`.
"""

from summula.losses.classes import BinaryCLogLog, BinaryProbit, Logistic, Multinomial
from summula.losses.likelihoods import FamilyLoss, loss_of
from summula.losses.log_links import GammaLog, InverseGaussianLog, NegativeBinomialLog, PoissonLog, TweedieLog
from summula.losses.loss import Derivatives, Huber, Loss, Squared
from summula.losses.perceptron import perceptron_risk
from summula.losses.scores import TAGS, ScoreLosses, score_curvature, score_losses

__all__ = [
    "TAGS",
    "BinaryCLogLog",
    "BinaryProbit",
    "Derivatives",
    "FamilyLoss",
    "GammaLog",
    "Huber",
    "InverseGaussianLog",
    "Logistic",
    "Loss",
    "Multinomial",
    "NegativeBinomialLog",
    "PoissonLog",
    "ScoreLosses",
    "Squared",
    "TweedieLog",
    "loss_of",
    "perceptron_risk",
    "score_curvature",
    "score_losses",
]
