"""Memory layout of operands of products, which is the same for every source of rows.

Reading order: `blocks` (aligned blocks in C order), `column_kernels` (columns copied into a block), `fixed_order` with
`fixed_order_kernels` (products of a whole matrix with a vector in a fixed order), `stored_rows` (sparse rows, and rows
in pieces).
"""
