"""Plots of decision processes.

Reading order: `values` (value functions and policies of states), `grid_worlds` (of states on a grid).
"""
