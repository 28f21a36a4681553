"""An index that lies on disk answers as the one in memory does, whatever happened before."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.state import scoring
from memd.state.asking import ask
from memd.state.index import Index
from memd.state.search import Entry, SearchIndex

WORDS = (
    "apple",
    "river",
    "stone",
    "cloud",
    "tiger",
    "piano",
    "2026-04-02",
    "接口字段",
    "snake_case",
)
QUERIES = (
    "where is the stone river?",
    "apple tiger cloud piano",
    "接口字段 snake_case",
    "2026-04-02",
)


def entry(path: str, body: str, version: int = 1, mtime_ns: int = 1) -> Entry:
    """Return a memory of one version."""
    return Entry(path, (7, version, len(body)), mtime_ns, path, body[:20], "project", body)


def fold_all(index: Index) -> None:
    """Fold until nothing is left to be done."""
    while index.fold(3):
        pass


@contextmanager
def opened(folder: Path | str | None, small: int = 0) -> Iterator[Index]:
    """Hold an index that folds whatever it is given."""
    with closing(Index(None if folder is None else str(folder), small=small, batch=7)) as index:
        yield index


def answers(index: Index | SearchIndex, floor: bool = True) -> list[list[tuple[str, float]]]:  # noqa: FBT001, FBT002 - read aloud as it stands
    """Return what every query brings."""
    return [
        [(hit.path, hit.score) for hit in index.rank(query, 5, floor=floor)] for query in QUERIES
    ]


def expected(index: Index, twin: SearchIndex) -> list[list[tuple[str, float]]]:
    """Return the order of all entries by the statistics of the index that is tested."""
    documents = [kept[0] for path in twin.known() if (kept := twin.entry(path))]
    return [
        [
            (hit.path, hit.score)
            for hit in scoring.order(ask(query), index, documents, 5, floor=True)
        ]
        for query in QUERIES
    ]


BODIES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 11), BODIES),
        st.tuples(st.just("remove"), st.integers(0, 11), st.just("")),
        st.tuples(st.just("fold"), st.integers(1, 6), st.just("")),
        st.tuples(st.just("reopen"), st.just(0), st.just("")),
    ),
    min_size=5,
    max_size=25,
)


@settings(max_examples=8, deadline=None)
@given(STEPS)
def test_the_disk_answers_as_memory_does(steps: list[tuple[str, int, str]]) -> None:
    """After any changes, folds, crashes and openings both know the same and order it alike."""
    with TemporaryDirectory() as folder:
        place, twin = f"{folder}/index", SearchIndex()
        index = Index(place, small=0, batch=7)
        entries: dict[str, Entry] = {}
        for number, (step, argument, body) in enumerate(steps):
            path = f"m{argument}.md"
            if step == "put":
                entries[path] = entry(path, body, number, argument)
                index.update([entries[path]])
                twin.update([entries[path]])
            elif step == "remove":
                entries.pop(path, None)
                index.remove([path])
                twin.remove([path])
            elif step == "fold":
                for _ in range(argument):
                    index.fold(4)
            else:  # what was not committed is lost, as after a crash, and given again
                index.close()
                index = Index(place, small=0, batch=7)
                known = index.known()
                index.remove(known.keys() - entries.keys())
                index.update(e for e in entries.values() if known.get(e.path) != e.fingerprint)
            assert index.count == twin.count
            assert answers(index) == expected(index, twin)
        fold_all(index)
        assert index.known() == twin.known()
        assert answers(index) == expected(index, twin)
        assert index.notes() == ()
        index.close()


def filled(folder: Path | None, small: int = 0) -> Index:
    """Return an index of twenty memories, folded."""
    index = Index(None if folder is None else str(folder), small=small, batch=7)
    index.update(
        entry(f"m{n}.md", f"{WORDS[n % 9]} {WORDS[n % 7]} river", mtime_ns=n) for n in range(20)
    )
    fold_all(index)
    return index


def twin() -> SearchIndex:
    """Return the same twenty in memory."""
    index = SearchIndex()
    index.update(
        entry(f"m{n}.md", f"{WORDS[n % 9]} {WORDS[n % 7]} river", mtime_ns=n) for n in range(20)
    )
    return index


def test_without_replaced_entries_scores_are_equal(tmp_path: Path) -> None:
    """Where nothing was replaced, also the scores and the explanation are those of memory."""
    with closing(filled(tmp_path / "i")) as index:
        assert answers(index) == answers(twin())
        assert answers(index, floor=False) == answers(twin(), floor=False)
        assert index.explain(QUERIES[0], 5) == twin().explain(QUERIES[0], 5)
        assert (index.pending, index.count) == (False, 20)


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    """A reopened index answers and knows without being given anything."""
    filled(tmp_path / "i").close()
    with opened(tmp_path / "i") as index:
        assert index.known() == twin().known()
        assert answers(index) == answers(twin())
        assert (index.lost(), index.notes()) == (False, ())


def test_a_small_one_has_no_files(tmp_path: Path) -> None:
    """Below the bound, and without a folder, everything stays in memory."""
    with closing(filled(tmp_path / "i", small=20)) as index:
        assert answers(index) == answers(twin())
        assert not (tmp_path / "i").exists()
    with closing(filled(None)) as index:
        assert answers(index) == answers(twin())


def test_excluded_ones_do_not_crowd_out_the_rest(tmp_path: Path) -> None:
    """However many of the best are skipped, the next ones are found."""
    with opened(tmp_path / "i") as index:
        index.update(
            entry(f"m{n:04}.md", "stone river" if n else "stone", mtime_ns=n) for n in range(120)
        )
        fold_all(index)
        found = index.rank("stone river?", 5, lambda path: path != "m0000.md", floor=False)
        assert [hit.path for hit in found] == ["m0000.md"]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x55
    path.write_bytes(data)


@pytest.mark.parametrize("spoil", [_truncate, _zero, _flip, Path.unlink])
@pytest.mark.parametrize(
    "pattern",
    ["seal", "words", "engine/meta.json", "engine/*.idx", "engine/*.term", "engine/*.fast"],
)
def test_a_damaged_one_is_built_anew(
    tmp_path: Path, spoil: Callable[[Path], None], pattern: str
) -> None:
    """Whichever file is spoilt in whatever way: no wrong answer, a note, and all is well again."""
    folder = tmp_path / "i"
    filled(folder).close()
    spoil(next(folder.glob(pattern)))
    with opened(folder) as index:
        known = index.known()
        assert known in ({}, twin().known())
        if not known and pattern != "seal":
            assert any("indexed again" in note for note in index.notes())
        index.update(
            entry(f"m{n}.md", f"{WORDS[n % 9]} {WORDS[n % 7]} river", mtime_ns=n) for n in range(20)
        )
        fold_all(index)
        assert answers(index) == answers(twin())
    with opened(folder) as index:
        assert index.known() == twin().known()
        assert index.notes() == ()


def test_damage_in_the_middle_of_a_query_is_survived(tmp_path: Path) -> None:
    """A record that is spoilt while the index is open costs the lower part, never the answer."""
    folder = tmp_path / "i"
    with closing(filled(folder)) as index:
        index.update([entry("new.md", "stone river")])
        _zero(folder / "words")
        assert [hit.path for hit in index.rank(QUERIES[0], 5, floor=False)] == ["new.md"]
        assert (index.lost(), index.lost(), index.count) == (True, False, 1)
        assert len(index.notes()) == 1
        assert index.known().keys() == {"new.md"}


def _overwrite(path: Path) -> None:
    """Spoil a file in place, where an open index sees it."""
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))


@pytest.mark.parametrize("pattern", ["engine/*.term", "engine/*.idx", "engine/*.fast"])
def test_a_panic_of_the_library_costs_no_answer(tmp_path: Path, pattern: str) -> None:
    """What the engine does over files that are spoilt under it never reaches the caller."""
    folder = tmp_path / "i"
    filled(folder).close()
    with opened(folder) as index:
        index.update([entry("new.md", "stone river")])
        for path in folder.glob(pattern):
            _overwrite(path)
        assert "new.md" in [hit.path for hit in index.rank(QUERIES[0], 5, floor=False)]
        assert index.lost()


@pytest.mark.parametrize(
    "use",
    [
        lambda index: index.has("m1.md", (1, 1, 1)),
        lambda index: index.remove(["m1.md"]),
        lambda index: index.known(),
    ],
)
def test_damage_is_survived_at_any_use(tmp_path: Path, use: Callable[[Index], object]) -> None:
    """Whoever meets the damage first, the lower part is given up and nothing is raised."""
    folder = tmp_path / "i"
    with closing(filled(folder)) as index:
        _overwrite(folder / "words")
        use(index)
        assert (index.lost(), index.known()) == (True, {})


def _begun(folder: Path, slices: int) -> Index:
    """Return an index with so many slices of a fold behind it, and its disk at rest."""
    index = filled(folder)
    index.update([entry("new.md", "stone river")])
    for _ in range(slices):
        index.fold(3)
    while index.sealing:
        index.fold(3)
    return index


def test_a_seal_that_fails_leaves_memory(tmp_path: Path) -> None:
    """When the disk refuses the seal, what was to be folded stays in memory and a note says so."""
    folder = tmp_path / "i"
    with closing(_begun(folder, 1)) as index:
        (folder / "seal.new").mkdir()
        fold_all(index)
        assert index.known().keys() == {*twin().known(), "new.md"}
        assert (len(index.notes()), index.pending) == (1, False)


def test_a_fold_whose_result_is_spoilt_is_given_up(tmp_path: Path) -> None:
    """What was sealed but cannot be read back costs the lower part and nothing above."""
    folder = tmp_path / "i"
    with closing(_begun(folder, 2)) as index:
        os.truncate(folder / "words", 1)
        fold_all(index)
        assert index.lost()
        assert set(index.known()) == {"new.md"}


def test_damage_during_a_seal_waits_for_its_end(tmp_path: Path) -> None:
    """A lower part that is given up while a fold is written goes when that has come to its end."""
    folder = tmp_path / "i"
    with closing(_begun(folder, 2)) as index:
        _overwrite(folder / "words")
        assert [hit.path for hit in index.rank(QUERIES[0], 5, floor=False)] == ["new.md"]
        fold_all(index)
        assert [hit.path for hit in index.rank(QUERIES[0], 5, floor=False)] == ["new.md"]
        assert index.lost()


def test_a_memory_that_changes_during_a_fold_is_as_it_is_now(tmp_path: Path) -> None:
    """What changes or goes while it is being put to disk counts as it is afterwards."""
    folder = tmp_path / "i"
    with closing(_begun(folder, 2)) as index:
        index.update([entry("new.md", "tiger", 2)])
        index.remove(["m1.md"])
        fold_all(index)
        assert [hit.path for hit in index.rank("tiger", 1, floor=False)] != []
        index.remove(["new.md"])
        fold_all(index)
        assert index.known().keys() == twin().known().keys() - {"m1.md"}


def test_a_foreign_version_is_built_anew(tmp_path: Path) -> None:
    """A seal of another kind or age is not believed."""
    folder = tmp_path / "i"
    filled(folder).close()
    shutil.copytree(folder, tmp_path / "other")
    shutil.rmtree(folder / "engine")
    with opened(folder) as index:
        assert (index.count, len(index.notes())) == (0, 1)


def test_a_file_in_the_place_of_the_folder_gives_way(tmp_path: Path) -> None:
    """Whatever lies where the index belongs is replaced; only memd's own place is concerned."""
    place = tmp_path / "i"
    place.write_text("not an index")
    with closing(filled(place)) as index:
        assert answers(index) == answers(twin())
        assert place.is_dir()


def test_a_folder_that_cannot_be_written_leaves_memory(tmp_path: Path) -> None:
    """Where nothing can be written everything stays in memory and a note says so."""
    (tmp_path / "file").touch()
    with closing(filled(tmp_path / "file" / "i")) as index:
        assert answers(index) == answers(twin())
        assert (len(index.notes()), index.pending) == (1, False)


def test_a_commit_that_fails_loses_nothing(tmp_path: Path) -> None:
    """When the disk refuses in the middle of a fold, memory keeps what the fold had taken."""
    folder = tmp_path / "i"
    with closing(filled(folder)) as index:
        index.update([entry("new.md", "stone river stone")])
        shutil.rmtree(folder / "engine")
        fold_all(index)
        assert "new.md" in index.known()
        assert "new.md" in {hit.path for hit in index.rank("stone?", 9, floor=False)}
        assert index.notes() != ()
