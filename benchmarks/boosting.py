"""Histogram gradient boosting: a hundred trees of 31 leaves, evaluated on held-out rows.

Quality is the area under the ROC curve for two classes, otherwise the loss. On tables drawn from the same distribution
the losses of two libraries differ by up to 0.2 % in either direction, more on smaller tables, so they are averaged over
several tables.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from benchmarks.streams import BLOCK_ROWS, TARGET, Files
from benchmarks.threads import THREADS
from benchmarks.workload import Contender, FitWorkload, Quality

HELD_OUT_ROWS = 100_000
TREES = 100
STREAM_TREES = 20


class Rows(NamedTuple):
    """Training rows X with targets y, and test rows."""

    X: Any
    y: np.ndarray
    X_fresh: Any
    y_fresh: np.ndarray


def _drawn(rows: int, columns: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Normal columns in single precision, and a score with curves and interactions."""
    rng = np.random.default_rng(draw)
    X = rng.standard_normal((rows + HELD_OUT_ROWS, columns), dtype=np.float32)
    # Shifted: with an interaction without main effects the first split would be arbitrary.
    score = (X[:, 0] + 0.5) * (X[:, 1] - 0.5) + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2 - 0.5 * np.abs(X[:, 4])
    score += 0.3 * X[:, 5:10].sum(axis=1)
    return X, score.astype(np.float64), rng


def _divided(X: np.ndarray, y: np.ndarray) -> Rows:
    return Rows(X[:-HELD_OUT_ROWS], y[:-HELD_OUT_ROWS], X[-HELD_OUT_ROWS:], y[-HELD_OUT_ROWS:])


def two_classes(rows: int, columns: int, draw: int = 0) -> Rows:
    """Classes drawn with the score as log-odds."""
    X, score, rng = _drawn(rows, columns, draw)
    return _divided(X, (rng.random(len(X)) < special.expit(score)).astype(np.int64))


def five_classes(rows: int, columns: int, draw: int = 0) -> Rows:
    """Five classes: the score, with noise, discretised."""
    X, score, rng = _drawn(rows, columns, draw)
    noisy = score + rng.standard_normal(len(X))
    return _divided(X, np.digitize(noisy, np.quantile(noisy, [0.2, 0.4, 0.6, 0.8])))


def numbers(rows: int, columns: int, draw: int = 0) -> Rows:
    """The score, with noise."""
    X, score, rng = _drawn(rows, columns, draw)
    return _divided(X, score + rng.standard_normal(len(X)))


def missing_values(rows: int, columns: int, draw: int = 0) -> Rows:
    """Two classes, with a fifth of the values missing."""
    data = two_classes(rows, columns, draw)
    for number, X in enumerate((data.X, data.X_fresh)):
        X[np.random.default_rng([1, number, draw]).random(X.shape, np.float32) < 0.2] = np.nan
    return data


def categories(rows: int, columns: int, draw: int = 0) -> Rows:
    """Two classes; all columns except eight are categories with 4 to 200 levels and an effect per level."""
    import pandas as pd

    X, score, rng = _drawn(rows, 10, draw)
    frame = {f"x{j}": X[:, j] for j in range(8)}
    score = score - score.mean()
    for j in range(columns - 8):
        levels = int(np.geomspace(4, 200, columns - 8)[j])
        codes = (levels * rng.random(len(X)) ** 2).astype(np.int64)  # some rare, some frequent
        score = score + 0.3 * rng.standard_normal(levels)[codes]
        frame[f"c{j}"] = pd.Categorical.from_codes(codes, [f"level {k}" for k in range(levels)])
    y = (rng.random(len(X)) < special.expit(score)).astype(np.int64)
    table = pd.DataFrame(frame)
    return Rows(table[:-HELD_OUT_ROWS], y[:-HELD_OUT_ROWS], table[-HELD_OUT_ROWS:], y[-HELD_OUT_ROWS:])


def minus_area(data: Rows, model: Any) -> float:
    """The negative area under the ROC curve of the test rows."""
    from sklearn.metrics import roc_auc_score

    return -float(roc_auc_score(data.y_fresh, np.asarray(model.predict_proba(data.X_fresh))[:, 1]))


def log_loss(data: Rows, model: Any) -> float:
    """The mean of log(1 / P(y)) over the test rows."""
    p = np.asarray(model.predict_proba(data.X_fresh))
    return float(-np.log(p[np.arange(len(p)), data.y_fresh]).mean())


def squared_error(data: Rows, model: Any) -> float:
    """The mean squared error over the test rows."""
    return float(np.mean((np.asarray(model.predict(data.X_fresh)) - data.y_fresh) ** 2))


def _of(library: str, module: str, name: str, **parameters: Any) -> Contender:
    def load() -> Callable[[Rows], Any]:
        model = partial(getattr(import_module(module), name), **parameters)
        return lambda data: model().fit(data.X, data.y)

    return Contender(library, load)


def _contenders(kind: str, *, slow: bool = True, categorical: bool = False) -> tuple[Contender, ...]:
    """Contenders with the same number and size of trees and learning rate; without the slow ones on large tables."""
    name, settings = f"HistGradientBoosting{kind}", {"max_iter": TREES, "early_stopping": False}
    shared = {"n_estimators": TREES, "learning_rate": 0.1, "n_jobs": THREADS}
    light = {"num_leaves": 31, "min_child_samples": 20, "verbose": -1, **shared}
    other = {"tree_method": "hist", "grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0, "reg_lambda": 0.0}
    other |= {"enable_categorical": True} if categorical else {}
    rest = (_of("scikit-learn", "sklearn.ensemble", name, **settings),) if slow else ()
    if categorical:
        rest = (*rest, Contender("CatBoost", _catboost))
    return (
        _of("summula", "summula.ensemble", name, random_state=0, **settings),
        _of("LightGBM", "lightgbm", f"LGBM{kind}", **light),
        _of("LightGBM, quantised", "lightgbm", f"LGBM{kind}", use_quantized_grad=True, **light),
        _of("XGBoost", "xgboost", f"XGB{kind}", **other, **shared),
        *rest,
    )


def _catboost() -> Callable[[Rows], Any]:
    from catboost import CatBoostClassifier

    def work(data: Rows) -> Any:
        names = [name for name in data.X.columns if name.startswith("c")]
        settings = {"grow_policy": "Lossguide", "max_leaves": 31, "depth": 16, "allow_writing_files": False}
        model = CatBoostClassifier(
            iterations=TREES, learning_rate=0.1, thread_count=THREADS, cat_features=names, verbose=False, **settings
        )
        return model.fit(data.X, data.y)

    return work


# ---------------------------------------------------------------------------------------------------------- prediction


class Predicted(NamedTuple):
    """Probabilities, and the model and rows they belong to."""

    p: Any
    model: Any


def _predicting(contender: Contender, one: bool) -> Contender:
    """Predict probabilities of the test rows, or of the first of them, by a model fitted before the timing."""

    def load() -> Callable[[Rows], Any]:
        fit, models = contender.load(), {}

        def work(data: Rows) -> Any:
            if data.X.shape not in models:
                models[data.X.shape] = fit(data)
            model = models[data.X.shape]
            return Predicted(model.predict_proba(data.X_fresh[:1] if one else data.X_fresh), model)

        return work

    return Contender(contender.name, load)


def fresh_rows(rows: int, columns: int) -> Rows:
    """Few training rows, and many test rows."""
    data = two_classes(rows, columns)
    few = min(100_000, rows // 2)
    return Rows(data.X[:few], data.y[:few], data.X, data.y)


def disagreement(data: Rows, predicted: Predicted) -> float:
    """The largest difference of probabilities between predictions of the same rows in different batches."""
    p, model = np.asarray(predicted.p), predicted.model
    if len(p) == 1:
        return float(np.abs(p[0] - np.asarray(model.predict_proba(data.X_fresh[:500]))[0]).max())
    some = np.random.default_rng(0).choice(len(p), 200, replace=False)
    return float(max(np.abs(p[i] - np.asarray(model.predict_proba(data.X_fresh[i : i + 1]))[0]).max() for i in some))


# -------------------------------------------------------------------------------------------------------------- stream


def _write_classes(folder: Path, rows: int, columns: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    for number, start in enumerate(range(0, rows, BLOCK_ROWS)):
        rng = np.random.default_rng([5, number])
        X = rng.standard_normal((min(BLOCK_ROWS, rows - start), columns), dtype=np.float32)
        score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.3 * X[:, 5:10].sum(axis=1)
        columns_of = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(columns)}
        table = pa.table(columns_of | {TARGET: (rng.random(len(X)) < special.expit(score)).astype(np.float64)})
        writer = writer or parquet.ParquetWriter(folder / "rows.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


class ClassFiles(Files):
    """Rows in Parquet, and in memory on demand."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__("boosting-stream", rows, columns, _write_classes, products=False)

    def in_memory(self) -> Any:
        from pyarrow import parquet

        if self.model is None:  # read once, before the timing
            X = None
            file, at = parquet.ParquetFile(self.paths[0], pre_buffer=False, buffer_size=1 << 16), 0
            y = np.empty(self.rows)
            for batch in file.iter_batches(1 << 16):
                if X is None:
                    X = np.empty((self.rows, batch.num_columns - 1), np.float32)
                for j in range(X.shape[1]):
                    X[at : at + batch.num_rows, j] = batch.column(j)
                y[at : at + batch.num_rows] = batch.column(X.shape[1])
                at += batch.num_rows
            self.model = X, y
        return self.model


def _boosted(in_memory: bool) -> Callable[[], Callable[[ClassFiles], Any]]:
    def load() -> Callable[[ClassFiles], Any]:
        import summula
        from summula.ensemble import HistGradientBoostingClassifier

        def work(files: ClassFiles) -> Any:
            model = HistGradientBoostingClassifier(max_iter=STREAM_TREES, early_stopping=False, random_state=0)
            if in_memory:
                return model.fit(*files.in_memory())
            return model.fit(summula.scan(files.paths), TARGET)

        return work

    return load


def last_loss(files: ClassFiles, model: Any) -> float:
    """The mean loss over all rows after the last tree."""
    return float(model.learning_curve_["train"][-1])


def _fit_workload(name: str, title: str, shape: tuple[int, int], data: Any, kind: str, **options: Any) -> FitWorkload:
    draws, rounds = options.pop("draws", 3), options.pop("rounds", 3)
    judge = squared_error if kind == "Regressor" else log_loss if data is five_classes else minus_area
    return FitWorkload(
        name=f"boosting-{name}",
        title=f"HistGradientBoosting{kind}, {title}",
        shape=shape,
        quick_shape=(3_000, max(12, min(shape[1], 28))),
        make_data=data,
        contenders=_contenders(kind, **options),
        quality=Quality(judge, "objective", tolerance=1e-3),
        rounds=rounds,
        draws=draws,
    )


_PEERS = _contenders("Classifier", slow=False)


def _predict_workload(name: str, title: str, rows: int, *, one: bool) -> FitWorkload:
    return FitWorkload(
        f"boosting-{name}",
        f"HistGradientBoostingClassifier, {title}",
        (rows, 28),
        (5_000, 12),
        fresh_rows,
        tuple(_predicting(peer, one=one) for peer in _PEERS if "quantised" not in peer.name),
        Quality(disagreement, "error", tolerance=1e-6),
    )


WORKLOADS = (
    _fit_workload("binary", "two classes", (800_000, 28), two_classes, "Classifier", slow=False),
    _fit_workload("classes", "five classes", (800_000, 28), five_classes, "Classifier", slow=False, draws=2, rounds=2),
    _fit_workload("regression", "squared error", (800_000, 28), numbers, "Regressor", slow=False),
    _fit_workload("missing", "a fifth of the values missing", (800_000, 28), missing_values, "Classifier", slow=False),
    _fit_workload(
        "categories",
        "20 of the columns categories",
        (800_000, 28),
        categories,
        "Classifier",
        slow=False,
        categorical=True,
        draws=2,
        rounds=2,
    ),
    _fit_workload("wide", "two classes", (50_000, 500), two_classes, "Classifier", slow=False, draws=5),
    _fit_workload("small", "two classes", (5_000, 20), two_classes, "Classifier", draws=40, rounds=9),
    _predict_workload("predict", "predict_proba", 1_000_000, one=False),
    _predict_workload("one-row", "predict_proba of one row", 200_000, one=True),
    FitWorkload(
        name="boosting-stream",
        title=f"HistGradientBoostingClassifier from Parquet, {STREAM_TREES} trees, against the same rows in memory",
        shape=(20_000_000, 28),
        quick_shape=(20_000, 12),
        make_data=ClassFiles,
        contenders=(
            Contender("summula", _boosted(in_memory=False)),
            Contender("summula, in memory", _boosted(in_memory=True)),
        ),
        quality=Quality(last_loss, "objective", tolerance=1e-12),
        rounds=1,
    ),
)
