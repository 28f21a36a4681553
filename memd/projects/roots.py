"""Store which project root each memory directory belongs to.

Two roots can have the same slug, and so the same directory; they would share memories although
nobody wants that. So the first root that uses a directory owns it, and both are told.
"""

import os

from msgspec import Struct

from memd.base.recent import Recent
from memd.state.docs import Docs


class OwnerRoot(Struct, frozen=True):
    """The root that owns a memory directory (the document's place), and another that came later."""

    root: str
    other: str = ""


class Roots:
    """The owner of each memory directory. Methods block and raise StateUnusableError."""

    def __init__(self, table: Docs) -> None:
        self._table = table
        self._known: Recent[str, OwnerRoot] = Recent()  # by memory directory

    def other(self, directory: str, root: str) -> str:
        """Return another existing root whose directory this is too, "" if there is none.

        A root becomes the owner of a directory that has none, or whose owner no longer exists.
        """
        known = self._known.get(directory) or self._table.get(OwnerRoot, directory)
        if known is None or (known.root != root and not os.path.isdir(known.root)):
            known = self._put(directory, OwnerRoot(root))
        elif root not in (known.root, known.other):
            known = self._put(directory, OwnerRoot(known.root, root))
        self._known[directory] = known
        other = known.other if known.root == root else known.root
        return other if other and os.path.isdir(other) else ""

    def all(self) -> dict[str, str]:
        """Return all owners by memory directory."""
        return {place: each.root for (place, _), each in self._table.list_all(OwnerRoot).items()}

    def _put(self, directory: str, roots: OwnerRoot) -> OwnerRoot:
        self._table.put(roots, directory)
        return roots
