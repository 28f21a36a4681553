"""memory.history, diff, undo, why and restore over the socket."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_a_refused_text_can_be_looked_at_and_restored(caller: Caller) -> None:
    """A conflict names the change under which the refused text is kept."""
    first = await caller.write()
    await caller.write(body="newer")
    error = await caller.refused(
        "memory.write", path="feedback_tests.md", body="mine", base_hash=first["hash"]
    )
    facts = error.data
    assert (error.code, facts["path"], facts["expected"]) == (
        1002,
        "feedback_tests.md",
        first["hash"],
    )
    diff = await caller.call("memory.diff", change=facts["change"])
    assert "-newer\n+mine\n" in diff["files"][0]["diff"]
    assert (await caller.refused("memory.undo", change=facts["change"])).code == 1001
    changes = (await caller.call("memory.history"))["changes"]
    assert facts["change"] not in [change["id"] for change in changes]


NOW = 1_772_539_200.0  # where the clock of these tests begins


async def story(caller: Caller) -> None:
    """Write a.md (c1), b.md a day later (c2), a.md anew (c3), and delete b.md (c4)."""
    for path, body in (("a.md", "one"), ("b.md", "b"), ("a.md", "two")):
        await caller.write(path=path, body=body, session_id=f"s-{body}")
        caller.clock.advance(86400)
    await caller.call("memory.delete", path="b.md")


async def bodies(caller: Caller) -> dict[str, str]:
    """Return the last line of every memory."""
    listed = await caller.call("memory.list")
    paths = sorted(memory["path"] for memory in listed["memories"])
    reads = [await caller.call("memory.read", path=path) for path in paths]
    return {read["path"]: read["content"].splitlines()[-1] for read in reads}


@pytest.mark.parametrize(
    ("params", "ids"),
    [
        ({"path": "a.md"}, "c3 c1"),
        ({"actor": "client", "limit": 2}, "c4 c3"),
        ({"actor": "dream"}, ""),
        ({"session": "s-two"}, "c3"),
        ({"client": "other"}, ""),
        ({"since": "2026-03-04T12:00:00Z", "until": NOW + 2 * 86400}, "c2"),
        ({"since": "2026-03-05"}, "c4 c3"),
        ({"all_projects": True, "before": "c3"}, "c2 c1"),
    ],
)
async def test_history_is_filtered(caller: Caller, params: dict[str, Any], ids: str) -> None:
    """Path, actor, session, client, time and page can be said, each by itself or together."""
    await story(caller)
    changes = (await caller.call("memory.history", **params))["changes"]
    assert " ".join(change["id"] for change in changes) == ids


async def test_history_of_all_projects_says_where(caller: Caller) -> None:
    """Changes of every project come in one list, each with its memory directory."""
    await caller.write()
    other = Caller(caller.client, caller.home, caller.clock, caller.home.project("other"))
    await other.write()
    everywhere = (await caller.call("memory.history", all_projects=True))["changes"]
    folders = [str((await where.folder()).resolve()) for where in (other, caller)]
    assert [change["directory"] for change in everywhere] == folders
    assert len((await other.call("memory.history"))["changes"]) == 1


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("memory.history", {"since": "soon"}, "since: 'soon' is no time"),
        ("memory.history", {"until": -1}, "until: '-1.0' is no time"),
        ("memory.history", {"limit": 0}, "limit: expected int"),
        ("memory.history", {"limit": 1001}, "limit: expected int"),
        ("memory.history", {"actor": "king"}, "'king'"),
        ("memory.diff", {"from": "c1"}, "give path with them, and no change"),
        ("memory.diff", {"change": "c1", "path": "a.md", "to": "c2"}, "and no change"),
        ("memory.diff", {"path": "a.md", "from": "x"}, "from: 'x' is no time"),
        ("memory.undo", {"change": "c1", "as_of": 5}, "at most one of"),
        ("memory.undo", {"change": "c1", "to": "c2"}, "at most one of"),
        ("memory.undo", {"as_of": "never"}, "as_of: 'never' is no time"),
        ("memory.undo", {"from": "c2", "to": "c1"}, "c1 is older than c2"),
        ("memory.read", {"path": "a.md", "at": "c"}, "at: 'c' is no time"),
    ],
)
async def test_what_makes_no_sense_is_told(
    caller: Caller, method: str, params: dict[str, Any], words: str
) -> None:
    """A wrong parameter is an invalid-params error that names it."""
    await story(caller)
    error = await caller.refused(method, **params)
    assert error.code == -32602
    assert words in str(error)


async def test_versions_are_read_and_compared(caller: Caller) -> None:
    """A file can be read as of a change or a time, and two of its versions compared."""
    await story(caller)
    old = await caller.call("memory.read", path="a.md", at="c2")
    assert old["content"].endswith("one\n")
    assert (await caller.call("memory.read", path="a.md", at=NOW + 5))["hash"] == old["hash"]
    assert (await caller.refused("memory.read", path="b.md", at="c4")).code == 1001
    diff = (await caller.call("memory.diff", path="a.md"))["files"]
    assert [("-one\n" in file["diff"], "+two\n" in file["diff"]) for file in diff] == [(True,) * 2]
    whole = await caller.call("memory.diff", path="b.md", **{"from": "c2", "to": "c4"})
    assert "-b\n" in whole["files"][0]["diff"]
    part = await caller.call("memory.diff", change="c3", path="a.md")
    assert [file["path"] for file in part["files"]] == ["a.md"]
    newest = (await caller.call("memory.diff"))["files"]
    assert newest == (await caller.call("memory.diff", change="c4"))["files"]


async def test_a_range_is_undone_as_one_change(caller: Caller) -> None:
    """Several changes are taken back by one, which one undo takes back in turn."""
    await story(caller)
    undone = await caller.call("memory.undo", **{"from": "c2", "to": "c4"})
    assert undone["files"] == [{"path": "a.md", "action": "updated"}]
    assert (undone["merged"], undone["conflicts"]) == ([], [])
    assert await bodies(caller) == {"a.md": "one"}
    (last,) = (await caller.call("memory.history", limit=1))["changes"]
    assert (last["actor"], last["reason"]) == ("undo", "undo of c2 to c4")
    again = await caller.call("memory.undo", change=undone["change"])
    assert again["conflicts"] == []
    assert await bodies(caller) == {"a.md": "two"}


async def test_a_project_goes_back_to_a_time(caller: Caller) -> None:
    """Everything after a time is taken back; a rehearsal says what would happen and does not."""
    await story(caller)
    when = NOW + 1.5 * 86400
    plan = await caller.call("memory.undo", as_of=when, dry_run=True)
    assert plan["change"] is None
    assert plan["files"] == [
        {"path": "a.md", "action": "updated"},
        {"path": "b.md", "action": "created"},
    ]
    assert await bodies(caller) == {"a.md": "two"}
    assert len((await caller.call("memory.history"))["changes"]) == 4
    done = await caller.call("memory.undo", as_of=when, request_id="r1")
    assert (done["files"], done["change"]) == (plan["files"], "c5")
    assert await bodies(caller) == {"a.md": "one", "b.md": "b"}
    assert await caller.call("memory.undo", as_of=when, request_id="r1") == done
    nothing = await caller.call("memory.undo", as_of=NOW + 9e6)
    nothing_done: dict[str, Any] = {
        "change": None,
        "undone": "",
        "files": [],
        "merged": [],
        "conflicts": [],
    }
    assert nothing == nothing_done


async def test_a_memory_says_where_it_comes_from(caller: Caller) -> None:
    """First and last writer, all changes, and the session that last saw it are told."""
    await story(caller)
    await caller.call("prefetch", session_id="seen", query="mock the database in tests")
    why = await caller.call("memory.why", path="a.md")
    assert (why["exists"], why["changes"]) == (True, ["c3", "c1"])
    first = why["first"]
    assert (first["session"], first["action"], first["at"]) == (
        "s-one", "created", "2026-03-03T12:00:00.000Z",
    )  # fmt: skip
    assert (why["last"]["change"], why["last"]["client"]) == ("c3", "test")
    assert why["surfaced"] == {"session": "seen", "at": "2026-03-06T12:00:00.000Z"}
    gone = await caller.call("memory.why", path="b.md")
    assert (gone["exists"], gone["last"]["action"], gone["surfaced"]) == (False, "deleted", None)
    assert (await caller.refused("memory.why", path="x.md")).code == 1001


async def test_a_memory_learnt_from_a_conversation_names_the_message(caller: Caller) -> None:
    """What extraction wrote is traced to its session and the last message that it had read."""
    said = "From now on, always run the integration tests against a real database."
    messages = [{"role": "user", "content": said, "uuid": "m1"}]
    done = await caller.call("extract", session_id="s9", messages=messages, wait=True)
    why = await caller.call("memory.why", path=done["saved"][0])
    assert (why["first"]["actor"], why["first"]["session"]) == ("extract", "s9")
    assert why["first"]["message"]


async def test_a_torn_journal_is_answered_over_the_socket(caller: Caller) -> None:
    """A client reads sentences, never a fault, and may go on writing."""
    for body in ("one", "two", "three"):
        await caller.write(path="a.md", body=body)
    with closing(sqlite3.connect(caller.home.places.database)) as state:
        state.execute("UPDATE changes SET at = 1e308 WHERE id = 1")
        state.execute("UPDATE changes SET reason = x'ff' WHERE id = 2")
        state.execute("UPDATE change_files SET path = '../outside.md' WHERE change = 2")
        state.execute("UPDATE blobs SET body = x'00'")
        state.commit()
    history = (await caller.call("memory.history"))["changes"]
    assert [change["id"] for change in history] == ["c3", "c2", "c1"]
    assert (history[1]["reason"], history[2]["at"][:4]) == ("", "9999")
    assert (await caller.call("memory.diff", change="c1"))["files"]
    assert (await caller.refused("memory.undo", change="c2")).code == 1006
    assert (await caller.refused("memory.undo", as_of=0)).code == 1006
    await caller.write(path="a.md", body="four")
    read = await caller.call("memory.read", path="a.md")
    assert read["content"].endswith("four\n")


@pytest.mark.parametrize("path", ["odd näme (1).md", "notes/a b.md"])
async def test_a_name_that_a_person_chose_can_be_deleted_and_restored(
    caller: Caller, path: str
) -> None:
    """What is listed can be deleted, looked at as it was, restored and taken back."""
    await caller.write(path="a.md", body="one")
    directory = (await caller.call("load_prompt"))["memory_dir"]
    file = Path(directory, path)
    file.parent.mkdir(exist_ok=True)
    file.write_text("by hand\n", encoding="utf-8")
    await caller.call("memory.delete", path=path)
    assert not file.exists()
    await caller.call("memory.restore", path=path)
    assert file.read_text(encoding="utf-8") == "by hand\n"
    change = (await caller.call("memory.why", path=path))["last"]["change"]
    assert (await caller.call("memory.read", path=path, at=change))["content"] == "by hand\n"
    for bad in ("../a.md", "..%2fa.md", ".odd.md", "x/MEMORY.md", "MEMORY.md"):
        assert (await caller.refused("memory.delete", path=bad)).kind == "name_refused"
        assert (await caller.refused("memory.restore", path=bad)).kind == "name_refused"
