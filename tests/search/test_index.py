"""An index that lies on disk answers as the one in memory does, whatever happened before."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.search import ranking
from memd.search.index import Batch, Entry, Index, analyse
from memd.search.query import parse
from memd.search.ranking import answered

WORDS = (
    *("apple", "river", "stone", "cloud", "tiger", "piano"),
    *("2026-04-02", "接口字段", "snake_case"),
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


TWENTY = {
    f"m{n}.md": entry(f"m{n}.md", f"{WORDS[n % 9]} {WORDS[n % 7]} river", mtime_ns=n)
    for n in range(20)
}


def commit(index: Index) -> Batch | None:
    """Bring to disk what waits; return what was committed."""
    batch = index.batch(more=False)
    if batch is not None:
        index.commit(batch)
        index.adopt(batch)
    return batch


def give(index: Index, entries: dict[str, Entry]) -> list[str]:
    """Bring an index into step with entries; return which had to be given again."""
    missing = index.reconcile({path: one.fingerprint for path, one in entries.items()})
    index.update(entries[path] for path in missing)
    return missing


def paths(index: Index, query: str, *, floor: bool = False) -> list[str]:
    """Return what a query brings."""
    return [hit.path for hit in answered(index.rank(query, 9, floor=floor))]


def answers(index: Index) -> list[list[tuple[str, float]]]:
    """Return what every query brings, with and without the floor."""
    return [
        [(hit.path, hit.score) for hit in answered(index.rank(query, 5, floor=floor))]
        for query in QUERIES
        for floor in (True, False)
    ]


@contextmanager
def opened(folder: Path | str, few: int = 0) -> Iterator[Index]:
    """Hold an index that commits whatever it is given."""
    index = Index(str(folder), few=few)
    try:
        yield index
    finally:
        index.close()


def expected(index: Index, entries: dict[str, Entry]) -> list[list[tuple[str, float]]]:
    """Return the order of all entries by the statistics of the index that is tested."""
    documents = [analyse(one) for one in entries.values()]
    return [
        [
            (hit.path, hit.score)
            for hit in answered(ranking.rank(parse(query), index, documents, 5, floor=floor))
        ]
        for query in QUERIES
        for floor in (True, False)
    ]


BODIES = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 11), BODIES),
        st.tuples(st.just("remove"), st.integers(0, 11), st.just("")),
        st.tuples(st.sampled_from(["begin", "write", "adopt", "reopen"]), st.just(0), st.just("")),
    ),
    min_size=5,
    max_size=25,
)


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_the_disk_answers_as_memory_does(steps: list[tuple[str, int, str]]) -> None:
    """After any changes, commits, crashes and openings every memory is found as it is now."""
    with TemporaryDirectory() as folder:
        index = Index(f"{folder}/i", few=0)
        entries: dict[str, Entry] = {}
        batch: Batch | None = None
        for number, (step, argument, body) in enumerate(steps):
            path = f"m{argument}.md"
            if step == "put":
                entries[path] = entry(path, body, number, argument)
                index.update([entries[path]])
            elif step == "remove":
                entries.pop(path, None)
                index.remove([path])
            elif step == "begin":
                batch = index.batch(more=False)
            elif step == "write" and batch is not None:
                index.commit(batch)
            elif step == "adopt" and batch is not None:
                index.commit(batch)
                index.adopt(batch)
                batch = None
            elif step == "reopen":  # what was not committed is lost, as after a crash
                index.close()
                index, batch = Index(f"{folder}/i", few=0), None
                give(index, entries)
            assert answers(index) == expected(index, entries)
        commit(index)
        assert answers(index) == expected(index, entries)
        assert (index.notes(), give(index, entries)) == ((), [])
        index.close()


def test_what_was_committed_is_there_again(tmp_path: Path) -> None:
    """A reopened index needs to be given only what changed, and forgets what is gone."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        before = answers(index)
        commit(index)
        assert answers(index) == before
    with opened(tmp_path / "i") as index:
        assert give(index, TWENTY) == []
        assert (index.count, answers(index)) == (20, before)
    changed = {**TWENTY, "m3.md": entry("m3.md", "piano lesson", 2), "new.md": entry("new.md", "")}
    del changed["m4.md"]
    with opened(tmp_path / "i") as index:
        assert sorted(give(index, changed)) == ["m3.md", "new.md"]
        assert "m3.md" in paths(index, "lesson")
        assert "m4.md" not in paths(index, "tiger")
        commit(index)
    with opened(tmp_path / "i") as index:
        assert give(index, changed) == []
        assert (index.lost(), index.notes()) == (False, ())


def test_a_small_one_has_no_files(tmp_path: Path) -> None:
    """Few changes, or an index without a folder, stay in memory; many at the first time wait."""
    for index in (Index(str(tmp_path / "i")), Index(None, few=0)):
        give(index, TWENTY)
        assert index.batch(more=False) is None
    assert not (tmp_path / "i").exists()
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        assert index.batch(more=True) is None


def test_excluded_ones_do_not_crowd_out_the_rest(tmp_path: Path) -> None:
    """However many of the best are skipped, the next ones are found."""
    with opened(tmp_path / "i") as index:
        index.update(
            entry(f"m{n:04}.md", "stone river" if n else "stone", mtime_ns=n) for n in range(320)
        )
        commit(index)
        results = index.rank("stone river?", 5, lambda path: path != "m0000.md", floor=False)
        assert [hit.path for hit in answered(results)] == ["m0000.md"]


def test_any_name_of_a_file_is_found(tmp_path: Path) -> None:
    """Paths in any script, and bytes that are no text, come back as they were given."""
    names = ("写.md", "naïve/ü.md", os.fsdecode(b"\xff\xfe.md"), "plain.md")
    with opened(tmp_path / "i") as index:
        index.update(entry(name, "stone") for name in names)
        commit(index)
        assert sorted(paths(index, "stone")) == sorted(names)
        index.remove(names[:3])
        commit(index)
        assert paths(index, "stone") == ["plain.md"]


def test_a_memory_that_changes_during_a_commit_is_as_it_is_now(tmp_path: Path) -> None:
    """What changes or goes while it is being written counts as it is afterwards."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        batch = index.batch(more=False)
        assert batch is not None
        index.update([entry("m1.md", "tiger violin", 2)])
        index.remove(["m2.md"])
        index.commit(batch)
        index.adopt(batch)
        assert "m1.md" in paths(index, "violin")
        commit(index)
        assert "m1.md" in paths(index, "violin")
        assert not {"m2.md"} & set(paths(index, "cloud stone river"))


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
    "pattern", ["seal", "engine/meta.json", "engine/*.idx", "engine/*.term", "engine/*.store"]
)
def test_a_damaged_one_is_built_anew(
    tmp_path: Path, spoil: Callable[[Path], None], pattern: str
) -> None:
    """Whichever file is spoilt in whatever way: no wrong answer, a note, and all is well again."""
    folder = tmp_path / "i"
    with opened(folder) as index:
        give(index, TWENTY)
        commit(index)
        before = answers(index)
    spoil(next(folder.glob(pattern)))
    with opened(folder) as index:
        assert len(give(index, TWENTY)) == 20
        if (pattern, spoil) != ("seal", Path.unlink):
            assert "indexed again" in index.notes()[0]
        assert answers(index) == before
        commit(index)
        assert answers(index) == before
    with opened(folder) as index:
        assert (give(index, TWENTY), index.notes()) == ([], ())


@pytest.mark.parametrize("pattern", ["engine/*.term", "engine/*.idx", "engine/*.store"])
def test_a_panic_of_the_library_costs_no_answer(tmp_path: Path, pattern: str) -> None:
    """What the engine does over files that are spoilt under it never reaches the caller."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        commit(index)
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        index.update([entry("new.md", "stone river")])
        for path in (tmp_path / "i").glob(pattern):
            with path.open("r+b") as file:
                file.write(bytes(path.stat().st_size))
        assert "new.md" in paths(index, QUERIES[0])
        assert (index.lost(), index.lost(), len(index.notes())) == (True, False, 1)
        assert len(give(index, TWENTY)) == 20


@pytest.mark.parametrize("place", ["file/i", "link"])
def test_what_cannot_be_written_stays_in_memory(tmp_path: Path, place: str) -> None:
    """Where nothing can be written everything stays in memory and a note says so."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file" / "nowhere")
    folder = tmp_path / place
    with opened(folder) as index:
        give(index, TWENTY)
        before = answers(index)
        if place == "file/i":
            commit(index)
            assert (len(index.notes()), index.batch(more=False)) == (1, None)
        assert answers(index) == before


def test_a_commit_that_fails_loses_nothing(tmp_path: Path) -> None:
    """When the disk refuses in the middle of a commit, memory keeps what it should have taken."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        commit(index)
        index.update([entry("new.md", "stone river stone")])
        shutil.rmtree(tmp_path / "i" / "engine")
        commit(index)
        assert "new.md" in paths(index, "stone?")
        assert index.notes() != ()


def test_what_goes_during_a_commit_stays_gone(tmp_path: Path) -> None:
    """A memory that a whole look does not know is gone, though a commit under way still has it."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        batch = index.batch(more=False)
        assert batch is not None
        index.commit(batch)
        fewer = {path: one for path, one in TWENTY.items() if path != "m4.md"}
        give(index, fewer)
        index.adopt(batch)
        assert "m4.md" not in paths(index, "tiger cloud stone river apple piano")
        commit(index)
        assert "m4.md" not in paths(index, "tiger cloud stone river apple piano")


def test_one_commit_at_a_time(tmp_path: Path) -> None:
    """Until a batch was adopted or given back there is no other: no older state is written last."""
    with opened(tmp_path / "i") as index:
        give(index, TWENTY)
        first = index.batch(more=False)
        assert first is not None
        index.update([entry("new.md", "stone")])
        assert (index.batch(more=False), index.is_due(more=False)) == (None, False)
        index.give_back(first)
        second = index.batch(more=False)
        assert second is not None
        index.give_back(first)  # said late, it does not end the second
        assert index.is_busy


@pytest.mark.parametrize("place", ["i", "i/seal"])
def test_whatever_lies_in_the_way_is_replaced(tmp_path: Path, place: str) -> None:
    """A pipe in the place of the folder, or a folder in that of the seal, is no lasting trouble."""
    folder = tmp_path / "i"
    if place == "i":
        os.mkfifo(folder)
    else:
        (tmp_path / place).mkdir(parents=True)
    with opened(folder) as index:
        give(index, TWENTY)
        commit(index)
        before = answers(index)
    with opened(folder) as index:
        assert (give(index, TWENTY), answers(index)) == ([], before)
