"""Files of every format as tables, read a batch at a time.

Reading order: `table` (what a table is), `arrow_columns` (columns of Arrow batches), `binary_tables` and `csv_table`
(files that are read in place), `dialects` (other forms of text), `spool` (what is written to a scratch file first),
`opening`.
"""
