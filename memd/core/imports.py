"""Values of export and import that several floors share: original files and past changes."""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from memd.core.values import IMPORT, Change, Imported


class Original(Struct, frozen=True):
    """One imported file, as the state file records it.

    ``exported`` is the SHA-256 of the bytes in the archive, "" where it had no such file, and
    ``origin`` is the archive's statement on whose words these are. ``live`` is the SHA-256 of the
    file that memd wrote, with its own marks, "" while it is unknown. As long as the file has the
    hash ``live``, an export writes the archive's bytes again.
    """

    path: str
    exported: str
    live: str = ""
    origin: str = ""
    kind: str = ""


class PastFile(Struct, frozen=True):
    """One file of a past change: hashes of its texts, ``None`` where there was none."""

    path: str
    before: str | None = None
    after: str | None = None


class PastChange(Struct, frozen=True):
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
        """Its names and texts, one on each line; without the hashes, which look like keys."""
        facts = (self.client, self.session, self.model, self.reason, self.origin)
        return "\n".join((*facts, *(file.path for file in self.files)))


class RawNotes(Struct, frozen=True):
    """The notes of a session, byte for byte; ``problem`` says why they cannot be read."""

    session: str
    content: bytes = b""
    mtime_ns: int = 0
    problem: str = ""


def imported_from(kind: str) -> str:
    """Return the origin of a change that was imported from this kind of source."""
    return f"{IMPORT}:{kind}"


def is_import(origin: str) -> bool:
    """Say whether a change of this origin was made by an import."""
    return origin.partition(":")[0] == IMPORT


def action_of(file: PastFile) -> str:
    """Return the journal's word for a change of a file: created, updated or deleted."""
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
    """Return the effect that stores originals in the same transaction as a change set.

    An original whose ``live`` is "" gets the hash that the file has after the change set.
    """
    return Imported(msgspec.json.encode(list(originals)).decode())
