"""Rows from arrays, frames, sparse matrices and files behind one interface.

Reading order: `chunks` (consecutive rows, and their grid), `layout/` (memory layout of operands,
and how), `sources` (arrays and sparse matrices), `frames`, `factors` and `labels` (columns of frames, categories,
classes), `readers`, `scan` and `cache` (data on disk), `output` (results written batch by batch), `training_data`
(references to what a model was fitted on).
"""
