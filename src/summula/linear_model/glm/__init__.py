"""Generalised linear models, the problem behind LogisticRegression and the GLM regressors.

Reading order: `sums` (loss, gradient and Hessian over the rows), `objective` (the problem and its objective), `solver`
and `lbfgs` (Newton's method and its alternative), `minimise` (the solver for a penalty), `gap`, `dual`, `returned` and
`certificate` (how far from the optimum), `separation` (fits without a finite optimum), `quality`, `inference`,
`diagnostics`, `residuals`, `terms` (statistics of a fit), `offsets` and `groups` (what accompanies y), `model` (the
shared part of the estimators).
"""
