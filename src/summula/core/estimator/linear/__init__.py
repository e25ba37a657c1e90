"""Base classes and columns shared by linear models.

Reading order: `linear_predictor` (the scores of rows), `linear_classifier`, `factor_columns` (categories as indicator
columns), `formula` (a model from a formula).
"""
