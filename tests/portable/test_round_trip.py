"""Export, an empty machine, import, export: the same bytes."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import ndiff
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.names import INDEX, NameRefusedError, beginnings, check_odd_name, in_catalogue
from memd.core.values import ORIGINS, MemoryType
from memd.portable.manifest import SUMS
from memd.portable.marking import marked
from memd.portable.service import (
    ImportPorts,
    ImportReading,
    ImportRequest,
    ImportResult,
    Imports,
    ImportTables,
    ImportTarget,
)
from memd.portable.values import ExportPart
from memd.state.changes import Journal, ProposalTable
from tests.portable.exports import Archives, archives_in, checked, content, fill, put
from tests.portable.importing import restore_notes, state_of
from tests.portable.trees import memory

PARTS = frozenset(ExportPart) - {ExportPart.LOGS, ExportPart.SETTINGS}


async def brought(archives: Archives, source: Path, name: str = "app") -> ImportResult:
    """Import an archive into the project of a home, all of it and at once."""
    # Files that the store wrote have the time of the machine, and no import brings the future.
    archives.clock.advance(os.stat(source).st_ctime - archives.clock.now())
    tables = ImportTables(
        Journal(archives.database), archives.table, ProposalTable(archives.database)
    )
    ports = ImportPorts(str(archives.home / "state"), restore_notes)
    imports = Imports(archives.store, tables, archives.clock, ports)

    async def find(reading: ImportReading) -> Mapping[str, ImportTarget]:
        root = archives.project(name).root
        target = ImportTarget((await archives.store.where(root, {}))[0], {})
        return {"": target} | {project.id: target for project in reading.projects}

    async def report(_done: int, _total: int) -> None:
        """Do nothing with progress."""

    request = ImportRequest(str(source), accept=True)
    return (await imports.run(request, find, report))[0]


def differing(first: Path, second: Path) -> list[str]:
    """Return the lines of files that two archives do not have alike."""
    one, two = content(first), content(second)
    return [
        f"{name}: {line}"
        for name in sorted(one.keys() | two.keys())
        if name != SUMS and one.get(name) != two.get(name)
        for line in ndiff(repr(one.get(name)).split("\\n"), repr(two.get(name)).split("\\n"))
        if line[0] in "+-"
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("shape", ["", ".tar.gz"])
async def test_a_home_comes_along_whole(tmp_path: Path, shape: str) -> None:
    """Memories, team, agents, notes and history of a home are the same bytes on another machine."""
    first, second = tmp_path / f"first{shape}", tmp_path / f"second{shape}"
    with archives_in(tmp_path / "here") as here:
        await fill(here)
        await here.export(first, parts=PARTS)
    with archives_in(tmp_path / "there") as there:
        result = await brought(there, first)
        assert (result.left_out, result.problems) == ((), ())
        await there.export(second, parts=PARTS)
        before = state_of(tmp_path / "there" / ".claude")
        await brought(there, second)
        assert state_of(tmp_path / "there" / ".claude") == before
    assert checked(second).projects[0].files != []
    assert differing(first, second) == []


HEADS = st.sampled_from(
    [
        b"",
        b"---\nbroken: [\n---\n",
        b"---\ntype: feedback\norigin: user\n---\n",
        b"---\nmetadata: {type: feedback, origin: user}\n---\n",
        b"---\r\nname: crlf\r\nmetadata:\r\n  type: user\r\n---\r\n\r\n",
        b"\xef\xbb\xbf---\nname: bom\nmetadata:\n  node_type: memory\n  type: project\n---\n",
        b"---\nname: open\n",
        b"---\n- a\n- b\n---\n",
        b"---\nmetadata:\n- x\norigin: team\n---\n",
    ]
)
WRITTEN = st.builds(
    memory,
    st.sampled_from(["One.", "Two: 2.\n\nThree.", "x" * 70_000, "- [a](b.md)", ""]),
    name=st.sampled_from(["a", "b-c"]),
    description=st.sampled_from(["About it", 'With "quotes": and colons', "\u202eturned"]),
    kind=st.sampled_from(MemoryType),
    origin=st.sampled_from(["", *ORIGINS]),
)
TEXTS = WRITTEN | st.builds(lambda head, body: head + body, HEADS, st.binary(max_size=30))
PART = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=6
) | st.sampled_from(["a", "b", "an odd name", "con", "-x", "n\u00e4me", "a..b"])
NAMES = st.builds(
    lambda folders, name: "/".join([*folders, f"{name}.md"]), st.lists(PART, max_size=3), PART
)
INDEXES = st.none() | st.sampled_from(
    [b"", b"# Mine\n- [A](a.md)\nby hand\n", b"- [Gone](gone.md)\n", b"\xff\n"]
)


@dataclass(frozen=True)
class Home:
    """What lies in a home: files below each folder, what is written through memd, and notes."""

    memories: dict[str, bytes]
    team: dict[str, bytes]
    agents: dict[str, dict[str, bytes]]
    notes: dict[str, bytes]
    commits: Sequence[dict[str, bytes]]
    index: bytes | None
    team_index: bytes | None


def storable(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return files without those that no archive brings, and names that cannot lie together."""
    result: dict[str, bytes] = {}
    taken: dict[str, str] = {}
    for path, text in files.items():
        *folders, _ = parts = list(beginnings(path))
        try:
            check_odd_name(path)
        except NameRefusedError:
            continue
        spelled = all(taken.get(part.casefold(), part) == part for part in parts)
        apart = path not in taken.values() and not any(folder in result for folder in folders)
        if in_catalogue(path) and spelled and apart and marked(text, path) is not None:
            taken |= {part.casefold(): part for part in parts}
            result[path] = text
    return result


FILES = st.dictionaries(NAMES, TEXTS, max_size=5).map(storable)
AGENTS = st.dictionaries(
    st.sampled_from(["project/reviewer", "local/reviewer", "user/writer", "user/x.y"]),
    FILES.filter(bool),
    max_size=2,
)
SESSIONS = st.dictionaries(st.sampled_from(["s1", "s-2", "S_3"]), st.binary(max_size=30))
COMMITS = st.lists(
    st.dictionaries(
        st.sampled_from(["w.md", "x.md", "deep/y.md"]),
        st.sampled_from(["One.", "Two.", "Three."]).map(memory),
        min_size=1,
    ),
    max_size=3,
)
TEAM_INDEXES = INDEXES.filter(lambda index: index is None or b"by hand" in index)
HOMES = st.builds(Home, FILES, FILES, AGENTS, SESSIONS, COMMITS, INDEXES, TEAM_INDEXES)
FOLDERS = {"project": "agent-memory", "local": "agent-memory-local"}


async def settle(archives: Archives, home: Home) -> None:
    """Put a home where an export takes it from, with times of its own."""
    project = archives.project()
    directory = Path(project.directory)
    for number, files in enumerate(home.commits):
        await archives.write(project, dict(files))
        assert number < 9
    seconds = 1_700_000_000.125
    written = {"memory": home.memories, "memory/team": home.team}
    for folder, files in written.items():
        for path, text in files.items():
            seconds += 1.0009765625
            put(directory.parent / folder / path, text, seconds)
    for path, index in ((INDEX, home.index), (f"team/{INDEX}", home.team_index)):
        if index is not None:
            put(directory / path, index, seconds + 7)
    for key, files in home.agents.items():
        scope, _, agent = key.partition("/")
        above = archives.home if scope == "user" else Path(project.root)
        for path, text in files.items():
            put(above / ".claude" / FOLDERS.get(scope, FOLDERS["project"]) / agent / path, text)
    for session, text in home.notes.items():
        put(Path(project.sessions[0]) / session / "session-memory" / "summary.md", text)


def trip(root: Path, home: Home) -> None:
    """Export a home, import it on an empty machine, export it there: the same; twice is once."""
    first, second = root / "first", root / "second"

    async def there_and_back() -> None:
        with archives_in(root / "here") as here:
            await settle(here, home)
            await here.export(first, parts=PARTS)
        with archives_in(root / "there") as there:
            result = await brought(there, first)
            assert result.left_out == ()
            await there.export(second, parts=PARTS)
            before = state_of(root / "there" / ".claude")
            await brought(there, first)
            assert state_of(root / "there" / ".claude") == before

    anyio.run(there_and_back)
    assert differing(first, second) == []


@settings(max_examples=6, deadline=None)
@given(home=HOMES)
def test_whatever_a_home_holds_comes_along(
    tmp_path_factory: pytest.TempPathFactory, home: Home
) -> None:
    """Of any home the second export has the bytes of the first one."""
    trip(tmp_path_factory.mktemp("trip"), home)


@pytest.mark.soak
@settings(max_examples=400, deadline=None)
@given(home=HOMES)
def test_hundreds_of_homes_come_along(tmp_path_factory: pytest.TempPathFactory, home: Home) -> None:
    """The full number of homes."""
    trip(tmp_path_factory.mktemp("trip"), home)
