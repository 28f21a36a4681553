"""Whose words a memory holds: what a commit writes into its head and into the index."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import FOREIGN, ORIGINS, Draft, FileEdit, least_trusted
from memd.files.directory import Directory
from memd.store.drafts import StoreDraft, prepare
from memd.store.memory import HeadNotEditableError, parse
from memd.store.tree import LiveTree

HEAD = "---\nname: a\ndescription: about a\nmetadata:\n  node_type: memory\n  type: project\n"
BLOBS: dict[str, bytes] = {}
Commit = Callable[..., str]


def memory(body: str = "One.", origin: str = "") -> bytes:
    """Return a memory that says of itself where it comes from."""
    mark = f"  origin: {origin}\n" if origin else ""
    return f"{HEAD}{mark}  originSessionId: s-1\n---\n\n{body}\n".encode()


def committed(folder: Path, draft: Draft, origin: str) -> dict[str, bytes]:
    """Write what a draft makes of a folder, and return its files."""
    with Directory(str(folder)) as directory:
        made = prepare(draft, LiveTree(directory), BLOBS.get, origin)
    for step in made.steps:
        if step.after is None:
            (folder / step.path).unlink()
        else:
            (folder / step.path).write_bytes(made.bodies[step.after])
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def commit(tmp_path: Path) -> Commit:
    """Return a function that commits one memory and returns its origin."""

    def run(content: bytes, by: str = "", **more: str) -> str:
        draft = Draft((FileEdit("a.md", content, origin=more.get("origin", "")),))
        return parse(committed(tmp_path, draft, by)["a.md"], "a.md").origin

    return run


def test_a_commit_says_whose_words_they_are(commit: Commit, tmp_path: Path) -> None:
    """The mark is the writer's, whatever the text claims, and stands behind the type."""
    assert commit(memory("Two.", "user"), "assistant") == "assistant"
    lines = (tmp_path / "a.md").read_text().splitlines()[4:8]
    assert [line.split(":")[0].strip() for line in lines] == [
        "node_type",
        "type",
        "origin",
        "originSessionId",
    ]
    assert commit(memory("Three."), "user") == "user"
    assert commit(memory("Four.", "user"), "user", origin="outside") == "outside"


def test_a_head_alone_changes_nobodys_words(commit: Commit) -> None:
    """A new description leaves the words under it whose they were, unknown ones too."""
    assert commit(memory("Two."), "user") == "user"
    assert commit(memory("Two.").replace(b"about a", b"about b"), "assistant") == "user"
    assert commit(memory("Old.")) == ""
    assert commit(memory("Old.", "user"), "user") == ""


@given(
    st.lists(st.tuples(st.sampled_from(ORIGINS), st.sampled_from(("", *ORIGINS)), st.text("ab")))
)
def test_trust_is_never_won_back(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, str, str]]
) -> None:
    """However a memory is written over, its worst origin decides how far it is trusted."""
    folder, origin = tmp_path_factory.mktemp("memory"), ""
    for writer, claim, body in [("outside", "user", "x"), *writes]:
        draft = Draft((FileEdit("a.md", memory(body, claim)),))
        files = committed(folder, draft, writer)
        new = parse(files["a.md"], "a.md").origin
        assert new in FOREIGN
        assert least_trusted(new, origin) == new
        assert files[INDEX].rstrip().endswith(b"(outside)")
        origin = new


def test_the_index_tells_outside_ones(tmp_path: Path) -> None:
    """Their lines keep the mark through every edit of the index, and lose it with the memory's."""
    mine, theirs = FileEdit("a.md", memory()), FileEdit("b.md", memory("Two."), origin="outside")
    first = committed(tmp_path, Draft((mine, theirs)), "assistant")[INDEX]
    assert (
        first == b"- [a](a.md) \xe2\x80\x94 about a\n- [a](b.md) \xe2\x80\x94 about a (outside)\n"
    )
    edited = b"# Mine\n* [B](b.md): hook\r\n- [A](a.md) (outside)\n"
    files = committed(tmp_path, Draft((FileEdit(INDEX, edited, sha256(first)),)), "user")
    assert files[INDEX] == edited.replace(b"hook", b"hook (outside)")
    back = StoreDraft((FileEdit("b.md", memory()),), restores=True)
    assert committed(tmp_path, back, "")[INDEX] == edited


def test_a_mark_that_cannot_be_set(tmp_path: Path, commit: Commit) -> None:
    """A head that no line can be put into keeps a claim or hides an origin from nobody."""
    plain = memory().replace(
        b"metadata:\n  node_type: memory\n  type: project\n", b"metadata: {type: user}\n"
    )
    plain = plain.replace(b"  originSessionId: s-1\n", b"")
    assert commit(plain, "user") == ""
    with pytest.raises(HeadNotEditableError):
        commit(plain.replace(b"One", b"Two"), "outside")
    with pytest.raises(HeadNotEditableError):
        commit(plain.replace(b"user}", b"user, origin: user}"), "assistant")
    os.unlink(tmp_path / "a.md")
    assert commit(b"no head\n", "user") == ""
