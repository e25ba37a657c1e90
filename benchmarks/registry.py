"""Every workload, by name."""

from difflib import get_close_matches
from importlib import import_module

from benchmarks.workload import FitWorkload, Workload

# A family is a file of this folder with a tuple WORKLOADS.
FAMILIES = (
    "least_squares",
    "likelihood",
    "stochastic",
    "sparse_models",
    "trees",
    "boosting",
    "forests",
    "features",
    "clusters",
    "mixtures",
    "support_vectors",
    "decomposition",
    "selection",
    "generative",
    "markov",
    "neighbours",
    "streams",
    "dask_cluster",
    "small_fits",
    "cold_start",
)


def families() -> dict[str, tuple[Workload, ...]]:
    """The workloads of each family, in the order of the table."""
    return {family: import_module(f"benchmarks.{family}").WORKLOADS for family in FAMILIES}


def all_workloads() -> list[Workload]:
    """Every workload, in the order of the table."""
    return [workload for group in families().values() for workload in group]


def choose(names: list[str]) -> list[Workload]:
    """Return the workloads whose family is, or whose name starts with, one of `names`; all without names."""
    if not names:
        return all_workloads()
    for name in names:
        if not any(_matches(name, family, one) for family, group in families().items() for one in group):
            raise LookupError(_unknown(name))
    return [
        workload
        for family, group in families().items()
        for workload in group
        if any(_matches(name, family, workload) for name in names)
    ]


def fit_workload(name: str) -> FitWorkload:
    """Return the workload of exactly this name, which has data in memory."""
    return next(one for one in all_workloads() if isinstance(one, FitWorkload) and one.name == name)


def _matches(name: str, family: str, workload: Workload) -> bool:
    return workload.name.startswith(name) or family == name.replace("-", "_")


def _unknown(name: str) -> str:
    known = [*FAMILIES, *(workload.name for workload in all_workloads())]
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "--list shows them all."
    return f"There is no workload or family {name!r}: {hint}"
