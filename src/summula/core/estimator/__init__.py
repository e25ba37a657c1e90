"""Base classes of estimators.

Reading order: `estimator` (fit: validate, run, assign), `run` (a fit under way), `rows` (results for every row, in
memory, files or Dask), `classifier`, `regressor`, `transformer`, `clusterer` (what follows from one method of a chunk),
`additive` (merge, forget, partial_fit), `validation` (what users pass becomes a source), `parameters` (parameter
constraints), `scoring` (scores as sums over rows).
"""
