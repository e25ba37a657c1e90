"""Where chunks are mapped and their results added.

Reading order: `engine` (map_reduce along a fixed binary tree), `threads` (the thread pool and the BLAS guard),
`worker_group` (threads that synchronise inside a kernel), `random`
(counter-based draws) with its kernels.
"""
