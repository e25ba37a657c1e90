"""Least squares with or without a ridge penalty, used by LinearRegression, Ridge and PolynomialRegression.

Reading order: `solver` (the equations, and the choice of method), `problem` (problem, fit, residual sums),
`normal_equations`, `orthogonal`, `sparse_least_squares` (three solvers), `certificate`, `inference`, `model` (the base
class of the estimators).
"""
