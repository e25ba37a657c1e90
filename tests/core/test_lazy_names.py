"""Lazily loaded names: all exist and are typed, and none is also the name of a module."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

from summula import linear_model, optimize, stats
from tests.processes import run

PACKAGES = (linear_model, optimize, stats)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_name_is_there_and_typed(package):
    stub = Path(package.__file__).with_suffix(".pyi").read_text()
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    listed = re.findall(r"^from ([\w.]+) import (\w+) as \2$", stub, flags=re.MULTILINE)
    typed = [(module, name) for module, name in listed if name not in modules]
    assert sorted(name for _, name in typed) == sorted(package.__all__)
    for module, name in typed:
        assert callable(getattr(package, name))
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
    assert set(package.__all__) <= set(dir(package))
    assert not modules & set(package.__all__)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match=r"module 'summula.optimize' has no attribute 'minimise'"):
        optimize.minimise  # noqa: B018


def test_importing_the_packages_loads_no_solver():
    assert run("""
    import json, sys
    import summula.linear_model, summula.optimize, summula.stats
    print(json.dumps(not {"numpy", "scipy", "clarabel"} & set(sys.modules)))
    """)


def test_one_model_does_not_load_the_others():
    assert run("""
    import json, sys
    from summula.linear_model import Ridge
    loaded = {"summula.optimize.solvers.stochastic_descent.model", "summula.linear_model.glm.model", "summula.stats.families", "numba"}
    print(json.dumps(not loaded & set(sys.modules)))
    """)
