"""Every client looks who serves before it sends a byte; one table of cases for all of them."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from anthropic.tools import ToolError

from memd.base.errors import Refused
from memd.cli import hook
from memd.client.aio import AsyncClient
from memd.client.blocking import Client
from memd.client.errors import DaemonUnavailableError
from memd.client.memory_tool import MemoryTool
from tests.cli import driver
from tests.cli.home import Home as CliHome
from tests.client.stranger import NOBODY, Stranger
from tests.support.daemon import Home, throw_away_home

ME = os.geteuid()
only_root = pytest.mark.skipif(ME != 0, reason="only root can become another user")


@dataclass(frozen=True)
class Place:
    """A directory and a socket in it, as somebody may have left them."""

    folder_mode: int = 0o700
    folder_owner: int = ME
    socket_mode: int = 0o600
    socket_owner: int = ME
    user: int = ME
    is_link: bool = False


STRANGE = [
    *(
        pytest.param(Place(folder_mode=mode), id=f"folder-{mode:o}")
        for mode in (0o755, 0o770, 0o1777)
    ),
    *(
        pytest.param(Place(socket_mode=mode), id=f"socket-{mode:o}")
        for mode in (0o660, 0o666, 0o622)
    ),
    pytest.param(Place(is_link=True), id="folder-is-a-link"),
    pytest.param(Place(folder_owner=NOBODY), id="folder-of-another", marks=only_root),
    pytest.param(Place(socket_owner=NOBODY), id="socket-of-another", marks=only_root),
    pytest.param(Place(user=NOBODY), id="served-by-another", marks=only_root),
    pytest.param(
        Place(0o1777, 0, 0o666, NOBODY, NOBODY), id="made-first-in-a-shared-folder", marks=only_root
    ),
]


@pytest.fixture
def home() -> Iterator[Home]:
    """Give a home whose socket's directory is not there yet."""
    with throw_away_home() as made:
        yield made


def listening(home: Home, place: Place) -> Stranger:
    """Make the place and return who is to listen there."""
    folder = Path(home.places.socket).parent
    if place.is_link:
        (folder.parent / "real").mkdir(mode=0o700)
        folder.symlink_to("real")
    else:
        folder.mkdir(mode=0o700)
    folder.chmod(place.folder_mode)
    os.chown(folder, place.folder_owner, -1)
    Path(home.path).chmod(0o755)
    return Stranger(
        home.places.socket, place.user, mode=place.socket_mode, owner=place.socket_owner
    )


def blocking(home: Home) -> bool:
    """Ask with the blocking client; return whether it said that the server is not ours."""
    try:
        with Client(home.places.socket, environment={}) as client:
            client.call("status")
    except Refused:
        return True
    except DaemonUnavailableError:
        return False
    return False


def asynchronous(home: Home) -> bool:
    """Ask with the asynchronous client."""

    async def ask() -> bool:
        try:
            async with AsyncClient(home.places.socket, environment={}) as client:
                try:
                    await client.call("status")
                except DaemonUnavailableError:
                    return False
        except Refused:
            return True
        except DaemonUnavailableError:
            return False
        return False

    return anyio.run(ask)


def memctl(home: Home) -> bool:
    """Ask with memctl, whose status says it."""
    cwd = home.project()
    ran = driver.memctl(CliHome(home.path, home.environ, home.places, cwd), "status")
    assert ran.status in (69, 78)
    assert ran.out == ""
    return ran.status == 78


def memory_tool(home: Home) -> bool:
    """Ask with the SDK's memory tool."""
    tool = MemoryTool(home.project(), environ=home.environ)
    with pytest.raises(ToolError) as caught:
        tool.call({"command": "view", "path": "/memories"})
    return "nothing was sent" in str(caught.value)


def hook_process(home: Home) -> bool:
    """Run the hook, which is silent whatever is there."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", hook.__file__, "claude-code", "UserPromptSubmit"],
        input=b'{"prompt": "secret"}',
        env={**home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not os.path.exists(home.places.state_dir)  # nothing was started beside what is there
    return True


CLIENTS = (blocking, asynchronous, memctl, hook_process)
ask_as = pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: str(ask.__name__))


@ask_as
@pytest.mark.parametrize("place", STRANGE)
def test_nothing_is_sent_to_a_stranger(
    home: Home, place: Place, ask: Callable[[Home], bool]
) -> None:
    """Where anybody else could serve, every client says so, the hook nothing, and no byte goes."""
    with listening(home, place) as stranger:
        assert ask(home)
    assert stranger.received == 0


@ask_as
def test_what_is_ours_is_asked(home: Home, ask: Callable[[Home], bool]) -> None:
    """The same clients send to a server of this user in a directory of its own."""
    with listening(home, Place()) as server:
        assert ask(home) == (ask is hook_process)
    assert server.received > 0


def test_the_memory_tool_says_it_to_the_model(home: Home) -> None:
    """The SDK's tool refuses in words, and starts nothing beside the stranger."""
    with listening(home, Place(folder_mode=0o755)) as stranger:
        assert memory_tool(home)
    assert stranger.received == 0
    assert not os.path.exists(home.places.state_dir)


def test_a_refusal_is_a_fault_of_the_configuration(home: Home) -> None:
    """The error has status 78 and names the place, the cause and what helps."""
    with listening(home, Place(folder_mode=0o755)), pytest.raises(Refused) as caught:
        Client(home.places.socket, environment={})
    error = caught.value
    assert (error.exit_status, error.retryable) == (78, False)
    assert f"{os.path.dirname(home.places.socket)} (mode 0755)" in error.sentence
    assert "0700" in error.hint
    with pytest.raises(DaemonUnavailableError):
        Client(f"{home.path}/none/memd.sock", environment={})
