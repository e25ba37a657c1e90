"""Machinery of AdaBoost.

Reading order: `learners` (what is fitted to weighted rows in each round), `votes` (what the fitted ones say of rows),
`certificate` (training error, its bound, margins).
"""
