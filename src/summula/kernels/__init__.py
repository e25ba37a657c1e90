"""Kernels: inner products of implicit features. Reading order: `kernel`, `standard`.

>>> from summula.kernels import Gaussian, Linear
>>> k = Gaussian(1.0) + 0.5 * Linear()
>>> k([[0.0, 1.0]], [[0.0, 1.0]])
array([[1.5]])
"""

from summula.kernels.kernel import Custom, Kernel, KernelProduct, KernelSum, ScaledKernel
from summula.kernels.mercer import MercerTest, is_mercer
from summula.kernels.standard import Gaussian, Laplacian, Linear, Polynomial, Sigmoid

__all__ = [
    "Custom",
    "Gaussian",
    "Kernel",
    "KernelProduct",
    "KernelSum",
    "Laplacian",
    "Linear",
    "MercerTest",
    "Polynomial",
    "ScaledKernel",
    "Sigmoid",
    "is_mercer",
]
