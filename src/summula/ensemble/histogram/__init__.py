"""Machinery of histogram-based gradient boosting.

Reading order: `boosting_losses` with `boosting_kernels` (gradients and hessians), `quantising` (gradients as integers),
`boosting` (the iterations), `stopping` (early stopping), `base` (what classifier and regressor share), `interpretation`
(partial dependence, importances). Rows are read by `tree/columns/rows.py`.
"""
