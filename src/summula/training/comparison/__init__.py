"""Comparison of candidates within a time limit.

Reading order: `candidates` (the models), `metrics` (evaluation of predictions), `leaderboard` (risks by fold, and the
table of all candidates), `rows` (fits and evaluations by fold), `schedule` (the order of fits and their numbers of
rows), `ensembles` (an average of the best candidates), `linear_fits` (the linear model of the report).
"""
