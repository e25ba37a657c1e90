"""Naive Bayes: the features of a row are independent given its class.

Each file is one model: `gaussian_nb` (normally distributed features), `bernoulli_nb` (flags), `multinomial_nb` and
`complement_nb` (counts), `categorical_nb` (categories), `mixed_nb` (columns of different kinds). `discrete_nb` has what
the discrete ones share, `class_totals` and `category_counts` the sums.
"""

from summula.naive_bayes.bernoulli_nb import BernoulliNB
from summula.naive_bayes.categorical_nb import CategoricalNB
from summula.naive_bayes.complement_nb import ComplementNB
from summula.naive_bayes.gaussian_nb import GaussianNB
from summula.naive_bayes.mixed_nb import MixedNB
from summula.naive_bayes.multinomial_nb import MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MixedNB", "MultinomialNB"]
