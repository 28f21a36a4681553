"""The words of memories in a file."""

from contextlib import closing
from pathlib import Path

import pytest

from memd.state.scoring import Document, pack
from memd.state.sequences import Found, Sequences, SequencesDamagedError, bounded


def document(path: str, words: str, mtime_ns: int = 5) -> Document:
    """Return a memory whose first word is its heading."""
    return Document(path, mtime_ns, pack(words.split()), 1)


def test_what_was_saved_is_read_again(tmp_path: Path) -> None:
    """A record comes back as it was written, in this process and the next."""
    name = str(tmp_path / "words")
    first, second = document("a.md", "x y"), document("ordner/\udcff.md", "")
    with closing(Sequences(name)) as words:
        places = words.append(first, (1, 2, 3)), words.append(second, (2**64 - 1, -5, 0))
        assert words.size == 0
        size = words.save()
        words.reveal()
        assert words.read(places[0]) == (first, (1, 2, 3))
    with closing(Sequences(name, size)) as words:
        assert words.read(places[1]) == (second, (2**64 - 1, -5, 0))
        words.append_gone("a.md")
        words.save()
        words.reveal()
        assert list(words.scan()) == [
            Found(places[0], "a.md", (1, 2, 3)),
            Found(places[1], "ordner/\udcff.md", (2**64 - 1, -5, 0)),
            Found(size, "a.md", None),
        ]
        with pytest.raises(SequencesDamagedError, match=f"damaged at byte {size}"):
            words.read(size)


def test_what_was_not_committed_is_cut_off(tmp_path: Path) -> None:
    """What lies beyond the size that the caller kept is gone; a shorter file is refused."""
    path = tmp_path / "words"
    with closing(Sequences(str(path))) as words:
        words.append(document("a.md", "x"), (1, 2, 3))
        size = words.save()
        words.append(document("b.md", "x"), (1, 2, 3))
        words.save()
    with closing(Sequences(str(path), size)) as words:
        assert [found.path for found in words.scan()] == ["a.md"]
    assert path.stat().st_size == size
    with pytest.raises(SequencesDamagedError):
        Sequences(str(path), size + 1)


def test_pages_are_given_back(tmp_path: Path) -> None:
    """A large file can be read on after its pages were given back."""
    with closing(Sequences(str(tmp_path / "words"))) as words:
        large = Document("a.md", 1, bytes(5 * 1024 * 1024), 0)
        at = words.append(large, (1, 2, 3))
        words.save()
        words.reveal()
        words.release()
        assert words.read(at) == (large, (1, 2, 3))


def test_a_spoilt_byte_is_noticed(tmp_path: Path) -> None:
    """Whichever byte of a record is another one, reading it says so."""
    path = tmp_path / "words"
    with closing(Sequences(str(path))) as words:
        words.append(document("a.md", "x y z"), (1, 2, 3))
        size = words.save()
        words.reveal()
        whole = path.read_bytes()
        for at in range(size):
            with path.open("r+b") as file:
                file.seek(at)
                file.write(bytes((whole[at] ^ 0x41,)))
            with pytest.raises(SequencesDamagedError):
                words.read(0)
            path.write_bytes(whole)
        assert words.read(0)[0].path == "a.md"


def test_places_that_are_none_are_refused(tmp_path: Path) -> None:
    """A place outside the file or inside a record is not answered."""
    with closing(Sequences(str(tmp_path / "words"))) as words:
        words.append(document("a.md", "x y z"), (1, 2, 3))
        words.save()
        words.reveal()
        for at in (-1, 1, 8, words.size, words.size + 1000):
            with pytest.raises(SequencesDamagedError):
                words.read(at)


def test_numbers_are_bounded() -> None:
    """A status with numbers that no record can hold becomes one that it can hold."""
    assert bounded((1, 2, 3)) == (1, 2, 3)
    assert bounded((-1, 2**70, 3)) == (2**64 - 1, 2**63 - 1, 3)
