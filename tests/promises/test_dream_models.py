"""Whatever a model does in a dream: good work is done, anything else waits for a person."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.promises.learning import Desk, desk, memory, turn
from tests.support.messages import text, tools
from tests.support.steps import ReceivedMessage

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]

Script = Callable[[Path, ReceivedMessage], Any]
RULE = "Never mock the payment gateway in tests"
WHY = f"{RULE}.\n\n**Why:** a stub hid a rounding bug in May."
STORE = {
    "rule.md": memory("rule", RULE, "feedback", WHY),
    "deploy.md": memory("deploy", "Deploys go out on Thursday", "project"),
    "release.md": memory("release", "Releases are tagged by Ann before 14:00", "project"),
    "board.md": memory("board", "Incidents are on the board OPS", "reference"),
    "role.md": memory("role", "The user is a backend engineer", "user"),
}
BOTH = memory(
    "deploy",
    "Deploys go out on Thursday",
    "project",
    "Deploys go out on Thursday.\n\nReleases are tagged by Ann before 14:00",
)


def reads(folder: Path, *names: str) -> Any:
    """Return a turn that reads memories."""
    return tools(*(("Read", {"file_path": f"{folder}/{name}"}) for name in names))


def writes(folder: Path, **contents: str) -> Any:
    """Return a turn that writes memories, named without their suffix."""
    return tools(
        *(
            ("Write", {"file_path": f"{folder}/{name}.md", "content": content})
            for name, content in contents.items()
        )
    )


def merges(folder: Path, request: ReceivedMessage) -> Any:
    """Put one memory into another, and say so."""
    gone = "removed: merged into deploy.md"
    steps = (
        reads(folder, "deploy.md", "release.md"),
        writes(folder, deploy=BOTH, release=gone),
    )
    return steps[turn(request) - 1] if turn(request) <= len(steps) else text("Merged two.")


def deletes(folder: Path, request: ReceivedMessage) -> Any:
    """Remove every memory for the same poor reason."""
    if turn(request) == 1:
        return reads(folder, *STORE)
    names = [name.removesuffix(".md") for name in STORE]
    return (
        writes(folder, **dict.fromkeys(names, "removed: it is out of date"))
        if turn(request) == 2
        else text("All is tidy now.")
    )


def turns_round(folder: Path, request: ReceivedMessage) -> Any:
    """Make the opposite of a rule of the person's."""
    always = RULE.replace("Never", "Always")
    if turn(request) == 1:
        return reads(folder, "rule.md")
    opposite = memory("rule", always, "feedback", WHY.replace(RULE, always))
    return writes(folder, rule=opposite) if turn(request) == 2 else text("Tightened a rule.")


def lies(folder: Path, request: ReceivedMessage) -> Any:
    """Claim a merge that was not made."""
    if turn(request) == 1:
        return reads(folder, "deploy.md", "release.md")
    if turn(request) == 2:
        return writes(folder, release="removed: merged into deploy.md")
    return text("release.md went into deploy.md.")


def loops(_: Path, __: ReceivedMessage) -> Any:
    """Look at the same thing for ever."""
    return tools(("Glob", {"pattern": "*.md"}))


def meanwhile(folder: Path, request: ReceivedMessage) -> Any:
    """Change two files, one of which a person saves in the meantime."""
    if turn(request) == 1:
        return reads(folder, "deploy.md", "board.md")
    if turn(request) == 2:
        theirs = STORE["deploy.md"].replace("Thursday", "Friday")
        (folder / "deploy.md").write_text(theirs, "utf-8")
        longer = memory("board", "Incidents are on the board OPS", "reference", "Board OPS: look.")
        ours = STORE["deploy.md"].replace("go out", "leave")
        return writes(folder, deploy=ours, board=longer)
    return text("Tightened two.")


async def filled(here: Desk) -> dict[str, tuple[bytes, int]]:
    """Fill the store as a person does, and return it as it is once memd knows of it."""
    here.memory.mkdir(parents=True, exist_ok=True)
    for name, content in STORE.items():
        (here.memory / name).write_text(content, "utf-8")
    await here.call("memory.history")
    return files(here)


async def dreams(here: Desk) -> Any:
    """Dream with a model, and return how it ended."""
    return await here.call("dream", force=True, wait=True)


def files(here: Desk) -> dict[str, tuple[bytes, int]]:
    """Return every memory and the index with content and time."""
    results = [*here.memory.glob("*.md")]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in results}


def consolidated(here: Desk) -> float | None:
    """Return the time of the last dream as other programs read it."""
    path = here.memory / ".consolidate-lock"
    return os.stat(path).st_mtime if path.exists() else None


def scripted() -> tuple[list[Script], list[Path], Callable[[ReceivedMessage], Any]]:
    """Return a script whose behaviour and memory directory are set later."""
    wanted: list[Script] = []
    folder: list[Path] = []
    return wanted, folder, lambda request: wanted[0](folder[0], request)


async def test_a_model_that_merges_well_is_taken_at_its_work() -> None:
    """The dream commits as one change, its report tells, and one undo brings every byte back."""
    wanted, folder, script = scripted()
    async with desk(script) as here:
        folder.append(here.memory)
        before = await filled(here)
        wanted.append(merges)
        done = await dreams(here)
        assert (done["status"], done["proposal"]) == ("completed", None), done
        assert done["merged"] == [{"into": "deploy.md", "from": ["release.md"]}]
        assert "14:00" in (here.memory / "deploy.md").read_text("utf-8")
        assert not (here.memory / "release.md").exists()
        last = await here.call("dream.last")
        assert last["report"]["engine"] == "claude-sonnet-5-5"
        assert last["report"]["dollars"] > 0
        assert f"memctl undo {done['change']}" in last["markdown"]
        await here.call("memory.undo", change=done["change"])
        after = files(here)
    assert {name: after[name] for name in STORE} == {name: before[name] for name in STORE}


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (deletes, "rule.md"),
        (turns_round, "rule.md"),
        (lies, "release.md"),
    ],
)
async def test_harm_waits_for_a_person(behaviour: Script, words: str) -> None:
    """Nothing on the disk changes, and the review says what was wanted and why it was not done."""
    wanted, folder, script = scripted()
    async with desk(script) as here:
        folder.append(here.memory)
        before = await filled(here)
        wanted.append(behaviour)
        done = await dreams(here)
        assert {name: files(here)[name] for name in STORE} == {n: before[n] for n in STORE}
        assert (done["status"], done["change"]) == ("completed", None)
        (proposal,) = (await here.call("dream.review"))["proposals"]
        assert proposal["id"] == done["proposal"]
        assert any(words in problem for problem in proposal["problems"])
        assert any(file["diff"] for file in proposal["files"])
        reported = await here.call(
            "dream.reject", proposal=proposal["id"], reason="that is no help"
        )
        assert reported["state"] == "rejected"
        assert (await here.call("dream.review"))["proposals"] == []
        await dreams(here)
    assert "that is no help" in str(here.server.messages[-1].json["messages"])


async def test_a_model_that_loops_fails_with_its_reason() -> None:
    """The job is tried again and ends as failed; memories and the lock's time are as before."""
    wanted, folder, script = scripted()
    async with desk(script) as here:
        folder.append(here.memory)
        before = await filled(here)
        wanted.append(loops)
        job = (await here.call("dream", force=True))["job"]
        with anyio.fail_after(60):
            while (results := await here.call_plain("job.get", job=job))["ended"] is None:
                if results["state"] == "queued":  # it waits for its next try
                    here.clock.advance(10.0)
        assert (results["state"], results["parked"]) == ("failed", True)
        assert "loop" in results["error"]["message"]
        assert files(here) == before
        assert consolidated(here) is None
        last = await here.call("dream.last")
    assert last["state"] == "failed"
    assert "loop" in last["markdown"]


async def test_a_person_who_edits_meanwhile_wins() -> None:
    """The person's file stays as they saved it and is named; the rest of the dream is done."""
    wanted, folder, script = scripted()
    async with desk(script) as here:
        folder.append(here.memory)
        await filled(here)
        wanted.append(meanwhile)
        done = await dreams(here)
        theirs = STORE["deploy.md"].replace("Thursday", "Friday")
        assert (here.memory / "deploy.md").read_text("utf-8") == theirs
        assert done["status"] == "completed"
        assert [left["path"] for left in done["left"]] == ["deploy.md"]
        assert done["changed"] == ["board.md"]
        assert "Board OPS" in (here.memory / "board.md").read_text("utf-8")
