"""Machinery of AdaBoost.

Reading order: `learners` (what is fitted to weighted rows in each round), `votes` (predictions of the fitted ones),
`certificate` (training error, its bound, margins).
"""
