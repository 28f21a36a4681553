"""One index a directory, in step with its catalogue."""

from pathlib import Path
from threading import Lock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.recall.indexes import IndexBusyError, Indexes
from memd.search.index import FEW
from memd.search.ranking import answered
from tests.recall.shelf import RefusedError, Shelf

WORDS = ("quorum", "lease", "shard", "freeze")


def results(indexes: Indexes, query: str, allowance: int = 100, directory: str = "/m") -> list[str]:
    """Return what a directory's index finds."""
    with indexes.hold(directory):
        index = indexes.current(directory, allowance).index
        return sorted(hit.path for hit in answered(index.rank(query, 200, floor=False)))


def test_what_changed_is_indexed_once() -> None:
    """An unchanged memory is not read again; a changed one is; what is gone is forgotten."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    shelf.put("b.md", "lease")
    indexes = Indexes(shelf, Lock)
    assert results(indexes, "quorum") == ["a.md"]
    shelf.read.clear()
    shelf.put("b.md", "quorum")
    assert results(indexes, "quorum") == ["a.md", "b.md"]
    assert shelf.read == ["b.md"]
    shelf.drop("a.md")
    assert results(indexes, "quorum") == ["b.md"]


def many(shelf: Shelf) -> int:
    """Put more memories on a shelf than an index keeps in memory; return their number."""
    for number in range(FEW + 20):
        shelf.put(f"{number}.md", "quorum", mtime_ns=number)
    return FEW + 20


def finish(indexes: Indexes, most: int = 50) -> None:
    """Do all that the background has to do."""
    while indexes.work("/m", most):
        pass


def spoil(folder: Path) -> None:
    """Overwrite what the engines below a folder have stored, in place."""
    for path in folder.glob("*/engine/*.store"):
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))


def test_a_later_process_reads_nothing_again(tmp_path: Path) -> None:
    """Memories that were indexed once are found by another process without a read."""
    shelf = Shelf()
    count = many(shelf)
    earlier = Indexes(shelf, Lock, str(tmp_path))
    with earlier.hold("/m"):
        assert earlier.current("/m", 5).busy
    finish(earlier)
    with earlier.hold("/m"):
        assert not earlier.current("/m", 0).busy
    earlier.close()
    shelf.read.clear()
    later = Indexes(shelf, Lock, str(tmp_path))
    assert len(results(later, "quorum")) == count
    assert shelf.read == []
    later.close()


def test_a_lost_mark_costs_only_what_differs() -> None:
    """Where the catalogue begins anew, only what has another fingerprint is read again."""
    shelf = Shelf(forgets=True)
    shelf.put("a.md", "quorum")
    shelf.put("b.md", "lease")
    shelf.put("c.md", "lease")
    indexes = Indexes(shelf, Lock)
    results(indexes, "quorum")
    shelf.read.clear()
    shelf.drop("c.md")
    shelf.put("b.md", "shard")
    assert (results(indexes, "lease"), results(indexes, "shard")) == ([], ["b.md"])
    assert shelf.read == ["b.md"]


def test_a_large_directory_is_indexed_in_slices() -> None:
    """Newest first, a slice at a time; what is written meanwhile goes before the rest."""
    shelf = Shelf()
    for number in range(6):
        shelf.put(f"{number}.md", "quorum", mtime_ns=number)
    indexes = Indexes(shelf, Lock)
    with indexes.hold("/m"):
        current = indexes.current("/m", 2)
    assert (current.left, current.count) == (4, 6)
    assert results(indexes, "quorum", 0) == ["4.md", "5.md"]
    shelf.put("new.md", "quorum")
    assert results(indexes, "quorum", 1) == ["4.md", "5.md", "new.md"]
    shelf.drop("0.md")
    finish(indexes, 1)
    assert results(indexes, "quorum", 0) == ["1.md", "2.md", "3.md", "4.md", "5.md", "new.md"]


def test_work_alone_takes_a_directory_up() -> None:
    """Indexing ahead of the first prompt needs no prompt."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    indexes = Indexes(shelf, Lock)
    assert indexes.work("/m", 10) is False
    assert results(indexes, "quorum", 0) == ["a.md"]


def test_a_held_index_is_busy() -> None:
    """Nobody waits longer than it says, and another directory is free."""
    indexes = Indexes(Shelf(), Lock)
    with (
        indexes.hold("/m"),
        indexes.hold("/n"),
        pytest.raises(IndexBusyError),
        indexes.hold("/m", 0.01),
    ):
        pass
    assert results(indexes, "quorum") == []


def test_an_unreadable_directory_lets_go() -> None:
    """A failure leaves the directory free for its next use, and the index as it was."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    indexes = Indexes(shelf, Lock)
    shelf.refuses = True
    for _ in range(2):
        with pytest.raises(RefusedError):
            results(indexes, "quorum")
    shelf.refuses = False
    assert results(indexes, "quorum") == ["a.md"]


def test_directories_unused_for_longest_are_dropped() -> None:
    """Indices stay for a bounded number of directories; one in use is never dropped."""
    shelf = Shelf()
    for number in range(4):
        shelf.put("a.md", "quorum", directory=f"/{number}")
    indexes = Indexes(shelf, Lock, most=2)
    with indexes.hold("/0"):
        for number in range(1, 4):
            assert results(indexes, "quorum", directory=f"/{number}") == ["a.md"]
        indexes.current("/0", 1)
    shelf.read.clear()
    for number in (0, 3, 1):
        assert results(indexes, "quorum", directory=f"/{number}") == ["a.md"]
    assert shelf.read == ["a.md"]  # of /1 alone
    indexes.close()
    assert results(indexes, "quorum", directory="/3") == ["a.md"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("put", "drop", "work", "use")),
            st.integers(0, 4),
            st.sampled_from(WORDS),
        ),
        max_size=25,
    )
)
def test_the_index_follows_the_directory(steps: list[tuple[str, int, str]]) -> None:
    """After any changes, in any slices, the index finds what is there and nothing else."""
    shelf = Shelf()
    indexes = Indexes(shelf, Lock)
    truth: dict[str, str] = {}
    for what, number, word in steps:
        path = f"{number}.md"
        if what == "put":
            shelf.put(path, word)
            truth[path] = word
        elif what == "drop" and path in truth:
            shelf.drop(path)
            del truth[path]
        elif what == "work":
            indexes.work("/m", 1)
        elif what == "use":
            results(indexes, word, 1)
    for word in WORDS:
        assert results(indexes, word) == sorted(
            path for path, held in truth.items() if held == word
        )


def test_a_damaged_index_is_filled_again(tmp_path: Path) -> None:
    """What turns out to be damaged in the middle of a query is there again at the next use."""
    shelf = Shelf()
    count = many(shelf)
    indexes = Indexes(shelf, Lock, str(tmp_path))
    finish(indexes)
    spoil(tmp_path)
    assert len(results(indexes, "quorum")) < count
    with indexes.hold("/m"):
        assert "indexed again" in " ".join(indexes.current("/m", count).notes)
    assert len(results(indexes, "quorum")) == count
    finish(indexes)
    assert len(results(indexes, "quorum")) == count
    indexes.close()


def test_a_forgotten_index_leaves_nothing_on_disk(tmp_path: Path) -> None:
    """What an index kept on disk is gone, of directories not opened too; it is made anew."""
    shelf = Shelf()
    count = many(shelf)
    folder = tmp_path / "index"
    (folder / "another").mkdir(parents=True)
    indexes = Indexes(shelf, Lock, str(folder))
    finish(indexes)
    assert len(list(folder.iterdir())) == 2
    indexes.forget()
    assert not folder.exists()
    assert len(results(indexes, "quorum", count)) == count
    indexes.close()


def test_what_could_not_be_read_is_read_another_time() -> None:
    """A memory whose file could not be read is found by its header, and by its body later on."""
    shelf = Shelf(forgets=True)
    shelf.put("a.md", "lease", body="quorum")
    shelf.unreadable = {"a.md"}
    indexes = Indexes(shelf, Lock)
    assert (results(indexes, "lease"), results(indexes, "quorum")) == (["a.md"], [])
    shelf.unreadable = set()
    assert results(indexes, "quorum") == ["a.md"]


def test_a_loss_is_remembered_over_a_failed_look(tmp_path: Path) -> None:
    """When the directory cannot be looked at just after a loss, the next look makes up for it."""
    shelf = Shelf()
    count = many(shelf)
    indexes = Indexes(shelf, Lock, str(tmp_path))
    finish(indexes)
    spoil(tmp_path)
    assert len(results(indexes, "quorum")) < count
    shelf.refuses = True
    with pytest.raises(RefusedError):
        results(indexes, "quorum")
    shelf.refuses = False
    assert len(results(indexes, "quorum", count)) == count
    indexes.close()


def test_a_change_in_the_backlog_counts_once() -> None:
    """A memory that changes before it was indexed is one memory that is left."""
    shelf = Shelf()
    for number in range(4):
        shelf.put(f"{number}.md", "quorum")
    indexes = Indexes(shelf, Lock)
    with indexes.hold("/m"):
        indexes.current("/m", 0)
        for number in range(4):
            shelf.put(f"{number}.md", "lease")
        assert indexes.current("/m", 0).left == 4
