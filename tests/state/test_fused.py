"""One directory ranked by words and by meaning."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from memd.state import fused
from memd.state.fused import Fused, place
from memd.state.meaning import Meaning
from memd.state.search import Entry, SearchIndex
from tests.state.tiny_model import write_model

for library in ("numpy", "onnxruntime", "tokenizers"):
    pytest.importorskip(library, reason="the extra [semantic] is not installed")

WORDS = {
    "velk": (1.0, 0.0, 0.0),
    "drimmo": (0.9, 0.1, 0.0),
    "tosk": (0.3, 0.9, 0.0),
    "bralle": (0.0, 0.0, 1.0),
}
QUERY = "where do I tosk the velk?"


def _entry(path: str, description: str, version: int = 1) -> Entry:
    return Entry(path, (version, 0, 0), version, "", description, "", "")


ENTRIES = {
    entry.path: entry
    for entry in (
        _entry("words.md", "tosk shops nearby open on Sunday"),
        _entry("meaning.md", "drimmo mended by Anna"),
        _entry("other.md", "bralle with beans"),
    )
}


class Shelf:
    """Entries as an owner reads them; counts what was asked for."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self.entries = dict(entries)
        self.asked: list[str] = []

    def read(self, paths: Sequence[str]) -> Iterable[Entry]:
        """Return the entries of paths."""
        self.asked += paths
        return [self.entries[path] for path in paths if path in self.entries]


def _meaning(folder: Path) -> Meaning:
    meaning = Meaning()
    meaning.use(str(write_model(folder / "model", WORDS)))
    return meaning


def _ranker(folder: Path, meaning: Meaning, shelf: Shelf) -> Fused:
    ranker = Fused(SearchIndex(), meaning, place(str(folder / "vectors"), "/a/directory"))
    ranker.update(shelf.entries.values())
    return ranker


def _finish(ranker: Fused, shelf: Shelf, most: int = 2) -> None:
    lock = threading.Lock()
    while ranker.work(shelf.read, most, lock):
        assert not lock.locked()


def _paths(ranker: Fused, query: str = QUERY) -> list[str]:
    return [item.path for item in ranker.rank(query, 5)]


def test_without_a_model_words_decide(tmp_path: Path) -> None:
    """Where no model is named, or none is loaded yet, the answers are those of the words."""
    lexical = SearchIndex()
    lexical.update(ENTRIES.values())
    for meaning in (Meaning(), _meaning(tmp_path)):
        ranker = _ranker(tmp_path, meaning, Shelf(ENTRIES))
        assert ranker.known() == lexical.known()
        assert ranker.rank(QUERY, 5) == lexical.rank(QUERY, 5)
        assert ranker.rank(QUERY, 5, floor=False) == lexical.rank(QUERY, 5, floor=False)
        assert ranker.explain(QUERY, 5) == lexical.explain(QUERY, 5)
    assert not Fused(lexical, Meaning(), "").work(Shelf({}).read, 1, nullcontext())


def test_meaning_adds_what_words_miss(tmp_path: Path) -> None:
    """A memory without a word of the prompt comes when it is near, and its parts say why."""
    shelf = Shelf(ENTRIES)
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    assert _paths(ranker) == ["words.md"]
    _finish(ranker, shelf)
    assert sorted(_paths(ranker)) == ["meaning.md", "words.md"]
    rows = {item.path: item for item in ranker.explain(QUERY, 5)}
    assert rows["meaning.md"].parts["semantic"] > 0.3
    assert rows["meaning.md"].terms == ()
    found = ranker.rank(QUERY, 5, lambda path: path == "meaning.md", floor=False)
    assert [item.path for item in found] == ["words.md"]


def test_meaning_answers_only_who_asks(tmp_path: Path) -> None:
    """A question without a word of any memory gets what is near; what carries on gets nothing."""
    shelf = Shelf(ENTRIES)
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    assert _paths(ranker, "is there a velk?") == []
    _finish(ranker, shelf)
    assert _paths(ranker, "is there a velk?") == ["meaning.md"]
    assert ranker.explain("again the velk", 5) == ()
    assert _paths(ranker, "is there a zork?") == []


def test_a_name_counts_where_there_is_no_description(tmp_path: Path) -> None:
    """A vector is made of the description, of the name only in its place, and of the body."""
    first, second = _entry("first.md", "bralle"), _entry("second.md", "")
    entries = (replace(first, name="velk"), replace(second, name="velk"))
    shelf = Shelf({entry.path: entry for entry in entries})
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    _finish(ranker, shelf)
    assert _paths(ranker, "is there a drimmo?") == ["second.md"]


def test_a_restart_computes_nothing_again(tmp_path: Path) -> None:
    """Kept vectors are taken over; only what changed meanwhile is computed."""
    shelf = Shelf(ENTRIES)
    _finish(_ranker(tmp_path, _meaning(tmp_path), shelf), shelf)
    again = Shelf({**ENTRIES, "other.md": _entry("other.md", "bralle of old", 2)})
    ranker = _ranker(tmp_path, _meaning(tmp_path), again)
    _finish(ranker, again)
    assert again.asked == ["other.md"]
    assert sorted(_paths(ranker)) == ["meaning.md", "words.md"]


def test_changes_reach_the_vectors(tmp_path: Path) -> None:
    """A changed memory gets a new vector, a removed one is never answered again."""
    shelf = Shelf(ENTRIES)
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    _finish(ranker, shelf)
    shelf.entries["other.md"] = _entry("other.md", "drimmo insurance", 2)
    ranker.update(shelf.entries.values())
    ranker.remove(["meaning.md", "never.md"])
    assert _paths(ranker) == ["words.md"]
    _finish(ranker, shelf)
    assert sorted(_paths(ranker)) == ["other.md", "words.md"]


def test_what_changes_while_it_is_computed_is_not_kept(tmp_path: Path) -> None:
    """A memory that is removed, replaced or unreadable while its slice runs gets no old vector."""
    shelf = Shelf(ENTRIES)
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    newer = _entry("meaning.md", "bralle", 2)

    def read(paths: Sequence[str]) -> Iterable[Entry]:
        found = list(shelf.read(paths))
        ranker.remove(["other.md"])
        ranker.update([newer])
        return [entry for entry in found if entry.path != "words.md"]

    assert ranker.work(read, 10, nullcontext())
    shelf.entries["meaning.md"] = newer
    shelf.asked.clear()
    _finish(ranker, shelf)
    assert shelf.asked == ["meaning.md"]
    assert _paths(ranker) == ["words.md"]


def test_a_memory_newer_than_its_wish_waits_for_its_update(tmp_path: Path) -> None:
    """A file that is read in another version than the index knows is left to the next update."""
    shelf = Shelf({"words.md": _entry("words.md", "tosk")})
    ranker = _ranker(tmp_path, _meaning(tmp_path), shelf)
    shelf.entries["words.md"] = _entry("words.md", "tosk velk", 2)
    _finish(ranker, shelf)
    ranker.update(shelf.entries.values())
    _finish(ranker, shelf)
    assert shelf.asked == ["words.md", "words.md"]


def test_the_number_of_vectors_is_bounded(tmp_path: Path) -> None:
    """Beyond the bound memories are found by their words and get no vector."""
    shelf = Shelf(ENTRIES)
    path = place(str(tmp_path), "/a/directory")
    ranker = Fused(SearchIndex(), _meaning(tmp_path), path, rows=2)
    ranker.update(shelf.entries.values())
    _finish(ranker, shelf)
    ranker.update([_entry("new.md", "tosk the tosk")])
    _finish(ranker, shelf)
    assert sorted(shelf.asked) == ["meaning.md", "words.md"]
    assert "new.md" in _paths(ranker)


@pytest.mark.parametrize("at_prompt", [True, False])
def test_a_model_that_breaks_costs_meaning_only(tmp_path: Path, *, at_prompt: bool) -> None:
    """A model that fails at a prompt or at work is given up with a note; words go on."""
    meaning = _meaning(tmp_path)
    tokens = tmp_path / "model" / "tokenizer.json"
    tokens.write_text(tokens.read_text().replace('"bralle": 4', '"bralle": 99'))
    shelf = Shelf(ENTRIES)
    if at_prompt:
        del shelf.entries["other.md"]
    ranker = _ranker(tmp_path, meaning, shelf)
    _finish(ranker, shelf)
    found = _paths(ranker, f"{QUERY} and bralle")
    assert "words.md" in found
    assert "meaning.md" not in found
    assert "goes on by words" in meaning.notes[0]
    assert meaning.model is None
    assert not ranker.work(shelf.read, 1, nullcontext())


def test_a_model_taken_away_within_a_slice_leaves_nothing(tmp_path: Path) -> None:
    """A slice whose model is replaced while it runs keeps none of its vectors."""
    shelf = Shelf(ENTRIES)
    meaning = _meaning(tmp_path)
    ranker = _ranker(tmp_path, meaning, shelf)
    inner: list[bool] = []

    def read(paths: Sequence[str]) -> Iterable[Entry]:
        meaning.use("")
        inner.append(ranker.work(shelf.read, 1, nullcontext()))
        return shelf.read(paths)

    assert not ranker.work(read, 10, nullcontext())
    assert inner == [False]
    assert _paths(ranker) == ["words.md"]


def test_another_model_begins_anew(tmp_path: Path) -> None:
    """With another model the old vectors no longer count; without one they are let go."""
    shelf = Shelf(ENTRIES)
    meaning = _meaning(tmp_path)
    ranker = _ranker(tmp_path, meaning, shelf)
    _finish(ranker, shelf)
    meaning.use(str(write_model(tmp_path / "other", {**WORDS, "bike": (1.0, 0.0, 0.0)})))
    assert _paths(ranker) == ["words.md"]
    _finish(ranker, shelf)
    assert len(shelf.asked) == 6
    assert len(_paths(ranker)) == 2
    meaning.use("")
    assert not ranker.work(shelf.read, 1, nullcontext())
    assert _paths(ranker) == ["words.md"]
    ranker.remove(["words.md"])
    assert _paths(ranker) == []


def test_a_folder_that_takes_no_writes_costs_a_note(tmp_path: Path) -> None:
    """Where vectors cannot be kept they are used all the same, and a note says so."""
    (tmp_path / "vectors").write_text("a file in the folder's place")
    shelf = Shelf(ENTRIES)
    meaning = _meaning(tmp_path)
    ranker = _ranker(tmp_path, meaning, shelf)
    _finish(ranker, shelf)
    assert sorted(_paths(ranker)) == ["meaning.md", "words.md"]
    assert "computed again after a restart" in meaning.notes[0]


def test_places_differ() -> None:
    """Each directory has a file of its own, whatever bytes its name has."""
    assert place("/s", "/a") != place("/s", "/b\udcff")
    assert fused.ROWS == 100_000
