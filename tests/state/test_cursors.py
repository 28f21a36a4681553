"""Extraction cursors."""

from pathlib import Path

from memd.core.values import CursorMove
from memd.state import cursors
from memd.state.database import open_database


def test_a_cursor_is_what_it_was_last_moved_to(tmp_path: Path) -> None:
    """A cursor keeps the last move of its session and of its directory, whatever leads there."""
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    database = open_database(str(tmp_path / "state.db"), [cursors.SCHEMA])
    table = cursors.Cursors(database)
    assert table.get(str(real), "s") is None
    for position in (10, 20):
        with database.transaction() as cursor:
            cursors.move(cursor, str(link), CursorMove("s", "/t.jsonl", position, "m"))
    assert table.get(str(real), "s") == CursorMove("s", "/t.jsonl", 20, "m")
    assert table.get(str(link), "s") == CursorMove("s", "/t.jsonl", 20, "m")
    assert table.get(str(real), "other") is None
    assert table.get(str(tmp_path), "s") is None
    database.close()
