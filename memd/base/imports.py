"""Values of export and import that several floors share."""

from msgspec import Struct

from memd.base.values import IMPORT


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
