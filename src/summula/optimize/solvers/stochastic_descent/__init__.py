"""Stochastic gradient descent on linear scores, for estimators of `linear_model` and `svm`.

Reading order: `rule` (settings and state of the steps), `kernels` (the compiled steps), `rows` (the order of rows),
`solver` (epochs and stopping), `certificate` (distance from the optimum), `model` (the shared part of the estimators),
`classifier` (that of classifiers).
"""
