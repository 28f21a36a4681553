"""Extraction against a real store: memories, cursor and job's end move together."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.core.events import Event
from memd.core.values import CursorMove, Project, Snapshot
from memd.extract.service import (
    Extract,
    Extracted,
    ExtractRequest,
    InvalidMessagesError,
    TranscriptRefusedError,
)
from memd.projects.configuration import Configuration
from memd.state import cursors, jobs, journal
from memd.state.cursors import Cursors
from memd.state.database import Database, open_database
from memd.state.jobs import JobState, JobTable, NewJob
from memd.store.service import Store
from memd.testing import samples
from memd.testing.clock import FakeClock

pytestmark = pytest.mark.anyio

NOW = 1_772_528_400.0  # 2026-03-03, a Tuesday


class Silence:
    """An event sink that keeps nothing."""

    def publish(self, event: Event) -> None:
        """Take an event."""


class Bench:
    """A real store and state file in a folder."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.memory = folder / "memory"
        self.config = folder / "memd.toml"
        self.table = JobTable(database)
        self.cursors = Cursors(database)
        self.database = database
        self.store = self.make(Store)
        self.extract = Extract(self.store, self.cursors, FakeClock(NOW))
        root = str(folder / "repo")
        self.project = Project(root, root, str(self.memory), "test", str(folder), enabled=True)

    def make(self, kind: type[Store]) -> Store:
        """Return a store over this folder."""
        return kind(
            self.database,
            Configuration(str(self.config), str(self.folder / "policy.toml")),
            FakeClock(NOW),
            Silence(),
            home=str(self.folder),
            environ={},
        )

    async def run(self, job: str = "", **request: Any) -> Extracted:
        """Run one extraction of session s."""
        asked = ExtractRequest(session=request.pop("session", "s"), **request)
        return await self.extract.run(self.project, asked, job=job, client="test")

    async def hear(self, *texts: str) -> Extracted:
        """Extract from messages of the person's."""
        return await self.run(messages=[{"role": "user", "content": text} for text in texts])

    def cursor(self) -> CursorMove | None:
        """Return the cursor of session s."""
        return self.cursors.get(str(self.memory), "s")

    def names(self) -> list[str]:
        """Return the memories on the disk."""
        return sorted(path.name for path in self.memory.glob("*.md"))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories."""
    schemas = (journal.SCHEMA, cursors.SCHEMA, jobs.SCHEMA)
    database = open_database(str(tmp_path / "state.db"), schemas)
    yield Bench(tmp_path, database)
    database.close()


RULE = "Never force-push to main because we lost a release once."


async def test_memories_cursor_and_job_move_together(bench: Bench) -> None:
    """One change set holds the memory and its index line, the cursor and the job's result."""
    lane = str(bench.memory)
    job = bench.table.add(NewJob("extract", lane, lane, "s", {}), NOW)
    bench.table.start(job, NOW)
    done = await bench.run(job, messages=[{"role": "user", "content": RULE}])
    assert (done.status, done.saved) == ("completed", ("feedback_never-force-push-to-main.md",))
    assert done.change
    assert "lost a release once" in (bench.memory / done.saved[0]).read_text()
    assert done.saved[0] in (bench.memory / "MEMORY.md").read_text()
    assert bench.cursor() is not None
    row = bench.table.get(job)
    assert row.state is JobState.COMPLETED
    assert row.result == {**done.facts(), "change": done.change}
    (change,) = await bench.store.history(str(bench.memory))
    assert (change.by.actor, change.by.origin, change.by.session) == ("extract", "user", "s")


async def test_nothing_is_read_twice(bench: Bench) -> None:
    """A second run finds nothing new, also when the memory was deleted meanwhile."""
    await bench.hear(RULE)
    (bench.memory / "feedback_never-force-push-to-main.md").unlink()
    again = await bench.hear(RULE)
    assert (again.status, again.reason, again.saved) == ("skipped", "nothing_new", ())
    more = await bench.hear(RULE, "Always sign commits with your key.")
    assert more.saved == ("feedback_always-sign-commits-with-your-key.md",)


async def test_the_sample_conversations(bench: Bench) -> None:
    """The two samples give the memories they were written for, and nothing else."""
    transcript = str(bench.folder / "t.jsonl")
    samples.write("first-day", transcript, cwd=bench.project.cwd, session="s")
    first = await bench.run(transcript_path=transcript)
    assert sorted(path.split("_")[0] for path in first.saved) == [
        "feedback",
        "project",
        "reference",
        "user",
    ]
    cursor = bench.cursor()
    assert cursor is not None
    assert (cursor.source, cursor.position) == (transcript, os.path.getsize(transcript))
    samples.write("second-day", str(bench.folder / "u.jsonl"), cwd="/p", session="t")
    second = await bench.run(session="t", transcript_path=str(bench.folder / "u.jsonl"))
    assert sorted(path.split("_")[0] for path in second.saved) == ["feedback", "reference"]
    assert second.updated == ("feedback_integration-tests-must-hit-real-database.md",)
    assert second.refused == ("stripe-key",)
    everything = "".join(path.read_text() for path in bench.memory.glob("*.md"))
    assert "2026-03-05" in everything
    for unwanted in (samples.secret(), "deploy key", "src/handlers", "verse", "French", "tabs"):
        assert unwanted not in everything


async def test_a_transcript_goes_on_where_it_ended(bench: Bench) -> None:
    """A second run reads what was appended, and only that."""
    path = bench.folder / "t.jsonl"

    def say(text: str) -> None:
        line = {"type": "user", "uuid": text, "message": {"role": "user", "content": text}}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    say(RULE)
    assert len((await bench.run(transcript_path=str(path))).saved) == 1
    say("Always sign commits with your key.")
    more = await bench.run(transcript_path=str(path))
    assert more.saved == ("feedback_always-sign-commits-with-your-key.md",)
    assert (await bench.run(transcript_path=str(path))).reason == "nothing_new"


async def test_the_assistants_own_memory_comes_first(bench: Bench) -> None:
    """Where the assistant wrote a memory, the stretch counts as done and the cursor moves."""
    write = {
        "type": "tool_use",
        "id": "t",
        "name": "Write",
        "input": {"file_path": f"{bench.memory}/a.md"},
    }
    conversation = [
        {"role": "user", "content": RULE},
        {"role": "assistant", "content": [write]},
    ]
    done = await bench.run(messages=conversation)
    assert (done.status, done.reason) == ("skipped", "already_written")
    assert (await bench.run(messages=conversation)).reason == "nothing_new"
    assert bench.names() == []


async def test_a_write_through_a_link_counts(bench: Bench) -> None:
    """The memory directory's real path is the memory directory."""
    real = bench.folder / "real"
    real.mkdir()
    bench.memory.symlink_to(real)
    write = {"type": "tool_use", "name": "Write", "input": {"file_path": f"{real}/a.md"}}
    done = await bench.run(
        messages=[
            {"role": "user", "content": RULE},
            {"role": "assistant", "content": [write]},
        ]
    )
    assert done.reason == "already_written"


async def test_only_every_nth_turn_is_looked_at(bench: Bench) -> None:
    """Fewer turns than the setting asks are left for later, unread."""
    bench.config.write_text("[extract]\nevery_turns = 2\n")
    assert (await bench.hear(RULE)).reason == "every_turns"
    assert bench.cursor() is None
    assert len((await bench.hear(RULE, "thanks")).saved) == 1


async def test_closed_gates_skip(bench: Bench) -> None:
    """With extraction off nothing is read and nothing moves."""
    bench.config.write_text("[extract]\nenabled = false\n")
    settings, _ = await bench.store.settings(bench.project)
    assert bench.extract.gate(settings, bench.project) == "extraction_off"
    assert (await bench.hear(RULE)).reason == "extraction_off"
    assert bench.cursor() is None


async def test_what_cannot_be_read_leaves_the_cursor(bench: Bench) -> None:
    """A bad transcript or bad messages are errors, and the cursor stays."""
    with pytest.raises(TranscriptRefusedError):
        await bench.run(transcript_path="/nowhere.jsonl")
    with pytest.raises(InvalidMessagesError):
        await bench.run(messages="x")
    assert bench.cursor() is None


async def test_a_format_that_is_not_known_is_told(bench: Bench) -> None:
    """A transcript that yields nothing says so in the answer."""
    path = bench.folder / "t.jsonl"
    path.write_text('{"kind":"turn"}\n')
    done = await bench.run(transcript_path=str(path))
    assert "none of 1 lines" in done.facts()["problem"]


def many(count: int) -> list[str]:
    """Return requests to remember as many different things."""
    return [f"Remember that service s{n} is owned by team{n % 7} since v{n}." for n in range(count)]


async def test_more_than_one_change_set_can_hold_is_kept(bench: Bench) -> None:
    """600 memories end completed: the cursor and the job's end come with the last slice."""
    lane = str(bench.memory)
    job = bench.table.add(NewJob("extract", lane, lane, "s", {}), NOW)
    bench.table.start(job, NOW)
    said = [{"role": "user", "content": text} for text in many(600)]
    done = await bench.run(job, messages=said)
    assert (done.status, len(done.saved), len(done.earlier_changes)) == ("completed", 600, 11)
    assert len(bench.names()) == 601
    assert bench.table.get(job).result == {**done.facts(), "change": done.change}
    assert (await bench.run(messages=said)).reason == "nothing_new"


async def test_a_run_that_ended_between_slices_is_repeated_harmlessly(bench: Bench) -> None:
    """What was cut off goes on where it was: no memory twice, none lost, corrections stand."""
    corrected = "Actually service s3 is owned by team3 since v300."
    texts = [*many(60), corrected]

    class CancelledError(Exception):
        """The run ends here."""

    class Between(Store):
        async def snapshot(self, directory: str) -> Snapshot:
            raise CancelledError(directory)

    whole = bench.extract
    bench.extract = Extract(bench.make(Between), bench.cursors, FakeClock(NOW))
    with pytest.raises(CancelledError):
        await bench.hear(*texts)
    assert len(bench.names()) == 51
    assert bench.cursor() is None
    bench.extract = whole
    done = await bench.hear(*texts)
    assert (len(done.saved), done.updated) == (10, ())
    assert len(bench.names()) == 61
    other = await bench.run(
        session="other", messages=[{"role": "user", "content": text} for text in texts[:3]]
    )
    assert (other.saved, other.updated, other.change) == ((), (), None)


async def test_an_unrelated_memory_is_never_replaced(bench: Bench) -> None:
    """Alike sentences about other things are memories of their own."""
    for text in (
        "Always use tabs for indentation in Go files.",
        "Never use tabs for indentation in YAML files.",
        "Remember that Alice owns the billing service.",
        "Remember that Alice owns the search service.",
        "Always run the linter before committing Go code.",
        "Always run the formatter before committing Rust code.",
    ):
        done = await bench.run(session=text, messages=[{"role": "user", "content": text}])
        assert (len(done.saved), done.updated) == (1, ())


async def test_what_was_asked_for_and_not_taken_is_told(bench: Bench) -> None:
    """Stable facts are taken; a request that is passed over is counted by its reason."""
    done = await bench.hear(
        "Remember that the staging database is on port 5432.",
        "Remember our folder structure: src/handlers has the HTTP handlers.",
        f"Remember my API key: {samples.secret()}",
    )
    assert done.saved == ("project_staging-database-is-on-port-5432.md",)
    facts = done.facts()
    assert facts["passed_over"] == {"structure": 1}
    assert facts["refused"] == 1
