"""Kill -9 at any moment of an extraction by a model: nothing is lost, nothing is learnt twice."""

from pathlib import Path

import pytest

from memd.testing.daemon import client, daemon_process, throw_away_home
from memd.testing.messages import messages_server
from tests.promises.killing import Killing, Moment
from tests.promises.transcripts import Conversation

pytestmark = pytest.mark.xdist_group("sdk")

# The server was asked; a reply is half read; the workspace is full; and on through the commit.
SAMPLE = (Moment(2, 0.02),)
EVERY = (
    *(Moment(1, 0.0) for _ in range(2)),
    *(Moment(1, 0.004 * n, drip=True) for n in range(8)),
    *(Moment(2, 0.004 * n, drip=True) for n in range(8)),
    *(Moment(2, 0.003 * n) for n in range(40)),
)


def test_a_killed_extraction_is_done_once() -> None:
    """Each turn is in exactly one memory, whichever daemon brought the job to its end."""
    _live(SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_every_moment_of_a_kill(part: int) -> None:
    """So at every moment from the first request to the end of the commit."""
    _live(EVERY[part::4])


def _live(moments: tuple[Moment, ...]) -> None:
    with throw_away_home() as home:
        killing = Killing(home, Conversation(home.path, home.project(), "s"))
        with messages_server(killing.script) as server:
            config = Path(home.places.config)
            config.parent.mkdir(parents=True, exist_ok=True)
            caps = "[spend]\ndollars_per_day = 100\n[dream]\nauto = false\n"
            config.write_text(f'[model]\nbase_url = "{server.url}"\n{caps}')
            config.chmod(0o600)
            for moment in moments:
                killing.live(moment)
                assert killing.marks() == list(range(1, killing.turns + 1)), moment
            requested = len(server.messages)
            with daemon_process(home), client(home) as caller:
                said = killing.said
                params = {"session_id": said.session, "transcript_path": said.path, "wait": True}
                done = caller.call("extract", {"cwd": said.cwd, **params})
            assert (done["status"], done["reason"]) == ("skipped", "nothing_new")
            assert len(server.messages) == requested
        assert killing.kills == len(moments)
        assert killing.marks() == list(range(1, killing.turns + 1))
