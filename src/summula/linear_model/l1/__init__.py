"""L1 and elastic-net penalties.

Reading order: `problem` (penalised least squares from sums), `column_quadratic` (the same for many columns, gathered on
demand), `paths` (for many penalties), `quadratic_model` and `likelihood` (proximal Newton for GLMs) with `working_set`.
Both use the coordinate descent of `optimize/solvers/l1_quadratic.py`.
"""
