"""Store which project root each memory directory belongs to.

Two roots can have the same slug, and so the same directory; they would share memories although
nobody wants that. So the first root that uses a directory owns it.
"""

from msgspec import Struct

from memd.base.recent import Recent
from memd.state import docs
from memd.state.docs import Docs


class OwnerRoot(Struct, frozen=True):
    """The root that owns a memory directory, which is the document's place."""

    root: str


class Roots:
    """The owner of each memory directory. Methods block and raise StateUnusableError."""

    def __init__(self, table: Docs) -> None:
        self._table = table
        self._known: Recent[str, str] = Recent()  # owners by memory directory

    def owner(self, directory: str, root: str) -> str:
        """Return the root that owns a directory; ``root`` becomes the owner if there is none."""
        known = self._known.get(directory)
        if known is None:
            with self._table.transaction() as cursor:
                stored = docs.get(cursor, OwnerRoot, directory)
                if stored is None:
                    docs.put(cursor, OwnerRoot(root), directory)
            known = self._known[directory] = stored.root if stored else root
        return known

    def all(self) -> dict[str, str]:
        """Return all owners by memory directory."""
        return {place: each.root for (place, _), each in self._table.list_all(OwnerRoot).items()}

    def move(self, directory: str, root: str) -> None:
        """Make another root the owner of a directory whose old root no longer exists."""
        self._table.put(OwnerRoot(root), directory)
        self._known[directory] = root
