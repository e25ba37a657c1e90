"""Cross-validation of linear models from per-fold sums.

Reading order: `folds` (rows grouped so that one pass serves every split), `ridge_path` (many alphas from one
factorisation), `ridge_errors`, `leave_one_out` with `row_space` (leverages instead of refits) and `held_out_row`,
`likelihood_grid`, `likelihood_folds` and `likelihood_paths` (penalties of logistic regression).
"""
