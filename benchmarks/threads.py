"""The same number of threads for every contender."""

import os

THREADS = 2

_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "SUMMULA_NUM_THREADS",
)


def pin_threads() -> None:
    """Set what BLAS, OpenMP and Numba read from the environment when loaded; child processes inherit it."""
    for variable in _VARIABLES:
        os.environ[variable] = str(THREADS)


def pin_intelex() -> None:
    """Set the number of threads of oneDAL, which ignores these variables."""
    import daal4py

    daal4py.daalinit(nthreads=THREADS)
