"""Which project root a memory directory belongs to."""

from memd.state.database import Database
from memd.state.roots import Roots


def test_a_directory_belongs_to_one_root(database: Database) -> None:
    """The root that was seen first counts, also after a restart, until it is moved for good."""
    assert [Roots(database).owner("/m", root) for root in ("/a", "/b")] == ["/a", "/a"]
    roots = Roots(database)
    assert roots.owner("/m", "/b") == "/a"
    roots.move("/m", "/b")
    assert (roots.owner("/m", "/a"), Roots(database).owner("/m", "/a")) == ("/b", "/b")
