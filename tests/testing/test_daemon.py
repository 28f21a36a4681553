"""Daemons to test against."""

import os
import subprocess
from pathlib import Path

import pytest

from memd.client.errors import DaemonUnavailableError
from memd.testing.daemon import client, daemon_here, daemon_process, throw_away_home


def test_a_home_leaves_nothing_behind() -> None:
    """A throw-away HOME is gone after its block, with all that lay in it."""
    with throw_away_home() as home:
        assert home.environ["HOME"] == home.path
        assert home.places.socket.startswith(home.path)
        assert os.path.isdir(f"{home.project('x')}/.git")
    assert not Path(home.path).exists()


def test_a_process_ends_with_its_block() -> None:
    """The daemon process answers inside the block and is gone afterwards."""
    with throw_away_home() as home:
        with daemon_process(home) as process, client(home) as connection:
            assert connection.call("hello", {})["pid"] == process.pid
        assert process.returncode == 0
        with pytest.raises(DaemonUnavailableError), client(home) as connection:
            connection.call("hello", {})


def test_a_process_that_ended_by_itself_is_fine() -> None:
    """A block that killed its daemon ends without an error."""
    with throw_away_home() as home, daemon_process(home) as process:
        process.kill()
        assert process.wait() == -9


@pytest.mark.anyio
async def test_a_daemon_can_run_in_this_process() -> None:
    """The daemon of this process serves real clients and can be asked to stop."""
    with throw_away_home() as home:
        async with daemon_here(home) as stop:
            command = ["test", "-S", home.places.socket]
            assert subprocess.run(command, check=False).returncode == 0  # noqa: ASYNC221 - an instant
            assert not stop.is_set()
