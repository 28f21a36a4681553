"""No byte goes to a server that may be somebody else's, whenever it comes.

Each round is a shared place in which a stranger begins to listen at a random time, while a client
of some kind asks again and again; it may try to start a daemon of its own meanwhile.
"""

import os
import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.base.errors import Refused
from memd.client.errors import DaemonUnavailableError
from memd.client.launch import connect
from tests.client.stranger import NOBODY, Stranger
from tests.client.test_peer import CLIENTS, ME
from tests.soak.figures import FIGURE
from tests.soak.rounds import delay, play
from tests.support.daemon import Home, throw_away_home

SEED = 20261122


@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_no_byte_reaches_a_stranger(
    count: int, record_property: Callable[[str, object], None]
) -> None:
    """Whenever a stranger takes the socket's place, no client sends it anything."""
    received = play(count, SEED, partial(one_round, count))
    record_property(FIGURE, f"10.4 a foreign server: {count} rounds, {received} bytes sent to it")
    assert received == 0


def one_round(count: int, chance: random.Random) -> int:
    """Return how many bytes a stranger got that came at a random time."""
    wait, ask = delay(chance, count), chance.choice([*CLIENTS, starting])
    with throw_away_home() as made:
        home = replace(made, environ={**made.environ, "MEMD_HOOK_NO_START": "1"})
        folder = Path(home.places.socket).parent
        folder.mkdir()
        # Root can put a stranger even into a private folder; the kernel's word alone is left then.
        folder.chmod(chance.choice([0o777, 0o1777, 0o755] if ME else [0o777, 0o1777, 0o700]))
        Path(home.path).chmod(0o755)
        come = threading.Event()
        asking = threading.Thread(target=again, args=(home, ask, come))
        asking.start()
        come.wait(wait)
        # Without the rights of root the stranger is this user, in a folder open to others.
        user = NOBODY if ME == 0 else ME
        mode = chance.choice([0o600, 0o666, 0o777])
        with Stranger(home.places.socket, user, mode=mode) as stranger:
            come.wait(chance.uniform(0, 0.2))
            come.set()
            asking.join()
            ask(home)
    return stranger.received


def again(home: Home, ask: Callable[[Home], bool], come: threading.Event) -> None:
    """Ask until the stranger has come."""
    while not come.is_set():
        ask(home)
        come.wait(0.1)


def starting(home: Home) -> bool:
    """Ask as a client that starts a daemon where none is; the daemon is one that ends at once."""
    try:
        connect(home.places, home.environ, name="t", deadline=0.2, command=("/bin/true",)).close()
    except (Refused, DaemonUnavailableError):
        return os.path.exists(home.places.socket)
    return False
