"""Feature selection: sequential search (a wrapper around an estimator) and mutual information (a filter).

Reading order: `sequential` (the search), `subset_scores` (cross-validated scores of all subsets from one pass),
`mutual_information_filter`. Names are loaded on first use (PEP 562).
"""

from summula.core.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {"mutual_information_filter": "MutualInformationFilter", "sequential": "SequentialFeatureSelector"},
)
