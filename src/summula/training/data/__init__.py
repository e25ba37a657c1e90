"""The table of a training run: its rows, its target, and its hold-out.

Reading order: `tables` (files, scans and frames opened in one way), `target`, `split` (hold-out and folds),
`memory_rows` and `file_rows` (encoded rows in memory or in scratch files), `leaks` (target leakage), `costs`,
`profile`, `keys` (columns that look like keys), `row_numbers` (rows as the user's editor numbers them),
`training_overlap` (rows that a saved model was trained on).
"""
