"""Which root a memory directory belongs to."""

from pathlib import Path

from memd.state.database import open_database
from memd.state.roots import SCHEMA, Roots


def test_the_first_root_is_remembered(tmp_path: Path) -> None:
    """A directory belongs to the root that was seen first, also after a restart."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    roots = Roots(database)
    assert roots.owner("/m", "/a") == "/a"
    assert roots.owner("/m", "/b") == "/a"
    assert Roots(database).owner("/m", "/b") == "/a"
    database.close()


def test_a_directory_can_move_to_another_root(tmp_path: Path) -> None:
    """When the old root is gone the directory goes to the new one for good."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    roots = Roots(database)
    roots.owner("/m", "/a")
    roots.move("/m", "/b")
    assert (roots.owner("/m", "/a"), Roots(database).owner("/m", "/a")) == ("/b", "/b")
    database.close()
