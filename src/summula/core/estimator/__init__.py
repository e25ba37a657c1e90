"""Base classes of estimators.

Reading order: `estimator` (fit: validate, run, assign), `run` (the state of a fit), `rows` (results for each row, in
memory, files or Dask), `classifier`, `multi_output`, `regressor`, `transformer`, `clusterer` (public methods derived
from one method of a chunk), `linear` (models with linear scores), `additive` (merge, forget, partial_fit),
`certificates`, `input` (data become a source), `parameters` (parameter constraints), `scoring` (scores as sums over
rows), `early_stopping` (held-out rows).
"""
