"""Where chunks are mapped and their results added.

Reading order: `engine` (map_reduce along a fixed binary tree), `threads` (the thread pool and the BLAS guard), then the
kernels that threads share.
"""
