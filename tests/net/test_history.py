"""The history of a memory directory, and what an undo brings back (1.10)."""

import json
import os
import random
import re
import time
import zlib
from contextlib import suppress
from typing import Any

import pytest

from tests.net.kit import Home, Project, until
from tests.net.wire import RpcError

LONG_AGO = 1_500_000_000_123_456_789


def changes(project: Project, **params: Any) -> list[dict[str, Any]]:
    """Return the changes of a project, newest first."""
    found: list[dict[str, Any]] = project.call("memory.history", **params)["changes"]
    return found


def story(project: Project) -> list[str]:
    """Write a.md, b.md and a.md anew, delete b.md; return the ids of the changes."""
    ids = [
        project.write(f"{name}.md", body, session_id=f"s-{body}")["change"] for name, body in STORY
    ]
    return [*ids, project.call("memory.delete", path="b.md")["change"]]


STORY = (("a", "one"), ("b", "b"), ("a", "two"))


def bodies(project: Project) -> dict[str, str]:
    """Return the last line of each memory."""
    return {p: t.splitlines()[-1] for p, t in project.tree().items() if p != "MEMORY.md"}


def test_a_change_says_who_did_what(project: Project) -> None:
    """Each change has id, time, actor, client, session, reason and files, newest first."""
    ids = story(project)
    found = changes(project)
    assert [change["id"] for change in found] == ids[::-1]
    actions = {file["path"]: file["action"] for change in found for file in change["files"]}
    assert actions == {"a.md": "created", "b.md": "created", "MEMORY.md": "created"}
    newest = found[0]
    assert {f["path"]: f["action"] for f in newest["files"]} == {
        "b.md": "deleted",
        "MEMORY.md": "updated",
    }
    assert (newest["actor"], newest["client"]) == ("client", "net")
    assert found[1]["session"] == "s-two"
    assert all(change["at"] and change["reason"] for change in found)


def test_the_history_is_filtered(project: Project) -> None:
    """Path, actor, session and client choose changes; limit and before choose a page."""
    ids = story(project)
    project.put("c.md", "by hand\n")

    def chosen(**params: Any) -> list[str]:
        return [change["id"] for change in changes(project, **params)]

    external = chosen(actor="external")
    assert len(external) == 1
    assert chosen(path="a.md") == [ids[2], ids[0]]
    assert chosen(session="s-b") == [ids[1]]
    assert chosen(client="net") == ids[::-1]
    assert chosen(client="another") == []
    assert chosen(limit=2) == [external[0], ids[3]]
    assert chosen(before=ids[2]) == [ids[1], ids[0]]


def test_changes_of_all_projects(project: Project) -> None:
    """With all_projects the changes of other projects are in the list as well."""
    other = project.home.project()
    mine, theirs = project.write("a.md", "x")["change"], other.write("b.md", "y")["change"]
    found = {change["id"] for change in changes(project, all_projects=True, limit=10)}
    assert {mine, theirs} <= found
    assert theirs not in {change["id"] for change in changes(project)}


def test_another_programs_edit_is_external(project: Project) -> None:
    """An edit, a new file and a removal by other programs are changes, with the text before."""
    project.write("a.md", "first words")
    project.write("b.md", "to be removed")
    project.put("a.md", project.read("a.md").replace("first words", "second words"))
    (project.memory / "b.md").unlink()
    project.put("c.md", "new by hand\n")
    expected = {"a.md": "updated", "b.md": "deleted", "c.md": "created"}

    def external() -> dict[str, str]:
        found = changes(project, actor="external")
        return {file["path"]: file["action"] for change in found for file in change["files"]}

    until(lambda: external() == expected, "all three are changes")
    found = changes(project, actor="external")
    diffs = [
        file["diff"]
        for change in found
        for file in project.call("memory.diff", change=change["id"])["files"]
    ]
    assert any("-first words\n+second words\n" in diff for diff in diffs)
    assert any("-to be removed\n" in diff for diff in diffs)


def test_damage_by_another_program_is_undone(project: Project) -> None:
    """An undo of an external change restores the bytes that were there before."""
    for name in ("a", "b"):
        project.write(f"{name}.md", f"text of {name}")
    before = project.tree()
    for name in ("a", "b"):
        project.put(f"{name}.md", b"\xff damaged")
    for change in changes(project, actor="external"):
        project.call("memory.undo", change=change["id"])
    assert project.tree() == before


@pytest.mark.parametrize("kind", ["edit", "deletion", "creation", "extraction"])
def test_an_undo_leaves_no_trace_in_the_directory(project: Project, kind: str) -> None:
    """Content, mtime and mode of every file but the index are as they were before the change."""
    for name in ("a", "b"):
        project.write(f"{name}.md", f"text of {name}")
        (project.memory / f"{name}.md").chmod(0o640)
        os.utime(project.memory / f"{name}.md", ns=(LONG_AGO, LONG_AGO))

    def state() -> list[Any]:
        files = [path for path in sorted(project.memory.glob("*.md")) if path.name != "MEMORY.md"]
        stats = [path.stat() for path in files]
        about = [(p.name, s.st_mtime_ns, s.st_mode) for p, s in zip(files, stats, strict=True)]
        return [about, project.tree()]

    before = state()
    if kind == "edit":
        change = project.write("a.md", "other", description="other words about it")["change"]
    elif kind == "deletion":
        change = project.call("memory.delete", path="a.md")["change"]
    elif kind == "creation":
        change = project.write("c.md", "new")["change"]
    else:
        said = "Remember: never push straight to the release branch."
        messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "Yes."}]
        change = project.call("extract", session_id="s", messages=messages, wait=True)["change"]
    assert state() != before
    undone = project.call("memory.undo", change=change)
    assert (undone["conflicts"], undone["merged"]) == ([], [])
    assert state() == before


def test_an_undo_merges_newer_edits(project: Project) -> None:
    """What was changed elsewhere in the file since stays when a change is undone."""
    project.write("a.md", "one\n\ntwo\n\nthree")
    change = project.write("a.md", "ONE\n\ntwo\n\nthree")["change"]
    project.write("a.md", "ONE\n\ntwo\n\nthree\n\nfour")
    undone = project.call("memory.undo", change=change)
    assert "a.md" in str(undone["merged"])
    assert project.read("a.md").split("---\n")[2].split() == ["one", "two", "three", "four"]


def test_an_undo_against_a_newer_edit_is_a_conflict(project: Project) -> None:
    """Where the same line was changed since, the live text stays and the undo says so."""
    project.write("a.md", "one")
    change = project.write("a.md", "two")["change"]
    project.write("a.md", "three")
    before = project.tree()
    try:
        assert project.call("memory.undo", change=change)["conflicts"]
    except RpcError as error:
        assert error.code == 1002  # noqa: PT017 - both are a conflict
    assert project.tree() == before


def test_an_undo_is_undone_by_its_id(project: Project) -> None:
    """Undoing an undo brings back what it took."""
    project.write("a.md", "one")
    change = project.write("a.md", "two")["change"]
    undo = project.call("memory.undo", change=change)["change"]
    assert bodies(project) == {"a.md": "one"}
    project.call("memory.undo", change=undo)
    assert bodies(project) == {"a.md": "two"}


def test_a_range_is_undone_as_one_change(project: Project) -> None:
    """Changes from one to another are taken back by one change, whose undo brings all back."""
    ids = story(project)
    undone = project.call("memory.undo", **{"from": ids[1], "to": ids[3]})
    assert bodies(project) == {"a.md": "one"}
    assert changes(project, limit=1)[0]["actor"] == "undo"
    project.call("memory.undo", change=undone["change"])
    assert bodies(project) == {"a.md": "two"}


def test_a_rehearsal_changes_nothing(project: Project) -> None:
    """With dry_run an undo says what it would do and does not do it."""
    ids = story(project)
    would = project.call("memory.undo", change=ids[3], dry_run=True)
    assert (would["change"], [file["path"] for file in would["files"]]) == (None, ["b.md"])
    assert (bodies(project), len(changes(project))) == ({"a.md": "two"}, 4)


def test_a_project_goes_back_to_a_time(own: Home) -> None:
    """as_of takes back what came after a time; a request id makes it once."""
    project = own.start(clock=True).project()
    ids = [project.write(f"{name}.md", body)["change"] for name, body in STORY[:2]]
    own.pass_time(days=1)
    when = time.time() + 43_200
    project.write("a.md", "two")
    project.call("memory.delete", path="b.md")
    done = project.call("memory.undo", as_of=when, request_id="r")
    assert bodies(project) == {"a.md": "one", "b.md": "b"}
    assert project.call("memory.undo", as_of=when, request_id="r") == done
    assert changes(project, until=when)[0]["id"] == ids[1]
    assert len(changes(project, since=when)) == 3


def test_a_memory_is_read_as_it_was(project: Project) -> None:
    """memory.read with a change gives the text of then; a deleted file has none."""
    ids = story(project)
    assert project.call("memory.read", path="a.md", at=ids[1])["content"].endswith("one\n")
    assert project.call("memory.read", path="b.md", at=ids[2])["content"].endswith("b\n")
    with pytest.raises(RpcError):
        project.call("memory.read", path="b.md", at=ids[3])


def test_versions_are_compared(project: Project) -> None:
    """memory.diff shows a change, a part of it, and a path between two changes."""
    ids = story(project)
    part = project.call("memory.diff", change=ids[2], path="a.md")["files"]
    assert [file["path"] for file in part] == ["a.md"]
    assert "-one\n" in part[0]["diff"]
    assert "+two\n" in part[0]["diff"]
    whole = project.call("memory.diff", path="b.md", **{"from": ids[1], "to": ids[3]})["files"]
    assert "-b\n" in whole[0]["diff"]


def test_a_memory_says_where_it_comes_from(project: Project) -> None:
    """memory.why names first and last change, all changes, and what was surfaced when."""
    ids = story(project)
    project.call("prefetch", session_id="seen", query="tell me about a, the two of it")
    why = project.call("memory.why", path="a.md")
    assert (why["exists"], why["changes"]) == (True, [ids[2], ids[0]])
    assert (why["first"]["session"], why["first"]["action"]) == ("s-one", "created")
    assert (why["last"]["change"], why["last"]["client"]) == (ids[2], "net")
    gone = project.call("memory.why", path="b.md")
    assert (gone["exists"], gone["last"]["action"]) == (False, "deleted")


WRONG = [
    ("memory.diff", {"change": "c999999"}),
    ("memory.diff", {"change": "x"}),
    ("memory.undo", {"change": "c999999"}),
    ("memory.undo", {"as_of": "never"}),
    ("memory.undo", {"change": "c1", "as_of": "2026-01-01"}),
    ("memory.read", {"path": "a.md", "at": "c"}),
    ("memory.read", {"path": "no.md"}),
    ("memory.why", {"path": "no.md"}),
    ("memory.history", {"since": "never"}),
]


@pytest.mark.parametrize(("method", "params"), WRONG)
def test_what_makes_no_sense_is_an_error(project: Project, method: str, params: Any) -> None:
    """A change, time or path that is none is an error, and nothing changes."""
    project.write("a.md", "text")
    before = project.tree()
    with pytest.raises(RpcError):
        project.call(method, **params)
    assert project.tree() == before


WORD = "quokka-marzipan-umbrella"
PLAN = "---\nname: plan\ndescription: a plan\nmetadata:\n  type: project\n---\n\n"


def traces(home: Home, word: str) -> list[str]:
    """Return the files of the state directory that hold a word, as it is or in a zlib stream."""
    found = []
    for path in (path for path in home.state.rglob("*") if path.is_file()):
        content = path.read_bytes()
        starts = re.finditer(b"\x78[\x01\x9c\xda]", content)
        parts = [content, *(unpacked(content[match.start() :]) for match in starts)]
        if any(word.encode() in part for part in parts):
            found.append(path.name)
    return found


def unpacked(stream: bytes) -> bytes:
    """Return what the beginning of a stream gives before it ends or breaks."""
    unpack, result = zlib.decompressobj(), b""
    with suppress(zlib.error):
        for at in range(0, min(len(stream), 4096), 64):
            result += unpack.decompress(stream[at : at + 64])
    return result


def test_a_purge_leaves_no_byte(own: Home) -> None:
    """After memory.purge by pattern no file of memd's holds the text; the hashes stay."""
    project = own.start().project()
    project.write("other.md", "text")
    project.put("plan.md", f"{PLAN}The word is {WORD}.\n")
    saved = changes(project)[0]["id"]
    project.put("plan.md", f"{PLAN}Nothing here.\n")
    project.call("memory.search", query="plan")
    project.call("prefetch", session_id="s", query=f"what is the plan of {WORD}?")
    changes(project)
    assert traces(own, WORD)
    would = project.call("memory.purge", pattern=WORD.upper(), dry_run=True)
    assert traces(own, WORD)
    done = project.call("memory.purge", pattern=WORD.upper())
    assert would["bodies"] == done["bodies"]
    assert all(len(body["hash"]) == 64 for body in done["bodies"])
    assert (done["live"], traces(own, WORD)) == ([], [])
    assert saved in {change["id"] for change in changes(project)}
    with pytest.raises(RpcError):
        project.call("memory.read", path="plan.md", at=saved)
    assert project.read("plan.md") == f"{PLAN}Nothing here.\n"
    assert project.call("memory.search", query="plan")["hits"]


def test_a_purge_names_live_files(project: Project) -> None:
    """A file that still has the text is named and stays; after its deletion a path goes whole."""
    project.write("plan.md", f"The word is {WORD}.")
    assert str(project.memory / "plan.md") in project.call("memory.purge", pattern=WORD)["live"]
    assert WORD in project.read("plan.md")
    project.call("memory.delete", path="plan.md")
    # A replaced file stays a moment for programs that may have it open.
    until(lambda: project.call("memory.purge", path="plan.md")["live"] == [])
    assert WORD not in json.dumps(
        [project.call("memory.diff", change=change["id"]) for change in changes(project)]
    )


@pytest.mark.parametrize("params", [{}, {"pattern": "a", "path": "a.md"}, {"path": "plam.md"}])
def test_a_purge_of_nothing_known_is_refused(project: Project, params: dict[str, str]) -> None:
    """What does not say exactly what to forget forgets nothing."""
    project.write("plan.md", "text")
    with pytest.raises(RpcError):
        project.call("memory.purge", **params)
    assert (
        "+text"
        in project.call("memory.diff", path="plan.md", change=changes(project)[0]["id"])["files"][
            0
        ]["diff"]
    )


@pytest.mark.full
def test_nothing_of_the_history_goes_by_age(own: Home) -> None:
    """However many years pass, every change is there."""
    project = own.start(clock=True).project()
    ids = [project.write("a.md", f"text {number}")["change"] for number in range(2)]
    for _ in range(20):
        own.pass_time(days=200)
        for _ in range(10):  # what is removed once a day has time to go
            assert [change["id"] for change in changes(project)] == ids[::-1]


def grown(own: Home) -> tuple[Project, str]:
    """Return a project whose history is far above its bound of 1 MiB, and the newest change."""
    own.configure("[journal]\nmebibytes = 1\n")
    project = own.start(clock=True).project()
    words = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "prstvz"]
    chance = random.Random(1)  # noqa: S311 - texts that do not compress well
    for number in range(120):
        lines = (" ".join(chance.choices(words, k=12)) for _ in range(1200))
        newest = project.write("a.md", f"text {number}\n" + "\n".join(lines))["change"]
    return project, newest


@pytest.mark.full
def test_the_history_stays_within_its_bound(own: Home) -> None:
    """With journal.mebibytes = 1 the oldest changes go; the newest stay and can be undone."""
    project, newest = grown(own)

    def fits() -> bool:
        own.pass_time(hours=1)
        return len(changes(project, limit=500)) < 100

    until(fits, "the oldest changes have gone")
    assert changes(project, limit=1)[0]["id"] == newest
    project.call("memory.undo", change=newest)
    assert "text 118\n" in project.read("a.md")


@pytest.mark.full
def test_the_state_file_shrinks_with_the_history(own: Home) -> None:
    """When texts went, the file is about as large as the bound."""
    project, _ = grown(own)
    for _ in range(100):
        own.pass_time(hours=1)
        changes(project, limit=1)
    assert sum(file.stat().st_size for file in own.state.glob("state.db*")) < 2 << 20
