"""Numerical building blocks.

Reading order: `statistics` (moments, Gram matrices, triangular factors), `solution` and `certificate` (what solvers
return), `exponentials` with its kernels; then `compile`, `intrinsics` and `warmup` (how kernels are compiled and
cached, and the LLVM instructions they use).
"""
