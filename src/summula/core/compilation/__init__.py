"""Compilation of kernels.

Reading order: `compile` (the decorators), `kernel_cache` (the disk cache), `kernel_libraries` and `late_binding`
(kernels compiled once, and kernels called by address), `intrinsics` and `vector_intrinsics` (atomics, prefetch and
other LLVM instructions), `fast_compiler` (Numba's, with less overhead) and `compiler_choice` (that, or plain Numba),
`background` (a second process during a first fit), `warmup` (all kernels compiled in advance).
"""
