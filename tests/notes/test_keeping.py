"""A session's notes while its conversation goes on: counted from the right place, never lost."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.core.settings import Settings
from memd.core.values import Project
from memd.notes.errors import NotesTooLargeError
from memd.notes.gates import CALLS, FIRST_TOKENS, GROWTH_TOKENS
from memd.notes.keeping import NotesKeeper
from memd.notes.requests import COMPLETED, NotesRequest
from memd.testing.clock import FakeClock
from tests.api.conversations import Conversation
from tests.notes.bench import no_statements

BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
STEPS = st.lists(
    st.sampled_from(["ask", "reply", "call", "three calls", "compact", "restart", "write"]),
    max_size=30,
)


@dataclass
class Bench:
    """A keeper, a session of a project, and its conversation."""

    folder: Path
    keeper: NotesKeeper = field(init=False)
    talk: Conversation = field(init=False)

    def __post_init__(self) -> None:
        """Begin."""
        base = self.folder / "projects"
        self.talk = Conversation(base / "-p" / "s.jsonl")
        self.project = Project("/p", "/p", f"{base}/-p/memory", "default", str(base), enabled=True)
        self.restart()

    def restart(self) -> None:
        """Forget what was read, as a daemon does that dies."""
        self.keeper = NotesKeeper(FakeClock(), threading.Lock, "/none", no_statements)

    def request(self, *, force: bool = False, path: str | None = None) -> NotesRequest:
        """Return a request about the session."""
        transcript = str(self.talk.path) if path is None else path
        return NotesRequest(self.project, Settings(), "s", transcript_path=transcript, force=force)

    def text(self) -> str:
        """Return what the notes' file says, "" where there is none."""
        file = self.folder / "projects/-p/s/session-memory/summary.md"
        return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Begin a session that nobody has noted."""
    return Bench(tmp_path)


@dataclass
class Model:
    """What the gates must say of a history, counted beside memd."""

    tokens: int = 0
    since: int | None = None
    calls: int = 0
    at_break: bool = True

    def gate(self) -> str:
        """Return the gate."""
        if self.since is None and self.tokens < FIRST_TOKENS:
            return "young"
        if self.since is not None and self.tokens - self.since < GROWTH_TOKENS:
            return "growth"
        return "" if self.at_break or self.calls >= CALLS else "mid_turn"


def play(bench: Bench, model: Model, step: str) -> None:
    """Do one step of a history."""
    talk = bench.talk
    if step == "ask":
        talk.person("word " * 4)
    elif step == "reply":
        talk.reply("Done.", grown=2_500)
        model.at_break = True
    elif step in ("call", "three calls"):
        for _ in range(3 if step == "three calls" else 1):
            talk.call(800)
            model.calls += 1
        model.at_break = False
    elif step == "compact":
        talk.boundary("It was about a shelf. " * 40)
        talk.tokens = 1_000
    elif step == "restart":
        bench.restart()


@BUSY
@given(steps=STEPS)
def test_updates_come_neither_too_early_nor_too_late(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Whatever happens, restarts too, the gate is that of tokens, calls and breaks since then."""
    bench, model = Bench(tmp_path_factory.mktemp("notes")), Model()
    bench.talk.person("Begin.")
    for step in steps:
        play(bench, model, step)
        with bench.keeper._open_session(bench.request()) as opened:
            model.tokens = opened.reader.meter.tokens
            if step == "compact" and model.since is not None:
                model.since = model.tokens
        gate = bench.keeper.gate(bench.request())
        assert gate == model.gate()
        if not gate or step == "write":
            assert bench.keeper.write_locally(bench.request()).status == COMPLETED
            model.since, model.calls = model.tokens, 0


@BUSY
@given(steps=STEPS, writes=st.sets(st.integers(0, 30)))
def test_the_same_transcript_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], writes: set[int]
) -> None:
    """Written once at the end or along the way, by one daemon or several."""
    bench = Bench(tmp_path_factory.mktemp("notes"))
    bench.talk.person("Begin.")
    for number, step in enumerate(steps):
        play(bench, Model(), step)
        if number in writes:
            bench.keeper.write_locally(bench.request())
    bench.keeper.write_locally(bench.request())
    text = bench.text()
    bench.keeper.write_locally(bench.request())
    assert bench.text() == text
    bench.keeper.delete(bench.request())
    bench.restart()
    bench.keeper.write_locally(bench.request())
    assert bench.text() == text


def test_a_run_puts_its_sections_into_the_notes_as_they_are_then(bench: Bench) -> None:
    """What the local writer and a client wrote meanwhile stays, and the cursor is the run's."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=10_000)
    begun = bench.keeper.begin(bench.request())
    bench.talk.person("Paint it, too.")
    bench.talk.reply(grown=3_000)
    bench.keeper.write_locally(bench.request())
    hash_ = bench.keeper.view(bench.request(), None, stale=False).hash
    bench.keeper.write(bench.request(), "Learnings", "Pine bends.", hash_)
    guide = begun.update.notes.sections[1].rendered().rstrip()
    text = "".join(section.rendered() for section in begun.update.notes.sections)
    result = bench.keeper.end(
        bench.request(), begun, text.replace(guide, f"{guide}\n\nThe shelf stands.")
    )
    assert result.sections == ("Current State",)
    view = bench.keeper.view(bench.request(), None, stale=False)
    assert "The shelf stands.\n- (from the transcript)\n- last request: `Paint it" in view.content
    assert "Pine bends." in view.content
    assert (view.covers, view.engine) == (begun.cursor.covers, "model")
    assert bench.keeper.gate(bench.request()) == "growth"


def test_notes_that_are_gone_are_begun_anew(bench: Bench) -> None:
    """A file that a person removed, or a transcript that was written anew, is noticed."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=10_000)
    bench.keeper.write_locally(bench.request())
    (bench.folder / "projects/-p/s/session-memory/summary.md").unlink()
    assert bench.keeper.gate(bench.request()) == ""
    bench.talk.path.unlink()
    bench.talk.tokens = 0
    bench.talk.person("Something else.")
    assert bench.keeper.gate(bench.request()) == "young"
    bench.keeper.write_locally(bench.request())
    assert "shelf" not in bench.text()


def test_messages_do_not_touch_what_was_read_of_a_transcript(bench: Bench) -> None:
    """One session may send both; each is counted by itself."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=9_000)
    assert bench.keeper.gate(bench.request()) == "young"
    said = [{"role": "user", "content": "x" * 60_000}]
    request = NotesRequest(bench.project, Settings(), "s", messages=said)
    assert bench.keeper.gate(request) == ""
    assert bench.keeper.gate(bench.request()) == "young"


def test_what_a_person_writes_during_a_run_comes_first(bench: Bench) -> None:
    """A run does not write over a section that somebody else changed meanwhile, and says so."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=10_000)
    bench.keeper.write_locally(bench.request())
    bench.talk.reply(grown=5_000)
    begun = bench.keeper.begin(bench.request())
    hash_ = bench.keeper.view(bench.request(), None, stale=False).hash
    bench.keeper.write(bench.request(), "Learnings", "Pine bends.", hash_)
    bench.keeper.write_locally(bench.request())
    text = "".join(section.rendered() for section in begun.update.notes.sections)
    for section in begun.update.notes.sections[1:8:6]:
        heading = f"# {section.title}\n{section.guide}\n"
        text = text.replace(heading, f"{heading}\nThe model's words.\n")
    result = bench.keeper.end(bench.request(), begun, text)
    assert result.sections == ("Current State",)
    assert result.faults == ('"Learnings" was changed meanwhile; it is as it is now',)
    content = bench.keeper.view(bench.request(), None, stale=False).content
    assert "# Learnings\nPine bends.\n" in content
    assert content.count("The model's words.") == 1


def test_another_project_s_session_of_that_name_is_not_read(bench: Bench) -> None:
    """Where a session is recorded is known to the project whose client said so."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=30_000)
    other = replace(bench.project, cwd="/q", root="/q")
    said = [{"role": "user", "content": "Sing."}]
    request = NotesRequest(other, Settings(), "s", messages=said, force=True)
    assert bench.keeper.write_locally(request).status == COMPLETED
    assert bench.keeper.gate(bench.request()) == ""
    reader = NotesRequest(other, Settings(), "s")
    assert not bench.keeper.refresh(reader)
    content = bench.keeper.view(reader, None, stale=False).content
    assert "Sing." in content
    assert "shelf" not in content


def test_growth_counts_from_a_smaller_size(bench: Bench) -> None:
    """A transcript that was written anew, or whose end was taken back, waits for no old size."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=100_000)
    bench.keeper.write_locally(bench.request())
    bench.talk.path.unlink()
    bench.talk.tokens = 0
    bench.talk.person("Something else.")
    bench.talk.reply(grown=20_000)
    assert bench.keeper.gate(bench.request()) == "growth"
    bench.talk.reply(grown=5_000)
    assert bench.keeper.gate(bench.request()) == ""


def test_a_long_text_is_not_searched_for_secrets(bench: Bench) -> None:
    """What is too long is refused as it is, though less of it would be left."""
    line = "ghp_" + "0aZ9Kq3LmN8pQr5StUv2WxYz7AbCdEf1GhIj" + " word" * 60
    with pytest.raises(NotesTooLargeError):
        bench.keeper.write(bench.request(), "Learnings", f"{line}\n" * 200, "")
    assert bench.text() == ""


def test_a_second_section_of_a_title_stays(bench: Bench) -> None:
    """Who writes a section by its title changes the first one, and no other."""
    bench.talk.person("Build the shelf.")
    bench.talk.reply(grown=10_000)
    bench.keeper.write_locally(bench.request())
    file = bench.folder / "projects/-p/s/session-memory/summary.md"
    added = "# Current State\n_My own._\nMy own words.\n\n# Worklog\n"
    file.write_text(bench.text().replace("# Worklog\n", added, 1))
    hash_ = bench.keeper.view(bench.request(), None, stale=False).hash
    bench.keeper.write(bench.request(), "Current State", "It stands.", hash_)
    assert bench.text().count("It stands.") == 1
    assert "My own words." in bench.text()
