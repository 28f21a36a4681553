"""The nouns of a sync: what stands here, what was equal last, what the server says, and the act."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from memd.core.team import Base


class RemoteEntry(Struct, frozen=True):
    """An entry as a server tells it; ``hash`` is ``REMOVED`` for a tombstone.

    ``content`` is ``None`` where only hashes were asked for. ``reason`` is a tombstone's.
    """

    key: str
    hash: str
    revision: int
    member: str = ""
    device: str = ""
    at: float = 0.0
    content: bytes | None = None
    reason: str = ""

    @property
    def base(self) -> Base:
        """What the entry is once it stands here."""
        return Base(self.key, self.hash, self.revision, self.member, self.device, self.at)


class Act(StrEnum):
    """What a sync does about one key."""

    NOTHING = "nothing"
    TAKE = "take"  # the server's text is written
    ADOPT = "adopt"  # both have the same text: the base moves
    PUSH = "push"
    MERGE = "merge"  # both changed: written if the texts merge, else a conflict
    CONFLICT = "conflict"  # the server's text is written, ours is listed
    RESTORE = "restore"  # deleted here: the server's text is written again
    REMOVE = "remove"  # removed there, unchanged here
    HOLD = "hold"  # removed there, changed or new here: it stays and is not sent
    FORGET = "forget"  # gone on both sides


class Membership(Struct, frozen=True):
    """A memory directory's place on a server.

    ``server`` is its address (scheme, host, port), ``repository`` the server's id for ``remote``
    (normalised, as ``github.com/acme/app``), ``member`` and ``device`` the names there. ``token``
    is the name of the file beside ``team.toml`` that holds the token. ``origin`` is what the root
    named as its repository when it joined, "" for none: a sync pauses once it names another.
    """

    root: str
    directory: str
    server: str
    repository: str
    remote: str
    member: str
    device: str
    token: str
    at: float
    origin: str = ""


Bases = Mapping[str, Base]
