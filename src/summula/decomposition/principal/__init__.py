"""Principal axes of rows, in reading order: `axes` (problem and solution), `covariance` (one pass of sums),
`gathered` (more columns than rows, and ill-conditioned columns), `krylov` (many columns: passes of block products),
`missing` (expectation-maximisation), `number` (number of axes), `certificate`.
"""
