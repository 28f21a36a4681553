"""Extraction against a real store: memories, cursor and job's end move together."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import CommitResult, Draft, Plan, Provenance, Tree
from memd.state.jobs import JobState
from memd.store.door import SecretInNameError
from memd.store.drafts import SecretRefusedError
from memd.store.service import Store
from memd.transcripts.reading import InvalidMessagesError, TranscriptRefusedError
from tests.extract.bench import Bench, opened
from tests.support import samples

pytestmark = pytest.mark.anyio


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories and an extraction without a model."""
    with opened(tmp_path) as made:
        made.without_model()
        yield made


RULE = "Never force-push to main because we lost a release once."


async def test_memories_cursor_and_job_move_together(bench: Bench) -> None:
    """One change set holds the memory and its index line, the cursor and the job's result."""
    job = bench.job()
    done = await bench.run(RULE, job=job)
    assert (done.status, done.saved) == (
        "completed",
        ("feedback_never-force-push-to-main-because.md",),
    )
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
    await bench.run(RULE)
    (bench.memory / "feedback_never-force-push-to-main-because.md").unlink()
    again = await bench.run(RULE)
    assert (again.status, again.reason, again.saved) == ("skipped", "nothing_new", ())
    more = await bench.run(RULE, "Always sign commits with your key.")
    assert more.saved == ("feedback_always-sign-commits-with-your-key.md",)


async def test_the_sample_conversations(bench: Bench) -> None:
    """Of the two samples what was marked is saved, a fuller rule updates, a secret is refused."""
    transcript = str(bench.folder / "t.jsonl")
    samples.write("first-day", transcript, cwd=bench.project.cwd, session="s")
    first = await bench.run(transcript_path=transcript)
    assert sorted(path.split("_")[0] for path in first.saved) == ["feedback", "project"]
    assert first.suggested > 0
    cursor = bench.cursor()
    assert cursor is not None
    assert (cursor.source, cursor.position) == (transcript, os.path.getsize(transcript))
    samples.write("second-day", str(bench.folder / "u.jsonl"), cwd="/p", session="t")
    second = await bench.run(session="t", transcript_path=str(bench.folder / "u.jsonl"))
    assert (second.saved, len(second.updated)) == ((), 1)
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


async def test_a_write_through_a_link_counts(bench: Bench) -> None:
    """The memory directory's real path is the memory directory."""
    real = bench.folder / "real"
    real.mkdir()
    bench.memory.symlink_to(real)
    write = {"type": "tool_use", "name": "Write", "input": {"file_path": f"{real}/a.md"}}
    done = await bench.run(RULE, {"role": "assistant", "content": [write]})
    assert done.reason == "already_written"


@pytest.mark.parametrize(
    ("path", "wrote"),
    [
        ("{memory}/a.md", True),
        ("/memories/a.md", True),
        ("{memory}2/a.md", False),
        ("/r{memory}/a.md", False),
    ],
)
async def test_writes_below_the_memory_count(bench: Bench, path: str, wrote: object) -> None:
    """A write below the directory or by the memory tool is the assistant's own memory."""
    given = {"file_path": path.format(memory=bench.memory)}
    write = {"type": "tool_use", "name": "Write", "input": given}
    done = await bench.run(RULE, {"role": "assistant", "content": [write]})
    assert (done.reason == "already_written") is wrote


async def test_only_every_nth_turn_is_looked_at(bench: Bench) -> None:
    """Fewer turns than the setting asks are left for later, unread."""
    bench.config.write_text("[extract]\nevery_turns = 2\n")
    assert (await bench.run(RULE)).reason == "every_turns"
    assert bench.cursor() is None
    assert len((await bench.run(RULE, "thanks")).saved) == 1


async def test_closed_gates_skip(bench: Bench) -> None:
    """With extraction off nothing is read and nothing moves."""
    bench.config.write_text("[extract]\nenabled = false\n")
    settings, _ = await bench.store.settings(bench.project)
    assert bench.extract.gate(settings, bench.project) == "extraction_off"
    assert (await bench.run(RULE)).reason == "extraction_off"
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
        done = await bench.run(text, session=text)
        assert (len(done.saved), done.updated) == (1, ())


async def test_what_was_asked_for_and_not_taken_is_told(bench: Bench) -> None:
    """Stable facts are taken; a request that is passed over is counted by its reason."""
    done = await bench.run(
        "Remember that the staging database is on port 5432.",
        "Remember our folder structure: src/handlers has the HTTP handlers.",
        f"Remember my API key: {samples.secret()}",
    )
    assert done.saved == ("project_staging-database-is-on-port.md",)
    facts = done.facts()
    assert facts["refused"] == 1


async def test_a_refused_sentence_takes_nothing_with_it(bench: Bench) -> None:
    """What only looks like a credential in its file is refused and counted, the rest is saved."""
    secret = f"Remember that the sandbox key is {samples.secret()[:20]}1234567890"
    done = await bench.run(secret, RULE)
    assert (len(done.saved), len(done.refused)) == (1, 1)
    more = await bench.run(secret, RULE, "Always answer in British English.")
    assert more.saved == ("feedback_always-answer-in-british-english.md",)


RULE_OF_SECRETS = "stripe-key"


class RefusingStore(Store):
    """A store that finds a credential in one file, or in a name that it does not tell."""

    refused = ""

    async def commit(
        self, directory: str, plan: Plan, by: Provenance, *, request_id: str = ""
    ) -> CommitResult:
        """Commit what has not the refused file."""

        def checked(tree: Tree) -> Draft:
            draft = plan(tree)
            if draft.edits and not self.refused:
                raise SecretInNameError(RULE_OF_SECRETS)
            if self.refused in {edit.path for edit in draft.edits}:
                raise SecretRefusedError(self.refused, RULE_OF_SECRETS, 3)
            return draft

        return await super().commit(directory, checked, by, request_id=request_id)


@pytest.mark.parametrize(
    ("refused", "saved"),
    [
        ("feedback_never-force-push-to-main-because.md", 1),
        ("", 0),
    ],
)
async def test_a_file_that_the_store_refuses_fails_no_extraction(
    bench: Bench, refused: str, saved: int
) -> None:
    """The other files are committed with the cursor, the refused one is counted."""
    RefusingStore.refused = refused
    bench.store = bench.make(RefusingStore)
    bench.without_model()
    done = await bench.run(RULE, "Always answer in British English.")
    assert (done.status, len(done.saved), done.refused) == ("completed", saved, (RULE_OF_SECRETS,))
    assert bench.cursor() is not None


async def test_of_too_many_the_newest_are_kept(bench: Bench) -> None:
    """450 requests are one change set of 400 memories, and the others are counted."""
    said = [f"Remember that service s{n} is owned by team{n % 7} since v{n}." for n in range(450)]
    job = bench.job()
    done = await bench.run(*said, job=job)
    assert (done.status, len(done.saved)) == ("completed", 400)
    assert done.facts()["passed_over"] == {"too_many": 50}
    assert len(bench.names()) == 401
    texts = "".join(path.read_text() for path in bench.memory.glob("project_*.md"))
    assert "s449" in texts
    assert "s49 " not in texts
    assert bench.table.get(job).result == {**done.facts(), "change": done.change}
    assert (await bench.run(*said)).reason == "nothing_new"
    other = await bench.run(*said[-3:], session="other")
    assert (other.saved, other.updated, other.change) == ((), (), None)
