"""The team's index follows what lies beside it."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.core import limits
from memd.core.names import INDEX, TEAM_INDEX, NameRefusedError
from memd.core.values import Actor, Draft, FileEdit, MemoryType, Provenance
from memd.files.directory import PathRefusedError
from memd.store.door import NotSharedError, SecretRefusedError
from memd.store.drafts import StoreDraft
from memd.team.entering import without_team
from tests.changes import history
from tests.store.bench import Bench, open_bench
from tests.store.home import BY, Home, state
from tests.undoing import undo

TEAM_BY = Provenance(Actor.TEAM)
OWN = "# Ours\n\n- call [the desk](https://desk.example)\n"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench."""
    with open_bench(tmp_path) as opened:
        yield opened


def shared(name: str, kind: str = "project", about: str = "all of it") -> bytes:
    """Return a memory of a team."""
    head = f"---\nname: {name}\ndescription: {about}\nmetadata:\n  type: {kind}\n---\n\n"
    return f"{head}text\n".encode()


def pull(bench: Bench, files: dict[str, bytes | None]) -> None:
    """Commit files as a pull does, in one set."""
    bench.commit(Draft(tuple(FileEdit(*each) for each in files.items())), by=TEAM_BY)


def index(bench: Bench) -> str | None:
    """Return the team's index, ``None`` if there is none."""
    path = bench.path / TEAM_INDEX
    return path.read_text() if path.exists() else None


def test_the_index_follows_in_the_same_set(bench: Bench) -> None:
    """Entries stand by type and name, no private index names them, and one undo takes all back."""
    bench.write("mine.md", shared("mine"))
    pull(
        bench,
        {
            "team/b.md": shared("beta", "reference", "where [it](x.md) is"),
            "team/z/a.md": shared("Alpha", "reference"),
            "team/c.md": shared("conv", "feedback"),
        },
    )
    assert index(bench) == (
        "- [conv](c.md) — all of it\n"
        "- [Alpha](z/a.md) — all of it\n"
        "- [beta](b.md) — where [it](x.md) is\n"
    )
    assert (bench.path / INDEX).read_text() == "- [mine](mine.md) — all of it\n"
    (change, _) = history(bench.journal, bench.directory)
    assert TEAM_INDEX in {file.path for file in change.files}
    result = bench.undo(change.id)
    assert TEAM_INDEX not in {file.path for file in result.files}
    assert list(bench.topics()) == ["mine.md"]
    bench.undo(result.change)
    assert len((index(bench) or "").splitlines()) == 3
    pull(bench, {"team/c.md": None, "team/b.md": shared("beta", "project", "")})
    assert index(bench) == "- [beta](b.md)\n- [Alpha](z/a.md) — all of it\n"


def test_a_person_s_own_lines_stay_at_the_end(bench: Bench) -> None:
    """Whatever somebody does to the index, its entries are made anew and other lines are kept."""
    pull(bench, {"team/a.md": shared("a")})
    bench.save(TEAM_INDEX, (OWN + "- [Do as I say](a.md) — obey\n- [No](no.md)\n").encode())
    pull(bench, {"team/b.md": shared("b")})
    derived = "- [a](a.md) — all of it\n- [b](b.md) — all of it\n"
    assert index(bench) == derived + OWN
    pull(bench, {"team/b.md": shared("b"), "team/a.md": None})
    pull(bench, {"team/b.md": None})
    assert index(bench) == OWN
    bench.save(TEAM_INDEX, b"\xff\n")
    bench.write("team/a.md", shared("a"))
    assert (bench.path / TEAM_INDEX).read_bytes() == b"- [a](a.md) \xe2\x80\x94 all of it\n\xff\n"


def test_external_edits_are_followed_with_the_next_set(bench: Bench) -> None:
    """As in the private index: what others did shows up with whatever is committed next."""
    pull(bench, {"team/a.md": shared("a")})
    bench.save("team/b.md", shared("b", "user"))
    (bench.path / "team/a.md").unlink()
    bench.write("mine.md", shared("mine"))
    assert index(bench) == "- [b](b.md) — all of it\n"
    (bench.path / TEAM_INDEX).unlink()
    bench.commit(StoreDraft(mend_index=True))
    assert index(bench) == "- [b](b.md) — all of it\n"


def test_only_shared_types_pass_the_door(bench: Bench) -> None:
    """A person's memory, one without a type and a secret are refused; nobody writes the index."""
    token = "password = '" + "hX7kQ2pLw9sRt4Vz8Nb3'"
    for content in (shared("u", "user"), b"just text\n", shared("u", "note")):
        with pytest.raises(NotSharedError):
            bench.write("team/u.md", content)
    with pytest.raises(SecretRefusedError):
        bench.write("team/u.md", shared("u") + token.encode())
    for path in (TEAM_INDEX, "team/a/b/c/d.md", "team/x/MEMORY.md"):
        with pytest.raises(NameRefusedError):
            bench.write(path, shared("x"))
    bench.save("team/u.md", shared("u", "user"))
    bench.write("team/u.md", shared("u", MemoryType.FEEDBACK))
    change = history(bench.journal, bench.directory)[0].id
    bench.undo(change)
    assert (bench.path / "team/u.md").read_bytes() == shared("u", "user")


def facts(path: Path) -> tuple[int, ...]:
    """Return what a change of a file would change; not when it was last read."""
    status = path.lstat()
    return status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_a_team_that_is_no_folder_is_left_alone(bench: Bench, tmp_path: Path, kind: str) -> None:
    """Where ``team`` is a link or a file nothing goes there, and private memories are written."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x.md").write_bytes(shared("x"))
    team = bench.path / "team"
    if kind == "file":
        team.write_text("a file")
    else:
        team.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    before = facts(team)
    assert bench.write("mine.md", shared("mine")).note == ""
    with pytest.raises(PathRefusedError):
        bench.write("team/a.md", shared("a"))
    assert facts(team) == before
    assert os.listdir(tmp_path / "elsewhere") == ["x.md"]


@pytest.mark.parametrize("kind", ["link", "folder", "large"])
def test_an_index_that_cannot_be_read_is_left_as_it_is(bench: Bench, kind: str) -> None:
    """A link, a folder or a huge file in its place keeps no memory from being written."""
    place = bench.path / TEAM_INDEX
    place.parent.mkdir()
    if kind == "link":
        place.symlink_to(bench.path / "target.md")
    elif kind == "folder":
        place.mkdir()
    else:
        place.write_bytes(b"x" * (5 * 1024 * 1024))
    before = facts(place)
    result = bench.write("team/a.md", shared("a"))
    assert result.note.endswith("it is left as it is")
    assert [file.path for file in result.files] == ["team/a.md"]
    assert facts(place) == before
    assert not (bench.path / "target.md").exists()


def test_a_page_of_500_costs_no_quadratic_time(bench: Bench) -> None:
    """The last page of a large pull costs about as much as the first."""
    took = []
    for page in range(4):
        began = time.process_time()
        pull(bench, {f"team/p{page}/{n}.md": shared(f"m{n}") for n in range(500)})
        took.append(time.process_time() - began)
    assert len((index(bench) or "").splitlines()) == 2000
    assert took[-1] < 3 * took[0] + 1


def test_leaving_takes_any_number_away_and_undo_brings_them_back(bench: Bench) -> None:
    """More files than a set of memd's may have go at once, those with a person's names too."""
    for number in range(limits.CHANGE_FILES + 1):
        bench.save(f"team/{number}.md", b"x\n")
    bench.save("team/\u00fcber uns.md", shared("u"))
    before = bench.tree()
    left = bench.commit(without_team)
    assert bench.tree() == {}
    bench.undo(left.change)
    assert bench.tree().items() >= before.items()


@pytest.mark.anyio
async def test_the_index_is_never_a_reason_for_a_sync(tmp_path: Path) -> None:
    """Hand-made edits of it are journalled, and no event names it; they can be taken back."""
    (tmp_path / "real").mkdir()
    with state(tmp_path) as database:
        home = Home(tmp_path, database)
        await home.write("team/a.md", shared("a"))
        (home.real / TEAM_INDEX).write_text(OWN)
        change = await home.inspect()
        (made,) = await home.store.history(home.directory, limit=1)
        assert [file.path for file in made.files] == [TEAM_INDEX]
        assert home.events.got[-1].params["files"] == []
        snapshot = await home.store.snapshot(home.directory)
        assert [header.path for header in snapshot.headers] == ["team/a.md"]
        await undo(home.store, home.directory, change or "", BY)
        assert (home.real / TEAM_INDEX).read_text() == "- [a](a.md) — all of it\n"
