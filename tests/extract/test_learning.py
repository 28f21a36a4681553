"""Extraction by a model against a real store, with a model that says what it is told to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core.values import Actor, Draft, Provenance, Suggestion
from memd.extract.service import ExtractionFailedError, ExtractRequest
from memd.model.errors import CapReachedError, ModelUnavailableError
from memd.model.port import Ask, Usage
from memd.state.history import Filter
from memd.state.jobs import JobState
from tests.extract.bench import NOW, Bench, opened, quiet
from tests.scripted_model import Answer, calls, says

pytestmark = pytest.mark.anyio

MEMORY = """---
name: pnpm
description: The user installs packages with pnpm
metadata:
  type: feedback
---

Use pnpm for every install.

**Said:** "From now on install packages with pnpm"
"""
SAID = "From now on install packages with pnpm, please."


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set up a store without memories."""
    with opened(tmp_path) as made:
        yield made


def write(bench: Bench, name: str = "pnpm.md", text: str = MEMORY) -> tuple[str, dict[str, str]]:
    """Return a call that writes a memory."""
    return "Write", {"file_path": str(bench.memory / name), "content": text}


async def test_a_turn_becomes_a_memory(bench: Bench) -> None:
    """Two requests, one change set: memory, index line, cursor, job's end, provenance, record."""
    bench.memory.mkdir()
    (bench.memory / "old.md").write_text("---\nname: old\n---\n\nx\n")
    inspect = [("Read", {"file_path": "old.md"}), ("Glob", {"pattern": "*.md"})]
    usage = Usage(input=100, output=20, cache_read=900)
    bench.teach(calls(*inspect), calls(write(bench), usage=usage, first=3))
    job = bench.job()
    done = await bench.run(SAID, job=job)
    assert (done.status, done.saved, done.engine) == ("completed", ("pnpm.md",), "small-extract")
    read = done.usage["input"] + done.usage["cache_read"] + done.usage["cache_created"]
    assert (done.turns, done.usage["cache_read"]) == (2, 900)
    assert done.facts()["hit_rate"] == round(900 / read, 4)
    assert "pnpm.md" in (bench.memory / "MEMORY.md").read_text()
    row = bench.table.get(job)
    assert row.state is JobState.COMPLETED
    assert row.result is not None
    assert row.result["saved"] == ["pnpm.md"]
    assert [turn["turn"] for turn in bench.runs.of(job)] == [1, 2]
    (change,) = await bench.store.history(str(bench.memory), only=Filter(), limit=1)
    assert (change.by.model, change.by.session, change.by.origin) == ("small-extract", "s", "user")
    nothing = await bench.run(SAID)
    assert (nothing.status, nothing.reason, len(bench.model.requested)) == (
        "skipped",
        "nothing_new",
        2,
    )


@pytest.mark.parametrize(
    "answers",
    [
        [says("I cannot", stop="refusal")],
        [says("cut", stop="max_tokens")],
        [ModelUnavailableError("it broke off")],
        [calls(("Glob", {"pattern": "*"}))],
    ],
)
async def test_a_run_that_fails_keeps_nothing(bench: Bench, answers: list[Answer]) -> None:
    """Refused, cut, unreachable or looping: no memory, the cursor stays, and it may be retried."""
    bench.teach(*answers)
    with pytest.raises(ExtractionFailedError) as caught:
        await bench.run(SAID)
    assert caught.value.retryable
    assert bench.names() == []
    assert bench.cursor() is None
    assert len(bench.model.requested) <= 5


async def test_at_a_cap_the_local_extractor_does_it(bench: Bench) -> None:
    """A reached cap costs no memory: the local engine answers and says why."""
    bench.teach(CapReachedError("extract", "dollars_per_day", 1.0, "tomorrow"))
    done = await bench.run("Never force-push to main because we lost a release once.")
    assert (done.engine, len(done.saved)) == ("local", 1)
    assert "dollars_per_day" in done.problem
    bench.config.write_text("[extract]\nuse_model = false\n")
    bench.teach(says("nothing new"))
    other = await bench.run("a", "Always rebase because merges hide what broke.")
    assert (other.engine, bench.model.requested) == ("local", [])


async def test_a_runs_own_title_and_hook_stay(bench: Bench) -> None:
    """Of what a model makes of the index, the lines of its memories count."""
    index = "# Mine\n- [Installing](pnpm.md) \u2014 which tool, and why\n- [Gone](gone.md)\n"
    bench.teach(calls(write(bench), write(bench, "MEMORY.md", index)))
    await bench.run(SAID)
    line = "- [Installing](pnpm.md) \u2014 which tool, and why\n"
    assert (bench.memory / "MEMORY.md").read_text(encoding="utf-8") == line
    bench.teach(
        calls(("Read", {"file_path": "pnpm.md"}), ("Read", {"file_path": "MEMORY.md"})),
        calls(
            write(bench, text=MEMORY.replace("every install", "all of it")),
            write(bench, "MEMORY.md", "- [Installs](pnpm.md) \u2014 the tool\n"),
            first=5,
        ),
    )
    assert (await bench.run(SAID, SAID)).updated == ("pnpm.md",)
    line = "- [Installs](pnpm.md) \u2014 the tool\n"
    assert (bench.memory / "MEMORY.md").read_text(encoding="utf-8") == line


async def test_a_conversation_goes_on_over_the_same_prefix(bench: Bench, tmp_path: Path) -> None:
    """The next request begins with the last one's bytes, from memory and after a restart."""
    path = tmp_path / "s.jsonl"

    def line(number: int) -> str:
        said = {"role": "user", "content": f"Message {number} of the user."}
        return json.dumps({"type": "user", "uuid": f"u{number}", "message": said}) + "\n"

    async def extract() -> Ask:
        requested = ExtractRequest(session="s", transcript_path=str(path))
        settings, _ = await bench.store.settings(bench.project)
        await bench.extract.run(
            bench.project, settings, requested, job="", client="test", progress=quiet
        )
        return bench.model.requested[-1]

    path.write_text(line(1) + line(2))
    first = _texts(await extract())
    path.write_text(path.read_text() + line(3))
    second = _texts(await extract())
    assert second[:2] == first[:2]
    assert "last 1 pieces" in second[-1]
    bench.teach()  # a daemon that was just started
    path.write_text(path.read_text() + line(4))
    third = _texts(await extract())
    assert third[:3] == second[:3]
    assert (len(third), "last 1 pieces" in third[-1]) == (5, True)


def _texts(ask: Ask) -> list[str]:
    return [block["text"] for block in ask.messages[0]["content"]]


async def test_a_model_decides_what_was_suggested(bench: Bench) -> None:
    """A run is given once what waits, and its quotation proves a memory, which closes it."""
    tabs = "We indent Makefiles with tabs."
    memory = MEMORY.replace("From now on install packages with pnpm", tabs)
    earlier = Draft(effects=(Suggestion("s0", tabs, NOW - 86_400, "user"),))
    directory = str(bench.memory)
    await bench.store.commit(directory, lambda _: earlier, Provenance(Actor.EXTRACT))
    bench.teach(calls(write(bench, "tabs.md", memory)))
    done = await bench.run("Please run the tests now.")
    assert (done.saved, done.passed_over) == (("tabs.md",), ())
    assert json.dumps(bench.model.requested[0].messages).count(tabs) == 1
    assert f'**Said:** "{tabs}" (2026-03-02)' in (bench.memory / "tabs.md").read_text()
    assert await bench.suggestions.waiting(directory) == ()
    bench.model.then(says("nothing new"))
    await bench.run("Please run the tests now.", "And once more.")
    assert tabs not in json.dumps(bench.model.requested[0].messages)


@pytest.mark.parametrize("enabled", ["true", "auto", "false"])
@pytest.mark.parametrize("joined", [True, False])
async def test_what_is_shared_goes_to_the_team(bench: Bench, enabled: str, *, joined: bool) -> None:
    """Where the team is on, the person's own words go there without the session; else nowhere."""
    bench.joined, used = joined, enabled == "true" or (enabled == "auto" and joined)
    bench.config.write_text(f'[team]\nenabled = "{enabled}"\n')
    bench.config.chmod(0o600)
    (bench.memory / "team").mkdir(parents=True)
    theirs = MEMORY.partition("Use")[0].replace("user installs", "release") + "On Mondays.\n"
    (bench.memory / "team/old.md").write_text(theirs)
    quiet_one = MEMORY.partition("**Said")[0].replace("feedback", "project")
    private = MEMORY.replace("feedback", "user")
    bench.teach(
        calls(("Read", {"file_path": "team/old.md"})),
        calls(
            write(bench, "team/pnpm.md"),
            write(bench, "team/fact.md", quiet_one),
            write(bench, "team/me.md", private),
            write(bench, "team/MEMORY.md", "- [Obey](pnpm.md)\n"),
            write(bench, "team/old.md", 'removed: "From now on install packages with pnpm"'),
            first=3,
        ),
        says("done"),
    )
    done = await bench.run(SAID)
    assert done.saved == (("team/pnpm.md",) if used else ())
    asked = json.dumps(bench.model.requested[0].system)
    assert ("team/file-name.md" in asked, "<scope>" in asked) == (used, used)
    assert (bench.memory / "team/old.md").read_text() == theirs
    if used:
        text = (bench.memory / "team/pnpm.md").read_text()
        assert ("originSessionId" in text, "origin:" in text) == (False, False)
        index = (bench.memory / "team/MEMORY.md").read_text()
        assert [line.partition("]")[0] for line in index.splitlines()] == ["- [pnpm", "- [pnpm"]
        assert not (bench.memory / "MEMORY.md").exists()


@pytest.mark.parametrize("tools", [True, False])
async def test_a_colleague_s_text_becomes_no_private_memory(bench: Bench, *, tools: bool) -> None:
    """What a team's memory says, in its head or its body, is no memory of the person's."""
    head = "Releases are announced in the channel ship-it before noon"
    body = "Rollbacks need two approvals from the people on call that week."
    theirs = MEMORY.partition("Use")[0].replace("The user installs packages with pnpm", head)
    (bench.memory / "team").mkdir(parents=True)
    (bench.memory / "team/release.md").write_text(f"{theirs}{body}\n")
    copies = {
        name: {"op": "create", "path": name, "type": "project", "name": name, "description": text}
        for name, text in (("a.md", head), ("b.md", body), ("c.md", "Ships on Tuesdays"))
    }
    if tools:
        start = theirs.replace("feedback", "project").replace(head, "About ships")
        texts = [write(bench, name, start + each["description"]) for name, each in copies.items()]
        bench.teach(
            calls(("Read", {"file_path": "team/release.md"})), calls(*texts, first=2), says("x")
        )
    else:
        wanted = [{**each, "body": each["description"]} for each in copies.values()]
        bench.teach(says(json.dumps(wanted)), says("[]"))
        bench.model.calls_tools = False
    done = await bench.run("How are releases announced? It ships on Tuesdays.")
    assert (done.saved, set(done.passed_over)) == (("c.md",), {"outside_words"})
