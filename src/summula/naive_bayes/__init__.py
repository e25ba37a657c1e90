"""Naive Bayes: the features of a row are independent given its class.

Each estimator is one file. Reading order: `normal_columns` and `gaussian_nb` (normally distributed features),
`class_totals` with `count_kernels` (sums by class), `count_fits` (objectives of the discrete models), `discrete_nb`
(their base class), `bernoulli_nb` (flags), `multinomial_nb` and `complement_nb` (counts), `category_counts` and
`categorical_nb` (categories), `mixed_sums` and `mixed_nb` (columns of different kinds).
"""

from summula.naive_bayes.bernoulli_nb import BernoulliNB
from summula.naive_bayes.categorical_nb import CategoricalNB
from summula.naive_bayes.complement_nb import ComplementNB
from summula.naive_bayes.gaussian_nb import GaussianNB
from summula.naive_bayes.mixed_nb import MixedNB
from summula.naive_bayes.multinomial_nb import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MixedNB", "MultinomialNB"]
