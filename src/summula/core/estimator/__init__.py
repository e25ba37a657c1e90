"""Base classes of estimators.

Reading order: `estimator` (fit: validate, run, assign), `run` (a fit under way), `validation` (what users pass becomes
a source), `parameters` (parameter constraints), `scoring` (scores as sums over rows), `additive` (merge, forget,
partial_fit).
"""
