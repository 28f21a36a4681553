"""Extraction by a model against a real store, with a model that says what it is told to."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.model.errors import CapReachedError
from memd.model.port import Ask
from tests.extract.bench import Bench, opened
from tests.scripted_model import calls, says

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


def _texts(ask: Ask) -> list[str]:
    return [block["text"] for block in ask.messages[0]["content"]]


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
