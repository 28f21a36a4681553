"""Asks the gates of a dream between two marks that a trace of system calls shows.

Usage: ``gate_driver.py <folder>``, which holds ``memory/.consolidate-lock`` of an hour ago.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.base.settings import DreamSettings, Settings
from memd.base.values import Project
from memd.dream.gates import Gatekeeper
from tests.support.clock import FakeClock

ASKED = {
    "dream_off": DreamSettings(enabled=False),
    "time": DreamSettings(),
    "sessions": DreamSettings(min_hours=0.5),
    "sessions again": DreamSettings(min_hours=0.5),
}


def mark(name: str) -> None:
    """Leave a mark in the trace."""
    os.path.exists(f"/mark/{name}")


async def main(folder: str) -> None:
    """Ask each gate once, in a worker thread as the daemon does."""
    project = Project(
        f"{folder}/p/sub", f"{folder}/p", f"{folder}/memory", "test", f"{folder}/t", enabled=True
    )
    keeper = Gatekeeper(FakeClock(time.time()))
    await to_thread.run_sync(int)  # the thread and all it needs are there
    for name, dream in ASKED.items():
        ask = partial(
            keeper.first_closed_gate, project, Settings(dream=dream), force=False, session=""
        )
        mark(name)
        closed = await to_thread.run_sync(ask)
        mark("end")
        assert closed == name.split()[0], closed


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
