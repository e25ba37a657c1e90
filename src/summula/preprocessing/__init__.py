"""Scaling of features."""

from summula.preprocessing.standard_scaler import StandardScaler

__all__ = ["StandardScaler"]
