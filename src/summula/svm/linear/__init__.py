"""Linear support vector machines.

Reading order: `problem`, `newton` (sums over rows), `interior_point` and `coordinates` (rows in memory,
`row_products`), `dual`, `certificate`.
"""
