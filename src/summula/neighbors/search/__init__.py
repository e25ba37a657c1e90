"""Exact search for the nearest training rows.

Reading order: `metrics` (which distance), `kernels` (compiled loops), `indexes` (how the candidates are found).
"""
