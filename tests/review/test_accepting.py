"""Which edits are meant, and what accepting them makes of the live files."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import FileEdit, Header, MemoryFile, ProposalDecided
from memd.files.directory import FileTooLargeError
from memd.review.accepting import (
    Acceptance,
    LeftFile,
    NotTakenInError,
    PathNotProposedError,
    ProposalDecidedError,
    accept,
    open_edits,
)
from memd.state.proposals import Proposal
from memd.state.proposed import ProposedEdit
from memd.store.tree import StoredFile, memory_file


class Files:
    """A memory directory as a plan sees it, from a mapping; what is ``None`` cannot be read."""

    def __init__(self, files: Mapping[str, bytes | None]) -> None:
        self._files = dict(files)

    def headers(self) -> tuple[Header, ...]:
        """Nobody asks for these."""
        return ()

    def read(self, path: str) -> MemoryFile | None:
        """Return a file. Raises FileTooLargeError."""
        content = self._files.get(path, b"")
        if content is None:
            raise FileTooLargeError(path, 5, 4)
        if path not in self._files:
            return None
        return memory_file(path, StoredFile(content, sha256(content), (0, 0, 0), 0, 0o600))

    def index(self) -> bytes | None:
        """Return the index."""
        return self._files.get(INDEX)


def edit(
    path: str, content: bytes | None, before: bytes | None = None, into: str = ""
) -> ProposedEdit:
    """Return an edit of a text."""
    base = "" if before is None else sha256(before)
    return ProposedEdit(path, content, base, before, merged_into=into)


def settled(
    files: Mapping[str, bytes | None], *edits: ProposedEdit, others: tuple[ProposedEdit, ...] = ()
) -> Acceptance:
    """Accept edits, without being strict."""
    return accept((*edits, *others), edits, Files(files), strict=False)


A, B = edit("a.md", b"new"), edit("b.md", None, b"old")


def proposal(*edits: ProposedEdit) -> Proposal:
    """Return an open proposal."""
    return Proposal("p1", "/m", 1.0, edits=edits)


def test_edits_are_chosen_by_path() -> None:
    """Without a path all open ones are meant; an unknown and a decided one are errors."""
    done = replace(B, state="accepted")
    assert open_edits(proposal(A, B), ()) == (A, B)
    assert open_edits(proposal(A, B), ["b.md"]) == (B,)
    assert open_edits(proposal(A, done), ()) == (A,)
    with pytest.raises(PathNotProposedError, match=r"p1 has no file c\.md"):
        open_edits(proposal(A, B), ["c.md"])
    with pytest.raises(ProposalDecidedError, match=r"b\.md of proposal p1 was accepted before"):
        open_edits(proposal(A, done), ["a.md", "b.md"])
    with pytest.raises(ProposalDecidedError, match="p1 was decided before"):
        open_edits(replace(proposal(A), state="partly"), ())


def test_what_nobody_touched_becomes_what_was_proposed() -> None:
    """Files are created, changed and removed against what the dream had read."""
    change = replace(edit("c.md", b"2", b"1"), mtime_ns=7)
    made = settled({"b.md": b"old", "c.md": b"1"}, A, B, change)
    assert made.edits == (
        FileEdit("a.md", b"new", ""),
        FileEdit("b.md", None, sha256(b"old")),
        FileEdit("c.md", b"2", sha256(b"1"), 7),
    )
    assert made.accepted == ("a.md", "b.md", "c.md")
    assert made.draft("p1").effects == (
        ProposalDecided("p1", "accepted", '["a.md", "b.md", "c.md"]'),
    )


def test_what_is_so_already_is_accepted_without_an_edit() -> None:
    """A text that stands there and a file that is gone need nothing."""
    made = settled({"a.md": b"new"}, A, B)
    assert (made.edits, made.accepted) == ((), ("a.md", "b.md"))


BASE = b"one\n\ntwo\n\nthree\n"


def test_newer_work_is_merged_or_left() -> None:
    """Where both can stand both do; else the file stays, with why, and the rest goes on."""
    ours = BASE.replace(b"three", b"3")
    made = settled({"a.md": BASE.replace(b"one", b"1")}, edit("a.md", ours, BASE))
    assert made.edits[0].content == b"1\n\ntwo\n\n3\n"
    assert (made.accepted, made.merged) == (("a.md",), ("a.md",))
    assert made.draft("p1").merged == ("a.md",)
    left = {
        "changed": settled({"a.md": b"mine"}, edit("a.md", b"ours", b"base")),
        "gone": settled({}, edit("a.md", b"ours", b"base")),
        "taken": settled({"a.md": b"mine"}, A),
        "removed": settled({"b.md": b"mine"}, B),
        "unknown": settled({"a.md": b"x"}, replace(edit("a.md", b"o", b"b"), before=None)),
    }
    for made in left.values():
        assert (made.edits, made.accepted, len(made.left)) == ((), (), 1)
        assert made.draft("p1").effects == ()
    assert "removed since" in left["gone"].left[0].reason
    assert "of this name" in left["taken"].left[0].reason


def test_what_newer_work_has_already_needs_no_edit() -> None:
    """A merge that comes to the live text is accepted as it stands."""
    ours = BASE.replace(b"three", b"3")
    made = settled({"a.md": ours.replace(b"one", b"1")}, edit("a.md", ours, BASE))
    assert (made.edits, made.accepted) == ((), ("a.md",))


def test_the_index_is_merged_by_its_entries() -> None:
    """Lines that others added stay, also where the dream knew of no index."""
    live, ours = b"- [A](a.md)\n- [B](b.md)\n", b"- [A](a.md)\n- [C](c.md)\n"
    for before in (b"- [A](a.md)\n", None):
        (made,) = settled({INDEX: live}, edit(INDEX, ours, before)).edits
        lines = (made.content or b"").splitlines()
        assert sorted(lines) == [b"- [A](a.md)", b"- [B](b.md)", b"- [C](c.md)"]


@pytest.mark.parametrize(
    "path", ["../a.md", "/etc/passwd", "a.md\n", ".hidden.md", "logs/a.md", "a", "ä.md", "big.md"]
)
def test_a_hostile_name_is_left(path: str) -> None:
    """A name that no memory may have, or a file that cannot be read, is left; the rest goes on."""
    made = settled({"big.md": None}, replace(A, path=path), A)
    assert [item.path for item in made.left] == [path]
    assert made.accepted == ("a.md",)
    assert settled({INDEX: b"x"}, edit(INDEX, None, b"x")).accepted == ()


GOES = edit("b.md", None, b"We ship on day 2.\n", "a.md")
TAKES = edit("a.md", b"Ship: we, on day 2.", b"Nothing.")
LIVE = {"a.md": b"Nothing.", "b.md": b"We ship on day 2.\n"}


def test_a_memory_goes_only_where_it_is_said() -> None:
    """Without the text that was to say it, a removal is refused by name, or left."""
    assert settled(LIVE, GOES, TAKES).accepted == ("b.md", "a.md")
    with pytest.raises(NotTakenInError, match=r"b\.md was to go into a\.md"):
        accept((GOES, TAKES), (GOES,), Files(LIVE), strict=True)
    (left,) = settled(LIVE, GOES, others=(TAKES,)).left
    assert "does not say" in left.reason
    assert settled(LIVE | {"a.md": TAKES.content}, GOES, others=(TAKES,)).left == ()
    assert settled(LIVE | {"a.md": b"On day 2 we ship, or 3."}, GOES).left == ()
    for unusable in ({"b.md": LIVE["b.md"]}, LIVE | {"a.md": None}):
        assert len(settled(unusable, GOES).left) == 1
    assert settled({"a.md": b"Nothing."}, GOES).accepted == ("b.md",)


def test_what_was_to_go_into_a_file_that_is_left_stays_too() -> None:
    """However far the chain goes, each memory stays until its text is somewhere."""
    first = edit("c.md", None, b"C", "b.md")
    live = LIVE | {"a.md": b"Mine by now.", "c.md": b"C"}
    made = settled(live, first, GOES, TAKES)
    assert made.accepted == ()
    assert {item.path for item in made.left} == {"a.md", "b.md", "c.md"}
    assert LeftFile("b.md", "a.md, which was to say it, stays as it is") in made.left
    assert settled(LIVE | {"c.md": b"C"}, first, GOES, TAKES).left == ()


def test_memories_do_not_vanish_into_each_other() -> None:
    """Two that each say to go into the other, and one into one that is removed, stay."""
    one, two = edit("a.md", None, b"one", "b.md"), edit("b.md", None, b"two", "a.md")
    assert settled({"a.md": b"one", "b.md": b"two"}, one, two).accepted == ()
    gone = edit("b.md", None, b"two")
    made = settled({"a.md": b"one", "b.md": b"two"}, one, gone)
    assert made.accepted == ("b.md",)
    own = edit("a.md", None, b"one", "a.md")
    assert settled({"a.md": b"one"}, own).accepted == ()
