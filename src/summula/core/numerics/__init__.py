"""Numerical building blocks.

Reading order: `statistics` (moments, Gram matrices, triangular factors), `priors` (probabilities of classes),
`solution` and `certificate` (what solvers return), `exponentials` with its kernels, `cholesky_kernels` (small systems).
How kernels are compiled is in `core/compilation`.
"""
