"""The door to tantivy."""

from pathlib import Path

import pytest

from memd.search.engine import Engine, EngineBrokenError
from memd.search.ranking import SearchDocument


def document(path: str, words: str) -> tuple[SearchDocument, int]:
    """Return a memory of some words, and its mark."""
    return SearchDocument(path, 1, f" {words} ", 0), len(words)


def write(engine: Engine, documents: dict[str, str | None]) -> None:
    """Replace memories by path, or remove them, and let the engine see it."""
    engine.write(
        {p: None if words is None else document(p, words) for p, words in documents.items()}
    )
    engine.reload()


def results(engine: Engine, weights: dict[str, float]) -> list[str]:
    """Return the paths that are proposed."""
    return [one.path for one in engine.propose(weights, 10)]


def test_what_was_committed_is_found_again(tmp_path: Path) -> None:
    """An index that is opened again finds by words and tells the versions of what was committed."""
    write(Engine(str(tmp_path / "i"), new=True), {"a": "x y y", "b": "y z"})
    engine = Engine(str(tmp_path / "i"))
    assert engine.count == 2
    assert engine.propose({"x": 1.0}, 10) == [document("a", "x y y")[0]]
    assert sorted(results(engine, {"y": 1.0})) == ["a", "b"]
    assert results(engine, {"none": 1.0}) == results(engine, {}) == []
    assert (engine.holders("y"), engine.holders("none")) == (2, 0)
    assert {engine.path(at): mark for mark, at in engine.versions().items()} == {"a": 5, "b": 3}


def test_a_replaced_document_is_not_found(tmp_path: Path) -> None:
    """A memory is known by its path: the last one counts, a removed one is gone."""
    engine = Engine(str(tmp_path / "i"), new=True)
    write(engine, {"a": "x", "b": "x"})
    write(engine, {"a": "y", "b": None})
    assert (results(engine, {"x": 1.0, "y": 1.0}), engine.count) == (["a"], 1)


def test_nothing_is_seen_before_a_reload(tmp_path: Path) -> None:
    """Reading sees what was committed when it was last told to look."""
    engine = Engine(str(tmp_path / "i"), new=True)
    engine.write({"a": document("a", "x")})
    assert results(engine, {"x": 1.0}) == []
    engine.reload()
    assert results(engine, {"x": 1.0}) == ["a"]


def test_what_the_dead_left_does_not_matter(tmp_path: Path) -> None:
    """Lock files and half a commit of a killed daemon keep nobody from reading and writing."""
    write(Engine(str(tmp_path / "i"), new=True), {"a": "x"})
    for name in (".tantivy-writer.lock", ".tantivy-meta.lock", "0123456789abcdef.idx"):
        (tmp_path / "i" / "engine" / name).touch()
    engine = Engine(str(tmp_path / "i"))
    write(engine, {"b": "x"})
    assert sorted(results(Engine(str(tmp_path / "i")), {"x": 1.0})) == ["a", "b"]


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    """Opening what is no index, or what cannot be made, says why."""
    with pytest.raises(EngineBrokenError):
        Engine(str(tmp_path / "missing"))
    (tmp_path / "file").touch()
    with pytest.raises(EngineBrokenError):
        Engine(str(tmp_path / "file" / "i"), new=True)


def test_what_the_library_cannot_take_is_an_error_of_ours(tmp_path: Path) -> None:
    """A word that no encoding holds does not come out as the library's own error."""
    engine = Engine(str(tmp_path / "i"), new=True)
    with pytest.raises(EngineBrokenError):
        engine.holders("\ud800")
    with pytest.raises(EngineBrokenError):
        engine.write({"a": document("a", "\ud800")})
