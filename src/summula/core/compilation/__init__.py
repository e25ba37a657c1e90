"""Compilation of kernels.

Reading order: `compile` (the decorators), `kernel_cache` (the disk cache), `kernel_libraries` and `late_binding`
(what is compiled once, and what is called by address), `intrinsics` (atomics, prefetch and other LLVM instructions),
`warmup` (all kernels compiled in advance).
"""
