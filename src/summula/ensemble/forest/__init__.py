"""Forests: trees grown from resampled rows, each split among a few columns drawn at random.

Reading order: `bootstrap` (which rows a tree has), `growing` (all trees, one per thread), `streaming` (from rows that
are not kept in memory), `walking` (rows go down), `out_of_bag` (predictions for rows that trees have not seen, and
importances), `members` (trees as estimators), `base`, `classifier`, `regressor`.
"""
