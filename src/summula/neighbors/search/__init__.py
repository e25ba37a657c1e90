"""Exact search for the nearest training rows.

Reading order: `metrics` (distances), `base` (the interface of an index), `kernels` (compiled loops), `indexes` (search
for candidates), `sparse_rows` (sparse rows), `pairwise` (distances computed elsewhere), `streamed` (rows in files and
Dask collections).
"""
