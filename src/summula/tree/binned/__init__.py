"""Trees of forests: grown from shared bins, one tree per thread.

Reading order: `records` (what a tree is grown from), `scan_kernels` (the best split of one column), `grow_kernels` (the
whole tree), `grower` (from Python), `level_kernels` and `level_grower` (the same tree from rows that come in blocks),
`packed` (all trees of a forest in little memory), `walk_kernels` (rows go down).
"""
