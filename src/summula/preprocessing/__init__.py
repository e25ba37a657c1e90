"""Preprocessing: feature scaling, discretisation, encoding of mixed tables, and models of such tables."""

from summula.preprocessing.k_bins_discretizer import KBinsDiscretizer
from summula.preprocessing.standard_scaler import StandardScaler
from summula.preprocessing.table_encoder import TableEncoder
from summula.preprocessing.table_encoder_plans import ColumnPlan
from summula.preprocessing.table_model import TableModel

__all__ = ["ColumnPlan", "KBinsDiscretizer", "StandardScaler", "TableEncoder", "TableModel"]
