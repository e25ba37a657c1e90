"""Exact search for the nearest training rows.

Reading order: `metrics` (which distance), `base` (what an index does), `kernels` (compiled loops), `indexes` (how the
candidates are found), `sparse_rows` (sparse rows), `pairwise` (distances computed elsewhere), `streamed` (rows in files
and Dask collections).
"""
