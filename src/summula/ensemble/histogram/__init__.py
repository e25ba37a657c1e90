"""Machinery of histogram-based gradient boosting.

Reading order: `boosting_losses` with `boosting_kernels` (gradients and hessians), `boosting_rows` (rows as bins),
`quantising` (gradients as integers), `boosting` (the iterations), `stopping` (early stopping), `base` (what classifier
and regressor share), `interpretation` with `explaining` (Shapley values, partial dependence, importances).
"""
