"""Grown trees applied to rows, explained and shown.

Reading order: `predictor` (all trees of a model as one table of nodes), `predictor_kernels` and `scoring_kernels`
(rows to leaves and scores), `grown_trees` (public methods of models of trees), `explaining` with
`shapley_kernels` (contributions of columns), `arrays` (scikit-learn's `tree_`), `tables` (exact trees of an ensemble),
`showing` (text and pictures).
"""
