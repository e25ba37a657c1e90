"""Certificates of all machines: the gap bounds the distance, `verify` confirms it, also after save and load."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import summula
from summula.kernel_ridge import KernelRidge
from summula.kernels import Gaussian, Polynomial
from summula.svm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, PegasosSVC

draws = np.random.default_rng(3)
X = draws.normal(size=(90, 3))
TWO = (X[:, 0] + 0.5 * X[:, 1] + 0.5 * draws.normal(size=90) > 0).astype(int)
THREE = np.digitize(X[:, 0] + 0.5 * draws.normal(size=90), [-0.5, 0.5])
NUMBERS = X[:, 0] - 2.0 * X[:, 1] + 0.3 * draws.normal(size=90)
WEIGHTS = draws.integers(0, 3, 90).astype(float)

MACHINES: dict[str, tuple[Any, Any]] = {
    "SVC": (SVC(), TWO),
    "SVC, three classes": (SVC(C=3.0, kernel=Polynomial(2), class_weight="balanced"), THREE),
    "SVC, no intercept": (SVC(kernel=Gaussian(1.5), fit_intercept=False), TWO),
    "SVR": (SVR(C=5.0), NUMBERS),
    "OneClassSVM": (OneClassSVM(nu=0.2), None),
    "LinearSVC": (LinearSVC(), THREE),
    "LinearSVC, hinge": (LinearSVC(loss="hinge"), THREE),
    "LinearSVC, hinge, textbook": (LinearSVC(loss="hinge", penalize_intercept=False), TWO),
    "LinearSVC, L1": (LinearSVC("l1", C=0.3), TWO),
    "LinearSVC, L1, textbook": (LinearSVC("l1", C=0.3, penalize_intercept=False), TWO),
    "LinearSVR": (LinearSVR(epsilon=0.2), NUMBERS),
    "LinearSVR, squared": (LinearSVR(loss="squared_epsilon_insensitive"), NUMBERS),
    "PegasosSVC": (PegasosSVC(0.05, random_state=0), TWO),
    "KernelRidge": (KernelRidge(alpha=0.3, kernel="rbf"), NUMBERS),
}
# No intermediate steps, or only two.
FINISHED = ("PegasosSVC", "KernelRidge", "LinearSVR, squared")
every = pytest.mark.parametrize(("model", "y"), MACHINES.values(), ids=MACHINES.keys())


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_the_data_confirm_it_also_after_loading(model: Any, y: Any, weighted: bool, tmp_path: Path) -> None:
    given = {"sample_weight": WEIGHTS} if weighted else {}
    fitted = clone(model).fit(X, y, **given)
    summula.save(fitted, tmp_path / "model.safetensors")
    for one in (fitted, summula.load(tmp_path / "model.safetensors")):
        certificate = one.certificate_
        # `tol` is 1e-3 for most; stochastic descent takes a fixed number of steps, and ends further away.
        most = 0.25 if isinstance(model, PegasosSVC) else 1e-3
        assert 0 <= certificate.gap <= most * abs(certificate.primal)
        assert certificate.verify(X, y, **given)
        assert not certificate.verify(X + 0.2 * draws.normal(size=X.shape), y, **given)
        assert not dataclasses.replace(certificate, primal=0.99 * certificate.primal).verify(X, y, **given)
        if weighted:
            assert not certificate.verify(X, y)


@every
def test_sparse_rows_confirm_it(model: Any, y: Any) -> None:
    rows = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    fitted = clone(model).fit(rows, y)
    assert fitted.certificate_.verify(rows, y)
    assert fitted.certificate_.verify(rows.toarray(), y)


LINEAR: dict[str, tuple[Any, Any]] = {
    "SVC": (SVC(kernel="linear", tol=1e-6), TWO),
    "SVC, three classes": (SVC(C=3.0, kernel="linear", tol=1e-6), THREE),
    "SVC, hard margin": (SVC(C=np.inf, kernel="linear", tol=1e-6), (X[:, 0] > X[:, 1]).astype(int)),
    "SVR": (SVR(C=5.0, kernel="linear", tol=1e-6), NUMBERS),
}


@pytest.mark.parametrize(("model", "y"), LINEAR.values(), ids=LINEAR.keys())
def test_linear_machines_are_those_of_columns_near_zero(model: Any, y: Any) -> None:
    rows = np.round(X * 2**10) / 2**10  # so that the shifted rows are exact
    near = clone(model).fit(rows, y)
    for shift in (2.0**24, 2.0**34, 2.0**42 * np.eye(3)[0]):
        far = clone(model).fit(rows + shift, y)
        np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-3, atol=1e-3)
        if isinstance(model, SVR):  # rounding of x'w
            np.testing.assert_allclose(far.predict(rows + shift), near.predict(rows), atol=1e-3)
        else:
            np.testing.assert_array_equal(far.predict(rows + shift), near.predict(rows))
        certificate = far.certificate_
        assert certificate.primal - certificate.gap <= near.certificate_.primal <= 1.01 * certificate.primal
        assert certificate.gap <= 0.03 * certificate.primal  # (of a narrow margin: rounding of x'w)
        checked = certificate.verify(rows + shift, y)
        assert checked
        assert checked.primal == pytest.approx(certificate.primal, rel=1e-9)


FAR: dict[str, tuple[Any, Any]] = {
    **{name: MACHINES[name] for name in ("SVC", "SVR", "OneClassSVM", "KernelRidge")},
    "SVC, laplacian": (SVC(kernel="laplacian"), THREE),
    "SVC, linear": (SVC(kernel="linear", tol=1e-6), TWO),
    "SVR, linear": (SVR(kernel="linear", tol=1e-6), NUMBERS),
}


@pytest.mark.parametrize(("model", "y"), FAR.values(), ids=FAR.keys())
@pytest.mark.parametrize("columns", [[0], [0, 1, 2]], ids=["one far column", "only far columns"])
def test_sparse_columns_far_from_zero_keep_their_digits(model: Any, y: Any, columns: list[int]) -> None:
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    for shift in (1e8, 1e15):
        rows[:, columns] = X[:, columns] + shift
        stored = sparse.csr_array(rows)
        dense, fitted = clone(model).fit(rows, y), clone(model).fit(stored, y)
        certificate = fitted.certificate_
        assert certificate.verify(stored, y)
        assert certificate.verify(rows, y)
        assert certificate.gap <= 0.05 * abs(certificate.primal)
        assert abs(certificate.primal - dense.certificate_.primal) <= certificate.gap + dense.certificate_.gap + 1e-9
        if "linear" not in str(model) and not isinstance(model, SVR):  # (rounding of x'w, or errors of the tolerance)
            np.testing.assert_allclose(fitted.predict(stored), dense.predict(rows), rtol=1e-9)


@pytest.mark.parametrize("stored", [np.array, sparse.csr_array])
def test_groups_of_rows_far_from_each_other_confirm_it(stored: Any) -> None:
    """Squared distances of rows of 1e6 and more have lost the digits of distances within a group."""
    in_groups = [X + apart * (np.arange(90) % 2)[:, None] for apart in (1e6, 1e9)]
    for rows in (*in_groups, np.where(np.arange(90)[:, None] == 3, 0.0, X + 1e12), 1e10 * X, 1e150 * X):
        for model, y in ((SVC(gamma=0.5), TWO), (OneClassSVM(gamma=0.5), None), (SVR(gamma=0.5), NUMBERS)):
            assert model.fit(stored(rows), y).certificate_.verify(stored(rows), y)


@pytest.mark.parametrize("stored", [np.array, sparse.csr_array])
@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12, 1e15])
def test_linear_objectives_are_those_of_exact_arithmetic(stored: Any, shift: float) -> None:
    """At 1e15 values x'w + b in double precision have errors of 0.1."""
    rows = X + shift
    for model, y in ((SVC(kernel="linear"), TWO), (SVR(kernel="linear"), NUMBERS)):
        fitted = model.fit(stored(rows), y)
        coef = fitted.coef_.toarray() if sparse.issparse(fitted.coef_) else fitted.coef_
        w, b = [Fraction(v) for v in coef[0].tolist()], Fraction(float(fitted.intercept_[0]))
        values = [sum(wj * Fraction(x) for wj, x in zip(w, row, strict=True)) + b for row in rows.tolist()]
        loss = Fraction(0)
        for value, target in zip(values, y.tolist(), strict=True):
            if y is TWO:
                loss += max(Fraction(0), 1 - (2 * target - 1) * value)
            else:
                loss += max(Fraction(0), abs(value - Fraction(target)) - Fraction(0.1))
        exact = float(sum((wj * wj for wj in w), Fraction(0)) / 2 + loss)
        assert fitted.certificate_.primal == pytest.approx(exact, rel=1e-13)


def test_the_gap_contains_the_rounding_of_the_kernel_matrix() -> None:
    """One class has no dual about the mean: rows with values of 1e24 differ only by rounding."""
    certificate = OneClassSVM(kernel="linear").fit(X + 1e12).certificate_
    assert np.finfo(float).eps * abs(certificate.primal) <= certificate.gap < np.inf
    checked = certificate.verify(X + 1e12)
    assert checked
    assert abs(checked.primal - certificate.primal) <= certificate.gap < np.inf


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in FINISHED])
def test_the_gap_bounds_the_distance_of_an_early_stop(name: str) -> None:
    model, y = MACHINES[name]
    best = clone(model).set_params(tol=1e-7).fit(X, y).certificate_
    early = clone(model).set_params(max_iter=2)
    with pytest.warns(ConvergenceWarning):
        early.fit(X, y)
    certificate = early.certificate_
    slack = 1e-9 * abs(best.primal)
    assert certificate.primal >= best.dual - slack
    assert certificate.dual <= best.primal + slack
    assert certificate.primal - best.primal <= certificate.gap + slack < np.inf
    assert certificate.verify(X, y)


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVR", "OneClassSVM", "LinearSVC, hinge"])
def test_ctrl_c_keeps_the_best_point_so_far(name: str, monkeypatch: Any) -> None:
    """The third step is interrupted: the model is that of the second one, whole and certified."""
    from summula.core.estimator.run import Run
    from summula.svm.dual import solver

    monkeypatch.setattr(solver, "_MOST", 5)  # steps per round
    taken, step = [], Run.step

    def counted(self: Run, task: str = "iteration") -> bool:
        taken.append(task)
        if len(taken) == 3:
            raise KeyboardInterrupt
        return step(self, task)

    monkeypatch.setattr(Run, "step", counted)
    model, y = MACHINES[name]
    fitted = clone(model)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    assert len(taken) == 3
    assert np.isfinite(fitted.certificate_.primal)
    assert fitted.certificate_.verify(X, y)
    assert len(fitted.predict(X)) == len(X)
    monkeypatch.undo()
    best = clone(model).set_params(tol=1e-6).fit(X, y).certificate_
    assert fitted.certificate_.dual <= best.primal + 1e-9 * abs(best.primal)


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM"])
def test_max_time_keeps_the_best_point_so_far(name: str, monkeypatch: Any) -> None:
    from summula.svm.dual import solver

    monkeypatch.setattr(solver, "_MOST", 5)
    ticks = iter(range(10**9))
    monkeypatch.setattr("summula.core.estimator.run.time.monotonic", lambda: float(next(ticks)))
    model, y = MACHINES[name]
    fitted = clone(model).set_params(max_time=8.0)
    with pytest.warns(ConvergenceWarning, match="max_time=8"):
        fitted.fit(X, y)
    assert fitted.certificate_.gap > 0
    assert fitted.certificate_.verify(X, y)


# ------------------------------------------------------------------------------------------------------------- memory

MEMORY = """
import numpy as np
from benchmarks.memory import PeakMemory
from summula.svm import SVC
rng = np.random.default_rng(0)
X = rng.normal(size=(8_000, 10))
y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=8_000) > 0).astype(int)
SVC(gamma=0.1, cache_size=20).fit(X[:3_000], y[:3_000])
peak = PeakMemory()
SVC(gamma=0.1, cache_size=20).fit(X, y)
print(peak.bytes())
"""


def test_memory_is_that_of_the_cache_and_a_working_set() -> None:
    """The matrix of 8,000 rows has 256 MB in single precision; a working set has 16."""
    from tests.processes import run

    used = run(MEMORY) / 2**20
    assert used < 1.2 * 20 + 2 * 16
