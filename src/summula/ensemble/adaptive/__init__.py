"""Machinery of AdaBoost.

Reading order: `learners` (fitted to weighted rows in each round), `votes` (predictions of the fitted learners),
`certificate` (training error, its bound, margins).
"""
