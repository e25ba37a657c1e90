"""Cold start: the time of an import and of a first fit in a new process.

`python -m benchmarks.cold_start [NAME ...]` times every estimator of the library once: import, first fit and first
prediction in a new process with an empty kernel cache. It prints seconds, and marks those above the promised limit.

Python's bytecode of the packages is on disk, as after an installation: `PYTHONDONTWRITEBYTECODE` is removed from the
environment of the timed processes, the first of which is not counted.
"""

import inspect
import os
import pkgutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from typing import Any

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

# Limits in seconds for a first fit with prediction; boosting and forests compile the most.
PROMISED = 3.0
PROMISED_BOOSTING = 8.0
_LONGER = ("HistGradientBoosting", "RandomForest", "ExtraTrees", "CostSensitive")

_FIRST_OF_ALL = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from {module} import {name}
rng = np.random.default_rng(0)
X = rng.integers(0, 20, (500, 5)).astype(float)
X[:, {binary}:] = X[:, {binary}:] > 9
y = 1 + (X[:, 0] + rng.integers(0, 5, 500) > 12)
model = {name}({arguments}).fit(X, y)
if hasattr(model, "predict"):
    model.predict(X)
elif hasattr(model, "transform"):
    model.transform(X)
"""

_ARGUMENTS = {"BinomialMixture": "n_trials=20", "GaussianMixture": "2", "KMeans": "3", "MiniBatchKMeans": "3"}

# Each of these compiles different kernels.
_COMPILING = (
    ("logistic", "linear_model", "LogisticRegression"),
    ("k-means", "cluster", "KMeans"),
    ("gaussian-mixture", "mixture", "GaussianMixture"),
    ("k-neighbors", "neighbors", "KNeighborsClassifier"),
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
    """One statement in a new process; the start of the interpreter is not counted.

    Parameters
    ----------
    name, title : str
        Name on the command line, and in the table.
    statement : str
        Python code; `{package}` stands for the library.
    empty_kernel_cache : bool, default False
        Whether compiled kernels of earlier processes are hidden.
    before : str
        Code run before the timing.
    packages : tuple of str
        Contenders.
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
    """New processes, one per measurement, after a first one that fills the file cache."""

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
        environment = _environment()
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


def estimators() -> list[tuple[str, str]]:
    """Module and name of every estimator that can be fitted to numbers."""
    import summula

    found = []
    for package in pkgutil.iter_modules(summula.__path__, "summula."):
        if package.name in ("summula.certification", "summula.cli", "summula.engines"):
            continue
        module: Any = import_module(package.name)
        for name in getattr(module, "__all__", ()):
            kind = getattr(module, name)
            if inspect.isclass(kind) and hasattr(kind, "fit") and not _needs_more(kind):
                found.append((package.name, name))
    return found


def _needs_more(kind: type) -> bool:
    """Whether an estimator needs arguments, such as another estimator, or a table of text."""
    required = [
        one.name
        for one in inspect.signature(kind).parameters.values()
        if one.default is one.empty and one.kind is not one.VAR_KEYWORD
    ]
    return bool(required) and kind.__name__ not in _ARGUMENTS


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def first_fit(module: str, name: str) -> tuple[float, float]:
    """Wall and processor time in seconds of a first fit and prediction, with an empty kernel cache."""
    statement = _FIRST_OF_ALL.format(
        module=module, name=name, arguments=_ARGUMENTS.get(name, ""), binary=0 if name == "BernoulliMixture" else 5
    )
    program = _TIME.format(before="import numba, sklearn.base", statement=statement)
    program += "import os\nprint(sum(os.times()[:4]))\n"
    with tempfile.TemporaryDirectory() as empty:
        environment = {**_environment(), "NUMBA_CACHE_DIR": empty}
        done = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return float("nan"), float("nan")
    wall, processor = (float(line) for line in done.stdout.split())
    return wall, processor


def main() -> None:
    """Print the table of all estimators, or of those named."""
    for module, name in estimators():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        subprocess.run([sys.executable, "-c", f"import {module}"], env=_environment(), check=True)  # writes bytecode
        wall, processor = first_fit(module, name)
        promised = PROMISED_BOOSTING if name.startswith(_LONGER) else PROMISED
        mark = "" if wall <= promised else f"   above {promised:g} s"
        print(f"{name:<34}{wall:8.2f} s{processor:8.2f} s of processors{mark}", flush=True)


if __name__ == "__main__":
    main()
