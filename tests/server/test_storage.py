"""The storage's promises, the same on both databases."""

from pathlib import Path

from memd.server.storage import open_storage


def test_a_repository_is_made_once(tmp_path: Path) -> None:
    """A remote has one repository, whatever is asked again."""
    storage = open_storage(str(tmp_path / "team.db"))
    first = storage.add_repository("github.com/acme/app", now=0.0)
    assert storage.add_repository("github.com/acme/app", now=1.0) == first
    assert storage.all_repositories() == (first,)
    storage.close()
