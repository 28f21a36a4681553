"""The nouns of export and import that several floors share: originals and past changes."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from memd.core.values import IMPORT, Change, Imported


@dataclass(frozen=True, slots=True)
class Original:
    """What an import brought as one file, as the state file remembers it.

    ``exported`` is the SHA-256 of the archive's bytes, which ``origin`` belongs to: what the
    archive said of whose words these are; "" where it had no such file. ``live`` is that of what
    memd wrote then, its own marks included, "" where that is not known yet. While the file has the
    hash ``live``, an export gives the archive's bytes back.
    """

    path: str
    exported: str
    live: str = ""
    origin: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PastFile:
    """One file of a past change: hashes of its texts, ``None`` where there was none."""

    path: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class PastChange:
    """One change of a history; ``at`` in seconds since 1970."""

    at: float
    actor: str
    client: str = ""
    session: str = ""
    model: str = ""
    reason: str = ""
    origin: str = ""
    files: tuple[PastFile, ...] = ()

    @property
    def words(self) -> str:
        """What somebody called something in it, a line each: no hashes, which look like keys."""
        facts = (self.client, self.session, self.model, self.reason, self.origin)
        return "\n".join((*facts, *(file.path for file in self.files)))


@dataclass(frozen=True, slots=True)
class RawNotes:
    """The notes of a session, byte for byte; ``problem`` says why they cannot be read."""

    session: str
    content: bytes = b""
    mtime_ns: int = 0
    problem: str = ""


def imported_from(kind: str) -> str:
    """Return the origin of a change that an import made, of a kind of source."""
    return f"{IMPORT}:{kind}"


def is_import(origin: str) -> bool:
    """Say whether a change of this origin was made by an import."""
    return origin.partition(":")[0] == IMPORT


def action_of(file: PastFile) -> str:
    """Return what a past change did to a file in one word, as the journal says it."""
    if file.before is None:
        return "created"
    return "deleted" if file.after is None else "updated"


def past_of(change: Change) -> PastChange:
    """Return a change of the journal as an archive holds it."""
    by = change.by
    files = tuple(PastFile(file.path, file.before, file.after) for file in change.files)
    words = (by.client, by.session, by.model, by.reason, by.origin)
    return PastChange(change.at, by.actor.value, *words, files)


def imported(originals: Iterable[Original]) -> Imported:
    """Return the effect with which originals become true together with a change set.

    One that does not know its ``live`` gets the hash that the file has after the set.
    """
    return Imported(msgspec.json.encode(list(originals)).decode())
