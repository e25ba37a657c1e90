"""Prediction, explanation and display of grown trees.

Reading order: `predictor` (all trees of a model as one table of nodes), `predictor_kernels` and `scoring_kernels`
(rows to leaves and scores), `grown_trees` (public methods of tree models), `explaining` with
`shapley_kernels` (contributions of columns), `arrays` (scikit-learn's `tree_`), `tables` (exact trees of an ensemble),
`showing` (text and plots) on `drawing` (layout).
"""
