"""Generalised linear models: solvers and statistics behind LogisticRegression and the GLM regressors.

Reading order: `sums` (loss, gradient and Hessian over the rows) with `softmax_hessian` and `kernels` (products with
sparse rows), `objective` (the problem and its objective), `solver` and `lbfgs` (Newton's method and L-BFGS), `minimise`
(the solver for a penalty), `bounds/` (suboptimality), `separation` (fits without a finite optimum), `statistics/`
(standard errors, deviance, residuals), `offsets`, `model` and `regressor` (the base classes of the estimators).
"""
