"""Columns of trees: bins, categories, and constraints on columns.

Reading order: `constraints` (categorical, monotone and interacting columns declared by the user), `categories` and
`categorical_columns` (levels of a column as numbers), `binning` with `binning_kernels` (values as the numbers of bins),
`rows` (targets and bins of all rows).
"""
