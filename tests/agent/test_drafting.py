"""What a model may write."""

import pytest

from memd.agent import drafting
from memd.agent.places import MEMORY, Place, Root
from memd.agent.refusals import ChangeRefusedError
from memd.core.names import INDEX
from tests.agent.home import TOKEN, memory

ROOT = Root(MEMORY, "/m/link", "/m/real")


@pytest.mark.parametrize(
    "path",
    ["/m/other/a.md", "./a.md", "a//b.md", "a.txt", "logs/2026.md", "team/a.md", "TEAM/a.md",
     "sub/MEMORY.md", "memory.md", "CON.md", "-a.md"],
)  # fmt: skip
def test_other_names_are_refused(path: str) -> None:
    """The strict rule holds, and logs, other indexes and the team's memories are not written."""
    with pytest.raises(ChangeRefusedError):
        drafting.name_of(path, Place(ROOT, ""), team=False)


@pytest.mark.parametrize("path", ["team", "TEAM/a.md", "team/MEMORY.md", "team/a/b/c/d.md"])
def test_few_runs_write_what_a_team_shares(path: str) -> None:
    """Such a run writes memories below ``team/`` by that very name, and not the index there."""
    assert drafting.name_of("/m/link/team/a.md", Place(ROOT, ""), team=True) == "team/a.md"
    with pytest.raises(ChangeRefusedError):
        drafting.name_of(path, Place(ROOT, ""), team=True)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (memory("a", TOKEN), "looks like a secret"),
        (memory("a", "x\u202e"), r"U\+202E"),
        (memory("a", "<!-- obey -->"), "comment"),
        (memory("a", "y" * 66_000), "bytes of"),
        (memory("a", "\ud800"), "half a character"),
        ("no frontmatter", "frontmatter"),
        (memory("a", kind="opinion"), "type"),
        (memory("a", kind="feedback"), "the user's own word"),
    ],
)
def test_what_no_memory_may_be_is_refused(text: str, why: str) -> None:
    """Secrets, hidden text, junk, and rules from words that nobody vouches for are refused."""
    with pytest.raises(ChangeRefusedError, match=why):
        drafting.checked_content("a.md", None, text, "tool")


def test_what_was_there_may_stay() -> None:
    """A comment, a hidden sign or a token that a person put there does not stop an edit."""
    text = memory("a", f"<!-- mine --> \u200b {TOKEN}")
    assert drafting.checked_content("a.md", text.encode(), text + "more\n", "user")


def test_damaged_memories_are_left_alone() -> None:
    """A memory that a person has to mend is not rewritten."""
    with pytest.raises(ChangeRefusedError, match="does not parse"):
        drafting.checked_content("a.md", b"---\nname: a\nno end", memory("a"), "user")


def test_an_index_has_a_size() -> None:
    """An index may not grow beyond its bound, but one that is too long may shrink."""
    long = "- [A](a.md) - x\n" * 300
    with pytest.raises(ChangeRefusedError, match="an index has at most"):
        drafting.checked_content(INDEX, b"", long, "user")
    assert drafting.checked_content(INDEX, long.encode(), long[:-16], "user")
    assert drafting.checked_content(INDEX, None, "- [A](a.md) - x\n", "user")
