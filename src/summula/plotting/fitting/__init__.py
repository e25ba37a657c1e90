"""Plots of fitting and model selection.

Reading order: `traces` (convergence of solvers), `paths` (their steps), `weights` (rows as lines in weight space),
`coefficients` (regularisation paths), `curves` (learning and validation curves), `importances` (of columns).
"""
