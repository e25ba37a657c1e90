"""Factor analysis, in reading order: `spread` (the covariance matrix and its eigenvectors in units of the noise),
`likelihood` (Newton's method on the noise variances), `expectation` (the EM algorithm), `rotation`.
"""
