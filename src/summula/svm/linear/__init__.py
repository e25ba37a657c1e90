"""Linear support vector machines.

Read `problem.py`, then `newton.py` (sums over rows), `interior_point.py` and `coordinates.py` (rows in memory,
`row_products.py`), `dual.py` and `certificate.py`.
"""
