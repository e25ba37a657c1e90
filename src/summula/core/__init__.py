"""Foundations shared by all algorithms.

Reading order: `data` (rows of any container as chunks), `engine` (maps chunks and adds the results), `numerics`
(the sums themselves, solutions, certificates), `estimator` (base classes and validation), `model_files` (save and
load), `compilation` (how kernels are compiled and cached). `errors` defines the exceptions and warnings, `docstrings`
completes docstrings from base classes; `deferred_imports`, `lazy_names`, `environment` and `moved_modules` serve
imports.
"""
