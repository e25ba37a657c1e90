"""Suboptimality bounds of generalised linear models.

Reading order: `gap` (smooth penalties), `dual` (L1 penalties), `returned` (the bound at the returned, rounded point),
`certificate` (recomputed from the data by `verify`).
"""
