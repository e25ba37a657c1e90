"""Input of estimators: rows and targets of any container become a source.

Reading order: `validation` (arrays, frames, sparse matrices, names of columns) with `scan_columns` (columns of files)
and `transformed_scan` (files after a transformer), `finiteness` (missing and infinite values), `tracked_rows` (hashes
of the rows that a model has seen).
"""
