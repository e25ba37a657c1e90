"""Comparison of candidates within a time limit.

Reading order: `candidates` (what is compared), `metrics` (how predictions are judged), `leaderboard` (risks by fold,
and the table of all candidates), `rows` (fits and judgements by fold), `schedule` (which candidate is fitted when,
and on how many rows), `ensembles` (an average of the best), `linear_fits` (the linear model of the report).
"""
