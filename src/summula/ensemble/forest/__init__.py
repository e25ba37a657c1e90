"""Forests: trees grown from bootstrap samples, each split searched on a few columns drawn at random.

Reading order: `bootstrap` (the sample of each tree), `growing` (all trees, one per thread), `streaming` (from rows that
are not in memory), `walking` (predictions), `out_of_bag` (predictions for out-of-bag rows, and importances), `members`
(trees as estimators), `base`, `classifier`, `regressor`.
"""
