"""Rows from arrays, frames, sparse matrices and files behind one interface.

Reading order: `chunks` (consecutive rows, and the grid they lie on), `layout/` (what is multiplied,
and how), `sources` (arrays and sparse matrices), `frames`, `factors` and `labels` (columns of frames, categories,
classes), `readers`, `scan` and `cache` (data on disk), `output` (results written batch by batch), `training_data`
(references to what a model was fitted on).
"""
