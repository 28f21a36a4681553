"""What an export holds, and what it never does."""

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.names import check_component
from memd.portable.exporting import project_ids
from memd.portable.values import ExportPart
from tests.portable.exports import (
    ALL,
    Archives,
    archives_in,
    checked,
    content,
    fill,
    put,
    recorded,
)
from tests.store.bench import topic

pytestmark = pytest.mark.anyio
PRIVATE = {"MEMORY.md", "a.md", "sub/b.md", "über uns.md"}


@pytest.fixture
def archives(tmp_path: Path) -> Iterator[Archives]:
    """Open a home."""
    with archives_in(tmp_path / "home") as opened:
        yield opened


async def test_the_private_memories_alone_are_taken_unasked(
    archives: Archives, tmp_path: Path
) -> None:
    """Nothing of teams, agents, notes or logs goes along by itself."""
    await fill(archives)
    result = await archives.export(tmp_path / "out")
    manifest = checked(tmp_path / "out")
    assert recorded(manifest).keys() == {f"projects/app/memory/{path}" for path in PRIVATE}
    assert (result.files, manifest.scope, manifest.files) == (len(PRIVATE), [], [])
    assert [(each.id, each.name, each.files) for each in result.projects] == [
        ("app", "app", len(PRIVATE))
    ]
    assert result.left_out == ()


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (ExportPart.TEAM, {f"projects/app/memory/team/{n}" for n in ("MEMORY.md", "shared.md")}),
        (ExportPart.LOGS, {"projects/app/memory/logs/2026/01/2026-01-02.md"}),
        (
            ExportPart.AGENTS,
            {
                "projects/app/agents/project/reviewer/r.md",
                "projects/app/agents/local/tester/t.md",
                "agents/user/writer/w.md",
            },
        ),
        (ExportPart.NOTES, {"projects/app/notes/session-1.md"}),
    ],
)
async def test_each_part_adds_its_own_files(
    archives: Archives, tmp_path: Path, part: ExportPart, names: set[str]
) -> None:
    """A part that is asked for is there with all that belongs to it, and nothing else."""
    await fill(archives)
    await archives.export(tmp_path / "out", parts=[part])
    manifest = checked(tmp_path / "out")
    private = {f"projects/app/memory/{path}" for path in PRIVATE}
    assert recorded(manifest).keys() - private == names
    assert manifest.scope == [part.value]


async def test_the_same_state_gives_the_same_bytes(tmp_path: Path) -> None:
    """An archive made again, also after a restart and on another day, is the same to the byte."""
    made = []
    for number in range(3):
        with archives_in(tmp_path / "home") as archives:
            if not number:
                await fill(archives)
            archives.clock.advance(100_000.0)
            for again in range(2):
                path = tmp_path / f"out-{number}-{again}.tar.gz"
                await archives.export(path, parts=ALL)
                made.append(path.read_bytes())
    assert len(set(made)) == 1
    assert str(tmp_path).encode() not in b"".join(content(path).values())


async def test_nothing_of_memd_itself_is_in_it(archives: Archives, tmp_path: Path) -> None:
    """No state, lock, key or path of this machine goes into an archive of everything."""
    await fill(archives)
    await archives.export(tmp_path / "out", parts=ALL)
    files = content(tmp_path / "out")
    assert not [name for name in files if "lock" in name or "state.db" in name or "/." in name]
    assert str(tmp_path).encode() not in b"".join(files.values())


async def test_nothing_is_followed_or_opened_that_is_no_file(
    archives: Archives, tmp_path: Path
) -> None:
    """Links, FIFOs and odd names in the directory are listed, and the rest is taken."""
    project = await fill(archives)
    memory = Path(project.directory)
    put(tmp_path / "outside" / "x.md", b"outside")
    os.symlink(tmp_path / "outside" / "x.md", memory / "link.md")
    os.symlink(tmp_path / "outside", memory / "linked")
    os.mkfifo(memory / "pipe.md")
    put(memory / "large.md", b"x" * 5_000_000)
    Path(os.fsdecode(bytes(memory) + b"/\xff.md")).write_bytes(b"x")
    put(memory.joinpath(*"abcdefghijklmn", "deep.md"), b"deep")
    result = await archives.export(tmp_path / "out")
    assert recorded(checked(tmp_path / "out")).keys() == {
        f"projects/app/memory/{path}" for path in PRIVATE
    }
    left = {each.name.removeprefix("projects/app/memory/"): each.reason for each in result.left_out}
    deep = "a/b/c/d/e/f/g/h/i/j/k/l/m/n/deep.md"
    assert left.keys() == {"link.md", "linked", "pipe.md", "large.md", "\\udcff.md", deep}


async def test_projects_are_told_apart(archives: Archives, tmp_path: Path) -> None:
    """Equal names are numbered; of all projects only those with files are in the archive."""
    one, two, empty = (archives.project(f"{name}/app") for name in ("one", "two", "empty"))
    odd = archives.project("ünï cödé")
    for project in (one, two, odd):
        await archives.write(project, {f"{len(project.root)}.md": topic(project.name)})
    Path(empty.directory).mkdir(parents=True)
    every = archives.known()
    assert {each.directory for each in every} == {p.directory for p in (one, two, empty, odd)}
    result = await archives.export(tmp_path / "out", *every, whole=True)
    manifest = checked(tmp_path / "out")
    ids = [project.id for project in manifest.projects]
    assert ids == sorted(ids)
    assert len(ids) == len(result.projects) == 3
    assert {each.name for each in result.projects} == {"app", "ünï cödé"}
    assert "n-c-d" in ids


async def test_a_project_without_memories_is_an_empty_archive(
    archives: Archives, tmp_path: Path
) -> None:
    """What is asked for by name is in the manifest also where nothing lies in it."""
    result = await archives.export(tmp_path / "out.tar.gz")
    manifest = checked(tmp_path / "out.tar.gz")
    assert (result.files, manifest.made) == (0, "")
    assert [(each.id, each.files) for each in manifest.projects] == [("app", [])]


@given(st.lists(st.text(max_size=12) | st.sampled_from(["app", "App", "con", "..", "a..b", "-x"])))
def test_ids_are_plain_and_differ(names: list[str]) -> None:
    """Whatever projects are called, each has an id of its own that can be a folder everywhere."""
    ids = project_ids(names)
    assert len({key.casefold() for key in ids}) == len(names)
    assert [check_component(key) for key in ids] == ids


NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), max_size=9)
    | st.sampled_from(["team", "logs", "MEMORY", ".x", "a.b", "A.B", "\n", "\\", " "]),
    min_size=1,
    max_size=3,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(NAMES, st.binary(max_size=40)), max_size=6), st.sampled_from([(), ALL]))
def test_whatever_lies_there_is_whole_in_both_shapes(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[tuple[list[str], bytes]],
    parts: frozenset[ExportPart],
) -> None:
    """Of any files and bytes both shapes have the same archive, which fits its manifest."""
    root = tmp_path_factory.mktemp("any")
    with archives_in(root / "home") as archives:
        memory = Path(archives.project().directory)
        for parts_of_name, text in files:
            with suppress(OSError):  # a name of a folder, or one that no file can have
                put(memory.joinpath(*parts_of_name).with_name(f"{parts_of_name[-1]}.md"), text)
        anyio.run(partial(archives.export, root / "out", parts=parts))
        anyio.run(partial(archives.export, root / "out.tar.gz", parts=parts))
    there = content(root / "out")
    assert there == content(root / "out.tar.gz")
    for name, record in recorded(checked(root / "out")).items():
        if name.startswith("projects/app/memory/"):
            live = memory / name.removeprefix("projects/app/memory/")
            assert (live.read_bytes(), live.stat().st_mtime_ns) == (there[name], record.mtime_ns)
