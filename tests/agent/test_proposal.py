"""From what a run wants to a plan on the live directory, through a real store."""

from collections.abc import Mapping

from memd.agent.proposal import ChangePlan, Proposed, RunProposal
from memd.core.names import INDEX
from memd.core.text import sha256
from memd.core.values import Header, MemoryFile
from memd.documents import document
from tests.agent.home import memory

AT = "2026-01-02T03:04:05.000Z"


class _Tree:
    """A directory as a plan sees it."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def headers(self) -> tuple[Header, ...]:
        """Return nothing: no plan here asks."""
        return ()

    def read(self, path: str) -> MemoryFile | None:
        """Return a file."""
        content = self._files.get(path)
        if content is None:
            return None
        header = Header(path, path, "", None, 0, len(content), damaged=False, inode=0)
        return MemoryFile(header, content, sha256(content), "")

    def index(self) -> bytes | None:
        """Return the index."""
        return self._files.get(INDEX)


def changed(*files: Proposed) -> ChangePlan:
    """Return the change of some files."""
    return ChangePlan(RunProposal(files), session="s1", modified=AT)


def test_a_new_memory_is_stamped() -> None:
    """It says which session made it and when, whatever it claims."""
    claimed = memory("n").replace("  type:", "  originSessionId: forged\n  type:")
    draft = changed(Proposed("n.md", None, claimed.encode())).plan(_Tree({}))
    read = document.parse(draft.edits[0].content or b"", "n.md")
    assert (read.metadata["originSessionId"], read.metadata["modified"]) == ("s1", AT)
    assert draft.edits[0].base == ""


def test_others_changes_are_merged_or_left() -> None:
    """Changes in different places are put together; where both changed one, theirs stays."""
    old = memory("a", "one\ntwo\nthree\nfour\nfive").encode()
    mine, far, near = (old.replace(a, b) for a, b in
                       ((b"five", b"FIVE"), (b"one", b"ONE"), (b"five", b"5")))  # fmt: skip
    merged = changed(Proposed("a.md", old, mine))
    content = merged.plan(_Tree({"a.md": far})).edits[0].content or b""
    assert b"ONE" in content
    assert b"FIVE" in content
    assert merged.merged == ("a.md",)
    left = changed(
        Proposed("a.md", old, mine), Proposed("new.md", None, old), Proposed("gone.md", old, mine),
        Proposed("rm.md", old, None, "why"),
    )  # fmt: skip
    draft = left.plan(_Tree({"a.md": near, "new.md": near, "rm.md": near}))
    assert draft.edits == ()
    assert left.left == ("a.md", "new.md", "gone.md", "rm.md")


def test_an_index_is_merged_by_entries() -> None:
    """An edited index keeps what others added to it meanwhile, and is not stamped."""
    old, mine = b"- [A](a.md) - a\n", b"- [A](a.md) - better\n"
    change = changed(Proposed(INDEX, old, mine))
    same = change.plan(_Tree({INDEX: old})).edits[0]
    assert same.content == mine
    theirs = old + b"- [B](b.md) - b\n"
    content = change.plan(_Tree({INDEX: theirs})).edits[0].content or b""
    assert content == mine + b"- [B](b.md) - b\n"
    assert change.proposal.updated == ()


def test_a_head_that_cannot_be_edited_stays() -> None:
    """A memory whose frontmatter cannot be stamped is written as the run wrote it."""
    odd = b"---\n{name: a, description: b, type: user}\n---\n\nx\n"
    draft = changed(Proposed("a.md", None, odd)).plan(_Tree({}))
    assert (draft.edits[0].content or b"").endswith(b"x\n")


def test_effects_move_with_the_files() -> None:
    """Effects are given, or made from the change when the plan has run."""
    seen: list[tuple[str, ...]] = []

    def effects(change: ChangePlan) -> tuple[()]:
        seen.append(change.left)
        return ()

    change = ChangePlan(
        RunProposal((Proposed("a.md", b"x", b"y"),)), session="", modified=AT, effects=effects
    )
    change.plan(_Tree({}))
    assert seen == [("a.md",)]
    fresh = ChangePlan(
        RunProposal((Proposed("n.md", None, memory("n").encode()),)), session="", modified=AT
    )
    assert b"originSessionId" not in (fresh.plan(_Tree({})).edits[0].content or b"")
    assert fresh.proposal.saved == ("n.md",)
