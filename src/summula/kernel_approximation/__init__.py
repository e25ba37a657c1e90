"""Features whose inner products approximate a kernel, so that linear models replace n x n kernel matrices.

>>> from summula.kernel_approximation import RBFSampler
>>> RBFSampler(n_components=4, random_state=0).fit_transform([[0.0, 1.0], [1.0, 0.0]]).shape
(2, 4)
"""

from summula.kernel_approximation.nystroem import Nystroem
from summula.kernel_approximation.polynomial_count_sketch import PolynomialCountSketch
from summula.kernel_approximation.rbf_sampler import RBFSampler

__all__ = ["Nystroem", "PolynomialCountSketch", "RBFSampler"]
