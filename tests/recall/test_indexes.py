"""One index a directory, in step with its catalogue."""

from pathlib import Path
from threading import Lock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.recall.indexes import IndexBusyError, Indexes, opener
from memd.state.index import Index
from memd.state.meaning import Meaning
from tests.recall.shelf import RefusedError, Shelf
from tests.state.tiny_model import write_model

WORDS = ("quorum", "lease", "shard", "freeze")


def found(indexes: Indexes, query: str, allowance: int = 100, directory: str = "/m") -> list[str]:
    """Return what a directory's index finds."""
    with indexes.hold(directory):
        ranker = indexes.current(directory, allowance).ranker
        return sorted(hit.path for hit in ranker.rank(query, 10, floor=False))


def test_what_changed_is_indexed_once() -> None:
    """An unchanged memory is not read again; a changed one is; what is gone is forgotten."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    shelf.put("b.md", "lease")
    indexes = Indexes(shelf, Lock)
    assert found(indexes, "quorum") == ["a.md"]
    shelf.read.clear()
    shelf.put("b.md", "quorum")
    assert found(indexes, "quorum") == ["a.md", "b.md"]
    assert shelf.read == ["b.md"]
    shelf.drop("a.md")
    assert found(indexes, "quorum") == ["b.md"]


def test_a_later_process_reads_nothing_again(tmp_path: Path) -> None:
    """A hundred memories that were indexed once are found by another process without a read."""
    shelf = Shelf()
    for number in range(100):
        shelf.put(f"{number}.md", "quorum")
    earlier = Indexes(shelf, Lock, opener(str(tmp_path)))
    with earlier.hold("/m"):
        while earlier.work("/m", 100):
            pass
    earlier.close()
    shelf.read.clear()
    later = Indexes(shelf, Lock, opener(str(tmp_path)))
    assert len(found(later, "quorum")) == 10
    assert shelf.read == []
    later.close()


def test_a_lost_mark_costs_only_what_differs() -> None:
    """Where the catalogue begins anew, only what has another fingerprint is read again."""
    shelf = Shelf(forgets=True)
    shelf.put("a.md", "quorum")
    shelf.put("b.md", "lease")
    shelf.put("c.md", "lease")
    indexes = Indexes(shelf, Lock)
    found(indexes, "quorum")
    shelf.read.clear()
    shelf.drop("c.md")
    shelf.put("b.md", "shard")
    assert (found(indexes, "lease"), found(indexes, "shard")) == ([], ["b.md"])
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
    assert found(indexes, "quorum", 0) == ["4.md", "5.md"]
    shelf.put("new.md", "quorum")
    assert found(indexes, "quorum", 1) == ["4.md", "5.md", "new.md"]
    shelf.drop("0.md")
    with indexes.hold("/m"):
        while indexes.work("/m", 1):
            pass
    assert found(indexes, "quorum", 0) == ["1.md", "2.md", "3.md", "4.md", "5.md", "new.md"]


def test_work_alone_takes_a_directory_up() -> None:
    """Indexing ahead of the first prompt needs no prompt."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    indexes = Indexes(shelf, Lock)
    with indexes.hold("/m"):
        assert indexes.work("/m", 10) is False
    assert found(indexes, "quorum", 0) == ["a.md"]


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
    assert found(indexes, "quorum") == []


def test_an_unreadable_directory_lets_go() -> None:
    """A failure leaves the directory free for its next use, and the index as it was."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    indexes = Indexes(shelf, Lock)
    shelf.refuses = True
    for _ in range(2):
        with pytest.raises(RefusedError):
            found(indexes, "quorum")
    shelf.refuses = False
    assert found(indexes, "quorum") == ["a.md"]


def test_directories_unused_for_longest_are_dropped() -> None:
    """Indices stay for a bounded number of directories; one in use is never dropped."""
    shelf, made = Shelf(), []

    def make(directory: str) -> Index:
        made.append(directory)
        return Index(None)

    indexes = Indexes(shelf, Lock, make, most=2)
    with indexes.hold("/0"):
        for number in range(1, 4):
            found(indexes, "quorum", directory=f"/{number}")
    for number in (0, 3, 1):
        found(indexes, "quorum", directory=f"/{number}")
    assert made == ["/0", "/1", "/2", "/3", "/1"]
    indexes.close()
    found(indexes, "quorum", directory="/3")
    assert made[-1] == "/3"


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
            with indexes.hold("/m"):
                indexes.work("/m", 1)
        elif what == "use":
            found(indexes, word, 1)
    for word in WORDS:
        assert found(indexes, word) == sorted(path for path, held in truth.items() if held == word)


def test_without_a_semantic_model_nothing_is_learnt(tmp_path: Path) -> None:
    """Where no model can be used the answers are those of the words, and nothing is left to do."""
    shelf = Shelf()
    shelf.put("a.md", "quorum")
    plain = Indexes(shelf, Lock)
    assert not plain.use("/a/model")
    assert not plain.learn("/m", 5)
    able = Indexes(shelf, Lock, meaning=Meaning(), vectors=str(tmp_path))
    assert not able.use("")
    assert able.use(str(tmp_path / "nowhere"))
    assert found(able, "quorum") == ["a.md"]
    assert not able.learn("/m", 5)
    assert list(tmp_path.iterdir()) == []


def test_vectors_are_learnt_in_slices(tmp_path: Path) -> None:
    """With a model every memory gets its vector, read from the directory, a slice at a time."""
    for library in ("numpy", "onnxruntime", "tokenizers"):
        pytest.importorskip(library, reason="the extra [semantic] is not installed")
    shelf = Shelf()
    for number in range(5):
        shelf.put(f"{number}.md", "quorum")
    indexes = Indexes(shelf, Lock, meaning=Meaning(), vectors=str(tmp_path / "vectors"))
    assert indexes.use(str(write_model(tmp_path / "model", {"quorum": (1.0, 0.0)})))
    assert len(found(indexes, "quorum")) == 5
    shelf.read.clear()
    assert indexes.learn("/m", 3)
    assert not indexes.learn("/m", 3)
    assert sorted(shelf.read) == [f"{number}.md" for number in range(5)]
    assert len(found(indexes, "quorum")) == 5
    assert len(list((tmp_path / "vectors").iterdir())) == 1
    assert indexes.use("")
    assert not indexes.learn("/m", 3)
    assert not indexes.use("")


def test_an_index_goes_to_disk_and_comes_back(tmp_path: Path) -> None:
    """What work has brought to disk is not read again by the next process, nor after a drop."""
    shelf = Shelf()
    for number in range(8):
        shelf.put(f"{number}.md", "quorum", mtime_ns=number)

    def make(directory: str) -> Index:
        return Index(f"{tmp_path}{directory}", small=2, batch=3)

    indexes = Indexes(shelf, Lock, make)
    with indexes.hold("/m"):
        assert indexes.current("/m", 5).busy
        while indexes.work("/m", 2):
            pass
        assert not indexes.current("/m", 0).busy
    assert len(found(indexes, "quorum")) == 8
    indexes.drop("/m")
    kept = len(Index(f"{tmp_path}/m").known())
    assert kept >= 5
    shelf.read.clear()
    again = Indexes(shelf, Lock, make)
    assert len(found(again, "quorum")) == 8
    assert len(shelf.read) == 8 - kept
    indexes.close()
    again.close()


def test_a_damaged_index_is_filled_again(tmp_path: Path) -> None:
    """What turns out to be damaged in the middle of a query is there again at the next use."""
    shelf = Shelf()
    for number in range(8):
        shelf.put(f"{number}.md", "quorum", mtime_ns=number)
    indexes = Indexes(shelf, Lock, lambda _: Index(str(tmp_path / "i"), small=2, batch=3))
    with indexes.hold("/m"):
        while indexes.work("/m", 4):
            pass
    (tmp_path / "i" / "words").write_bytes(b"")
    (tmp_path / "i" / "words").write_bytes(bytes(100_000))
    assert len(found(indexes, "quorum")) < 8
    with indexes.hold("/m"):
        assert "damaged" in " ".join(indexes.current("/m", 100).notes)
        while indexes.work("/m", 4):
            pass
    assert len(found(indexes, "quorum")) == 8
    indexes.close()


def test_a_forgotten_index_leaves_nothing_on_disk(tmp_path: Path) -> None:
    """What an index kept on disk is gone, of directories not opened too; it is made anew."""
    shelf = Shelf()
    for number in range(100):
        shelf.put(f"{number}.md", "quorum")
    folder, vectors = tmp_path / "index", tmp_path / "vectors"
    (folder / "another").mkdir(parents=True)
    indexes = Indexes(shelf, Lock, opener(str(folder)), folder=str(folder), vectors=str(vectors))
    with indexes.hold("/m"):
        while indexes.work("/m", 100):
            pass
    assert len(list(folder.iterdir())) == 2
    indexes.forget()
    assert not folder.exists()
    assert len(found(indexes, "quorum")) == 10
    indexes.close()


def test_the_place_of_an_index_is_its_directory_s(tmp_path: Path) -> None:
    """Every directory has a folder of its own below the one of all indices."""
    opener(str(tmp_path))("/a").close()
    assert opener(str(tmp_path))("/a")._folder != opener(str(tmp_path))("/b")._folder
