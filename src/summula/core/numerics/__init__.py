"""Numerical building blocks.

Reading order: `sums` (statistics that are merged field by field), `origins` (about which they are taken), `statistics`
(moments, Gram matrices, triangular factors), `grouped` (a statistic of each class) with its kernels, `function_sums`,
`subtraction` (checks of sums that rows were removed from), `exact` (intercepts between origins), `priors`
(probabilities of classes), `solution` and `certificate` (what solvers return), `exponentials` with its kernels,
`cholesky_kernels` (small systems). How kernels are compiled is in `core/compilation`.
"""
