"""Linear support vector machines.

Read `problem.py`, then `newton.py` (sums over rows), `coordinates.py` (rows in memory), `dual.py` and `certificate.py`.
"""
