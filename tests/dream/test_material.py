"""What the fixed pass may change, and what it lists."""

import pytest

from memd.core import limits
from memd.core.names import INDEX
from memd.core.values import MemoryType
from memd.documents import document
from memd.dream.material import Memory, gather
from tests.dream.shelf import Shelf


def _file(body: str = "text", kind: MemoryType = MemoryType.PROJECT, name: str = "x") -> bytes:
    return document.new(name, "About it", kind, body, session="", modified="")


def _paths(shelf: Shelf) -> set[str]:
    return {memory.path for memory in gather(shelf).memories}


def _pinned(shelf: Shelf, frozen: frozenset[str] = frozenset()) -> set[str]:
    return {memory.path for memory in gather(shelf, frozen).memories if memory.pinned}


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        ("a.md", _file("x" * limits.MEMORY_BYTES), "larger than 65536 bytes"),
        ("a.md", b"---\nbroken\n---\n", "does not parse"),
        ("a.md", _file() + b"\xff", "not UTF-8"),
        ("a.md", b"no head at all", "its type is none of user"),
        ("a.md", _file("password = hunter2secretvalue99"), "like a credential"),
        ("ünï.md", _file(), "refused"),
        ("unreadable.md", _file(), "refused"),
    ],
)
def test_what_may_not_change_is_listed(path: str, content: bytes, sentence: str) -> None:
    """A file that the pass keeps its hands off is listed with the sentence that says why."""
    material = gather(Shelf({path: content, "b.md": _file()}))
    assert [memory.path for memory in material.memories] == ["b.md"]
    ((listed, reason),) = [(left.path, left.reason) for left in material.listed]
    assert listed == path
    assert sentence in reason


def test_what_is_no_trouble_is_not_listed() -> None:
    """A team's memory and one that vanished stay out of it without a word."""
    shelf = Shelf({"team/a.md": _file(), "vanished.md": _file(), "b.md": _file()})
    assert gather(shelf).listed == ()
    assert _paths(shelf) == {"b.md"}


def test_frontmatter_that_only_memd_reads_is_mended_or_listed() -> None:
    """What can be mended has its new head; what cannot is told, and stays as it is."""
    mended = b"---\ndescription: a: b\ntype: user\n---\n\nbody\n"
    other = mended.replace(b"b\n", b"b\ntype: user # really\n")
    material = gather(Shelf({"a.md": mended, "b.md": other.replace(b"type: user\n", b"")}))
    assert [memory.content for memory in material.memories] == [mended.replace(b"a: b", b'"a: b"')]
    assert [left.path for left in material.listed] == ["b.md"]
    stays = b"---\ndescription: a: b\nodd: one # two\ntype: user\n---\n\nbody\n"
    material = gather(Shelf({"a.md": stays}))
    assert [memory.content for memory in material.memories] == [stays]
    assert "other programs" in material.listed[0].reason


def test_a_list_has_its_bounds() -> None:
    """No more than a hundred sentences are told."""
    assert len(gather(Shelf({f"m{n}.md": b"no head" for n in range(150)})).listed) == 100


def test_what_others_link_to_keeps_its_name() -> None:
    """A line of a person, a hook, a person's rule and a file that stays hold what they link to."""
    files = {name: _file(name=name[:-3]) for name in ("a.md", "b.md", "c.md", "d.md", "e.md")}
    head = "# See [it](a.md)\n- [E](e.md) — and [[b]]\n".encode()
    rule = _file("See [[c]].", MemoryType.USER, "rule")
    broken = b"---\nbroken\n---\n[x](d.md)"
    shelf = Shelf(files | {INDEX: head, "rule.md": rule, "broken.md": broken})
    assert _pinned(shelf) == {"a.md", "b.md", "c.md", "d.md"}
    mine = Shelf({"a.md": _file("See [b](b.md)."), "b.md": _file()})
    assert _pinned(mine) == set()
    assert _pinned(mine, frozenset({"a.md"})) == {"b.md"}


def test_what_is_frozen_is_not_there() -> None:
    """A frozen path is neither changed nor listed."""
    material = gather(Shelf({"a.md": _file(), "b.md": _file()}), frozenset({"a.md"}))
    assert [memory.path for memory in material.memories] == ["b.md"]
    assert material.listed == ()


def test_the_richest_comes_first() -> None:
    """What keeps its name comes first, then the one with more sentences, words, and the path."""

    def rank(path: str, body: str, **facts: bool) -> tuple[object, ...]:
        (memory,) = gather(Shelf({path: _file(body)})).memories
        found = Memory(
            memory.file, memory.type, memory.head, memory.description, memory.body, 0,
            memory.text, facts.get("pinned", False),
        )  # fmt: skip
        assert not found.lasting
        return found.rank

    ranks = [
        rank("z.md", "one", pinned=True),
        rank("z.md", "One. Two."),
        rank("z.md", "one two"),
        rank("a.md", "one"),
        rank("z.md", "one"),
    ]
    assert ranks == sorted(ranks)
