"""Generalised linear models: solvers and statistics behind LogisticRegression and the GLM regressors.

Reading order: `sums` (loss, gradient and Hessian over the rows), `objective` (the problem and its objective), `solver`
and `lbfgs` (Newton's method and L-BFGS), `minimise` (the solver for a penalty), `gap`, `dual`, `returned` and
`certificate` (suboptimality bounds), `separation` (fits without a finite optimum), `quality`, `inference`,
`diagnostics`, `residuals`, `terms` (statistics of a fit), `offsets` and `groups` (additional columns), `model` (the
base class of the estimators).
"""
