"""Least squares with or without a ridge penalty, the problem behind LinearRegression, Ridge and PolynomialRegression.

Reading order: `solver` (the equations, and the choice of method), `problem` (problem, fit, residual sums),
`normal_equations`, `orthogonal`, `sparse_least_squares` (three ways to solve it), `certificate`, `inference`, `model`
(the shared part of the estimators).
"""
