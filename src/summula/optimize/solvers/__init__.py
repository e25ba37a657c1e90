"""Solvers used internally by estimators; the public functions are one folder up.

Reading order: `newton_method`, `limited_memory`, `quadratic` (conjugate gradients), `l1_quadratic` with `l1_path` and
`l1_kernels` (coordinate descent), `nonnegative`, `linear_constraints`, `class_rows` and `class_inequalities`,
`quadratic_duals`, `stochastic_descent/` (linear scores).
"""
