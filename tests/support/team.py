"""A memd-team to test against: a real process on a free port of this machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

REMOTE = "github.com/acme/ingest-service"
_RUN = "import sys; from memd.server.command import main; sys.exit(main())"
_MEMD_TEAM = (sys.executable, "-P", "-c", _RUN)
ORIGIN = '[remote "origin"]\n\turl = git@github.com:acme/ingest-service.git\n'
_STOP_SECONDS = 20


class RunningServer(Struct, frozen=True):
    """A memd-team that listens on this machine: its address and its process."""

    url: str
    pid: int


@contextmanager
def team_server(*storage: str) -> Iterator[RunningServer]:
    """Run memd-team on a free port until the end of the block; ``storage`` says with which data."""
    command = (*_MEMD_TEAM, "serve", "--listen", "127.0.0.1:0", *storage)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            url = process.stdout.readline().strip() if process.stdout else ""
            yield RunningServer(url, process.pid)
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


def operate(data: str, *arguments: str) -> str:
    """Return what a command of the server's operator prints. Raises CalledProcessError."""
    command = (*_MEMD_TEAM, *arguments, "--data", data)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def invited(data: str, member: str) -> str:
    """Return a code with which a device of a member joins."""
    printed = operate(data, "invite", member, "--repo", REMOTE, "--json")
    return str(json.loads(printed)["code"])
