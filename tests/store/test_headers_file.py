"""Headers that outlive the process."""

import os
from pathlib import Path

import pytest
from msgspec import structs

from memd.core.values import Header, MemoryType
from memd.store.headers_file import HeadersFiles

HERE = "/some/where"


def headers(count: int) -> dict[str, Header]:
    """Return so many headers by path."""
    kinds = (*MemoryType, None)
    made = (
        Header(f"é{n}.md", f"n{n}", "what", kinds[n % 5], n, n, n % 2 > 0, n) for n in range(count)
    )
    return {header.path: header for header in made}


def only(folder: Path) -> Path:
    """Return the one file of a folder."""
    (file,) = folder.iterdir()
    return file


def test_what_cannot_be_written_down_is_left_out(tmp_path: Path) -> None:
    """A time beyond the format costs only its own header."""
    files, known = HeadersFiles(str(tmp_path)), headers(3)
    far = structs.replace(known["é0.md"], mtime_ns=2**70)
    assert files.save(HERE, (far, known["é1.md"]))
    assert list(files.load(HERE)) == ["é1.md"]


@pytest.mark.parametrize("at", [0, 10, 40, 300, -1])
def test_a_damaged_file_gives_nothing(tmp_path: Path, at: int) -> None:
    """A flipped byte, or a file that ends early, never gives wrong headers."""
    files, known = HeadersFiles(str(tmp_path)), headers(2500)
    files.save(HERE, list(known.values()))
    file = only(tmp_path)
    whole = file.read_bytes()
    changed = bytearray(whole)
    changed[at] ^= 0xFF
    for content in (bytes(changed), whole[:at], whole[: at // 2]):
        file.write_bytes(content)
        assert files.load(HERE) == {}


def test_no_other_file_is_believed(tmp_path: Path) -> None:
    """Neither a link nor a folder in its place is read; saving replaces a link."""
    files, known = HeadersFiles(str(tmp_path / "h")), headers(1)
    files.save(HERE, list(known.values()))
    file = only(tmp_path / "h")
    os.rename(file, tmp_path / "away")
    file.symlink_to(tmp_path / "away")
    assert files.load(HERE) == {}
    assert files.save(HERE, list(known.values()))
    assert files.load(HERE) == known
    file.unlink()
    file.mkdir()
    assert files.load(HERE) == {}
    assert not files.save(HERE, list(known.values()))
    assert len(list((tmp_path / "h").iterdir())) == 1
    (tmp_path / "file").touch()
    assert not HeadersFiles(str(tmp_path / "file")).save(HERE, ())
