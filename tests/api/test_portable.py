"""export through the socket."""

import hashlib
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.api.caller import Caller

pytestmark = pytest.mark.anyio
WRITTEN = {"name": "o", "description": "other", "type": "project", "body": "Other."}


async def test_an_export_is_written_where_the_caller_says(caller: Caller, tmp_path: Path) -> None:
    """The memories are there byte for byte, and the answer says what is in the archive."""
    await caller.write()
    answer = await caller.call("export", dest=f"{tmp_path}/out")
    folder = await caller.folder()
    name = Path(caller.cwd).name
    memory = tmp_path / "out" / "projects" / name / "memory"
    assert {path.name: path.read_bytes() for path in memory.iterdir()} == {
        path.name: path.read_bytes() for path in folder.glob("*.md")
    }
    assert (answer["path"], answer["files"]) == (f"{tmp_path}/out", 2)
    assert answer["projects"] == [{"id": name, "name": name, "files": 2}]
    for line in (tmp_path / "out" / "SHA256SUMS").read_text().splitlines():
        digest, _, path = line.partition("  ")
        assert hashlib.sha256((tmp_path / "out" / path).read_bytes()).hexdigest() == digest


async def test_parts_and_projects_are_chosen(caller: Caller, tmp_path: Path) -> None:
    """Another project by its directory, or all of them, with the parts that are named."""
    await caller.write()
    other = caller.home.project("other")
    await caller.plain("memory.write", cwd=other, path="o.md", **WRITTEN)
    one = await caller.call("export", dest=f"{tmp_path}/one", project=other)
    assert [each["name"] for each in one["projects"]] == ["other"]
    packed = f"{tmp_path}/all.tar.gz"
    both = await caller.call("export", dest=packed, all=True, **{"with": ["history"]})
    assert {each["name"] for each in both["projects"]} == {"other", Path(caller.cwd).name}
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    assert "history/other.jsonl" in names
    assert names[0] == "manifest.json"


@pytest.mark.parametrize(
    ("params", "kind"),
    [
        ({"dest": "out"}, "destination_refused"),
        ({"dest": "/nowhere/out"}, "destination_refused"),
        ({"dest": "/tmp"}, "destination_refused"),
        ({"dest": "/x", "project": "/", "all": True}, "invalid_params"),
        ({"dest": "/x", "with": ["secrets"]}, "invalid_params"),
        ({"dest": "/x", "project": "relative"}, "no_project"),
        ({}, "invalid_params"),
    ],
)
async def test_what_cannot_be_is_refused(caller: Caller, params: dict[str, Any], kind: str) -> None:
    """A wrong request writes nothing and says why."""
    error = await caller.refused("export", **params)
    assert error.kind == kind


async def test_nothing_is_written_among_memories_or_memds_own_files(caller: Caller) -> None:
    """Memory directories and memd's own folders are no place for an archive."""
    await caller.write()
    folder = await caller.folder()
    places = (
        str(folder),
        caller.home.places.state_dir,
        str(Path(caller.home.places.config).parent),
    )
    for place in places:
        error = await caller.refused("export", dest=f"{place}/out")
        assert error.kind == "destination_refused"
        assert not Path(place, "out").exists()


async def test_progress_says_how_many_projects_are_done(caller: Caller, tmp_path: Path) -> None:
    """A caller that gave a token hears of each project."""
    await caller.write()
    heard: list[Any] = []

    async def hear(value: dict[str, Any]) -> None:
        heard.append(value)

    params = {"cwd": caller.cwd, "dest": f"{tmp_path}/out"}
    await caller.client.call("export", params, progress=hear)
    assert heard == [{"projects": 0, "of": 1}, {"projects": 1, "of": 1}]
