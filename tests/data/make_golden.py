"""Write the golden model files: small fitted models, with what they predict, as this version saves them.

    python tests/data/make_golden.py            # adds the files of the current format that are not there yet
    python tests/data/make_golden.py --check    # says what is missing, writes nothing

Run it once for each new estimator and each new format, and commit what it adds. A golden file is never
rewritten: it stands for the files that users have. `tests/core/test_persistence.py` loads every one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from summula.core.model_files.model_file import FORMAT
from summula.core.model_files.persistence import save

FOLDER = Path(__file__).parent / "golden"


class Golden(NamedTuple):
    """A fitted model, the method to call and what to call it with."""

    name: str
    model: Any
    method: str
    X: np.ndarray

    @classmethod
    def of(cls, model: Any, method: str, X: np.ndarray) -> Golden:
        """Name a model after its class."""
        return cls(type(model).__name__, model, method, X)


def models() -> Iterator[Golden]:
    """Every estimator at least once; features of the format (names, several targets, weights) somewhere."""
    import pandas as pd

    from summula.features import PolynomialLift
    from summula.linear_model import (
        GeneralizedLinearRegressor,
        LinearRegression,
        LogisticRegression,
        PoissonRegressor,
        PolynomialRegression,
        Ridge,
        RidgeCV,
    )
    from summula.preprocessing import StandardScaler

    rng = np.random.default_rng(20240229)
    X = rng.normal(size=(40, 3)) * [1, 10, 100] + [0, 5, -50]
    y = X @ [1.0, -0.5, 0.25] + 2 + rng.normal(size=40)
    Y = np.column_stack([y, -2 * y + X[:, 0]])
    w = rng.integers(1, 4, 40).astype(float)
    new = X[:5] + 0.5
    yield Golden.of(LinearRegression().fit(X, y), "predict", new)
    frame = pd.DataFrame(X, columns=["age", "größe", "x" * 70])
    yield Golden("LinearRegression-names", LinearRegression().fit(frame, y), "predict", new)
    yield Golden("LinearRegression-targets", LinearRegression().fit(X, Y, sample_weight=w), "predict", new)
    yield Golden("LinearRegression-float32", LinearRegression().fit(X.astype("f4"), y), "predict", new)
    yield Golden.of(Ridge(alpha=0.5).fit(X, y), "predict", new)
    yield Golden("Ridge-alphas", Ridge(alpha=np.array([0.1, 10.0])).fit(X, Y), "predict", new)
    yield Golden("Ridge-positive", Ridge(positive=True).fit(X, y), "predict", new)
    yield Golden.of(RidgeCV(alphas=[0.1, 1.0, 10.0], cv=4).fit(X, y), "predict", new)
    yield Golden.of(PolynomialRegression(degree=2).fit(X, y), "predict", new)
    yield Golden.of(StandardScaler().fit(X), "transform", new)
    yield Golden.of(PolynomialLift(degree=2).fit(X), "transform", new)
    words = np.array(["low", "middle", "high"])[np.digitize(y + 4 * rng.normal(size=40), [-15.0, -5.0])]
    yield Golden.of(LogisticRegression().fit(X, words == "low"), "predict_proba", new)
    yield Golden("LogisticRegression-words", LogisticRegression(C=0.1).fit(frame, words), "predict", new)
    counts = rng.poisson(np.exp(0.2 * X[:, 0] + 1))
    yield Golden.of(PoissonRegressor(alpha=0.1).fit(X, counts), "predict", new)
    amounts = np.exp(0.3 * X[:, 0]) * rng.gamma(2.0, size=40)
    glm = GeneralizedLinearRegressor("gamma", "log", lower=[-1.0, 0.0, -np.inf])
    yield Golden.of(glm.fit(X, amounts, sample_weight=w), "predict", new)
    yield from _more_models(X, y, words, counts, new)
    yield from _mixtures(X, new)
    yield from _machines(X, y, words)
    yield from _trees(X, y, words)
    yield from _boosted(X, y, words, new)
    yield from _generative(X, words, new)
    yield from _clusters(X, new)
    yield from _neighbours(X, y, words, new)
    yield from _lifts(X, new)


def _neighbours(X: np.ndarray, y: np.ndarray, words: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from scipy import sparse

    from summula.neighbors import KNeighborsClassifier, KNeighborsRegressor

    classes = KNeighborsClassifier(3, weights="distance").fit(X, words)
    yield Golden.of(classes, "predict_proba", new)
    yield Golden.of(KNeighborsRegressor(4, p=1).fit(X, y), "predict", new)
    rows = sparse.csr_matrix(np.where(X > 0, np.round(X), 0.0))
    targets = KNeighborsRegressor(2, metric="cosine").fit(rows, np.column_stack([y, -y]))
    yield Golden("KNeighborsRegressor-sparse", targets, "predict", new)


def _lifts(X: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from summula.features import HOG, ParabolicLift, QuadricLift

    yield Golden.of(ParabolicLift().fit(X), "transform", new)
    yield Golden.of(QuadricLift().fit(X), "transform", new)
    images = np.random.default_rng(3).uniform(size=(4, 8 * 10))
    yield Golden.of(HOG(image_shape=(8, 10), n_bins=6, cell=(4, 4)).fit(images), "transform", images)


def _trees(X: np.ndarray, y: np.ndarray, words: np.ndarray) -> Iterator[Golden]:
    from summula.tree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier

    levels = np.column_stack([X[:, 0], np.arange(len(X)) % 4, X[:, 2]])
    levels[::7, 0] = np.nan
    regression = DecisionTreeRegressor(max_depth=3, categorical_features=[1]).fit(levels, y)
    yield Golden.of(regression, "predict", levels[:5])
    classes = DecisionTreeClassifier(max_depth=3).fit(levels, words)
    yield Golden.of(classes, "predict_proba", levels[:5])
    few = np.round(X / [1, 10, 100])
    few[::9, 1] = np.nan
    yield Golden.of(ID3Classifier(max_depth=2).fit(few, words), "predict_proba", few[:12])


def _boosted(X: np.ndarray, y: np.ndarray, words: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from summula.ensemble import AdaBoostClassifier, GradientBoostingClassifier, GradientBoostingRegressor
    from summula.linear_model import LogisticRegression, Ridge

    yield Golden.of(AdaBoostClassifier(n_estimators=4).fit(X, words), "predict_proba", new)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    boosted = AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(scaled, words == "low")
    yield Golden("AdaBoostClassifier-learners", boosted, "decision_function", scaled[:5])
    regression = GradientBoostingRegressor(n_estimators=3, subsample=0.7, random_state=0).fit(X, y)
    yield Golden.of(regression, "predict", new)
    linear = GradientBoostingRegressor(estimator=Ridge(), loss="huber", n_estimators=2).fit(X, y)
    yield Golden("GradientBoostingRegressor-learners", linear, "predict", new)
    few = {"n_estimators": 2, "max_depth": 2}
    yield Golden.of(GradientBoostingClassifier(**few).fit(X, words), "predict_proba", new)


def _mixtures(X: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from summula.mixture import BernoulliMixture, BinomialMixture, GaussianMixture

    for kind in ("full", "tied", "diag", "spherical"):
        model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
        yield Golden(f"GaussianMixture-{kind}", model, "score_samples", new)
    counts, ones = np.clip(np.round(X[:, :1] + 5), 0, 10), (X - X.mean(axis=0) > 0).astype(float)
    yield Golden.of(BinomialMixture(2, 10, random_state=0).fit(counts), "predict_proba", counts[:5])
    yield Golden.of(BernoulliMixture(2, random_state=0).fit(ones), "predict_proba", ones[:5])


def _machines(X: np.ndarray, y: np.ndarray, words: np.ndarray) -> Iterator[Golden]:
    from summula.kernel_approximation import Nystroem, PolynomialCountSketch, RBFSampler
    from summula.kernel_ridge import KernelLMS, KernelRidge
    from summula.kernels import Gaussian, Linear
    from summula.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, PegasosSVC

    X = (X - X.mean(axis=0)) / X.std(axis=0)
    new, low = X[:5] + 0.1, words == "low"
    yield Golden.of(SVC(C=2.0).fit(X, words), "decision_function", new)
    yield Golden("SVC-sum-of-kernels", SVC(kernel=Gaussian(2.0) + 0.5 * Linear()).fit(X, low), "predict", new)
    yield Golden.of(SVR(kernel="poly", coef0=1.0).fit(X, y), "predict", new)
    yield Golden.of(OneClassSVM(nu=0.3).fit(X), "decision_function", new)
    yield Golden.of(LinearSVC().fit(X, words), "decision_function", new)
    yield Golden("LinearSVC-hinge", LinearSVC(loss="hinge", random_state=0).fit(X, low), "decision_function", new)
    yield Golden.of(LinearSVR(epsilon=0.5, random_state=0).fit(X, y), "predict", new)
    yield Golden.of(PegasosSVC(0.1, random_state=0).fit(X, words), "decision_function", new)
    yield Golden.of(KernelRidge(kernel="rbf", gamma=0.3).fit(X, y), "predict", new)
    yield Golden.of(KernelLMS(gamma=0.3, budget=20).fit(X, y), "predict", new)
    yield Golden.of(Nystroem(n_components=6, random_state=0).fit(X), "transform", new)
    yield Golden.of(RBFSampler(n_components=6, random_state=0).fit(X), "transform", new)
    sketch = PolynomialCountSketch(n_components=6, coef0=1.0, random_state=0).fit(X)
    yield Golden.of(sketch, "transform", new)


def _generative(X: np.ndarray, words: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from summula.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from summula.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MixedNB, MultinomialNB
    from summula.neighbors import NearestCentroid

    gaps, counts = np.array(X), np.abs(np.round(X / X.std(axis=0)))
    gaps[::7, 1] = np.nan
    yield Golden.of(GaussianNB().fit(gaps, words), "predict_joint_log_proba", gaps[:8])
    for model in (BernoulliNB(binarize=1.0), MultinomialNB(), ComplementNB(norm=True), CategoricalNB()):
        yield Golden.of(model.fit(counts, words), "predict_joint_log_proba", counts[:5])
    rows = np.array([[1.0, 0.0, 2.0], [np.nan, 1.0, 0.0]])
    yield Golden.of(MixedNB({2: "categorical"}).fit(counts, words), "predict_joint_log_proba", rows)
    linear = LinearDiscriminantAnalysis(shrinkage="auto").fit(X, words)
    yield Golden.of(linear, "predict_joint_log_proba", new)
    quadratic = QuadraticDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]).fit(X, words)
    yield Golden.of(quadratic, "predict_joint_log_proba", new)
    yield Golden.of(NearestCentroid(shrink_threshold=0.5).fit(X, words), "predict_proba", new)
    border = NearestCentroid(adjust=True).fit(X, words == "low")
    yield Golden("NearestCentroid-adjusted", border, "decision_function", new)


def _clusters(X: np.ndarray, new: np.ndarray) -> Iterator[Golden]:
    from summula.cluster import KMeans, MiniBatchKMeans
    from summula.preprocessing import KBinsDiscretizer

    yield Golden.of(KMeans(3, n_init=2, random_state=0).fit(X), "transform", new)
    yield Golden.of(MiniBatchKMeans(3, random_state=0).fit(X), "transform", new)
    bins = KBinsDiscretizer(3, encode="ordinal", strategy="uniform").fit(X)
    yield Golden.of(bins, "transform", new)


def _more_models(
    X: np.ndarray, y: np.ndarray, words: np.ndarray, counts: np.ndarray, new: np.ndarray
) -> Iterator[Golden]:
    """The estimators that were added later."""
    from summula import ensemble, linear_model
    from summula.decomposition import PCA, FactorAnalysis
    from summula.preprocessing import TableEncoder, TableModel

    Y, low = np.column_stack([y, -y]), words == "low"
    common = np.column_stack([y, y + X[:, 1], y - X[:, 0], y + X[:, 2] / 10])
    scaled, few = (X - X.mean(axis=0)) / X.std(axis=0), {"max_iter": 3, "min_samples_leaf": 3, "random_state": 0}
    levels = np.column_stack([X[:, 0], np.arange(len(X)) % 4, X[:, 2]])
    chosen = y + 3.0 * np.isin(levels[:, 1], (1, 2))
    boosted = ensemble.HistGradientBoostingRegressor(categorical_features=[1], **few).fit(levels, chosen)
    yield Golden.of(boosted, "predict", levels[:5])
    yield Golden.of(ensemble.HistGradientBoostingClassifier(**few).fit(X, words), "predict_proba", new)
    drawn_trees: dict[str, Any] = {"n_estimators": 3, "max_depth": 3, "random_state": 0}
    forest = ensemble.RandomForestRegressor(categorical_features=[1], **drawn_trees).fit(levels, chosen)
    yield Golden.of(forest, "predict", levels[:5])
    yield Golden.of(ensemble.RandomForestClassifier(**drawn_trees).fit(X, words), "predict_proba", new)
    exact = ensemble.ExtraTreesClassifier(splits="exact", **drawn_trees)
    yield Golden.of(exact.fit(X, words), "predict_proba", new)
    yield Golden.of(ensemble.ExtraTreesRegressor(**drawn_trees).fit(X, y), "predict", new)
    yield Golden.of(linear_model.Lasso(0.1).fit(X, y), "predict", new)
    yield Golden.of(linear_model.ElasticNet(0.1).fit(X, Y), "predict", new)
    yield Golden.of(linear_model.LassoCV(cv=3, alphas=4).fit(X, y), "predict", new)
    yield Golden.of(linear_model.ElasticNetCV(l1_ratio=[0.3, 0.9], cv=3, alphas=4).fit(X, y), "predict", new)
    options = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": True}
    chosen_by_folds = linear_model.LogisticRegressionCV(Cs=2, cv=2, **options).fit(scaled, low)
    yield Golden.of(chosen_by_folds, "predict_proba", scaled[:5])
    sparse = linear_model.LogisticRegression(l1_ratio=1.0, C=0.3).fit(scaled, words).sparsify()
    yield Golden("LogisticRegression-sparse", sparse, "predict_proba", scaled[:5])
    yield Golden.of(linear_model.GammaRegressor().fit(X, counts + 0.5), "predict", new)
    yield Golden.of(linear_model.TweedieRegressor(power=1.5).fit(X, counts + 0.5), "predict", new)
    drawn = linear_model.BayesianLogisticRegression(predictive="sampling", n_samples=20, random_state=0).fit(
        scaled, low
    )
    yield Golden.of(drawn, "predict_proba", scaled[:5])
    yield Golden.of(
        linear_model.SGDClassifier(loss="log_loss", random_state=0).fit(scaled, words), "predict_proba", scaled[:5]
    )
    yield Golden.of(linear_model.SGDRegressor(average=True, random_state=0).fit(scaled, y), "predict", scaled[:5])
    yield Golden.of(linear_model.Perceptron().fit(scaled, words), "decision_function", scaled[:5])
    yield Golden.of(TableEncoder(standardize=True).fit(levels), "transform", levels[:5])
    table = TableModel(TableEncoder(), linear_model.LogisticRegression(), "kind", costs=[[0.0, 5.0], [1.0, 0.0]])
    yield Golden.of(table.fit(scaled, low), "predict", scaled[:5])
    yield Golden.of(PCA(n_components=2, scale=True).fit(X), "transform", new)
    yield Golden.of(FactorAnalysis(n_components=1).fit(common), "transform", common[:5])


def main() -> int:
    """Write missing files; with --check, only report them."""
    FOLDER.mkdir(exist_ok=True)
    missing = 0
    for name, model, method, X in models():
        path = FOLDER / f"format{FORMAT}-{name}.safetensors"
        if path.exists():
            continue
        missing += 1
        print("missing" if "--check" in sys.argv else "writing", path.name)
        if "--check" not in sys.argv:
            save(model, path)
            np.savez(path.with_suffix(".npz"), X=X, method=method, result=np.asarray(getattr(model, method)(X)))
    return missing if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
