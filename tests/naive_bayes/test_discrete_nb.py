"""Naive Bayes of discrete and mixed columns: textbook values, definitions by loops, scikit-learn, missing values."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.naive_bayes as peers
from scipy import sparse, stats
from scipy.special import logsumexp
from sklearn.preprocessing import OrdinalEncoder

import summula
from summula.core.errors import DataError, ParameterError
from summula.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MixedNB, MultinomialNB

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(1.5, (200, 6)).astype(float)
LABELS = np.array(["a", "b", "c"])[RNG.integers(0, 3, 200)]
PAIRS = [
    (MultinomialNB(), peers.MultinomialNB()),
    (MultinomialNB(alpha=0.1, fit_prior=False), peers.MultinomialNB(alpha=0.1, fit_prior=False)),
    (MultinomialNB(alpha=np.arange(1.0, 7.0)), peers.MultinomialNB(alpha=np.arange(1.0, 7.0))),
    (BernoulliNB(binarize=1.0), peers.BernoulliNB(binarize=1.0)),
    (BernoulliNB(class_prior=[0.5, 0.3, 0.2]), peers.BernoulliNB(class_prior=[0.5, 0.3, 0.2])),
    (ComplementNB(), peers.ComplementNB()),
    (ComplementNB(norm=True, alpha=0.5), peers.ComplementNB(norm=True, alpha=0.5)),
    (CategoricalNB(alpha=0.7), peers.CategoricalNB(alpha=0.7)),
    (CategoricalNB(min_categories=12), peers.CategoricalNB(min_categories=12)),
]
pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda model: repr(model))


@pairs
def test_probabilities_are_those_of_scikit_learn(ours: Any, theirs: Any) -> None:
    weight = RNG.uniform(0.1, 2.0, 200)
    for options in ({}, {"sample_weight": weight}):
        ours.fit(COUNTS, LABELS, **options)
        theirs.fit(COUNTS, LABELS, **options)
        joint = theirs.predict_joint_log_proba(COUNTS)
        np.testing.assert_allclose(ours.predict_joint_log_proba(COUNTS), joint, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(ours.predict_proba(COUNTS), theirs.predict_proba(COUNTS), rtol=1e-9)
        np.testing.assert_allclose(ours.score_samples(COUNTS), logsumexp(joint, axis=1), rtol=1e-11)
        np.testing.assert_array_equal(ours.predict(COUNTS), theirs.predict(COUNTS))


@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB(), ComplementNB()], ids=repr)
def test_sparse_rows_give_the_model_of_dense_ones(model: Any) -> None:
    large = np.tile(COUNTS, (200, 1)) * (RNG.random((40_000, 6)) < 0.6)  # the kernel is used
    labels = np.tile(LABELS, 200)
    for X, y in ((COUNTS, LABELS), (large, labels)):
        dense = model.fit(X, y).feature_log_prob_
        np.testing.assert_allclose(model.fit(sparse.csr_matrix(X), y).feature_log_prob_, dense, rtol=1e-12)


def test_laplace_smoothing_counts_the_values() -> None:
    # Of three fields of class 1, two hold category 0 and none 2: (2 + 1) / (3 + 3) and 1 / 6.
    model = CategoricalNB().fit([[0], [0], [1], [2]], [1, 1, 1, 0])
    np.testing.assert_allclose(np.exp(model.feature_log_prob_[0]), [[1 / 4, 1 / 4, 2 / 4], [3 / 6, 2 / 6, 1 / 6]])
    flags = BernoulliNB().fit([[1], [1], [0]], [1, 1, 1])
    np.testing.assert_allclose(np.exp(flags.feature_log_prob_), [[3 / 5]])


def test_joint_probabilities_sum_to_one_over_all_rows() -> None:
    X = np.array(list(itertools.product(range(3), range(2), range(4))), float)
    y = np.arange(len(X)) % 2
    model = CategoricalNB().fit(X, y)
    assert np.exp(model.score_samples(X)).sum() == pytest.approx(1.0, rel=1e-12)
    flags = np.array(list(itertools.product([0, 1], repeat=3)), float)
    assert np.exp(BernoulliNB().fit(flags, [0, 1] * 4).score_samples(flags)).sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("model", [MultinomialNB(), CategoricalNB(), BernoulliNB(), MixedNB()], ids=repr)
def test_parts_of_the_rows_and_a_file_give_the_same_model(model: Any, tmp_path: Any) -> None:
    whole = model.fit(COUNTS, LABELS).predict_joint_log_proba(COUNTS)
    in_parts = type(model)().partial_fit(COUNTS[:50], LABELS[:50], classes=["a", "b", "c"])
    in_parts.partial_fit(COUNTS[50:], LABELS[50:])
    np.testing.assert_allclose(in_parts.predict_joint_log_proba(COUNTS), whole, rtol=1e-9)
    in_parts.partial_fit(COUNTS[:9] + 20, LABELS[:9]).forget(COUNTS[:9] + 20, LABELS[:9])
    np.testing.assert_allclose(in_parts.predict_joint_log_proba(COUNTS), whole, rtol=1e-7)
    frame = pd.DataFrame(COUNTS, columns=list("uvwxyz")).assign(label=LABELS)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = summula.scan(tmp_path / "rows.parquet")
    streamed = type(model)().fit(scan, "label")
    np.testing.assert_array_equal(np.concatenate(list(streamed.predict_joint_log_proba(scan))), whole)


def test_a_part_may_lack_a_class_and_a_category() -> None:
    first = CategoricalNB().partial_fit([[0], [1]], ["a", "a"], classes=["a", "b"])
    assert first.predict([[0]]) == ["a"]
    both = first.partial_fit([[3], [3]], ["b", "b"])
    np.testing.assert_allclose(
        both.feature_log_prob_[0], CategoricalNB().fit([[0], [1], [3], [3]], ["a", "a", "b", "b"]).feature_log_prob_[0]
    )


class TestMixed:
    table = pd.DataFrame(
        {
            "age": [20.0, 30.0, np.nan, 55.0, 61.0, 47.0],
            "town": ["Bonn", "Ulm", "Bonn", "Ulm", None, "Ulm"],
            "member": [1, 0, 1, 0, 0, 1],
        }
    )
    label = ["x", "x", "x", "y", "y", "y"]
    families = {"member": "bernoulli"}

    def test_the_joint_density_by_hand(self) -> None:
        model = MixedNB(self.families, var_smoothing=0.0).fit(self.table, self.label)
        assert model.families_ == ("gaussian", "categorical", "bernoulli")
        row = pd.DataFrame({"age": [40.0], "town": ["Ulm"], "member": [1]})
        joint = [
            np.log(0.5) + stats.norm(25, 5).logpdf(40) + np.log(2 / 5) + np.log(3 / 5),
            np.log(0.5)
            + stats.norm(np.mean([55, 61, 47]), np.std([55, 61, 47])).logpdf(40)
            + np.log(3 / 4)
            + np.log(2 / 5),
        ]
        np.testing.assert_allclose(model.predict_joint_log_proba(row)[0], joint, rtol=1e-12)

    def test_missing_and_unseen_values_are_passed_over(self) -> None:
        model = MixedNB(self.families).fit(self.table, self.label)
        rows = pd.DataFrame({"age": [40.0, np.nan], "town": [None, "Paris"], "member": [1.0, np.nan]})
        alone = MixedNB().fit(self.table[["age"]], self.label)
        expected = alone.predict_joint_log_proba(rows[["age"]])
        without = model.predict_joint_log_proba(rows)
        np.testing.assert_allclose(without[1], np.log([0.5, 0.5]), rtol=1e-12)
        member = np.log([3 / 5, 2 / 5])
        np.testing.assert_allclose(without[0], expected[0] + member, rtol=1e-12)

    def test_numbers_alone_are_gaussian_naive_bayes(self) -> None:
        theirs = peers.GaussianNB().fit(COUNTS, LABELS)
        np.testing.assert_allclose(
            MixedNB("gaussian").fit(COUNTS, LABELS).predict_joint_log_proba(COUNTS),
            theirs.predict_joint_log_proba(COUNTS),
            rtol=1e-9,
        )

    def test_categories_alone_are_categorical_naive_bayes(self) -> None:
        ours = MixedNB("categorical").fit(COUNTS, LABELS)
        np.testing.assert_allclose(
            ours.predict_joint_log_proba(COUNTS), CategoricalNB().fit(COUNTS, LABELS).predict_joint_log_proba(COUNTS)
        )

    def test_booleans_are_numbers_in_every_container(self, tmp_path: Path) -> None:
        """Files do not tell them from integers."""
        frame = pd.DataFrame({"b": [True, False, True, False], "x": [1.0, 2.0, 4.0, 3.0], "y": [0, 0, 1, 1]})
        frame.to_parquet(tmp_path / "t.parquet")
        frame.to_csv(tmp_path / "t.csv")
        for name in ("t.parquet", "t.csv"):
            scanned = summula.scan(tmp_path / name, columns=["b", "x", "y"])
            assert MixedNB().fit(scanned, "y").families_ == ("gaussian", "gaussian")
        assert MixedNB().fit(frame, "y").families_ == ("gaussian", "gaussian")
        assert MixedNB({"b": "bernoulli"}).fit(frame, "y").families_ == ("bernoulli", "gaussian")
        assert MixedNB().fit(frame[["b"]].to_numpy(), frame["y"]).families_ == ("gaussian",)

    def test_the_advice_for_text_works(self) -> None:
        frame = self.table[["town"]].fillna("none")
        for X in (frame, frame.to_numpy()):
            with pytest.raises(DataError, match="encode the column with OrdinalEncoder, or pass a frame to MixedNB"):
                CategoricalNB().fit(X, self.label)
        coded = CategoricalNB().fit(OrdinalEncoder().fit_transform(frame), self.label)
        mixed = MixedNB().fit(frame, self.label)
        np.testing.assert_allclose(
            coded.predict_joint_log_proba(OrdinalEncoder().fit_transform(frame)), mixed.predict_joint_log_proba(frame)
        )

    def test_bad_families(self) -> None:
        for families, error, words in (
            ({"size": "gaussian"}, ParameterError, "families contains 'size', which is not a column"),
            ({"age": "normal"}, ParameterError, "must be one of gaussian, bernoulli, categorical; got 'normal'"),
            (["gaussian"], ParameterError, "1 entries, but there are 3 columns"),
            ({"town": "gaussian"}, DataError, "is categorical, but its family is 'gaussian'"),
        ):
            with pytest.raises(error, match=words):
                MixedNB(families).fit(self.table, self.label)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MultinomialNB().fit(-COUNTS, LABELS), "Negative values in data passed to MultinomialNB .* at row 0"),
        (lambda: ComplementNB().fit(sparse.csr_matrix(-COUNTS), LABELS), "Negative values .* ComplementNB"),
        (lambda: CategoricalNB().fit(COUNTS - 9, LABELS), "Negative values .* at row 0"),
        (lambda: CategoricalNB().fit(COUNTS + 0.5, LABELS), "integers from 0 on"),
        (lambda: CategoricalNB().fit(COUNTS + 1e9, LABELS), "not too large"),
        (lambda: CategoricalNB().fit(COUNTS, LABELS).predict(COUNTS + 30), "the category 3. at row 0, but the fit has"),
        (lambda: BernoulliNB(binarize=-1.0).fit(sparse.csr_matrix(COUNTS), LABELS), "threshold below 0"),
        (lambda: CategoricalNB().fit(np.where(COUNTS == 2, np.inf, COUNTS), LABELS), "infinite values"),
        (lambda: MultinomialNB(class_prior=[0.5, 0.5]).fit(COUNTS, LABELS), "2 numbers, but there are 3 classes"),
        (lambda: MultinomialNB(class_prior=[0.5, 0.5, 0.5]).fit(COUNTS, LABELS), "sum to 1"),
        (lambda: MultinomialNB(alpha=[1.0, 2.0]).fit(COUNTS, LABELS), "one number per column, here 6"),
        (lambda: CategoricalNB(min_categories=[2, 3]).fit(COUNTS, LABELS), r"shape \(6,\)"),
        (lambda: CategoricalNB(min_categories=2**31).fit(COUNTS, LABELS), "asks for 38,654,705,664 counts"),
        (lambda: CategoricalNB(min_categories=[-(2**62), 2**31, 1, 1, 1, 1]).fit(COUNTS, LABELS), "the maximum is"),
        (
            lambda: CategoricalNB().fit(COUNTS, LABELS).set_params(min_categories=2**31).forget(COUNTS[:5], LABELS[:5]),
            "asks for 38,654,705,664 counts",
        ),
        (lambda: MultinomialNB().fit(COUNTS, LABELS).forget(COUNTS, LABELS), "at least one must remain"),
    ],
)
def test_bad_input(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("norm", [False, True])
def test_the_certificate_of_complements_is_that_of_the_other_classes(norm: bool) -> None:
    model = ComplementNB(norm=norm, alpha=0.5, class_prior=[0.2, 0.3, 0.5]).fit(COUNTS, LABELS)
    likelihood = 0.0
    for label in model.classes_:
        others = COUNTS[label != LABELS].sum(axis=0) + 0.5
        likelihood += others @ np.log(others / others.sum())
    assert model.certificate_.primal == pytest.approx(-likelihood, rel=1e-12)
    assert model.certificate_.verify(COUNTS, LABELS)
    assert not model.certificate_.verify(COUNTS[1:], LABELS[1:])


def test_the_certificate_of_a_table_with_text_is_checked_on_the_table() -> None:
    table = pd.DataFrame({"age": COUNTS[:, 0] * 1.5, "town": np.where(COUNTS[:, 1] > 1, "Bonn", "Ulm")})
    table.loc[3, "town"] = None
    model = MixedNB().fit(table, LABELS)
    assert model.certificate_.verify(table, LABELS)
    table.loc[5, "town"] = "Ulm" if table.loc[5, "town"] == "Bonn" else "Bonn"
    assert not model.certificate_.verify(table, LABELS)


def test_categories_that_a_certificate_has_no_probability_for_do_not_confirm_it() -> None:
    model = CategoricalNB().fit(COUNTS, LABELS)
    other = COUNTS.copy()
    other[0, 0] = COUNTS.max() + 1
    assert not model.certificate_.verify(other, LABELS)


def test_infinities_are_refused_by_predictions() -> None:
    model = MixedNB().fit(COUNTS, LABELS)
    with pytest.raises(DataError, match="Column 2 has 1 infinite value"):
        model.predict(np.where(np.arange(6) == 2, np.inf, COUNTS[:1]))


def test_categorical_columns_pass_missing_values_over():
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, (60, 2)).astype(float), rng.integers(0, 2, 60)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = CategoricalNB().fit(X, y)
    expected = np.tile(np.log([np.mean(y == k) for k in (0, 1)]), (60, 1))
    for j in range(2):
        for k in (0, 1):
            counts = np.array([np.sum((y == k) & (X[:, j] == c)) for c in range(3)]) + 1.0
            np.testing.assert_allclose(model.feature_log_prob_[j][k], np.log(counts / counts.sum()), rtol=1e-12)
            seen = ~np.isnan(X[:, j])
            expected[seen, k] += np.log(counts / counts.sum())[X[seen, j].astype(int)]
    np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-12)
    again = CategoricalNB().fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    np.testing.assert_allclose(again.feature_log_prob_[0], model.feature_log_prob_[0], rtol=1e-12)


class TestMissingCountsAndFlags:
    """Missing values are skipped column by column; `by_hand` does it in loops."""

    X = np.where(RNG.random(COUNTS.shape) < 0.2, np.nan, COUNTS)
    weight = RNG.uniform(0.1, 2.0, len(COUNTS))
    models = pytest.mark.parametrize("model", [BernoulliNB(binarize=1.0), MultinomialNB(), ComplementNB()], ids=repr)

    def stored(self) -> Any:
        """The rows as CSR with stored NaN."""
        X = sparse.csr_matrix(np.where(np.isnan(self.X), -1.0, self.X))
        X.data[X.data == -1.0] = np.nan
        return X

    def by_hand(self, model: Any, alpha: float = 1.0) -> Any:
        K, (n, d) = ["a", "b", "c"], self.X.shape
        set_, known = np.zeros((3, d)), np.zeros((3, d))
        flags = isinstance(model, BernoulliNB)
        for i, j in itertools.product(range(n), range(d)):
            if not np.isnan(self.X[i, j]):
                k = K.index(LABELS[i])
                set_[k, j] += self.weight[i] * (self.X[i, j] > 1.0 if flags else self.X[i, j])
                known[k, j] += self.weight[i]
        joint = np.zeros((n, 3))
        for i, k, j in itertools.product(range(n), range(3), range(d)):
            x = self.X[i, j]
            if np.isnan(x):
                continue
            if flags:
                p = (set_[k, j] + alpha) / (known[k, j] + 2 * alpha)
                joint[i, k] += np.log(p if x > 1.0 else 1 - p)
            elif isinstance(model, MultinomialNB):
                joint[i, k] += x * np.log((set_[k, j] + alpha) / (set_[k] + alpha).sum())
            else:
                others = set_.sum(axis=0) - set_[k] + alpha
                joint[i, k] -= x * np.log(others[j] / others.sum())
        if isinstance(model, ComplementNB):
            return joint
        return joint + np.log([self.weight[label == LABELS].sum() / self.weight.sum() for label in K])

    @models
    def test_probabilities_by_hand(self, model: Any) -> None:
        expected = self.by_hand(model)
        for X in (self.X, np.asfortranarray(self.X), self.stored()):
            model.fit(X, LABELS, self.weight)
            np.testing.assert_allclose(model.predict_joint_log_proba(X), expected, rtol=1e-10, atol=1e-12)
            assert model.certificate_.verify(X, LABELS, self.weight)
            assert not model.certificate_.verify(X[1:], LABELS[1:], self.weight[1:])

    @models
    def test_wide_sparse_rows(self, model: Any) -> None:
        """The kernel adds more than 65,536 stored values."""
        X, labels = np.tile(self.X, (100, 1)), np.tile(LABELS, 100)
        stored = sparse.vstack([self.stored()] * 100).tocsr()
        dense = model.fit(X, labels).feature_log_prob_
        np.testing.assert_allclose(model.fit(stored, labels).feature_log_prob_, dense, rtol=1e-12)

    @models
    def test_parts_a_file_and_saved_models(self, model: Any, tmp_path: Any) -> None:
        whole = model.fit(self.X, LABELS).predict_joint_log_proba(self.X)
        first, second = (
            type(model)(**model.get_params()).fit(self.X[a], LABELS[a]) for a in (slice(0, 70), slice(70, None))
        )
        np.testing.assert_allclose(first.merge(second).predict_joint_log_proba(self.X), whole, rtol=1e-9)
        more = np.where(np.isnan(self.X[:9]), np.nan, 3.0)
        first.partial_fit(more, LABELS[:9]).forget(more, LABELS[:9])
        np.testing.assert_allclose(first.predict_joint_log_proba(self.X), whole, rtol=1e-9)
        frame = pd.DataFrame(self.X, columns=list("uvwxyz")).assign(label=LABELS)
        frame.to_parquet(tmp_path / "rows.parquet")
        scan = summula.scan(tmp_path / "rows.parquet")
        streamed = type(model)(**model.get_params()).fit(scan, "label")
        np.testing.assert_array_equal(np.concatenate(list(streamed.predict_joint_log_proba(scan))), whole)
        summula.save(model, tmp_path / "model.safetensors")
        again = summula.load(tmp_path / "model.safetensors").partial_fit(self.X, LABELS)
        np.testing.assert_array_equal(again.feature_log_prob_, model.partial_fit(self.X, LABELS).feature_log_prob_)

    def test_missing_flags_of_unseen_rows_are_not_forgotten(self) -> None:
        model = BernoulliNB().fit(COUNTS, LABELS)
        with pytest.raises(DataError, match="a negative count of missing values"):
            model.forget(self.X[:20], LABELS[:20])

    @models
    def test_infinite_values_are_located(self, model: Any) -> None:
        X = self.X.copy()
        X[7, 2] = np.inf
        for X_bad in (X, sparse.csr_matrix(np.nan_to_num(X, nan=0.0, posinf=np.inf))):
            with pytest.raises(DataError, match=r"inf.*row 7"):
                model.fit(X_bad, LABELS)
            with pytest.raises(DataError, match=r"inf.*row 7"):
                model.fit(self.X, LABELS).predict(X_bad)


@pytest.mark.parametrize(
    "model",
    [BernoulliNB(alpha=0.0), MultinomialNB(alpha=0.0), CategoricalNB(alpha=0.0), MixedNB("categorical", alpha=0.0)],
    ids=repr,
)
def test_without_pseudo_counts_impossible_events_and_unknown_columns_have_probabilities(model: Any) -> None:
    # Class b never has a value in column 1, and class c has no rows.
    rows = [[1.0, 1.0], [0.0, 1.0], [1.0, np.nan]]
    model.partial_fit(rows, ["a", "a", "b"], classes=["a", "b", "c"])
    p = model.predict_proba([[0.0, 1.0], [1.0, 1.0]])
    assert p[0].tolist() == [1.0, 0.0, 0.0]  # b had 1 in column 0 always; nothing is NaN
    assert p[1, 2] == 0.0
    assert np.isfinite(p).all()


def test_models_saved_before_missing_flags_were_counted_go_on() -> None:
    old = GOLDEN / "format1-BernoulliNB.safetensors"
    rng = np.random.default_rng(0)
    model, d = summula.load(old), summula.load(old).n_features_in_
    X, y = rng.integers(0, 2, size=(30, d)).astype(float), np.resize(model.classes_, 30)
    before, X[3, 0] = model.feature_log_prob_.copy(), np.nan
    model.partial_fit(X, y)
    added = BernoulliNB(binarize=model.binarize, alpha=model.alpha).fit(X, y)
    for merged in (model, summula.load(old).merge(added), added.merge(summula.load(old))):
        np.testing.assert_allclose(merged.feature_log_prob_, model.feature_log_prob_, rtol=1e-12)
        assert np.isfinite(merged.predict_proba(X)).all()
    assert not np.allclose(before, model.feature_log_prob_)
    np.testing.assert_allclose(model.forget(X, y).feature_log_prob_, before, rtol=1e-12)
    with pytest.raises(DataError, match="negative count of missing values"):
        summula.load(old).forget(np.full((1, d), np.nan), model.classes_[:1])
    one = summula.load(old).forget(np.zeros((1, d)), model.classes_[:1])
    assert one.class_count_.sum() == summula.load(old).class_count_.sum() - 1
    twice = summula.load(old).merge(summula.load(old))
    np.testing.assert_allclose(twice.class_count_, 2 * summula.load(old).class_count_)
