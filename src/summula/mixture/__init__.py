"""Mixtures: densities that are weighted sums of simpler ones, fitted by expectation-maximisation.

Reading order: `base` (the estimators' base class), `starts` (initial parameters), `gaussians` (E-step and M-step) with
`kernels`, `gaussian_em` (the EM model) and `gaussian_mixture`, `binomials` with `binomial_mixture` and
`bernoulli_mixture`, `certificate` (distance from stationarity). The EM loop itself is `summula.em`.

>>> import numpy as np
>>> from summula.mixture import GaussianMixture
>>> X = np.array([[0.0], [0.2], [0.1], [5.0], [5.2], [5.1]])
>>> sorted(GaussianMixture(2, random_state=0).fit(X).means_.round(2).ravel().tolist())
[0.1, 5.1]
"""

from summula.mixture.bernoulli_mixture import BernoulliMixture
from summula.mixture.binomial_mixture import BinomialMixture
from summula.mixture.gaussian_mixture import GaussianMixture

__all__ = ["BernoulliMixture", "BinomialMixture", "GaussianMixture"]
