"""Trees of forests: grown from shared bins, one tree per thread.

Reading order: `records` (inputs of a tree), `scan_kernels` (the best split of one column), `grow_kernels` (the whole
tree), `grower` (Python interface), `level_kernels` and `level_grower` (the same tree from a stream of blocks of rows),
`packed` (compact storage of all trees of a forest), `walk_kernels` (tree traversal).
"""
