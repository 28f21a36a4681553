"""The values of a sync: a server's entry, the act for a key, and the membership of a directory."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from memd.base.team import Base


class RemoteEntry(Struct, frozen=True):
    """An entry of the server; ``hash`` is ``REMOVED`` for a tombstone, which has a ``reason``.

    ``content`` is ``None`` if only hashes were requested. ``size`` is in bytes, and known of the
    versions of a history alone.
    """

    key: str
    hash: str
    revision: int
    member: str = ""
    device: str = ""
    at: float = 0.0
    content: bytes | None = None
    reason: str = ""
    size: int = 0

    @property
    def base(self) -> Base:
        """The base of the entry's key once the entry is written here."""
        return Base(self.key, self.hash, self.revision, self.member, self.device, self.at)


class Act(StrEnum):
    """What a sync does about one key."""

    NOTHING = "nothing"
    TAKE = "take"  # the server's text is written
    ADOPT = "adopt"  # both have the same text: the base moves
    PUSH = "push"  # only changed here: it is sent
    MERGE = "merge"  # both changed: written if the texts merge, else a conflict
    CONFLICT = "conflict"  # the server's text is written, ours is listed
    RESTORE = "restore"  # deleted here: the server's text is written again
    REMOVE = "remove"  # removed there, unchanged here
    HOLD = "hold"  # removed there, changed or new here: it stays and is not sent
    FORGET = "forget"  # gone on both sides


class Membership(Struct, frozen=True):
    """The membership of a memory directory in a team: its server, repository and token file.

    ``server`` is the address (scheme, host, port), ``repository`` the server's id for ``remote``
    (normalised, such as ``github.com/acme/app``), ``member`` and ``device`` the names there.
    ``token`` is the name of the token's file beside ``team.toml``. ``origin`` is the repository in
    the project's .git/config when it joined, "" for none; the directory does not sync while it
    names another.
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
