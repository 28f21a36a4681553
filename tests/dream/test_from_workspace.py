"""From what an agent left in its workspace to what the dream wants."""

from collections.abc import Mapping

from memd.agent.proposal import Proposed, RunProposal
from memd.core.names import INDEX
from memd.core.text import iso_time, sha256
from memd.core.values import FileEdit, Header, MemoryFile, MemoryType
from memd.documents import document
from memd.dream import from_workspace
from memd.dream.values import Merge, Wanted
from memd.files.errors import PathRefusedError

NOW = 1_772_450_000.0
NS = 1_000_000_000
THEN = "2026-01-02T03:04:05.000Z"
LINK = "it is a link"


def memory(body: str, modified: str = THEN) -> bytes:
    """Return a memory."""
    return document.new("n", "About n", MemoryType.PROJECT, body, session="s", modified=modified)


class _Tree:
    """A directory as a plan sees it; the memories are as old as their place in it."""

    def __init__(self, files: Mapping[str, bytes], links: tuple[str, ...] = ()) -> None:
        self._files = files
        self._links = links

    def _header(self, path: str) -> Header:
        age = list(self._files).index(path)
        damaged = path.startswith("damaged")
        return Header(path, path, "", None, age * NS, 1, damaged=damaged, inode=0)

    def headers(self) -> tuple[Header, ...]:
        """Return all but the index."""
        return tuple(self._header(path) for path in self._files if path != INDEX)

    def read(self, path: str) -> MemoryFile | None:
        """Return a file."""
        if path in self._links:
            raise PathRefusedError(path, LINK)
        content = self._files.get(path)
        if content is None:
            return None
        return MemoryFile(self._header(path), content, sha256(content), "")

    def index(self) -> bytes | None:
        """Return the index."""
        return self._files.get(INDEX)


def wanted(tree: _Tree, *files: Proposed) -> Wanted:
    """Return what some files come to."""
    return from_workspace.wanted_edits(RunProposal(files), tree, session="s9", at=NOW)


def edits(results: Wanted) -> dict[str, FileEdit]:
    """Return edits by path."""
    return {edit.path: edit for edit in results.edits}


A, B, C = memory("Ana owns it."), memory("Bo owns it."), memory("Cy owns it.")
BOTH = memory("Ana owns it. Bo owns it.")


def test_a_merge_is_a_claim_and_a_removal_has_its_reason() -> None:
    """Who says that it went into another claims a merge; every other word is a reason."""
    results = wanted(
        _Tree({"a.md": A, "b.md": B, "c.md": C}),
        Proposed("a.md", A, BOTH),
        Proposed("b.md", B, None, "merged into a.md"),
        Proposed("c.md", C, None, "over since May"),
    )
    assert results.merges == (Merge("a.md", "b.md"),)
    assert results.reasons == {"c.md": "over since May"}
    assert [edit.base for edit in results.edits] == [sha256(A), sha256(B), sha256(C)]
    assert [edit.content is None for edit in results.edits] == [False, True, True]
    assert results.left == ()


def test_what_somebody_removed_does_not_come_back_in_another() -> None:
    """A memory that was to take in one that changed meanwhile stays as it is, too."""
    results = wanted(
        _Tree({"a.md": A, "x.md": C}),
        Proposed("a.md", A, BOTH),
        Proposed("b.md", B, None, "merged into a.md"),
        Proposed("x.md", C, None, "merged into kept.md"),
    )
    assert [left.path for left in results.left] == ["a.md", "b.md"]
    assert results.merges == (Merge("kept.md", "x.md"),)


def test_a_memory_is_as_new_as_what_it_says() -> None:
    """New words make it new; the same words or others' words taken in do not."""
    tree = _Tree({"a.md": A, "b.md": B, "c.md": C})
    results = edits(
        wanted(
            tree,
            Proposed("a.md", A, memory("Dee owns it.")),
            Proposed("b.md", B, memory("**Bo** owns it.", modified="2099-01-01")),
            Proposed("new.md", None, memory("Eve owns it.", modified="2099-01-01")),
        )
    )
    assert results["a.md"].mtime_ns is None
    assert f"modified: {iso_time(NOW)}".encode() in (results["a.md"].content or b"")
    assert results["b.md"].mtime_ns == 1 * NS
    assert f"modified: {THEN}".encode() in (results["b.md"].content or b"")
    assert f"modified: {iso_time(NOW)}".encode() in (results["new.md"].content or b"")
    assert b"originSessionId: s9" in (results["new.md"].content or b"")
    merged = wanted(tree, Proposed("a.md", A, BOTH), Proposed("c.md", B, None, "merged into a.md"))
    assert merged.left != ()
    merged = wanted(tree, Proposed("a.md", A, BOTH), Proposed("b.md", B, None, "merged into a.md"))
    assert edits(merged)["a.md"].mtime_ns == 1 * NS


def test_a_forged_stamp_is_put_right() -> None:
    """Where only the time of a memory was written anew, nothing is left to do."""
    forged = memory("Ana owns it.", modified="2099-01-01")
    assert wanted(_Tree({"a.md": A}), Proposed("a.md", A, forged)).edits == ()
    bare = b"---\nname: n\ndescription: About n\ntype: project\n---\n\nAna owns it.\n"
    added = bare.replace(b"type: project\n", b"type: project\nmodified: 2099\n")
    (edit,) = wanted(_Tree({"a.md": bare}), Proposed("a.md", bare, added)).edits
    assert b"modified: 1970-01-01T00:00:00.000Z" in (edit.content or b"")
    tidied = bare.replace(b"owns it.", b"owns  it.")
    (edit,) = wanted(_Tree({"a.md": bare}), Proposed("a.md", bare, tidied)).edits
    assert edit.content == tidied
