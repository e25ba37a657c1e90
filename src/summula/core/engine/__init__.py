"""Execution: map functions over chunks and add up the results.

Reading order: `engine` (map_reduce along a fixed binary tree), `threads` (the thread pool and the BLAS guard),
`worker_group` (threads that synchronise inside a kernel), `random` (counter-based random numbers) with its kernels.
"""
