"""Where an export may be written."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.errors import Refused
from tests.portable.exports import Archives, archives_in, fill, put

pytestmark = pytest.mark.anyio


@pytest.fixture
def archives(tmp_path: Path) -> Iterator[Archives]:
    """Open a home."""
    with archives_in(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("there", "is there"),
        ("link", "is there"),
        ("MEMORY/out", "memory directory"),
        ("MEMORY/sub/out.tar.gz", "memory directory"),
        ("linked-memory/out", "memory directory"),
        ("home/state/out", "memd's own"),
        ("home/src/app/.claude/agent-memory/reviewer/out", "memory directory"),
        ("nowhere/out", "not there"),
        ("file/out", "not there"),
        ("out.zip", "as .tar.gz"),
        ("out.tgz", "as .tar.gz"),
        (".memd-export-00000000.tmp", "not in place"),
        ("nul\0", "character"),
        ("\udcff", "character"),
    ],
)
async def test_a_destination_is_refused_where_nothing_may_be_written(
    archives: Archives, tmp_path: Path, name: str, why: str
) -> None:
    """What is there is never touched, and nothing is written where memories lie."""
    project = await fill(archives)
    Path(project.directory, "sub").mkdir(exist_ok=True)
    put(tmp_path / "there" / "x", b"x")
    put(tmp_path / "file", b"x")
    os.symlink("nowhere", tmp_path / "link")
    os.symlink(project.directory, tmp_path / "linked-memory")
    path = f"{tmp_path}/{name}".replace(f"{tmp_path}/MEMORY", project.directory)
    before = everything(tmp_path)
    with pytest.raises(Refused, match=why):
        await archives.export(Path(path))
    assert everything(tmp_path) == before


async def test_a_relative_destination_is_refused(archives: Archives) -> None:
    """Only the caller knows where it stands."""
    with pytest.raises(Refused, match="absolute"):
        await archives.export(Path("out"))


def everything(root: Path) -> set[str]:
    """Return all paths below a folder, but those of the state file."""
    return {str(path) for path in root.rglob("*") if "state.db" not in path.name}
