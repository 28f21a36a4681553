"""Topic files: heads are read leniently and written strictly; no bytes hide a memory (1.5, 1.7)."""

import os
from itertools import pairwise
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import RpcError

WHOLE = "---\nname: a\ndescription: b c\nmetadata:\n  type: user\n---\n\nbody\n"


def listed(project: Project) -> dict[str, dict[str, Any]]:
    """Return what memory.list says of each memory, by path."""
    return {memory["path"]: memory for memory in project.call("memory.list")["memories"]}


HEADS = {  # a head, and the name, type and description that it gives
    "whole": (
        "name: a\ndescription: d e\nmetadata:\n  node_type: memory\n  type: user",
        ("a", "user", "d e"),
    ),
    "flat": ("name: a\ndescription: d\ntype: reference", ("a", "reference", "d")),
    "texts": ("name: no\ndescription: yes\ntype: user", ("no", "user", "yes")),
    "numbers": ("name: 2026-01-01\ndescription: 12\ntype: user", ("2026-01-01", "user", "12")),
    "marks": (
        "name: a\ndescription: use a DB: never # mocks [x]\ntype: user",
        ("a", "user", "use a DB: never # mocks [x]"),
    ),
    "bracket": ("name: [open\ndescription: d\ntype: user", ("[open", "user", "d")),
    "quoted": ("name: \"q: x\"\ndescription: 'it''s'\ntype: 'user'", ("q: x", "user", "it's")),
    "folded": ("name: a\ndescription: >\n  two\n  lines\ntype: user", ("a", "user", "two lines")),
    "no type": ("name: a\ndescription: d\ntype: opinion", ("a", None, "d")),
    "comment": ("# mine\nname: a\ndescription: d\ntype: user", ("a", "user", "d")),
}


@pytest.mark.parametrize("case", HEADS)
def test_heads_are_read_leniently(project: Project, case: str) -> None:
    """Flat heads count, an unknown type is no type, and values are texts, cut at no mark."""
    head, (name, kind, description) = HEADS[case]
    project.put("x.md", f"---\n{head}\n---\n\nbody\n")
    memory = listed(project)["x.md"]
    assert (memory["name"], memory["type"], memory["description"]) == (name, kind, description)
    assert not memory["damaged"]


BYTES = {  # a file's bytes, and its name
    "no head": (b"Just a giraffe.\n", "x"),
    "empty": (b"", "x"),
    "mark and CRLF": (b"\xef\xbb\xbf---\r\nname: a\r\ndescription: d\r\n---\r\nx\r\n", "a"),
    "no UTF-8": (b"---\nname: caf\xe9\n---\n\xff\xfe\n", "caf\ufffd"),
    "NUL": (b"body \0 with NUL\n", "x"),
}


@pytest.mark.parametrize("case", BYTES)
def test_files_of_other_programs_are_memories(project: Project, case: str) -> None:
    """Without a head the file's name is the name; marks, CRLF and other bytes are read."""
    project.put("x.md", BYTES[case][0])
    memory = listed(project)["x.md"]
    assert (memory["name"], memory["damaged"]) == (BYTES[case][1], False)
    assert project.call("memory.read", path="x.md")["content"] is not None


DAMAGED = {
    "no YAML": "---\nname: [\n- : {\n---\nThe zebra migration notes.\n",
    "a list": "---\n- a\n- b\n---\nThe zebra migration notes.\n",
    "never closed": "---\nname: x\nThe zebra migration notes.\n",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_head_that_does_not_parse_is_damaged(project: Project, case: str) -> None:
    """A damaged memory is listed, readable and found, and no byte of it changes by that."""
    file = project.put("x.md", DAMAGED[case])
    assert listed(project)["x.md"]["damaged"]
    read = project.call("memory.read", path="x.md")
    assert (read["content"], read["damaged"]) == (DAMAGED[case], True)
    found = project.call(
        "prefetch", session_id=project.cwd, query="what about the zebra migration?"
    )
    assert [memory["path"] for memory in found["memories"]] == [str(file)]
    assert file.read_text() == DAMAGED[case]


HOSTILE = {
    "aliases": "a: &a [x]\n"
    + "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in pairwise("abcdefghi")),
    "anchor": "name: &n x\ndescription: *n\n",
    "merge": "x: &b {type: user}\n<<: *b\n",
    "tag": "name: !!python/object/apply:os.system ['touch owned']\n",
    "deep": f"x:\n{''.join(' ' * n + 'y:' + chr(10) for n in range(1, 28))}",
    "brackets": "x: " + "[" * 12_000 + "\n",
    "wide": "x: [" + "1," * 600 + "]\n",
    "long": "x: " + "y" * 17_000 + "\n",
    "many lines": "".join(f"k{n}: v\n" for n in range(2000)),
}


def test_no_bytes_end_a_scan(project: Project) -> None:
    """Hostile heads are listed and readable, and hide no memory beside them."""
    for name, head in HOSTILE.items():
        project.put(f"{name.replace(' ', '-')}.md", f"---\n{head}---\n\nbody\n")
    for number in range(0, 256, 16):
        project.put(f"bytes{number}.md", b"---\n" + bytes(range(number, number + 16)) * 40)
    project.put("good.md", WHOLE)
    found = listed(project)
    assert len(found) == len(HOSTILE) + 16 + 1
    assert (found["good.md"]["name"], found["good.md"]["damaged"]) == ("a", False)
    for path in found:
        project.call("memory.read", path=path)
    assert not list(project.home.path.rglob("owned"))


def test_what_is_no_memory_is_not_listed(project: Project) -> None:
    """Index, logs, hidden files, links, folders, FIFOs and other files are no memories."""
    project.put("good.md", WHOLE)
    project.put("MEMORY.md", "- [a](good.md) - b\n")
    project.put(".hidden.md", WHOLE)
    project.put("logs/2026/11/2026-11-01.md", "- a line\n")
    project.put("notes.txt", "text")
    (project.memory / "folder.md").mkdir()
    (project.memory / "link.md").symlink_to("/etc/passwd")
    os.mkfifo(project.memory / "fifo.md")
    assert list(listed(project)) == ["good.md"]
    for path in ("link.md", "fifo.md"):
        with pytest.raises(RpcError, match="path_refused"):
            project.call("memory.read", path=path)


def test_a_link_to_a_folder_is_not_followed(project: Project) -> None:
    """Nothing below a linked folder is listed, read, written or deleted."""
    outside = project.path / "outside"
    outside.mkdir()
    (outside / "a.md").write_text(WHOLE)
    project.put("good.md", WHOLE)
    (project.memory / "area").symlink_to(outside)
    assert list(listed(project)) == ["good.md"]
    for method in ("memory.read", "memory.delete"):
        with pytest.raises(RpcError):
            project.call(method, path="area/a.md")
    with pytest.raises(RpcError):
        project.write("area/b.md", "text")
    assert [path.name for path in outside.iterdir()] == ["a.md"]
    assert (outside / "a.md").read_text() == WHOLE


def test_a_file_above_4_mib_is_listed_only(project: Project) -> None:
    """Such a file is never loaded or changed, and stays as it is."""
    body = b"---\nname: big\ndescription: d\n---\n" + b"x" * (5 << 20)
    file = project.put("big.md", body)
    assert listed(project)["big.md"]["size"] == len(body)
    for method, more in (
        ("memory.read", {}),
        ("memory.delete", {}),
        ("memory.write", {"body": "x"}),
    ):
        with pytest.raises(RpcError) as refused:
            project.call(method, path="big.md", **more)
        assert refused.value.code == 1007
    assert file.stat().st_size == len(body)


def test_headers_come_from_the_first_30_lines(project: Project) -> None:
    """What stands in a head beyond line 30 is not read; the file is listed nevertheless."""
    keys = "".join(f"k{n}: v\n" for n in range(31))
    project.put("late.md", f"---\n{keys}name: late\ndescription: beyond\ntype: user\n---\nbody\n")
    found = listed(project)["late.md"]
    assert (found["name"], found["description"], found["type"]) == ("late", "", None)


INVALID: dict[str, dict[str, Any]] = {
    "unknown type": {"type": "opinion"},
    "empty type": {"type": ""},
    "no type": {"type": None},
    "no description": {"description": ""},
    "too large": {"body": "x" * 65_537},
}


@pytest.mark.parametrize("case", INVALID)
def test_writing_is_strict(project: Project, case: str) -> None:
    """A memory has name, description, one of four types and at most 64 KiB, or is not written."""
    with pytest.raises(RpcError):
        project.write("bad.md", **{"body": "text", **INVALID[case]})
    assert not project.memory.exists() or project.tree() == {}


CONTENTS = {
    "no head": "just text\n",
    "no type": "---\nname: n\ndescription: d\n---\n\nx\n",
    "31 lines": "---\n" + "k: v\n" * 27 + WHOLE.removeprefix("---\n"),
    "one value twice": "---\nname: a\nname: b\ndescription: d\ntype: user\n---\n\nx\n",
}


@pytest.mark.parametrize("case", list(CONTENTS)[:3])
def test_a_whole_file_is_checked_as_well(project: Project, case: str) -> None:
    """Content without a complete head of at most 30 lines is refused."""
    with pytest.raises(RpcError):
        project.call("memory.write", path="bad.md", content=CONTENTS[case])
    assert not (project.memory / "bad.md").exists()


def test_what_is_written_is_read(project: Project) -> None:
    """Marks in values survive; the head has the form of Claude Code's, with origin and session."""
    given = {"name": "db-real", "description": "[x] 'no' \"mock\": &a *b !c # d", "type": "user"}
    project.call("memory.write", path="a.md", body="Body.", session_id="s-1", **given)
    read = project.call("memory.read", path="a.md")
    assert {key: read[key] for key in given} == given
    lines = read["content"].splitlines()
    assert lines[0] == "---"
    assert {"metadata:", "  node_type: memory", "  type: user", "  origin: user"} <= set(lines)
    assert "  originSessionId: s-1" in lines
    assert any(line.startswith("  modified: 20") for line in lines)
    assert read["content"].endswith("---\n\nBody.\n")


def test_unknown_keys_and_their_order_stay(project: Project) -> None:
    """A write of a body changes the lines of memd's only; comments and own keys stay."""
    head = (
        "zeta: 1\nname: keys\n# a comment\nalpha: [b, a]\ndescription: d e\nmetadata:\n  own: 7\n"
    )
    project.put("keys.md", f"---\n{head}  type: user\n---\n\nbody\n")
    project.call("memory.write", path="keys.md", body="new")
    text = project.read("keys.md")
    assert text.startswith(f"---\n{head}  type: user\n")
    assert text.endswith("---\n\nnew\n")


def test_nothing_is_rewritten_without_need(project: Project) -> None:
    """The same write again is unchanged and touches no file; reads touch none either."""
    project.write("a.md", "body")
    before = {path: path.stat().st_mtime_ns for path in project.memory.glob("*.md")}
    assert project.write("a.md", "body")["status"] == "unchanged"
    for method, more in (
        ("memory.list", {}),
        ("memory.search", {"query": "body"}),
        ("load_prompt", {}),
        ("prefetch", {"session_id": project.cwd, "query": "about the body"}),
        ("memory.history", {}),
    ):
        project.call(method, **more)
    assert {path: path.stat().st_mtime_ns for path in project.memory.glob("*.md")} == before


def test_a_memory_says_when_it_is_needed(project: Project) -> None:
    """The member when of memory.write is a line of the head."""
    project.write("a.md", "body", when="writing tests that touch storage")
    assert "  when: writing tests that touch storage\n" in project.read("a.md")


NAMES = (
    "", "x", "x.txt", "MEMORY.md", "area/MEMORY.md", ".x.md", "-x.md", "..md", "/abs.md",
    "../x.md", "a/../b.md", "./b.md", "a//b.md", "a/b/c/d/e.md", "a\\b.md", "C:x.md", "con.md",
    "NUL.md", "a/aux.md", "x" * 101 + ".md", "/".join(["y" * 90] * 3) + ".md", "a%2f..%2fb.md",
    "%2e%2e%2fx.md", "%252e%252e%252fx.md",
    "a\0.md", "a\n.md", "a\x1b.md", "\uff0e\uff0e\uff0fx.md",
    "a\u2215b.md", "caf\u00e9.md", "a b.md", "\u202ea.md", "logs/2026/11/2026-11-02.md",
)  # fmt: skip


@pytest.mark.parametrize("path", NAMES)
def test_names_from_outside_are_refused(project: Project, path: str) -> None:
    """No name leads out of the directory, hides, escapes or exists on one system only."""
    with pytest.raises(RpcError):
        project.write(path, "text")
    assert not project.memory.exists() or project.tree() == {}


@pytest.mark.parametrize("path", ["a.md", "a/b/c/d.md", "A-1_b.c.md", "x" * 97 + ".md"])
def test_names_that_may_be(project: Project, path: str) -> None:
    """Letters, digits, dots, dashes and underscores in up to four components are a name."""
    assert project.write(path, "text")["status"] == "created"


def test_names_are_unique_without_regard_to_case(project: Project) -> None:
    """A name that differs from a memory's only in case is refused, and the memory stays."""
    project.write("Port.md", "text")
    with pytest.raises(RpcError) as refused:
        project.write("port.md", "other")
    assert refused.value.code == 1006
    assert set(project.tree()) == {"Port.md", "MEMORY.md"}


@pytest.mark.parametrize("path", ["odd n\u00e4me (1).md", "notes/a b.md"])
def test_names_that_people_chose_stay_readable(project: Project, path: str) -> None:
    """A person's file with another name is listed, read, deleted and taken back."""
    project.write("a.md", "text")
    file = project.put(path, "by hand\n")
    assert path in listed(project)
    assert project.call("memory.read", path=path)["content"] == "by hand\n"
    gone = project.call("memory.delete", path=path)["change"]
    assert not file.exists()
    project.call("memory.undo", change=gone)
    assert file.read_text() == "by hand\n"


@pytest.mark.full
def test_a_model_that_dreams_rewrites_no_damaged_file(own: Home) -> None:
    """A dream without a model leaves the bytes and the time of a damaged memory."""
    project = own.start().project()
    for name in ("a", "b"):
        project.write(f"{name}.md", "Never mock the database.", description="never mock databases")
    file = project.put("broken.md", DAMAGED["no YAML"], days_old=3)
    before = file.stat().st_mtime_ns
    project.call("dream", force=True, wait=True)
    assert (file.read_text(), file.stat().st_mtime_ns) == (DAMAGED["no YAML"], before)
