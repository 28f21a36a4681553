"""The file that keeps vectors."""

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state.vectors import Kept, VectorFile

ONE = Kept(b"markmark", b"\x01\x02\x03", 0.5)
TWO = Kept(b"MARKMARK", b"\x04\x05\x06", 0.25)


def _file(folder: Path, identity: str = "model") -> VectorFile:
    return VectorFile(f"{folder}/kept/one.vectors", identity, 3)


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    """Records come back by path, the last one of each path, in a file for the user alone."""
    file = _file(tmp_path)
    assert file.read() == {}
    file.append({"a.md": ONE, "b\udcff.md": ONE})
    file.append({"a.md": TWO})
    assert _file(tmp_path).read() == {"a.md": TWO, "b\udcff.md": ONE}
    facts = os.stat(tmp_path / "kept" / "one.vectors")
    assert stat.S_IMODE(facts.st_mode) == 0o600


def test_another_model_begins_anew(tmp_path: Path) -> None:
    """Vectors of another model do not count and are removed."""
    file = _file(tmp_path)
    file.read()
    file.append({"a.md": ONE})
    assert _file(tmp_path, "other").read() == {}
    assert _file(tmp_path).read() == {}


@given(st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_damage_costs_only_what_follows(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    """Whatever byte is changed, what is read was written, and the file can be used on."""
    folder = tmp_path_factory.mktemp("vectors")
    file = _file(folder)
    file.read()
    file.append({"a.md": ONE, "b.md": TWO})
    path = folder / "kept" / "one.vectors"
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    found = file.read()
    assert found.items() <= {"a.md": ONE, "b.md": TWO}.items()
    file.append({"c.md": ONE})
    assert file.read() == found | {"c.md": ONE}


def test_a_torn_write_costs_that_write(tmp_path: Path) -> None:
    """Wherever a write was cut off, the records before it are whole."""
    file = _file(tmp_path)
    file.read()
    file.append({"a.md": ONE})
    path = tmp_path / "kept" / "one.vectors"
    whole = path.stat().st_size
    file.append({"b.md": TWO})
    for size in range(path.stat().st_size - 1, whole - 1, -1):
        os.truncate(path, size)
        assert file.read() == {"a.md": ONE}
        assert path.stat().st_size == whole


def test_replaced_records_are_cleared_away(tmp_path: Path) -> None:
    """A file that holds mostly replaced records is written anew."""
    file = _file(tmp_path)
    file.read()
    for _ in range(1100):
        file.append({"a.md": ONE})
    assert file.read() == {"a.md": ONE}
    assert (tmp_path / "kept" / "one.vectors").stat().st_size < 200


def test_an_endless_path_is_not_kept(tmp_path: Path) -> None:
    """A path longer than any system takes is left out."""
    file = _file(tmp_path)
    file.read()
    file.append({"a" * 5000: ONE, "b.md": TWO})
    assert file.read() == {"b.md": TWO}
