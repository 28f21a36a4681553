"""From what a plan wants to the exact set."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.errors import MemdError
from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import Draft, FileEdit, Pointer
from memd.files.directory import Directory, FileTooLargeError
from memd.store.door import (
    ConflictError,
    NameClashError,
    SecretRefusedError,
    TooLargeError,
    TooManyFilesError,
)
from memd.store.drafts import ImportedTexts, Prepared, StoreDraft, prepare_refused
from memd.store.drafts import prepare as prepare_with
from memd.store.tree import LiveTree
from tests.store.bench import topic

LEAK = b"token = 'ghp" + b"_16C7e42F292c6912E7710c838347Ae178B4a'\n"


BODY = "One.\n\nTwo.\n\nThree."
BASE = topic("m", BODY)
INDEX_BASE = b"- [A](a.md)\n"
BLOBS = {sha256(text): text for text in (BASE, INDEX_BASE)}


def prepare(draft: Draft, tree: LiveTree) -> Prepared:
    """Prepare with the few older texts of these tests."""
    return prepare_with(draft, tree, BLOBS.get)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[LiveTree]:
    """Open a tree with two memories, one of them without a line in the index."""
    (tmp_path / "a.md").write_bytes(topic("a"))
    (tmp_path / "b.md").write_bytes(topic("b"))
    os.chmod(tmp_path / "a.md", 0o640)
    (tmp_path / INDEX).write_bytes(b"# Mine\n\n- [A](a.md)\n- [Gone](gone.md)\n")
    with Directory(str(tmp_path)) as directory:
        yield LiveTree(directory)


def index_of(prepared: Prepared) -> str:
    """Return the new index of a set."""
    (step,) = [step for step in prepared.steps if step.path == INDEX]
    return prepared.bodies[step.after].decode() if step.after else ""


def test_an_exact_index_is_exact_only_where_the_old_one_was_true(tmp_path: Path) -> None:
    """Bytes of an older index come back as they were unless files came or went meanwhile."""
    (tmp_path / "a.md").write_bytes(topic("a"))
    (tmp_path / INDEX).write_bytes(b"- [A](a.md)\n")
    base = sha256(b"- [A](a.md)\n")
    draft = StoreDraft((FileEdit(INDEX, b"old bytes", base),), exact_index=True, restores=True)
    with Directory(str(tmp_path)) as directory:
        assert index_of(prepare(draft, LiveTree(directory))) == "old bytes"
        (tmp_path / "late.md").write_bytes(topic("late"))
        text = index_of(prepare(draft, LiveTree(directory)))
        assert "(a.md)" in text
        assert "(late.md)" in text


@pytest.mark.parametrize(
    ("path", "content"), [("a.md", LEAK), ("a.md", b"x" * (limits.MEMORY_BYTES + 1))]
)
def test_new_bodies_pass_the_door_and_old_ones_return(
    tree: LiveTree, path: str, content: bytes
) -> None:
    """What may not be written may still come back to where it was."""
    with pytest.raises((SecretRefusedError, TooLargeError)):
        prepare(Draft((FileEdit(path, content),)), tree)
    assert prepare(StoreDraft((FileEdit(path, content),), restores=True), tree).steps


@pytest.mark.parametrize("path", ["an odd n\u00e4me.md", "team/untyped.md", "deep/" * 8 + "a.md"])
def test_an_import_may_bring_what_a_person_had(tree: LiveTree, path: str) -> None:
    """Odd names, large and untyped texts come as they are, and nothing is marked twice."""
    for content in (b"\xff no head\n", b"x" * (limits.MEMORY_BYTES + 1)):
        made = prepare(StoreDraft((FileEdit(path, content, mtime_ns=7),), imports=True), tree)
        assert [made.bodies[step.after or ""] for step in made.steps if step.path == path] == [
            content
        ]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("../a.md", b"x"),
        ("a\\b.md", b"x"),
        ("logs/a.md", b"x"),
        ("new.md", LEAK),
        ("new.md", b"x" * (limits.READ_BYTES + 1)),
        ("A.md", b"x"),
    ],
)
def test_the_door_stays_for_imports(tree: LiveTree, path: str, content: bytes) -> None:
    """Names that lead out, clashes, secrets and files too large to be read come from no archive."""
    with pytest.raises(MemdError):
        prepare(StoreDraft((FileEdit(path, content),), imports=True), tree)


def test_a_text_that_passed_lets_no_other_pass(tree: LiveTree) -> None:
    """Neither other bytes, another name nor what a live text excused pass by an earlier check."""
    imported = ImportedTexts()
    imported.check("new.md", None, b"a memory\n")
    imported.check("new.md", LEAK, LEAK + b"more\n")
    for content in (LEAK, LEAK + b"more\n"):
        edit = FileEdit("new.md", content)
        with pytest.raises(SecretRefusedError):
            prepare(StoreDraft((edit,), imports=True, imported=imported), tree)
    edit = FileEdit("../new.md", b"a memory\n")
    with pytest.raises(MemdError):
        prepare(StoreDraft((edit,), imports=True, imported=imported), tree)


def test_one_import_has_a_bound(tree: LiveTree) -> None:
    """Ten thousand memories and the indexes are one change, and one more is none."""
    many = tuple(FileEdit(f"m{number}.md", None) for number in range(limits.IMPORT_FILES + 3))
    prepare(StoreDraft(many[:-1], imports=True), tree)
    with pytest.raises(TooManyFilesError):
        prepare(StoreDraft(many, imports=True), tree)
    with pytest.raises(NameClashError):
        prepare(StoreDraft(many[:1] * 2, imports=True), tree)


def test_an_import_brings_an_index_as_it_was(tmp_path: Path) -> None:
    """Into an empty directory an exact index comes with its time, those of teams too."""
    content = topic("a", "One.")
    edits = (
        FileEdit("a.md", content, ""),
        FileEdit("team/b.md", content, ""),
        FileEdit(INDEX, b"Mine\n- [Alpha](a.md)\n", "", 5),
        FileEdit("team/MEMORY.md", b"- [a](b.md) \xe2\x80\x94 about a\nOurs\n", "", 6),
    )
    with Directory(str(tmp_path)) as directory:
        made = prepare(StoreDraft(edits, imports=True, exact_index=True), LiveTree(directory))
    times = {step.path: step.after_mtime_ns for step in made.steps}
    assert index_of(made) == "Mine\n- [Alpha](a.md)\n"
    assert (times[INDEX], times.get("team/MEMORY.md")) == (5, 6)


def test_a_secret_does_not_enter_by_the_index(tree: LiveTree) -> None:
    """Lines of the index pass the same door."""
    with pytest.raises(SecretRefusedError):
        prepare(Draft(pointers={"b.md": Pointer("B", LEAK.decode().strip())}), tree)
    base = sha256(tree.index() or b"")
    huge = b"line of text\n" * (limits.READ_BYTES // 13 + 1)
    with pytest.raises(TooLargeError):
        prepare(Draft((FileEdit(INDEX, huge, base),)), tree)


@pytest.fixture
def changed(tmp_path: Path) -> Iterator[LiveTree]:
    """Open a tree in which somebody has changed a memory and the index since they were read."""
    folder = tmp_path / "changed"
    folder.mkdir()
    (folder / "m.md").write_bytes(BASE.replace(b"One", b"1"))
    os.utime(folder / "m.md", ns=(10**18, 10**18))
    for name in ("a", "n"):
        (folder / f"{name}.md").write_bytes(topic(name))
    (folder / INDEX).write_bytes(INDEX_BASE + b"- [M](m.md)\n- [N](n.md)\n")
    with Directory(str(folder)) as directory:
        yield LiveTree(directory)


@pytest.mark.parametrize(
    ("path", "content", "base"),
    [
        ("m.md", BASE.replace(b"One", b"Eins"), sha256(BASE)),
        ("m.md", None, sha256(BASE)),
        ("m.md", BASE.replace(b"Three", b"3"), "0" * 64),
        ("m.md", BASE, ""),
        ("gone.md", BASE.replace(b"Three", b"3"), sha256(BASE)),
    ],
)
def test_what_cannot_be_merged_is_a_conflict(
    changed: LiveTree, path: str, content: bytes | None, base: str
) -> None:
    """The same line, a deletion, a text nobody knows, a new file and a gone one are conflicts."""
    draft = Draft((FileEdit(path, content, base), FileEdit("new.md", topic("new"))))
    with pytest.raises(ConflictError) as caught:
        prepare(draft, changed)
    assert (caught.value.path, caught.value.expected) == (path, base)
    kept = prepare_refused(draft, changed)
    assert [step.path for step in kept.steps if step.after] == [path] * bool(content) + ["new.md"]
    assert content is None or content in kept.bodies.values()


@pytest.mark.parametrize(("path", "base"), [("m.md", sha256(BASE)), (INDEX, sha256(INDEX_BASE))])
def test_no_secret_is_kept_of_a_conflict(changed: LiveTree, path: str, base: str) -> None:
    """The texts of a refused set pass the door before the journal gets them."""
    with pytest.raises(SecretRefusedError):
        prepare_refused(Draft((FileEdit(path, LEAK, base),)), changed)


def test_in_a_directory_of_many_only_what_is_written_gets_a_line(tmp_path: Path) -> None:
    """Above a thousand memories the index gets the lines of the set, and loses what dangles."""
    for number in range(limits.INDEX_ENTRIES):
        (tmp_path / f"m{number}.md").touch()
    (tmp_path / INDEX).write_bytes(b"- [Mine](m7.md)\n- [Gone](gone.md)\n- [Bad](m8.md)\n")
    write = Draft(
        (FileEdit("new.md", topic("new")), FileEdit("m8.md", None)),
        {"m9.md": Pointer("Nine", "kept"), "nowhere.md": Pointer("No", "")},
    )
    with Directory(str(tmp_path)) as directory:
        lines = index_of(prepare(write, LiveTree(directory))).splitlines()
        assert len(lines) == limits.INDEX_ENTRIES
        (tmp_path / "one-more.md").touch()
        lines = index_of(prepare(write, LiveTree(directory))).splitlines()
    assert lines == [
        "- [Mine](m7.md)",
        "- [Nine](m9.md) — kept",
        "- [new](new.md) — about new",
    ]


def test_an_index_that_is_too_large_stays_as_it_is(tmp_path: Path) -> None:
    """A memory is written and deleted all the same, and the set says why the index is not in it."""
    (tmp_path / "a.md").write_bytes(topic("a"))
    (tmp_path / INDEX).write_bytes(b"- [A](a.md)\n" * (limits.READ_BYTES // 12 + 1))
    with Directory(str(tmp_path)) as directory:
        tree = LiveTree(directory)
        for edit in (FileEdit("b.md", topic("b")), FileEdit("a.md", None)):
            prepared = prepare(Draft((edit,)), tree)
            assert [step.path for step in prepared.steps] == [edit.path]
            assert "at most 4194304 are loaded; it is left as it is" in prepared.note
        assert prepare(Draft(), tree).note == ""
        with pytest.raises(FileTooLargeError):
            prepare(Draft((FileEdit(INDEX, b"", sha256(b"")),)), tree)


def test_an_index_grows_no_larger_than_can_be_read(tmp_path: Path) -> None:
    """A line that does not fit any more is left out and spoken of; what dangles still goes."""
    line = "- [A](a.md)\n"
    (tmp_path / "a.md").write_bytes(topic("a"))
    text = line.ljust(limits.READ_BYTES - 20, "x") + "\n- [G](g.md)\n"
    (tmp_path / INDEX).write_text(text)
    with Directory(str(tmp_path)) as directory:
        prepared = prepare(Draft((FileEdit("b.md", topic("b" * 20)),)), LiveTree(directory))
    assert [step.path for step in prepared.steps] == ["b.md", INDEX]
    assert index_of(prepared) == text.removesuffix("- [G](g.md)\n")
    assert "more than 4194304 bytes" in prepared.note


@pytest.mark.parametrize(
    ("base", "content"),
    [(sha256(INDEX_BASE), b"# Mine\n- [Ah](a.md)\n"), ("", b"# Mine\n- [Ah](a.md)\n")],
)
def test_an_index_is_merged_by_entries(changed: LiveTree, base: str, content: bytes) -> None:
    """Entries that others added meanwhile stay, also where the writer knew of no index."""
    prepared = prepare(Draft((FileEdit(INDEX, content, base),)), changed)
    assert prepared.merged == (INDEX,)
    text = index_of(prepared)
    assert "# Mine\n" in text
    assert "- [M](m.md)\n- [N](n.md)\n" in text
    assert ("[Ah](a.md)" in text) == bool(base)


def test_case_counts_among_new_files_too(tree: LiveTree) -> None:
    """A new name must differ in more than case from old names and from other new ones."""
    with pytest.raises(NameClashError):
        prepare(Draft((FileEdit("A.md", topic("a")),)), tree)
    with pytest.raises(NameClashError):
        prepare(Draft((FileEdit("N.md", topic("n")), FileEdit("n.md", topic("n")))), tree)
    prepare(Draft((FileEdit("A.md", topic("a")), FileEdit("a.md", None))), tree)
