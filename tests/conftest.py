"""Fixtures for every test, and how property tests look for cases.

The same cases each time, so that a green run stays green and a machine's speed decides nothing;
``MEMD_HYPOTHESIS=explore`` (``make explore``) looks for new ones, forty times as many.
"""

import gc
import importlib
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Tests that load it themselves report to its maker as little as memd does.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

_UNTIMED = settings(database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", _UNTIMED, derandomize=True, max_examples=25)
settings.register_profile("explore", _UNTIMED, max_examples=1000)
settings.load_profile(os.environ.get("MEMD_HYPOTHESIS", "steady"))

# A shell's background job and nohup ignore these, and so would every process that a test starts.
for _number, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


# What is made while tests are collected stays until the end: no collector need go through it.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Leave what was collected alone from here on, and collect garbage again."""
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of ``-n auto``: half as many again as processors, since tests wait a lot.

    They wait for the disk and for processes that they start: on two processors three workers
    take a tenth less time than two.
    """
    is_linux = hasattr(os, "sched_getaffinity")  # other systems say how many processors they have
    processors = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
    return max(2, processors * 3 // 2)


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio, the loop that the daemon runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _loaded(request: pytest.FixtureRequest) -> None:
    """Load the library that asks models before a test that uses it: a request's time is for more.

    Loading takes seconds on a busy machine, and a daemon that is its own process does it at its
    start.
    """
    if request.node.get_closest_marker("xdist_group") is not None:
        importlib.import_module("anthropic")
