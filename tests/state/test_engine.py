"""The one door to tantivy."""

from pathlib import Path

import pytest

from memd.state.engine import Engine, EngineBrokenError, Writer, stems


def write(engine: Engine, documents: dict[str, tuple[str, int] | None]) -> None:
    """Replace documents by name, or remove them, and let the engine see it."""
    writer = engine.writer()
    for name, document in documents.items():
        writer.remove(name)
        if document is not None:
            writer.add(name, *document)
    writer.commit()
    engine.reload()


def test_stems_are_english() -> None:
    """Forms of one English word have one stem, in the order that was asked for."""
    assert stems(["running", "runs", "tests"]) == ["run", "run", "test"]


def test_what_was_committed_is_found_again(tmp_path: Path) -> None:
    """An index that is opened again finds by words and by name what was committed."""
    write(Engine(str(tmp_path), new=True), {"a": ("x y y", 7), "b": ("y z", 9)})
    engine = Engine(str(tmp_path), new=False)
    assert engine.count == 2
    assert engine.search({"x": 1.0}, 10) == [7]
    assert engine.search({"y": 1.0}, 10) == [7, 9]
    assert engine.search({"none": 1.0}, 10) == engine.search({}, 10) == []
    assert (engine.holders("y"), engine.holders("none")) == (2, 0)
    assert (engine.find("b"), engine.find("c")) == (9, None)


def test_a_weight_decides(tmp_path: Path) -> None:
    """The word that weighs more wins, however rare the library thinks the other is."""
    engine = Engine(str(tmp_path), new=True)
    write(engine, {"a": ("x", 1), "b": ("x", 2), "c": ("y", 3)})
    assert engine.search({"x": 2.0, "y": 1.0}, 10) == [1, 2, 3]
    assert engine.search({"x": 1.0, "y": 2.0, "z": 0.0}, 10) == [3, 1, 2]


def test_a_replaced_document_is_not_found(tmp_path: Path) -> None:
    """A document is known by its name: the last one of a name counts, a removed one is gone."""
    engine = Engine(str(tmp_path), new=True)
    write(engine, {"a": ("x", 1), "b": ("x", 2)})
    write(engine, {"a": ("y", 3), "b": None})
    assert (engine.search({"x": 1.0, "y": 1.0}, 10), engine.count) == ([3], 1)
    assert engine.find("b") is None


def test_nothing_is_seen_before_it_is_taken_over(tmp_path: Path) -> None:
    """Reading sees what was committed when it was last told to look."""
    engine = Engine(str(tmp_path), new=True)
    writer = engine.writer()
    writer.add("a", "x", 1)
    writer.commit()
    assert engine.search({"x": 1.0}, 10) == []
    engine.reload()
    assert engine.search({"x": 1.0}, 10) == [1]


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """One engine has one writer; the next may come when the first is gone."""
    engine = Engine(str(tmp_path), new=True)
    first: Writer | None = engine.writer()
    with pytest.raises(EngineBrokenError, match="cannot be used"):
        engine.writer()
    del first
    engine.writer().commit()


def test_lock_files_of_the_dead_do_not_matter(tmp_path: Path) -> None:
    """Lock files that a killed daemon left behind keep nobody from writing."""
    Engine(str(tmp_path), new=True)
    for name in (".tantivy-writer.lock", ".tantivy-meta.lock"):
        (tmp_path / name).touch()
    write(Engine(str(tmp_path), new=False), {"a": ("x", 1)})


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    """Opening what is no index, or what cannot be made, says why."""
    with pytest.raises(EngineBrokenError):
        Engine(str(tmp_path / "missing"), new=False)
    (tmp_path / "file").touch()
    with pytest.raises(EngineBrokenError):
        Engine(str(tmp_path / "file"), new=True)


def test_what_the_library_cannot_take_is_an_error_of_ours(tmp_path: Path) -> None:
    """A word that no encoding holds does not come out as the library's own error."""
    engine = Engine(str(tmp_path), new=True)
    with pytest.raises(EngineBrokenError):
        engine.holders("\ud800")
