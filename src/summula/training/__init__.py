"""Training on a table: split, encode, compare, refit, certify.

Reading order: `training` (`summula.train`), `request` (options) and `checks`, `data/` (the table, its target and
split), `comparison/` (candidates, metrics, schedule), `models/` (models that only training uses), `table_models`
(encoder and model in one), `pipeline` (the whole run), `near_perfect` (a remark on nearly exact predictions),
`result`, `verdicts`, `reporting/`, `results_folder`.
"""

from summula.training.result import TrainingResult
from summula.training.training import train

__all__ = ["TrainingResult", "train"]
