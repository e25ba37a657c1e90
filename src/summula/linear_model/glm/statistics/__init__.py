"""Statistics of a fitted generalised linear model.

Reading order: `quality` (deviance, dispersion, likelihood), `inference` (standard errors), `terms` (joint tests of a
term), `residuals`, `diagnostics` (the methods of the estimators).
"""
