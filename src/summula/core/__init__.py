"""Foundations shared by all algorithms.

Reading order: `data` (rows from anywhere, cut into chunks), `engine` (maps chunks and adds the results), `numerics`
(the sums themselves, solutions, certificates, kernels), `estimator` (base classes and validation), `model_files` (save
and load). `errors` defines the exceptions and warnings, `docstrings` completes docstrings from base classes.
"""
