"""Certificates as text: round trips, and rejection of anything else."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from summula.certification import RiskCertificate, certify
from summula.certification.records import confidence, rounded
from summula.core.errors import DataError, ParameterError
from summula.core.model_files.model_file import canonical
from summula.linear_model import LinearRegression


def rows(seed: int, n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.tanh(X[:, 0])


@pytest.fixture(scope="module")
def model() -> LinearRegression:
    return LinearRegression().fit(*rows(0))


@pytest.fixture
def certificate(model: LinearRegression) -> RiskCertificate:
    return certify(model, *rows(1), loss="absolute", range=(0, 5))


def signed(**changes: Any) -> str:
    """A text with a digest that matches."""
    tree = json.loads(certify(LinearRegression().fit(*rows(0)), *rows(1), loss="absolute", range=(0, 5)).to_json())
    del tree["digest"]
    tree = {name: value for name, value in (tree | changes).items() if value is not ...}
    return canonical(tree | {"digest": hashlib.sha256(canonical(tree).encode()).hexdigest()})


def test_there_and_back(model: LinearRegression, certificate: RiskCertificate) -> None:
    text = certificate.to_json()
    again = RiskCertificate.from_json(text)
    assert again == certificate
    assert again.to_json() == text
    assert str(again) == str(certificate)
    assert RiskCertificate.from_json(text.encode()) == certificate
    assert RiskCertificate.from_json(signed()) == certificate
    bound = RiskCertificate.from_json(text, model)
    assert bound.verify(*rows(1))
    assert again.verify(*rows(1), model=model)
    assert not again.verify(*rows(2), model=model)
    assert pickle.loads(pickle.dumps(certificate)) == certificate


def test_a_text_knows_no_model_and_no_function(model: LinearRegression, certificate: RiskCertificate) -> None:
    with pytest.raises(
        DataError, match=r"A certificate read from JSON does not contain the model: verify\(X, y, model="
    ):
        RiskCertificate.from_json(certificate.to_json()).verify(*rows(1))
    other = LinearRegression().fit(*rows(3))
    with pytest.raises(DataError, match="This LinearRegression is not the model that was certified"):
        RiskCertificate.from_json(certificate.to_json(), other)

    def distance(y: Any, f: Any) -> Any:
        return np.abs(y - f)

    own = certify(model, *rows(1), loss=distance, range=(0, 5))
    again = RiskCertificate.from_json(own.to_json(), model)
    with pytest.raises(
        ParameterError, match=r"distance' was a function, which is not stored in JSON: verify\(X, y, loss="
    ):
        again.verify(*rows(1))
    assert again.verify(*rows(1), loss=distance)


def test_costs_survive() -> None:
    from sklearn.dummy import DummyClassifier

    X, y = rows(4)
    guess = DummyClassifier().fit(X, y > 0)
    c = certify(guess, *(rows(5)[0], rows(5)[1] > 0), costs=[[0, 1], [2, 0]])
    again = RiskCertificate.from_json(c.to_json())
    assert again == c
    assert again.verify(rows(5)[0], rows(5)[1] > 0, model=guess)


def test_the_text_of_dependent_rows_states_what_is_assumed(model: LinearRegression) -> None:
    groups = np.repeat(np.arange(50), 4)
    grouped = certify(model, *rows(1), loss="absolute", range=(0, 5), groups=groups)
    latest = replace(certify(model, *rows(1), loss="absolute", range=(0, 5)), sampling="latest rows")
    for certificate, stated in ((grouped, "held-out groups of rows are independent"), (latest, "Rows to come are")):
        tree = json.loads(certificate.to_json())
        assert tree["assumptions"] == list(certificate.assumptions)
        assert stated in tree["assumptions"][0]
        assert RiskCertificate.from_json(certificate.to_json()) == certificate
        earlier = {name: value for name, value in tree.items() if name not in ("assumptions", "digest")}
        earlier["digest"] = hashlib.sha256(canonical(earlier).encode()).hexdigest()
        assert RiskCertificate.from_json(canonical(earlier)) == certificate  # texts of earlier versions


def test_every_cut_is_noticed(certificate: RiskCertificate) -> None:
    text = certificate.to_json()
    for end in range(len(text)):
        with pytest.raises(
            DataError, match=r"The text is not a valid certificate \(.*\): restore a backup or certify again"
        ):
            RiskCertificate.from_json(text[:end])


def test_every_edit_is_noticed(certificate: RiskCertificate) -> None:
    text = certificate.to_json()
    tree = json.loads(text)
    for name in tree:
        with pytest.raises(DataError, match="not a valid certificate"):
            RiskCertificate.from_json(json.dumps(tree | {name: "x"}))
        with pytest.raises(DataError, match="not a valid certificate"):
            RiskCertificate.from_json(json.dumps({k: v for k, v in tree.items() if k != name}))
    with pytest.raises(DataError, match="it was edited"):
        RiskCertificate.from_json(json.dumps(tree | {"upper": tree["upper"] / 2}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[" * 100_000,
        '{"a": NaN}',
        '{"kind": "risk certificate", "kind": "risk certificate"}',
        '{"kind": "risk certificate", "format": 1e400}',
        b"\xff\xfe\x00",
        b"\x80\x04K\x01.",
    ],
)
def test_hostile_texts(text: str | bytes) -> None:
    with pytest.raises(DataError, match="The text is not a valid certificate"):
        RiskCertificate.from_json(text)


@pytest.mark.parametrize(
    "changes",
    [
        {"upper": True},
        {"upper": "0.1"},
        {"upper": 1e-9},
        {"lower": 4.9},
        {"delta": 0},
        {"delta": 1},
        {"n": 0},
        {"n": 10.5},
        {"n_models": -1},
        {"range": [0]},
        {"range": [5, 0]},
        {"range": None},
        {"costs": 3},
        {"costs": [["a"]]},
        {"chosen": [1]},
        {"method": 1},
        {"model_hash": None},
        {"format": 2},
        {"format": "1"},
        {"kind": "poem"},
        {"extra": 1},
        {"assumptions": "none"},
        {"assumptions": [1]},
        {"_bound_to": "x"},
        {"estimate": ...},
    ],
    ids=str,
)
def test_signed_nonsense(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="The text is not a valid certificate"):
        RiskCertificate.from_json(signed(**changes))


def test_words() -> None:
    assert confidence(0.05) == "95 %"
    assert confidence(0.2) == "80 %"
    assert confidence(0.001) == "99.9 %"
    assert confidence(1 / 3) == "66.6 %"
    assert confidence(1e-6) == "99.9999 %"
    assert confidence(1e-300) == "1 - 1e-300"
    assert confidence(1.23e-9) == "1 - 1.3e-09"
    assert confidence(5e-324) == "1 - 4.9e-324"
    assert rounded(0.0391635, 0.0628634) == ("0.0391", "0.0629")
    assert rounded(0.05, 0.06) == ("0.0500", "0.0600")
    assert rounded(-3.0, 200.0) == ("-3", "200")
    for lower, upper in ((0.1 + 0.2, 0.7), (1e-9, 2e-9), (0.123456, 0.123457)):
        low, high = rounded(lower, upper)
        assert float(low) <= lower
        assert float(high) >= upper
