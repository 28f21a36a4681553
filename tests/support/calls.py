"""Calls of methods without a socket: a caller whose memories lie in a folder of the test."""

import os
from pathlib import Path

from memd.base.clock import Clock
from memd.base.values import Caller
from memd.methods.callers import Callers
from memd.rpc.call import Call, Connection
from memd.state.database import Database
from tests.stores import projects_in


def callers_in(folder: str | Path, database: Database, clock: Clock) -> Callers:
    """Return the callers of a user whose home lies in a folder; nobody started their programs."""
    callers = Callers(projects_in(folder, database), lambda _: None, clock, hooked=())
    callers.has_agent, callers.on_visit = lambda *_: False, lambda _: None
    return callers


def call_about(directory: str | Path, client: str = "") -> Call:
    """Return a call of a client whose variables name its memory directory."""
    environment = {"MEMD_MEMORY_PATH": str(directory)}
    return Call(Connection(Caller(0, os.getuid(), os.getpid(), client, environment=environment)))
