"""memory.history, diff, undo, why and restore over the socket."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio


async def test_history_tells_who_changed_what(caller: Caller) -> None:
    """Changes come newest first with actor, client, reason and files."""
    await caller.write()
    await caller.write(body="newer")
    changes = (await caller.call("memory.history"))["changes"]
    assert [change["files"][0]["action"] for change in changes] == ["updated", "created"]
    assert {(change["actor"], change["client"]) for change in changes} == {("client", "test")}
    older = await caller.call("memory.history", before=changes[0]["id"], limit=5)
    assert [change["id"] for change in older["changes"]] == [changes[1]["id"]]
    assert (await caller.call("memory.history", path="other.md"))["changes"] == []


async def test_a_diff_shows_the_lines(caller: Caller) -> None:
    """A change's diff has the old and the new line of each file."""
    await caller.write()
    written = await caller.write(body="newer")
    diff = await caller.call("memory.diff", change=written["change"])
    text = "\n".join(part["diff"] for part in diff["files"])
    assert "-Never mock the database in integration tests." in text
    assert "+newer" in text


async def test_undo_restores_bytes_and_times(caller: Caller) -> None:
    """An undone change leaves file, mtime and index as they were."""
    first = await caller.write()
    before = await caller.call("memory.read", path="feedback_tests.md")
    caller.clock.advance(3 * 86400)
    second = await caller.write(body="newer")
    undone = await caller.call("memory.undo", change=second["change"])
    assert (undone["conflicts"], undone["files"][0]["action"]) == ([], "updated")
    after = await caller.call("memory.read", path="feedback_tests.md")
    assert (after["hash"], after["mtime"]) == (first["hash"], before["mtime"])


async def test_undo_never_goes_over_newer_work(caller: Caller) -> None:
    """A file that changed since is named as a conflict and stays."""
    first = await caller.write()
    await caller.write(body="newer")
    undone = await caller.call("memory.undo", change=first["change"])
    assert undone["conflicts"] == ["feedback_tests.md"]
    assert "newer" in (await caller.call("memory.read", path="feedback_tests.md"))["content"]


async def test_undo_takes_a_change_out_of_newer_work(caller: Caller) -> None:
    """Other lines that were written since stay, and the file is named as merged."""
    await caller.write(body="One.\n\nTwo.")
    second = await caller.write(body="1.\n\nTwo.")
    await caller.write(body="1.\n\nTwo.\n\nThree.")
    undone = await caller.call("memory.undo", change=second["change"])
    assert (undone["conflicts"], undone["merged"]) == ([], ["feedback_tests.md"])
    content = (await caller.call("memory.read", path="feedback_tests.md"))["content"]
    assert content.endswith("\n\nOne.\n\nTwo.\n\nThree.\n")


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


async def test_an_unknown_change_is_not_found(caller: Caller) -> None:
    """A change id that never was, or of another project, has an error of its own."""
    await caller.write()
    assert (await caller.refused("memory.undo", change="c999")).code == 1001
    assert (await caller.refused("memory.diff", change="nonsense")).code == 1001
    other = caller.home.project("other")
    assert (await caller.refused("memory.undo", cwd=other, change="c1")).code == 1001


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
        ("memory.history", {"limit": 0}, "$.limit"),
        ("memory.history", {"limit": 1001}, "$.limit"),
        ("memory.history", {"actor": "king"}, "'king'"),
        ("memory.diff", {"from": "c1"}, "give path with them, and no change"),
        ("memory.diff", {"change": "c1", "path": "a.md", "to": "c2"}, "and no change"),
        ("memory.diff", {"path": "a.md", "from": "x"}, "from: 'x' is no time"),
        ("memory.undo", {}, "exactly one of"),
        ("memory.undo", {"change": "c1", "as_of": 5}, "exactly one of"),
        ("memory.undo", {"change": "c1", "to": "c2"}, "exactly one of"),
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
    assert nothing == {"change": None, "files": [], "merged": [], "conflicts": []}


async def test_a_memory_comes_back_from_the_journal(caller: Caller) -> None:
    """A deleted memory and an older version are restored by name alone."""
    await story(caller)
    plan = await caller.call("memory.restore", path="b.md", dry_run=True)
    assert (plan["change"], plan["files"][0]["action"]) == (None, "created")
    back = await caller.call("memory.restore", path="b.md")
    assert back["files"] == plan["files"]
    await caller.call("memory.restore", path="a.md", change="c1")
    assert await bodies(caller) == {"a.md": "one", "b.md": "b"}
    (last,) = (await caller.call("memory.history", limit=1))["changes"]
    assert (last["actor"], last["reason"]) == ("undo", "a.md restored from c1")
    assert (await caller.refused("memory.restore", path="x.md")).code == 1001
    assert (await caller.refused("memory.restore", path="../x.md")).code == 1006


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


async def test_a_memory_that_memd_never_wrote_has_no_writer(caller: Caller) -> None:
    """A file that was there before memd says so by having no first change of memd's."""
    folder = await caller.folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.md").write_text("by hand\n")
    why = await caller.call("memory.why", path="mine.md")
    assert why["exists"]
    assert why["first"] is None or why["first"]["actor"] == "external"


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


async def test_what_others_did_is_history_like_the_rest(caller: Caller) -> None:
    """A person's save is told as external by all who ask, and a range takes it back as well."""
    await caller.write(path="a.md", body="one")
    before = await caller.call("memory.read", path="a.md")
    file = await caller.folder() / "a.md"
    file.write_text(before["content"].replace("one", "by hand"))
    why = await caller.call("memory.why", path="a.md")
    assert (why["last"]["actor"], why["changes"]) == ("external", ["c2", "c1"])
    assert "+by hand\n" in (await caller.call("memory.diff"))["files"][0]["diff"]
    caller.clock.advance(60)
    await caller.write(path="a.md", body="two")
    done = await caller.call("memory.undo", **{"from": "c2"})
    assert (done["conflicts"], done["merged"]) == ([], [])
    after = await caller.call("memory.read", path="a.md")
    assert (after["hash"], after["mtime"]) == (before["hash"], before["mtime"])
