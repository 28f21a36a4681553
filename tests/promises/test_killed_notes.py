"""Kill -9 at any moment of an update: the notes are the old or the new ones, and say how far."""

import threading
from contextlib import suppress
from pathlib import Path

import pytest

from memd.client.errors import DaemonUnavailableError
from memd.notes import sections
from memd.projects.project import slug
from memd.testing.daemon import Home, client, daemon_process, throw_away_home
from tests.api.conversations import Conversation

SAMPLE = (0.004, 0.02)
EVERY = tuple(0.0015 * n for n in range(40))
# Of a request that is known from its number, and of one that fills the notes.
_WORDS = "Request number {}, of which there is much to say."


def test_killed_updates_leave_notes_that_fit_their_cursor() -> None:
    """Whatever was written tells of the very request that its last line says it goes up to."""
    _live(SAMPLE)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_every_moment_of_a_kill(part: int) -> None:
    """So at every moment from the request to the end of the replacement."""
    _live(EVERY[part::4])


def _live(moments: tuple[float, ...]) -> None:
    with throw_away_home() as home:
        projects = Path(home.path, ".claude", "projects")
        talk = Conversation(projects / slug(home.project()) / "s.jsonl")
        told: dict[str, str] = {"": ""}
        for number, moment in enumerate(moments):
            told |= _turn(talk, number)
            before = _covered(talk)
            _killed(home, talk, moment)
            covers = _covered(talk)
            assert covers in (before, f"m{talk.lines}")
            assert told[covers] in _text(talk)
        told |= _turn(talk, len(moments))
        with daemon_process(home), client(home) as caller:
            params = {"cwd": home.project(), "session_id": "s", "transcript_path": str(talk.path)}
            assert caller.call("notes.update", {**params, "force": True, "wait": True})["covers"]
        assert told[_covered(talk)] in _text(talk)
        assert _covered(talk) == f"m{talk.lines}"
        left = [path.name for path in talk.path.with_suffix("").rglob("*") if path.is_file()]
        assert left == ["summary.md"]


def _turn(talk: Conversation, number: int) -> dict[str, str]:
    """Add a turn; return what notes say that go up to each of its messages."""
    words = _WORDS.format(number)
    names = [talk.person(words)]
    for _ in range(40):
        talk.reply("word " * 60, grown=200, calls=3)
    names.append(talk.reply(grown=10_000))
    return dict.fromkeys(names, f"last request: `{words}`")


def _killed(home: Home, talk: Conversation, seconds: float) -> None:
    """Ask for an update, and kill the daemon so many seconds later."""
    params = {"cwd": home.project(), "session_id": "s", "transcript_path": str(talk.path)}
    with daemon_process(home) as process:
        with suppress(DaemonUnavailableError), client(home) as caller:
            timer = threading.Timer(seconds, process.kill)
            timer.start()
            caller.call("notes.update", {**params, "force": True, "wait": True})
        timer.join()


def _text(talk: Conversation) -> str:
    path = talk.path.with_suffix("") / "session-memory" / "summary.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _covered(talk: Conversation) -> str:
    """Return the last message that the notes go up to, "" where there are none."""
    text = _text(talk)
    cursor = sections.parse(text).cursor
    assert (cursor is not None) == bool(text)
    return cursor.covers if cursor else ""
