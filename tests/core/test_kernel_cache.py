"""The cache of compiled kernels: what a kernel depends on, the lock while it is compiled, calls by address."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.extending import intrinsic

from summula.core.compilation import kernel_cache
from summula.core.compilation.compile import inlined, internal_kernel, kernel
from summula.core.compilation.kernel_cache import dependency_hash
from summula.core.compilation.late_binding import KernelSignature

LIMIT = 3


def chain(step, decorate=kernel, constant=1.0):
    """Return a kernel that calls a kernel that calls a kernel."""

    @kernel
    def innermost(x):
        return x + constant

    @decorate
    def inner(x):
        return innermost(x) * step(x)

    @kernel
    def outer(x):
        return inner(x) if x < LIMIT else x

    return outer.py_func


def plus(x):
    return x + 1


def minus(x):
    return x - 1


@pytest.mark.parametrize("decorate", [kernel, internal_kernel, inlined])
def test_the_hash_of_a_kernel_is_that_of_all_it_calls(decorate):
    same = dependency_hash(chain(kernel(plus), decorate))
    assert same == dependency_hash(chain(kernel(plus), decorate))
    assert same != dependency_hash(chain(kernel(minus), decorate))
    assert same != dependency_hash(chain(kernel(plus), decorate, constant=2.0))


def test_the_hash_of_a_kernel_is_that_of_the_constants_it_uses(monkeypatch):
    before = dependency_hash(chain(kernel(plus)))
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert dependency_hash(chain(kernel(plus))) != before


def shift(amount):
    """Return an intrinsic that adds a constant."""

    @intrinsic
    def shifted(typing, x):
        def generate(context, builder, signature, args):
            return builder.add(args[0], args[0].type(amount))

        return x(x), generate

    return shifted


def test_the_hash_of_a_kernel_is_that_of_the_intrinsics_it_uses():
    same = dependency_hash(chain(shift(1)))
    assert same == dependency_hash(chain(shift(1)))
    assert same != dependency_hash(chain(shift(2)))


def test_llvm_is_used_in_one_folder():
    root = Path(kernel_cache.__file__).parents[2]
    files = {file.parent.name for file in root.rglob("*.py") if "llvmlite" in file.read_text(encoding="utf-8")}
    assert files == {"compilation"}


CALLER = """
import sys
sys.path.insert(0, {folder!r})
from callee import add
from summula.core.compilation.compile import kernel

@kernel
def twice(x):
    return add(add(x))
"""
CALLEE = """
from summula.core.compilation.compile import kernel

@kernel
def add(x):
    return x + {step}
"""
RUN = """
import sys, logging
sys.path.insert(0, {folder!r})
logging.basicConfig(level=logging.INFO, format="%(message)s")
from caller import twice
print(twice(1), sum(twice._cache_misses.values()))
"""


def test_an_edit_of_a_called_kernel_is_noticed_and_nothing_is_compiled_twice(tmp_path):
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    (tmp_path / "caller.py").write_text(CALLER.format(folder=str(tmp_path)))

    def run(step):
        (tmp_path / "callee.py").write_text(CALLEE.format(step=step))
        command = [sys.executable, "-c", RUN.format(folder=str(tmp_path))]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split(), done.stderr

    assert run(1)[0] == ["3", "1"]
    printed, output = run(1)
    assert printed == ["3", "0"]
    assert "Compiling" not in output
    printed, output = run(5)
    assert printed == ["11", "1"]
    assert output.count("Compiling for the first use") == 1


PAIRS = """
import sys
from typing import NamedTuple
from summula.core.compilation.compile import kernel

class {name}(NamedTuple):
    x: float

@kernel
def of_pair(pair):
    return pair.x + 1.0

print(of_pair({name}(1.0)), sum(of_pair._cache_misses.values()))
"""


@pytest.mark.parametrize("damage", ["a type that is gone", "a truncated index", "a truncated kernel"])
def test_a_cache_that_cannot_be_read_is_written_again(tmp_path, damage):
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path / "cache"))

    def run(name):
        (tmp_path / "pairs.py").write_text(PAIRS.format(name=name))
        os.utime(tmp_path / "pairs.py", (0, 0))
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import pairs"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert run("Pair") == ["2.0", "1"]
    assert run("Pair") == ["2.0", "0"]
    if damage != "a type that is gone":
        for file in (tmp_path / "cache").rglob("*.nbi" if damage == "a truncated index" else "*.nbc"):
            file.write_bytes(file.read_bytes()[:-20])
    name = "Duo" if damage == "a type that is gone" else "Pair"
    assert run(name) == ["2.0", "1"]
    assert run(name) == ["2.0", "0"]


def test_a_lock_is_held_by_one_at_a_time(tmp_path, monkeypatch):
    path = str(tmp_path / "folder" / "kernel.lock")
    monkeypatch.setattr(kernel_cache, "_LOCK_TIMEOUT", 0.05)
    first = kernel_cache._FileLock(path)
    assert first._file is not None
    assert kernel_cache._FileLock(path)._file is None
    first.release()
    second = kernel_cache._FileLock(path)
    assert second._file is not None
    second.release()


def test_the_lock_is_released_when_a_kernel_cannot_be_compiled():
    @kernel
    def impossible(x):
        return x.no_such_attribute

    with pytest.raises(Exception, match="no_such_attribute"):
        impossible(1.0)
    assert not impossible._cache._locks


SCALE = KernelSignature(lambda: (np.zeros(1), 0.0))
call_scale = SCALE.call


@SCALE.kernel
def double(values, offset):
    for i in range(len(values)):
        values[i] = 2 * values[i] + offset


@SCALE.kernel
def fail(values, offset):
    raise ValueError("as asked")


@kernel
def apply(address, values):
    call_scale(address, (values, 1))


def test_kernels_are_called_by_address_and_their_errors_arrive():
    values = np.array([1.0, 2.0])
    apply(double.address(), values)
    assert values.tolist() == [3.0, 5.0]
    double(values, 0.0)
    assert values.tolist() == [6.0, 10.0]
    with pytest.raises(ValueError, match="as asked"):
        apply(fail.address(), values)
