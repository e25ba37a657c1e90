"""Machinery of histogram-based gradient boosting.

Reading order: `boosting_losses` with `boosting_kernels` (gradients and hessians), `quantising` (gradients as integers),
`boosting` (the iterations), `stopping` (early stopping), `base` (base class of the estimators), `interpretation`
(partial dependence, importances). Rows are read by `tree/columns/rows.py`.
"""
