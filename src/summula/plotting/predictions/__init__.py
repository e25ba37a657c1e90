"""Plots of predictions.

Reading order: `regions` (classes in a plane), `margin_slabs` (support vectors), `shattered` (all labellings of points),
`decisions` (risks of one observation), `scores` and `means` (curves and surfaces over one or two columns),
`comparisons` (predicted and actual targets), `rankings` (ROC curves).
"""
