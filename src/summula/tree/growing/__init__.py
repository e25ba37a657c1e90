"""Growing a tree on binned rows, best leaf first, from histograms of gradients.

Reading order: `nodes`, `records` and `limits` (the tree and its limits), `node_sums` (impurities), `criterion`,
`histogram_kernels`, `split_kernels` (the best split of a node), `partition_kernels`, `grow_context` with
`growing_kernels` (the whole tree), `open_nodes`, `leaf_values` with `leaf_kernels`, `grower` (Python interface).
"""
