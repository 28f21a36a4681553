"""restart: replace the running daemon by the installed version of memd."""

import os
import sys
from contextlib import suppress

from memd.base.errors import Refused
from memd.cli import service_unit
from memd.cli.commands import service
from memd.cli.invocation import Invocation
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import Starter, reason_against_start

_NOT_STARTABLE = "the memd of {} would not start: {}"
_MEND = "mend the installation; the memd that runs goes on meanwhile"
_OTHER_SERVICE = "the service runs the memd of {}, not of {}"
_MAKE_SERVICE = "memctl service install makes this one the service"


def restart(invocation: Invocation) -> None:
    """Replace the running daemon by the installed version, or start one if none runs."""
    with Starter(invocation.places, invocation.environ) as starter:
        with suppress(
            OSError
        ):  # without the lock a client of another installation may start its own
            starter.take_lock()
        old_version = _version_that_ran(invocation)
        failure = "" if invocation.options.no_start else starter.step()
        if failure:
            places = invocation.places
            raise DaemonUnavailableError(places.socket, failure, places.log)
        new_version = invocation.call("hello")["version"]
    if not old_version:
        text = f"memd {new_version} was started"
    elif old_version == new_version:
        text = f"memd {new_version} was restarted"
    else:
        text = f"memd {new_version} took over from {old_version}"
    invocation.screen.answer({"before": old_version, "version": new_version}, text)


def _version_that_ran(invocation: Invocation) -> str:
    """End the daemon, if one runs; return its version, "" if none ran."""
    try:
        invocation.client(start=False)
    except DaemonUnavailableError:
        return ""
    return _stop_running(invocation)


def _stop_running(invocation: Invocation) -> str:
    """End the running daemon so that the installed one follows; return the version that ran.

    Raises Refused before anything is stopped.
    """
    running = invocation.call("status")
    program = str(running.get("program", ""))
    problem = reason_against_start(invocation.places, invocation.environ)
    if problem:
        raise Refused(_NOT_STARTABLE.format(sys.executable, problem), hint=_MEND)
    unit = service.find(invocation)
    # Several names of an interpreter in one folder are one installation.
    if os.path.dirname(program) != os.path.dirname(sys.executable):
        is_installed = set(service_unit.states(unit).values()) == {"installed"}
        if service.runs(invocation, unit) and not is_installed:
            other = program or "another installation"
            raise Refused(_OTHER_SERVICE.format(other, sys.executable), hint=_MAKE_SERVICE)
    invocation.stop()
    return str(running["version"])
