"""The values of the server: repositories, members and roles, entries and their versions."""

from enum import StrEnum
from typing import Any

from msgspec import Struct

Answer = dict[str, Any]  # the members of a JSON object


class Role(StrEnum):
    """What a member may do in a repository, the least first."""

    READER = "reader"
    MEMBER = "member"  # writes, and removes own entries
    MAINTAINER = "maintainer"  # removes all, invites


class Repository(Struct, frozen=True):
    """A repository: ``revision`` grows by one with each accepted write, ``epoch`` is random.

    Tombstones up to the revision ``oldest`` may be deleted. ``entries`` and ``bytes`` count the
    live entries.
    """

    id: str
    remote: str
    epoch: str
    revision: int
    oldest: int = 0
    entries: int = 0
    bytes: int = 0

    @property
    def mark(self) -> str:
        """Return the text of the repository's ETag."""
        return f"{self.epoch}.{self.revision}"


class Session(Struct, frozen=True):
    """The sender of a request: the token's number, its member and device."""

    token: int
    member: str
    device: str


class DeviceToken(Struct, frozen=True):
    """A device's token, without its text. Times are seconds since 1970."""

    number: int
    member: str
    device: str
    at: float
    expires: float
    revoked: float | None = None


class Version(Struct, frozen=True):
    """One version of a key, live or a tombstone (``hash`` is "" and ``reason`` says why).

    ``at`` is seconds since 1970. ``content`` is ``None`` if it was not requested or is deleted.
    """

    key: str
    revision: int
    hash: str
    size: int
    at: float
    member: str
    device: str
    reason: str = ""
    content: bytes | None = None


class EntryPage(Struct, frozen=True):
    """Live entries and tombstones, by revision and key; ``next`` is the next page's cursor."""

    epoch: str
    revision: int
    entries: tuple[Version, ...]
    removed: tuple[Version, ...]
    next: str | None


class PutEntry(Struct, frozen=True):
    """One entry of a PUT: ``base`` is the revision it is based on, ``None`` for a new key."""

    key: str
    content: bytes
    hash: str
    base: int | None
