"""Files of every format as tables, read a batch at a time.

Reading order: `table` (the interface), `arrow_columns` (columns of Arrow batches), `binary_tables` and `csv_table`
(files that are read in place), `dialects` (other text formats), `spool` (sources written to a scratch file first),
`opening`.
"""
