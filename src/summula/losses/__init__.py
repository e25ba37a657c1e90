"""Loss functions: value, slope and curvature for each row.

Reading order: `likelihoods` (half deviances of families and links, softmax, for Newton's method), `scores` (losses of a
score by name, for stochastic gradient descent and support vector machines) and `kernels` (the same, compiled, by
number).
"""

from summula.losses.likelihoods import (
    BinaryCLogLog,
    BinaryProbit,
    Derivatives,
    FamilyLoss,
    GammaLog,
    Huber,
    InverseGaussianLog,
    Logistic,
    Loss,
    Multinomial,
    NegativeBinomialLog,
    PoissonLog,
    Squared,
    TweedieLog,
    loss_of,
    perceptron_risk,
)
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
