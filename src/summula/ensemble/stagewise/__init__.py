"""Machinery of gradient boosting with exact trees, or with any other base learner.

Reading order: `losses` (negative gradients, line searches in leaves), `learners` (what is fitted to the gradients),
`boosting` (a stage), `additive_model` (the learners so far), `staged` (predictions after each stage, of all boosted
models), `base` (what classifier and regressor share).
"""
