"""restart: replace the running daemon by the installed version of memd."""

import os
import sys

from memd.cli import service_unit
from memd.cli.commands import service
from memd.cli.invocation import Invocation
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import reason_against_start
from memd.core.errors import MemdError


class NotStartableError(MemdError):
    """The installed version would not start, so the running daemon was left alone."""

    hint = "mend the installation; the memd that runs goes on meanwhile"

    def __init__(self, program: str, words: str) -> None:
        super().__init__(f"the memd of {program} would not start: {words}", program=program)


class OtherServiceError(MemdError):
    """The supervisor runs the memd of another installation."""

    hint = "memctl service install makes this one the service"

    def __init__(self, program: str) -> None:
        words = f"the service runs the memd of {program or 'another installation'}"
        super().__init__(f"{words}, not of {sys.executable}", program=program)


def restart(invocation: Invocation) -> None:
    """Replace the running daemon by the installed version, or start one if none runs."""
    try:
        invocation.client(start=False)
    except DaemonUnavailableError:
        old_version = ""
    else:
        old_version = _stop_running(invocation)
    new_version = invocation.call("hello")["version"]
    if not old_version:
        text = f"memd {new_version} was started"
    elif old_version == new_version:
        text = f"memd {new_version} was restarted"
    else:
        text = f"memd {new_version} took over from {old_version}"
    invocation.screen.answer({"before": old_version, "version": new_version}, text)


def _stop_running(invocation: Invocation) -> str:
    """End the running daemon so that the installed one follows; return the version that ran.

    Raises NotStartableError before anything is stopped, and OtherServiceError.
    """
    running = invocation.call("status")
    program = str(running.get("program", ""))
    problem = reason_against_start(invocation.places, invocation.environ)
    if problem:
        raise NotStartableError(sys.executable, problem)
    unit = service.find(invocation)
    # Several names of an interpreter in one folder are one installation.
    if os.path.dirname(program) != os.path.dirname(sys.executable):
        is_installed = set(service_unit.states(unit).values()) == {"installed"}
        if service.runs(invocation, unit) and not is_installed:
            raise OtherServiceError(program)
    invocation.stop()
    return str(running["version"])
