"""Kernel ridge regression and kernel least mean squares.

>>> from summula.kernel_ridge import KernelRidge
>>> KernelRidge(alpha=1e-6, kernel="rbf", gamma=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0]).predict([[1.0]]).round(
...     3
... )
array([1.])
"""

from summula.kernel_ridge.kernel_lms import KernelLMS
from summula.kernel_ridge.kernel_ridge_regression import KernelRidge

__all__ = ["KernelLMS", "KernelRidge"]
