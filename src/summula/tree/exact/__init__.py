"""Exact trees: every value of a column is a possible threshold.

Reading order: `records` (nodes and parameters), `scan_kernels` (the best threshold of one column), `category_kernels`
(the best set of categories), `grow_kernels` (the whole tree), `grower` (Python interface), `pruning`.
"""
