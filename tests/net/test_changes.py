"""Changes of several writers: merged, refused with nothing lost, or seen and kept (1.7, 1.9)."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.net.kit import Project, until
from tests.net.wire import RpcError

BODY = "one\n\ntwo\n\nthree"


def lines(project: Project, path: str = "a.md") -> list[str]:
    """Return the lines of a memory's body that are not empty."""
    text = project.read(path)
    return [line for line in text.split("---\n", 2)[2].splitlines() if line]


def texts(project: Project) -> str:
    """Return what the files of the directory hold, and each change of the history as a diff."""
    with project.home.connect() as client:
        found = client.call("memory.history", cwd=project.cwd, limit=500)["changes"]
        ids = [client.ask("memory.diff", cwd=project.cwd, change=each["id"]) for each in found[:30]]
        diffs = [file["diff"] for each in ids for file in client.answer(each)["files"]]
    return "\n".join([*diffs, *project.tree().values()])


def kept(project: Project, words: str) -> bool:
    """Return whether words are in the directory or in a text that the history keeps."""
    return words in texts(project)


def refused(project: Project, method: str, **params: Any) -> RpcError:
    """Return the error of a call that must fail."""
    with pytest.raises(RpcError) as caught:
        project.call(method, **params)
    return caught.value


def test_a_write_says_what_became_of_it(project: Project) -> None:
    """A write is created, updated or unchanged, with the hash of the bytes on the disk."""
    states = [project.write("a.md", body)["status"] for body in ("x", "y", "y")]
    assert states == ["created", "updated", "unchanged"]
    read = project.call("memory.read", path="a.md")
    assert project.write("a.md", "y")["hash"] == read["hash"]


def test_two_edits_of_one_file_are_merged(project: Project) -> None:
    """A write on an older text keeps the lines that the newer text changed elsewhere."""
    first = project.write("a.md", BODY)
    project.write("a.md", "one\n\ntwo\n\nthree\n\nfour")
    merged = project.write("a.md", "ONE\n\ntwo\n\nthree", base_hash=first["hash"])
    assert merged["status"] == "merged"
    assert lines(project) == ["ONE", "two", "three", "four"]


def test_heads_are_merged_by_key(project: Project) -> None:
    """Two writers who change different keys of a head both have their way."""
    first = project.write("a.md", BODY)
    text = project.read("a.md")
    newer, older = text.replace("type: project", "type: user"), text.replace("about a", "f g")
    project.call("memory.write", path="a.md", content=newer)
    project.call("memory.write", path="a.md", content=older, base_hash=first["hash"])
    read = project.call("memory.read", path="a.md")
    assert (read["description"], read["type"]) == ("f g", "user")


def test_additions_never_collide(project: Project) -> None:
    """What several writers add at one place is all kept."""
    first = project.write("a.md", "start")
    for number in range(5):
        project.write("a.md", f"start\n\nadded {number}", base_hash=first["hash"])
    expected = ["start", *(f"added {number}" for number in range(5))]
    assert sorted(lines(project)) == sorted(expected)


def test_one_line_with_two_texts_is_a_conflict(project: Project) -> None:
    """The live text stays, the writer gets the error, the history keeps the refused text."""
    first = project.write("a.md", BODY)
    project.write("a.md", "uno\n\ntwo\n\nthree")
    error = refused(
        project, "memory.write", path="a.md", body="eins\n\ntwo\n\nthree", base_hash=first["hash"]
    )
    assert (error.code, error.kind) == (1002, "conflict")
    assert lines(project) == ["uno", "two", "three"]
    diff = project.call("memory.diff", change=error.data["change"])["files"][0]["diff"]
    assert "+eins\n" in diff


def test_an_edit_of_a_deleted_file_is_a_conflict(project: Project) -> None:
    """Who edits what was deleted since hears so; the file does not come back by itself."""
    first = project.write("a.md", BODY)
    project.call("memory.delete", path="a.md")
    with pytest.raises(RpcError) as caught:
        project.write("a.md", "new", base_hash=first["hash"])
    error = caught.value
    assert (error.code, error.kind) == (1002, "conflict")
    assert not (project.memory / "a.md").exists()
    assert "new" in project.call("memory.diff", change=error.data["change"])["files"][0]["diff"]


def test_a_deletion_of_an_edited_file_is_a_conflict(project: Project) -> None:
    """Who deletes what was edited since hears so, and the edit stays."""
    first = project.write("a.md", BODY)
    project.put("a.md", project.read("a.md") + "\nBy hand.\n")
    error = refused(project, "memory.delete", path="a.md", base_hash=first["hash"])
    assert error.code == 1002
    assert "By hand." in lines(project)


def test_a_merge_that_is_no_memory_is_a_conflict(project: Project) -> None:
    """A write onto a file whose head another program broke leaves the live text."""
    first = project.write("a.md", BODY)
    broken = "---\nname: [\n- : {\n---\nbroken\n"
    project.put("a.md", broken)
    refused(project, "memory.write", path="a.md", body="new", base_hash=first["hash"])
    assert project.read("a.md") == broken


def test_a_save_of_another_program_is_merged(project: Project) -> None:
    """A write on the text before an editor's save keeps what the editor changed elsewhere."""
    first = project.write("a.md", BODY)
    project.put("a.md", project.read("a.md").replace("three", "drei"))
    project.write("a.md", "ONE\n\ntwo\n\nthree", base_hash=first["hash"])
    assert lines(project) == ["ONE", "two", "drei"]


@pytest.mark.parametrize("how", ["in place", "by rename", "appended", "by a link"])
def test_a_save_of_another_program_is_in_the_history(project: Project, how: str) -> None:
    """However it was made, an overwritten save comes back by an undo of the write."""
    project.write("a.md", "first")
    file = project.memory / "a.md"
    saved = project.read("a.md") + "By hand.\n"
    if how == "in place":
        file.write_text(saved)
    elif how == "by rename":
        project.put(".a.swp", saved).rename(file)
    elif how == "appended":
        with file.open("a") as opened:
            opened.write("By hand.\n")
    else:
        other = project.path / "other.md"
        other.write_text(saved)
        file.unlink()
        file.hardlink_to(other)
    written = project.write("a.md", "second")
    assert "By hand." not in project.read("a.md")
    newest, external = project.call("memory.history", path="a.md")["changes"][:2]
    assert (newest["id"], external["actor"]) == (written["change"], "external")
    project.call("memory.undo", change=newest["id"])
    assert project.read("a.md") == saved


def test_the_other_name_of_a_file_keeps_its_text(project: Project) -> None:
    """A file with two hard links is replaced; the name outside the directory keeps its text."""
    project.write("a.md", "first")
    other = project.path / "other.md"
    other.hardlink_to(project.memory / "a.md")
    before = other.read_text()
    project.write("a.md", "second")
    assert (other.read_text(), lines(project)) == (before, ["second"])


@pytest.mark.full
@pytest.mark.parametrize("when", ["while the change waits", "after the change"])
def test_a_late_save_is_kept(project: Project, when: str) -> None:
    """What a program saves through a file that it opened before a change is not lost."""
    project.write("a.md", "first")
    with (project.memory / "a.md").open("r+") as opened:
        opened.read()
        with ThreadPoolExecutor() as pool:
            done = pool.submit(project.write, "a.md", "second")
            if when == "after the change":
                done.result()
            opened.write("Late words.\n")
            opened.flush()
    assert done.result()["change"]
    until(lambda: kept(project, "Late words."), "the late save is kept")
    assert kept(project, "second")


def test_the_next_request_sees_what_others_did(project: Project) -> None:
    """A file that another program made, changed or removed is so in the very next answer."""
    project.write("a.md", "first")
    project.put("b.md", "---\nname: b\ndescription: zebra crossing\ntype: user\n---\n\nx\n")
    found = project.call("prefetch", session_id=project.cwd, query="where is the zebra crossing?")
    assert [memory["name"] for memory in found["memories"]] == ["b"]
    project.put("b.md", "---\nname: b\ndescription: giraffe house\ntype: user\n---\n\nx\n")
    assert project.call("memory.search", query="giraffe house")["hits"][0]["path"] == "b.md"
    (project.memory / "b.md").unlink()
    assert [memory["path"] for memory in project.call("memory.list")["memories"]] == ["a.md"]
    assert project.call("memory.search", query="giraffe house")["hits"] == []


def test_equal_size_and_time_hide_no_change(project: Project) -> None:
    """An edit that leaves size and mtime as they were is seen, kept and not overwritten unseen."""
    project.write("a.md", "zebra word")
    file = project.memory / "a.md"
    before = file.stat()
    project.call("memory.search", query="zebra word")
    file.write_text(file.read_text().replace("zebra", "quagg"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert project.call("memory.search", query="quagg word")["hits"]
    assert project.call("memory.read", path="a.md")["content"].endswith("quagg word\n")
    project.write("a.md", "third")
    assert kept(project, "quagg word")


def test_two_clients_at_once_lose_nothing(project: Project) -> None:
    """Eight clients that write at once: each acknowledged memory is there, with one line."""
    start = threading.Barrier(8)

    def writer(who: int) -> list[str]:
        with project.home.connect() as client:
            start.wait()
            return [
                client.call(
                    "memory.write",
                    cwd=project.cwd,
                    path=f"w{who}n{number}.md",
                    name=f"w{who}n{number}",
                    description=f"note {number} of {who}",
                    type="project",
                    body="text",
                )["path"]
                for number in range(4)
            ]

    with ThreadPoolExecutor(8) as pool:
        acknowledged = {path for paths in pool.map(writer, range(8)) for path in paths}
    assert len(acknowledged) == 32
    index = project.read()
    assert [index.count(f"({path})") for path in sorted(acknowledged)] == [1] * 32
    assert set(project.tree()) == acknowledged | {"MEMORY.md"}


def test_clients_that_append_to_one_memory_at_once_lose_nothing(project: Project) -> None:
    """Each line that a client appends on what it had read is there once; no client is refused."""
    project.write("log.md", "Seen:")

    def writer(who: int) -> None:
        with project.home.connect() as client:
            for number in range(4):
                read = client.call("memory.read", cwd=project.cwd, path="log.md")
                text = read["content"] + f"- {who} saw {number}\n"
                given = {"content": text, "base_hash": read["hash"]}
                client.call("memory.write", cwd=project.cwd, path="log.md", **given)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(writer, range(6)))
    expected = sorted(f"- {who} saw {number}" for who in range(6) for number in range(4))
    assert sorted(lines(project, "log.md")) == sorted([*expected, "Seen:"])


def test_saves_that_race_writes_are_kept(project: Project) -> None:
    """While memd writes a memory another program saves it: each text is there or in the history."""
    project.write("a.md", "begin")
    file = project.memory / "a.md"
    saved: list[str] = []

    def person() -> None:
        for number in range(12):
            words = f"person {number}"
            text = f"---\nname: a\ndescription: d e\ntype: user\n---\n\n{words}\n"
            if number % 2:
                project.put(f".{number}.swp", text).rename(file)
            else:
                file.write_text(text)
            saved.append(words)

    thread = threading.Thread(target=person)
    thread.start()
    written = [project.write("a.md", f"memd {number}") for number in range(12)]
    thread.join()
    assert all(answer["change"] for answer in written)
    # A save over an earlier save that memd had no time to see is no loss of memd's.
    everything = texts(project)
    assert f"{saved[-1]}\n" in everything
    assert all(f"memd {number}\n" in everything for number in range(12))


def test_a_repeated_request_has_one_effect(project: Project) -> None:
    """A write with the request id of an earlier write returns its answer and does nothing."""
    first = project.write("a.md", "one", request_id="r-1")
    project.write("a.md", "two")
    assert project.write("a.md", "one", request_id="r-1") == first
    assert lines(project) == ["two"]


def test_two_projects_know_nothing_of_each_other(project: Project) -> None:
    """A write, a search, a history and a prompt of one project show nothing of another's."""
    other = project.home.project()
    project.write("a.md", "The zebra broker listens on port 9911.")
    other.write("b.md", "text")
    assert other.call("memory.search", query="zebra broker port")["hits"] == []
    found = other.call("prefetch", session_id=project.cwd, query="which port has the zebra broker?")
    assert found["memories"] == []
    assert {f["path"] for c in other.call("memory.history")["changes"] for f in c["files"]} == {
        "b.md",
        "MEMORY.md",
    }
    refused(other, "memory.read", path="a.md")
