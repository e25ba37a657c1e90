"""Environment variables take effect at the start of a process; later changes do not."""

from __future__ import annotations

import os

import pytest

from tests.processes import run

SCRIPT = """
    import os
    {before}
    import summula
    os.environ["OMP_NUM_THREADS"] = "1"
    from summula.core.engine import threads

    threads._cpu_count = lambda: 8
    {after}
    print(threads.thread_count())
"""


def test_a_variable_set_after_the_import_is_meant_for_others() -> None:
    assert run(SCRIPT.format(before="", after="")) == 8


def test_a_variable_set_before_the_import_is_meant_for_us() -> None:
    assert run(SCRIPT.format(before="os.environ['OMP_NUM_THREADS'] = '3'", after="")) == 3
    assert run(SCRIPT.format(before="", after=""), OMP_NUM_THREADS="2") == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_environment_is_read_again_after_a_fork() -> None:
    assert run(SCRIPT.format(before="", after="os.fork() and os._exit(os.wait()[1])")) == 1
