"""The names of `summula.optimize`: lazy, typed, and none shared by a module and a function."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

from summula import optimize
from tests.processes import run

STUB = Path(optimize.__file__).with_suffix(".pyi").read_text()


def test_every_name_is_there_and_typed():
    for name in optimize.__all__:
        value = getattr(optimize, name)
        assert f"from {value.__module__} import {name} as {name}\n" in STUB
    assert sorted(re.findall(r" as (\w+)$", STUB, flags=re.MULTILINE)) == sorted(optimize.__all__)
    assert set(optimize.__all__) <= set(dir(optimize))


def test_no_module_has_the_name_of_a_function():
    modules = {module.name for module in pkgutil.iter_modules(optimize.__path__)}
    assert not modules & set(optimize.__all__)


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="module 'summula.optimize' has no attribute 'minimise'"):
        optimize.minimise  # noqa: B018


def test_importing_the_package_loads_no_solver():
    assert run("""
    import json, sys
    import summula.optimize
    print(json.dumps(not {"numpy", "scipy", "clarabel"} & set(sys.modules)))
    """)
