"""The nouns of the server: repositories, who may do what, entries and their versions."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a member may do in a repository, the least first."""

    READER = "reader"
    MEMBER = "member"  # writes, and removes own entries
    MAINTAINER = "maintainer"  # removes all, invites


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: ``revision`` grows by one with each accepted write, ``epoch`` is random."""

    id: str
    remote: str
    epoch: str
    revision: int


@dataclass(frozen=True, slots=True)
class Session:
    """Whose request it is: the token's number, its member and device."""

    token: int
    member: str
    device: str
    admin: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a key, live or a tombstone (``hash`` is "" and ``reason`` says why).

    ``at`` is seconds since 1970. ``content`` is ``None`` where it was not asked for or is gone.
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


@dataclass(frozen=True, slots=True)
class PutEntry:
    """One entry of a PUT: ``base`` is the revision it is based on, ``None`` for a new key."""

    key: str
    content: bytes
    hash: str
    base: int | None
