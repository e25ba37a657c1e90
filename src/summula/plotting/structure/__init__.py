"""Plots of rows without targets.

Reading order: `clusters`, `ellipses` (a normal distribution), `mixtures` (several), `components` (principal components
and factors), `oriented` (histograms of the gradients of an image).
"""
