"""Principal axes of rows, in reading order: `axes` (the problem and its answer), `covariance` (one pass of sums),
`gathered` (more columns than rows, and ill-conditioned columns), `krylov` (many columns: passes of block products),
`missing` (expectation-maximisation), `number` (how many axes to keep), `certificate`.
"""
