"""Solvers: they know neither storage nor model."""
