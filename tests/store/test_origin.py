"""Whose words a memory holds: what a change writes into its head and into the index."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.errors import Invalid
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import FOREIGN, ORIGINS, Actor, Draft, FileEdit, Provenance, least_trusted
from memd.store.memory import parse
from tests.store.bench import Bench, edits, open_bench

HEAD = "---\nname: a\ndescription: about a\nmetadata:\n  node_type: memory\n  type: project\n"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench."""
    with open_bench(tmp_path) as opened:
        yield opened


def memory(body: str = "One.", origin: str = "") -> bytes:
    """Return a memory that says of itself where it comes from."""
    mark = f"  origin: {origin}\n" if origin else ""
    return f"{HEAD}{mark}  originSessionId: s-1\n---\n\n{body}\n".encode()


def commit(bench: Bench, content: bytes, by: str = "", *, origin: str = "") -> str:
    """Commit one memory and return its origin."""
    written = Provenance(Actor.CLIENT, client="test", origin=by)
    bench.commit(edits(FileEdit("a.md", content, origin=origin)), by=written)
    return parse(bench.topics()["a.md"], "a.md").origin


def test_a_change_says_whose_words_they_are(bench: Bench) -> None:
    """The mark is the writer's, whatever the text claims, and follows the type."""
    assert commit(bench, memory("Two.", "user"), "assistant") == "assistant"
    lines = bench.topics()["a.md"].decode().splitlines()[4:8]
    keys = ["node_type", "type", "origin", "originSessionId"]
    assert [line.split(":")[0].strip() for line in lines] == keys
    assert commit(bench, memory("Three."), "user") == "user"
    assert commit(bench, memory("Four.", "user"), "user", origin="outside") == "outside"


def test_a_new_head_changes_nobodys_words(bench: Bench) -> None:
    """A new description leaves the words under it whose they were, unknown ones too."""
    assert commit(bench, memory("Two."), "user") == "user"
    assert commit(bench, memory("Two.").replace(b"about a", b"about b"), "assistant") == "user"
    assert commit(bench, memory("Old.")) == ""
    assert commit(bench, memory("Old.", "user"), "user") == ""


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(ORIGINS), st.sampled_from(("", *ORIGINS)), st.text("ab")),
        max_size=8,
    )
)
def test_trust_is_never_won_back(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, str, str]]
) -> None:
    """However a memory is written over, its worst origin decides how far it is trusted."""
    origin = ""
    with open_bench(tmp_path_factory.mktemp("memory")) as bench:
        for writer, claim, body in [("outside", "user", "x"), *writes]:
            new = commit(bench, memory(body, claim), writer)
            assert new in FOREIGN
            assert least_trusted(new, origin) == new
            assert bench.tree()[INDEX].rstrip().endswith(b"(outside)")
            origin = new


def test_the_index_tells_outside_ones(bench: Bench) -> None:
    """Their lines keep the mark through every edit of the index, and lose it with the memory's."""
    by = Provenance(Actor.CLIENT, client="test", origin="assistant")
    mine, theirs = FileEdit("a.md", memory()), FileEdit("b.md", memory("Two."), origin="outside")
    bench.commit(edits(mine, theirs), by=by)
    first = bench.tree()[INDEX]
    assert first == "- [a](a.md) — about a\n- [a](b.md) — about a (outside)\n".encode()
    edited = b"# Mine\n* [B](b.md): hook\r\n- [A](a.md) (outside)\n"
    bench.commit(edits(FileEdit(INDEX, edited, sha256(first))))
    assert bench.tree()[INDEX] == edited.replace(b"hook", b"hook (outside)")
    bench.commit(Draft((FileEdit("b.md", memory()),), restores=True))
    assert bench.tree()[INDEX] == edited


def test_a_mark_that_cannot_be_set(bench: Bench) -> None:
    """A head that no line can be put into keeps a claim or hides an origin from nobody."""
    plain = memory().replace(
        b"metadata:\n  node_type: memory\n  type: project\n", b"metadata: {type: user}\n"
    )
    plain = plain.replace(b"  originSessionId: s-1\n", b"")
    assert commit(bench, plain, "user") == ""
    with pytest.raises(Invalid):
        commit(bench, plain.replace(b"One", b"Two"), "outside")
    with pytest.raises(Invalid):
        commit(bench, plain.replace(b"user}", b"user, origin: user}"), "assistant")
    bench.write("a.md", None)
    assert commit(bench, b"no head\n", "user") == ""
