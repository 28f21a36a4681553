"""The part of an index that lies on disk."""

import os
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from memd.state import scoring
from memd.state.scoring import Document
from memd.state.search import nothing
from memd.state.stored import SealBrokenError, Stored, discard, same


def document(path: str, words: str) -> Document:
    """Return a memory."""
    return Document(path, 5, scoring.pack(words.split()), 0)


def put(stored: Stored, *documents: Document, gone: tuple[str, ...] = ()) -> None:
    """Change an index and let it see that."""
    change = stored.change()
    for item in documents:
        change.put(item.path, (item, (1, 2, 3)))
    for path in gone:
        change.put(path, None)
    change.seal()
    stored.adopt()


def test_an_index_that_is_opened_again_has_what_was_sealed(tmp_path: Path) -> None:
    """What was sealed is found, counted and known by whoever opens it next."""
    folder = str(tmp_path / "i")
    with closing(Stored.create(folder)) as stored:
        put(stored, document("a.md", "x y"), document("b.md", "y"))
        put(stored, document("a.md", "z"), gone=("b.md",))
    opened = Stored.open(folder)
    assert opened is not None
    with closing(opened) as stored:
        assert (stored.count, stored.known()) == (1, {"a.md": (1, 2, 3)})
        assert stored.holders(scoring.key("z")) == 1
        assert (stored.fingerprint("a.md"), stored.fingerprint("b.md")) == ((1, 2, 3), None)
        assert stored.propose({"z": 1.0}, 5, nothing) == [document("a.md", "z")]
        assert stored.propose({"z": 1.0}, 5, lambda _: True) == []


def test_a_change_without_an_end_never_was(tmp_path: Path) -> None:
    """What was put but not sealed is not there, now or later."""
    folder = str(tmp_path / "i")
    with closing(Stored.create(folder)) as stored:
        put(stored, document("a.md", "x"))
        stored.change().put("b.md", (document("b.md", "x"), (1, 2, 3)))
        assert stored.count == 1
    opened = Stored.open(folder)
    assert opened is not None
    with closing(opened) as stored:
        assert set(stored.known()) == {"a.md"}
        put(stored, document("c.md", "x"))
        assert set(stored.known()) == {"a.md", "c.md"}


def test_where_none_was_sealed_there_is_none(tmp_path: Path) -> None:
    """No folder, or one whose first seal was never written, is no index and no damage."""
    assert Stored.open(str(tmp_path / "i")) is None
    Stored.create(str(tmp_path / "i")).close()
    assert Stored.open(str(tmp_path / "i")) is None


def _seal(data: bytes) -> bytes:
    return data + zlib.crc32(data).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        (b"", "damaged"),
        (b"\xc1" * 20, "damaged"),
        (_seal(b"\xc1"), "another kind"),
        (
            _seal(msgspec.msgpack.encode({"form": 0, "analysis": 1, "words": 0, "files": {}})),
            "version",
        ),
    ],
)
def test_a_seal_that_says_nothing_is_refused(tmp_path: Path, data: bytes, cause: str) -> None:
    """A seal that is empty, spoilt, of another kind or of another version is not believed."""
    folder = tmp_path / "i"
    with closing(Stored.create(str(folder))) as stored:
        put(stored, document("a.md", "x"))
    (folder / "seal").write_bytes(data)
    with pytest.raises(SealBrokenError, match=cause):
        Stored.open(str(folder))


def test_an_index_of_mostly_dead_records_is_built_anew(tmp_path: Path) -> None:
    """When far more was replaced than is there, the file of words is not kept for ever."""
    with closing(Stored.create(str(tmp_path / "i"))) as stored:
        change = stored.change()
        for _ in range(10_010):
            change.put("a.md", None)
        change.seal()
        stored.adopt()
        with pytest.raises(SealBrokenError, match="changed since"):
            stored.known()


def test_parts_that_do_not_agree_are_refused(tmp_path: Path) -> None:
    """When the file of words and the engine differ, neither is believed."""
    with closing(Stored.create(str(tmp_path / "i"))) as stored:
        change = stored.change()
        change.put("a.md", (document("a.md", "x"), (1, 2, 3)))
        change.seal()
        stored._words.reveal()
        with pytest.raises(SealBrokenError, match="agree"):
            stored.known()


def _link(folder: Path) -> None:
    folder.symlink_to(folder.parent)


@pytest.mark.parametrize("make", [Path.touch, Path.mkdir, _link, lambda _: None])
def test_what_is_discarded_is_gone(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A file, a folder or a link in the place of an index is removed, and nothing behind it."""
    (tmp_path / "kept").touch()
    make(tmp_path / "i")
    discard(str(tmp_path / "i"))
    assert os.listdir(tmp_path) == ["kept"]


def test_fingerprints_are_compared_as_they_can_be_kept() -> None:
    """A fingerprint with numbers that no record holds is still the one that was written."""
    assert same((1, 2, 3), (1, 2, 3))
    assert same((1, 2**63 - 1, 3), (1, 2**80, 3))
    assert not same((1, 2, 3), (1, 2, 4))
    assert not same(None, (1, 2, 3))
