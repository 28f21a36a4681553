"""session start, compacted and end."""

import pytest

from memd.testing.scripted_daemon import ScriptedDaemon
from tests.cli.driver import memctl
from tests.cli.home import Home


@pytest.mark.parametrize("verb", ["start", "compacted", "end"])
def test_a_session_is_told(home: Home, verb: str) -> None:
    """The daemon hears of the session, and there is nothing to print."""
    with ScriptedDaemon(home.places.socket, {f"session.{verb}": {"ok": True}}) as daemon:
        ran = memctl(home, "session", verb, "s1")
        assert memctl(home, "session", verb, "s1", "--json").json == {"ok": True}
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert daemon.params(f"session.{verb}") == {"cwd": home.cwd, "session_id": "s1"}
