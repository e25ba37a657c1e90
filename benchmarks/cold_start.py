"""Cold start: how long a new process waits for an import and for a first fit."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

OURS, PEER = "summula", "scikit-learn"
_PACKAGES = {OURS: "summula", PEER: "sklearn"}

_TIME = """
from time import perf_counter
{before}
start = perf_counter()
{statement}
print(perf_counter() - start)
"""

_PEAK = """
from benchmarks.memory import PeakMemory
{before}
peak = PeakMemory()
{statement}
print(peak.bytes())
"""

_FIRST_FIT = """
import numpy as np
from {package}.linear_model import Ridge
X = np.random.default_rng(0).standard_normal((1_000, 10))
Ridge().fit(X, X.sum(axis=1))
"""

_FIRST_BOOSTING = """
import numpy as np
from {package}.ensemble import HistGradientBoostingClassifier
X = np.random.default_rng(0).standard_normal((1_000, 10))
HistGradientBoostingClassifier().fit(X, X[:, 0] + X[:, 1] > 0)
"""


_FIRST_OF = """
import numpy as np
from {{package}}.{module} import {name}
X = np.random.default_rng(0).standard_normal((1_000, 10))
{name}().fit(X, X[:, 0] + X[:, 1] > 0)
"""

_TRAIN = """
import summula
summula.train(summula.datasets.load("penguins"), "species")
"""

# What a first fit compiles is different for each.
_COMPILING = (
    ("logistic", "linear_model", "LogisticRegression"),
    ("k-means", "cluster", "KMeans"),
    ("gaussian-mixture", "mixture", "GaussianMixture"),
    ("svc", "svm", "SVC"),
    ("tree", "tree", "DecisionTreeClassifier"),
    ("sgd", "linear_model", "SGDClassifier"),
    ("pegasos", "svm", "PegasosSVC"),
    ("forest", "ensemble", "RandomForestClassifier"),
    ("extra-trees", "ensemble", "ExtraTreesClassifier"),
    ("stagewise-boosting", "ensemble", "GradientBoostingClassifier"),
)


@dataclass(frozen=True)
class StartWorkload:
    """One statement in a new process; the interpreter's own start is not counted.

    Parameters
    ----------
    name, title : str
        For the command line, and for the table.
    statement : str
        Python code; `{package}` stands for the library.
    empty_kernel_cache : bool, default False
        Whether compiled kernels of earlier processes are hidden from it.
    before : str
        Code that is run before the clock starts.
    packages : tuple of str
        Who is timed.
    """

    name: str
    title: str
    statement: str
    empty_kernel_cache: bool = False
    before: str = ""
    packages: tuple[str, ...] = tuple(_PACKAGES)
    tolerance: float | None = None

    def size(self, quick: bool) -> str:
        if self.name == "cold-start-train":
            return "344 x 7"
        return "1,000 x 10" if "fit" in self.name or "cold-start" in self.name else ""

    def open(self, quick: bool) -> "StartSession":
        return StartSession(self)


class StartSession:
    """New processes, one for each measurement; a first one has filled the file cache."""

    def __init__(self, workload: StartWorkload) -> None:
        self._workload = workload
        for contender in self.contenders():
            self.seconds(contender)

    def contenders(self) -> list[str]:
        return list(self._workload.packages)

    def seconds(self, contender: str) -> float:
        return float(self._run(_TIME, contender))

    def shortfalls(self) -> dict[str, float]:
        return {}

    def peak_bytes(self, contender: str) -> int:
        return int(self._run(_PEAK, contender))

    def _run(self, program: str, contender: str) -> str:
        statement = self._workload.statement.format(package=_PACKAGES[contender])
        command = [sys.executable, "-c", program.format(statement=statement, before=self._workload.before)]
        environment = dict(os.environ)
        with tempfile.TemporaryDirectory() as empty:
            if self._workload.empty_kernel_cache:
                environment["NUMBA_CACHE_DIR"] = empty
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout


WORKLOADS = (
    StartWorkload("import-package", "import the package", "import {package}"),
    StartWorkload("import-ridge", "import Ridge", "from {package}.linear_model import Ridge"),
    StartWorkload("first-fit", "import and first Ridge fit, kernels compiled earlier", _FIRST_FIT),
    StartWorkload(
        "first-fit-empty-cache",
        "import and first Ridge fit, empty kernel cache",
        _FIRST_FIT,
        empty_kernel_cache=True,
    ),
    StartWorkload(
        "cold-start-boosting",
        "first fit of 100 boosted trees, empty kernel cache, libraries loaded",
        _FIRST_BOOSTING,
        before="import numba, sklearn.base",
        empty_kernel_cache=True,
    ),
    StartWorkload(
        "first-boosting-fit",
        "first fit of 100 boosted trees, kernels compiled earlier, libraries loaded",
        _FIRST_BOOSTING,
        before="import numba, sklearn.base",
    ),
    StartWorkload(
        "cold-start-train",
        "summula.train on the table of penguins, empty kernel cache, libraries loaded",
        _TRAIN,
        before="import numba, sklearn.base",
        packages=(OURS,),
        empty_kernel_cache=True,
    ),
    *(
        StartWorkload(
            f"cold-start-{row}",
            f"first fit of {name}, empty kernel cache, libraries loaded",
            _FIRST_OF.format(module=module, name=name),
            before="import numba, sklearn.base",
            empty_kernel_cache=True,
        )
        for row, module, name in _COMPILING
    ),
)
