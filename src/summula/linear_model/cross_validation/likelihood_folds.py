"""The splits of a cross-validated likelihood: regularisation paths fitted on training rows, scored on test rows.

Rows are not copied from memory, files or a cluster: each sum goes over all of them, with weights multiplied by the
number of times the split trains on a row,

    sum over a split = sum_i c_i w_i (...),       c_i = 0 or 1, unless a splitter repeats rows                  (1)

With many columns, the training rows are copied instead if they are in memory. Each model of a path is warm-started from
the previous one, strongest penalty first. A class without training rows in a split has probability 0 in the limit: the
model is fitted to the remaining classes, and the score of the missing class is set far below theirs.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from summula.core.data.chunks import Chunk
from summula.core.data.sources import MemorySource, Source
from summula.core.engine.engine import engine, local_engine
from summula.core.errors import DataError
from summula.core.estimator.linear.linear_predictor import linear_values
from summula.core.estimator.run import Run
from summula.core.numerics.grouped import ClassWeights
from summula.core.numerics.sums import Sum
from summula.linear_model.cross_validation.folds import Batch
from summula.linear_model.glm.minimise import minimise
from summula.linear_model.glm.objective import GlmFit, GlmProblem
from summula.linear_model.l1.likelihood import at_once
from summula.losses import Multinomial

__all__ = ["Codes", "FoldRun", "ScoredModels", "Scores", "Split", "path_of", "train_of", "with_labels"]

Array = NDArray[Any]

_NEVER = 50.0  # log-odds of a class without training rows, relative to the lowest score of the other classes


class Split(NamedTuple):
    """One split: the indices of its rows, and how often each is used for training and testing: `number` of `batch`."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    batch: Batch
    number: int


class OnFold(NamedTuple):
    """A statistic of the training rows of a split, by equation (1)."""

    statistic: Any
    batch: Batch
    number: int

    def map(self, chunk: Chunk, params: Any) -> Any:
        """Return the statistic of one chunk."""
        return self.statistic.map(self.weighted(chunk), params)

    def merge(self, a: Any, b: Any) -> Any:
        """Return the statistic of the union of two sets of rows."""
        return self.statistic.merge(a, b)

    def weighted(self, chunk: Chunk) -> Chunk:
        """The chunk with the weights of the split."""
        times = self.batch.train[self.number][self.batch.of(chunk.start, chunk.stop)].astype(np.float64)
        return replace(chunk, weight=times if chunk.weight is None else times * chunk.weight)


class FoldRun(Run):
    """A run whose sums go over the training rows of a split, wherever they are stored."""

    def __init__(self, whole: Run, split: Split) -> None:
        self.__dict__.update(vars(whole))
        self._whole, self._fold = copy.copy(whole), OnFold(None, split.batch, split.number)
        self._context = self._whole._context = None  # several splits run concurrently
        self._weighted: Chunk | None = None  # the rows with their weights, if they are a single chunk in memory

    def use(self, source: Source) -> None:
        """Continue with another source of the same rows."""
        super().use(source)
        self._whole, self._weighted = copy.copy(self._whole), None
        self._whole.use(source)

    def sum(self, statistic: Any, params: Any, task: str = "pass over the rows", *, by_chunk: bool = False) -> Any:
        """Compute the statistic of the training rows of the split."""
        if (chunk := self._whole._only_chunk()) is not None:
            self._weighted = self._fold.weighted(chunk) if self._weighted is None else self._weighted
            return self._whole._checked(self._whole._sum_here(statistic, params, task, self._weighted))
        return self._whole.sum(cast(Any, self._fold._replace(statistic=statistic)), params, task, by_chunk=by_chunk)

    def leading(self, rows: int) -> Run:
        """Return a run without progress reports over the first rows only, in memory."""
        few = self._whole.leading(rows)
        source = few.source
        assert isinstance(source, MemorySource)
        weight = self._fold.weighted(source.chunk(0, source.n_rows)).weight
        with engine(local_engine()):
            return Run(self.estimator, replace(source, weight=weight), quiet=True, deadline=self._deadline)


def train_of(run: Run, split: Split, problem: GlmProblem) -> Run:
    """Return a run over the training rows of a split."""
    if run.source.streams or at_once(run, problem):  # few columns: same bits as from files
        return FoldRun(run, split)
    source = run.source
    chunk = source.chunk(0, source.n_rows).take(split.train)
    held = MemorySource.of_chunk(chunk, source)
    with engine(local_engine()):
        return Run(run.estimator, held, quiet=True, deadline=run._deadline)


def path_of(run: Run, problems: Sequence[GlmProblem], number: int) -> list[GlmFit]:
    """Fit several problems on the training rows of a split, each warm-started from the previous one."""
    problem = problems[0]
    there = run.sum(ClassWeights, max(problem.outputs, 2), "classes").totals > 0
    if problem.intercept and there.sum() < 2:
        raise DataError(
            f"Split {number} has training rows of one class only; use fewer splits, or a splitter that preserves the "
            "proportions of the classes, such as StratifiedKFold."
        )
    if problem.intercept and not there.all():
        return _without_class(run, problems, number, there)
    fits: list[GlmFit] = []
    for problem in problems:
        start = (fits[-1].intercept, fits[-1].coef) if fits else None
        fits.append(minimise(run, problem, None, start))
    return fits


def _without_class(run: Run, problems: Sequence[GlmProblem], number: int, there: Array) -> list[GlmFit]:
    """Return the fits if a class has no training rows."""
    if isinstance(run, FoldRun) and run.source.streams:
        raise DataError(
            f"Split {number} has no training rows of some class; use fewer splits, or a splitter that preserves the "
            "proportions of the classes, such as StratifiedKFold."
        )
    run = run.leading(run.source.n_rows)
    source = run.source
    assert isinstance(source, MemorySource)
    kept = np.flatnonzero(there)
    code = np.zeros(len(there), np.int32)
    code[kept] = np.arange(len(kept))
    fewer = Run(run.estimator, replace(source, codes=code[source.codes]), quiet=True, deadline=run._deadline)
    weights = problems[0].class_weight
    mine = None if weights is None else weights[kept]
    part = [p._replace(loss=Multinomial(len(kept)), outputs=len(kept), class_weight=mine, link=None) for p in problems]
    fits = []
    for fit in path_of(fewer, part, number):
        coef = np.zeros((len(there), source.n_features))
        intercept = np.full(len(there), fit.intercept.min() - _NEVER)
        coef[kept], intercept[kept] = fit.coef, fit.intercept
        fits.append(replace(fit, coef=coef, intercept=intercept))
    return fits


# -------------------------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class Codes(Sum):
    """The class codes of all rows, in pieces; for splitters that keep classes together."""

    pieces: tuple[Array, ...]

    @classmethod
    def map(cls, chunk: Chunk, params: None) -> Self:
        """The codes of one chunk."""
        assert chunk.codes is not None
        return cls((chunk.codes.copy(),))


class ScoredModels(NamedTuple):
    """Models (concatenated slopes, intercepts) and the split whose test rows they score."""

    batch: Batch
    number: int
    coef: Array
    intercept: Array


@dataclass(frozen=True)
class Scores(Sum):
    """Linear scores of several models on the test rows of a split, with codes and weights, in pieces."""

    pieces: tuple[tuple[Array, Array, Array | None], ...]

    @classmethod
    def map(cls, chunk: Chunk, params: ScoredModels) -> Self:
        """The pieces of one chunk."""
        times = params.batch.test[params.number][params.batch.of(chunk.start, chunk.stop)]
        rows = np.repeat(np.arange(len(times)), times)
        if not len(rows):
            return cls(())
        some = chunk.take(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # `Run.sum` locates values that are not finite
            scores = np.asarray(linear_values(params.coef, params.intercept, some), np.float64)
        return cls(((scores, np.asarray(some.codes), some.weight),))


def with_labels(scorer: Any, classes: Array) -> Any:
    """Return the scorer with all classes passed to its metric if it accepts them: test rows may lack some classes."""
    from sklearn.metrics import make_scorer

    metric = getattr(scorer, "_score_func", None)
    if metric is None:
        return scorer
    takes = inspect.signature(metric).parameters
    if "labels" not in takes:
        return scorer
    options: dict[str, Any] = {"labels": classes}
    given: Mapping[str, Any] = getattr(scorer, "_kwargs", {})
    of_one = given.get("average", takes["average"].default) == "binary" if "average" in takes else True
    if len(classes) == 2 and "pos_label" in takes and of_one:
        options["pos_label"] = classes[-1]
    better = getattr(scorer, "_sign", 1) == 1
    response = getattr(scorer, "_response_method", "predict")
    return make_scorer(metric, greater_is_better=better, response_method=response, **{**options, **given})
