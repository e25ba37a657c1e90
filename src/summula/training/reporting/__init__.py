"""Content of the report of a training run.

Reading order: `page` (the whole), `held_out` (figures of performance), `explained` (importances, partial dependence and
contributions, as numbers), `model_figures` (the same as figures, coefficients, settings), `data_figures`.
"""

from summula.training.reporting.page import content_of

__all__ = ["content_of"]
