"""Machinery of gradient boosting with exact trees, or with any other base learner.

Reading order: `losses` (negative gradients, line searches in leaves), `learners` (base learners fitted to the
gradients), `boosting` (a stage), `additive_model` (the learners so far), `staged` (predictions after each stage, for
all boosted models), `learner_sequence`, `base` (base class of the estimators).
"""
