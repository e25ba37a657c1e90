"""Training on a table: split, encode, compare, refit, certify.

Reading order: `request` (what is asked for), `tables` (what it is asked of), `target`, `split`, `leaks`, `costs`,
`metrics`, `candidates`, `comparison`, `schedule` (who is fitted when), `memory_rows` and `file_rows` (rows in memory
or in scratch files), `pipeline` (the whole job), `result`, `verdicts`, `reporting`, `results_folder`; `training` is
`summula.train`.
"""

from summula.training.result import TrainingResult
from summula.training.training import train

__all__ = ["TrainingResult", "train"]
