"""Sources of other tools that are broken, hostile or very large."""

import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import check_name, clash
from memd.documents import document
from memd.documents.document import parse
from memd.portable import kinds
from memd.portable.errors import SourceDamagedError, SourceRefusedError
from memd.portable.values import MEMORIES, ImportReading, SourceKind
from tests.portable.sources import Files

KINDS = [kind for kind in SourceKind if kind is not SourceKind.MEMD]
# What readers look for, so that chance meets it.
NAMES = (
    *("MEMORY.md", "memory_summary.md", "a.md", "b/c.md", "raw_memories.md", "x.txt", "d.json"),
    *("memories.json", "projects.json", "conversations.json", "manifest.json", ".cursorrules"),
    *(".cursor/rules/a.mdc", ".claude/rules/a.md", "memory/MEMORY.md", "agent-memory/a/b.md"),
    *("projects/p/memory/x.md", "projects/p/memory/.x", "a\nb.mdc", "team/MEMORY.md"),
)
KEYS = (
    *("results", "memory", "metadata", "type", "categories", "next", "observations", "importable"),
    *("title", "facts", "concepts", "totalObservations", "sessions", "conversations_memory"),
    *("project_memories", "uuid", "name", "mapping", "current_node", "message", "author", "role"),
    *("content", "parts", "parent", "chat_messages", "sender", "text", "created_at", "project"),
)
WORDS = ("user", "decision", "discovery", "human", "text", "a", "2026-01-01", "9e99")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=20)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=20,
)
LINES = (
    *("---", "# Task Group: a", "## User preferences", "## Task 1", "scope: x", "- a", "  - b", ""),
    *("v1", "[2026-01-01] - a", "- [decision] a #b", "- [[x]]", "title: a", "type: user", "\t x"),
    *("permalink: a", "globs: [a,", "alwaysApply: true", "metadata:", "  origin: user", "```"),
)
TEXTS = st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=12).map("\n".join)
CONTENTS = (
    VALUES.map(lambda value: json.dumps(value).encode())
    | TEXTS.map(lambda text: text.encode("utf-8", "replace"))
    | st.binary(max_size=200)
)


def _read(kind: SourceKind, source: Files) -> ImportReading | None:
    """Return what is read of a source, ``None`` where it is refused."""
    try:
        return kinds.read(kind, source)
    except (SourceDamagedError, SourceRefusedError):
        return None


@given(st.dictionaries(st.sampled_from(NAMES), CONTENTS, max_size=5), st.sampled_from(KINDS))
def test_a_reader_refuses_or_reads(files: dict[str, bytes], kind: SourceKind) -> None:
    """Whatever a source holds, it is read or refused, twice alike, and no name is taken twice."""
    source = Files(files)
    kinds.kind_of(source)
    reading = _read(kind, source)
    assert reading == _read(kind, source)
    for project in reading.projects if reading else ():
        paths = [memory.path for memory in project.memories]
        assert len(paths) == len(set(paths))
        if kind is not SourceKind.CLAUDE_CODE:
            assert [path for path in map(check_name, paths) if clash([path], paths)] == []
            # Whatever a source says of its origin, the head says that an import brought it.
            heads = [parse(memory.content, memory.path) for memory in project.memories]
            assert {(head.damaged, head.origin) for head in heads} <= {(False, "import")}


def _json(entry: Callable[[int], object]) -> bytes:
    return json.dumps([entry(number) for number in range(MEMORIES + 1)]).encode()


def _lines(line: str) -> bytes:
    return "\n".join(line.format(number) for number in range(MEMORIES + 1)).encode()


def _files(name: str, text: str) -> dict[str, bytes]:
    numbers = range(MEMORIES + 1)
    return {name.format(number): text.format(number).encode() for number in numbers}


MANY: dict[SourceKind, Callable[[], dict[str, bytes]]] = {
    SourceKind.CLAUDE_CODE: lambda: _files("{}.md", "the loom has number {}"),
    SourceKind.BASIC_MEMORY: lambda: _files("{}.md", "---\ntitle: {0}\n---\n\nthe loom {0}"),
    SourceKind.CODEX: lambda: {"MEMORY.md": _lines("- the loom has number {}")},
    SourceKind.TEXT: lambda: {"a.txt": _lines("[2026-01-01] - the loom has number {}")},
    SourceKind.MEM0: lambda: {"a.json": _json(lambda n: {"memory": f"the loom has number {n}"})},
    SourceKind.CLAUDE_MEM: lambda: {
        "a.json": b'{"observations": %s}'
        % _json(lambda n: {"type": "decision", "title": f"the loom has number {n}"})
    },
    SourceKind.CLAUDE_AI: lambda: {
        "memories.json": json.dumps({"conversations_memory": _lines("loom {}\n").decode()}).encode()
    },
    SourceKind.CHATS: lambda: {
        "conversations.json": _json(
            lambda n: {"uuid": str(n), "chat_messages": [{"sender": "human", "text": "hello"}]}
        )
    },
}


@pytest.mark.parametrize("kind", MANY)
def test_one_import_brings_at_most_so_many(kind: SourceKind) -> None:
    """Of more entries than an import may bring the last is left out and says why."""
    reading = kinds.read(kind, Files(MANY[kind]()))
    memories = [memory for project in reading.projects for memory in project.memories]
    assert len(reading.talks) + len(memories) == MEMORIES
    assert [str(MEMORIES) in file.reason for file in reading.left_out] == [True]


def test_names_stay_unique_in_many() -> None:
    """Ten thousand texts with the same first words get names of their own."""
    words = "one two three four five six seven eight"
    lines = "\n".join(f"- {words} {n}" for n in range(MEMORIES))
    (project,) = kinds.read(SourceKind.TEXT, Files({"a.md": lines})).projects
    assert len({memory.path for memory in project.memories}) == MEMORIES


@pytest.mark.parametrize("secret", [f"ghp_{'aB3dE6gH9' * 4}", "hunter2"])
def test_no_name_is_made_of_a_credential(secret: str) -> None:
    """The name of a text with a credential, which is shown where it is refused, lacks it."""
    entries = json.dumps([{"memory": f"The password is {secret} for the mill."}])
    (project,) = kinds.read(SourceKind.MEM0, Files({"a.json": entries})).projects
    (memory,) = project.memories
    assert secret in memory.content.decode()
    assert document.slug(secret) not in memory.path
    assert memory.path.startswith("mem0_the-password-is-secret-")


LARGE = "x" * (limits.MEMORY_BYTES + 1)


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        (SourceKind.TEXT, "a.md", f"- {LARGE}"),
        (SourceKind.BASIC_MEMORY, "a.md", LARGE),
        (SourceKind.MEM0, "a.json", json.dumps([{"memory": f"one two three {LARGE}"}])),
        (SourceKind.CLAUDE_CODE, "a.md", "x" * (limits.READ_BYTES + 1)),
    ],
)
def test_what_is_too_large_for_a_memory_is_left_out(
    kind: SourceKind, name: str, content: str
) -> None:
    """A text of more bytes than a memory may have is left out with both numbers."""
    source = Files({name: content, "b.md": "- b", "b.json": "[]"})
    (left,) = [file for file in kinds.read(kind, source).left_out if file.name.startswith("a.")]
    assert "the limit is" in left.reason


REFUSED = {
    "no file of its kind": (SourceKind.MEM0, {"a.txt": b"x"}, SourceRefusedError),
    "no JSON": (SourceKind.MEM0, {"a.json": b"{"}, SourceDamagedError),
    "another value": (SourceKind.MEM0, {"a.json": b"7"}, SourceDamagedError),
    "another member": (SourceKind.MEM0, {"a.json": b'{"results": 7}'}, SourceDamagedError),
    "endless JSON": (SourceKind.MEM0, {"a.json": b"[" + b"1," * 5_000_000}, SourceDamagedError),
    "endless entries": (
        SourceKind.CLAUDE_MEM,
        {"a.json": b'{"observations": [' + b"{}," * 100_000 + b"{}]}"},
        SourceDamagedError,
    ),
    "deep JSON": (SourceKind.MEM0, {"a.json": b"[" * 100_000}, SourceDamagedError),
    "not importable": (
        SourceKind.CLAUDE_MEM,
        {"a.json": b'{"observations": [], "metadata": {"partial": true, "importable": false}}'},
        SourceRefusedError,
    ),
    "no rules": (SourceKind.CURSOR, {"a.md": b"x"}, SourceRefusedError),
    "no memory folder": (SourceKind.CLAUDE_CODE, {"a.json": b"x"}, SourceRefusedError),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_source_is_refused_with_a_reason(case: str) -> None:
    """A file of another shape is damage, and a source with nothing of its kind is refused."""
    kind, files, error = REFUSED[case]
    with pytest.raises(error):
        kinds.read(kind, Files(files))


def test_an_entry_of_endless_parts_is_left_out_alone() -> None:
    """An entry that would take long to decode is named, and the others are taken."""
    huge = b'{"memory": "a b c d e", "metadata": {"x": [' + b"1," * 500_000 + b"1]}}"
    content = b"[" + huge + b', {"memory": "she prefers short commit messages"}]'
    reading = kinds.read(SourceKind.MEM0, Files({"a.json": content}))
    assert [len(project.memories) for project in reading.projects] == [1]
    assert [each.name for each in reading.left_out] == ["a.json[0]"]


def test_what_a_source_says_of_itself_is_passed_on() -> None:
    """A page of several and a wrong total are named as problems; the entries are taken."""
    page = Files({"a.json": '{"results": [{"memory": "one two three four"}], "next": "p=2"}'})
    reading = kinds.read(SourceKind.MEM0, page)
    assert len(reading.projects[0].memories) == len(reading.problems) == 1
    export = Files({"a.json": '{"observations": [], "totalObservations": 3}'})
    assert "3 observations" in kinds.read(SourceKind.CLAUDE_MEM, export).problems[0]


def test_many_rules_make_a_bounded_diff() -> None:
    """What does not fit into a diff that a person can look at is left out."""
    numbers = count()
    rule = f"---\nalwaysApply: true\n---\n{'x' * 90_000}"
    source = Files({f"{next(numbers)}.mdc": rule for _ in range(30)})
    reading = kinds.read(SourceKind.CURSOR, source)
    assert len(reading.diff) < 1_300_000
    assert reading.left_out
