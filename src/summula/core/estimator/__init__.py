"""Base classes of estimators.

Reading order: `estimator` (fit: validate, run, assign), `run` (the state of a fit), `rows` (results for each row, in
memory, files or Dask), `classifier`, `regressor`, `transformer`, `clusterer` (public methods derived from one method of
a chunk), `additive` (merge, forget, partial_fit), `validation` with `scan_columns` (input data become a source),
`finiteness` (missing and infinite values), `parameters` (parameter constraints), `scoring` (scores as sums over rows).
"""
