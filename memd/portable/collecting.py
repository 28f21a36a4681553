"""Collect the files of an export one at a time, or a reason for each file left out.

Rules of this file
- Bytes are exported as on the disk.
- No text and no name that looks like a credential is exported.
- One file is in memory at a time.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from memd.base.imports import RawNotes
from memd.base.names import LOGS, TEAM, in_catalogue
from memd.base.text import decode, sha256
from memd.portable.still import StillFile
from memd.portable.values import ExportPart, LeftOutFile
from memd.store import memory, secret

_LIKE_A_KEY = "its name looks like a credential"


class Collected(Struct, frozen=True):
    """A file to export: its name in its folder, content, and manifest fields."""

    name: str
    content: bytes
    mtime_ns: int = 0
    type: str = ""
    origin: str = ""


Item = Collected | LeftOutFile


def memories(files: Iterable[StillFile], known: dict[str, str]) -> Iterator[Item]:
    """Yield the files of a memory directory for an export, or why each is left out.

    ``known`` caches the reason to leave a text out by its hash, "" for none, so that a second pass
    over the same files is quick.
    """
    for file in files:
        if file.problem:
            yield LeftOutFile(file.path, file.problem)
            continue
        kind = origin = ""
        if in_catalogue(file.path):
            parsed = memory.parse(file.content, file.path)
            kind, origin = parsed.type or "", parsed.origin
        collected = Collected(file.path, file.content, file.mtime_ns, kind, origin)
        yield _without_credentials(collected, known)


def notes(session_notes: Iterable[RawNotes]) -> Iterator[Item]:
    """Yield session notes for an export, ordered by session, or why each is left out."""
    for each in sorted(session_notes, key=lambda each: each.session):
        name = f"{each.session}.md"
        if each.problem:
            yield LeftOutFile(name, each.problem)
        else:
            yield _without_credentials(Collected(name, each.content, each.mtime_ns))


def covers(path: str, *, parts: frozenset[ExportPart]) -> bool:
    """Return whether an export of these parts includes a path of a memory directory."""
    top_folder = path.partition("/")[0]
    if top_folder == TEAM.removesuffix("/"):
        return ExportPart.TEAM in parts
    if top_folder == LOGS:
        return ExportPart.LOGS in parts
    return True


def _without_credentials(file: Collected, known: dict[str, str] | None = None) -> Item:
    """Return a file, or a ``LeftOutFile`` if its name or text looks like a credential.

    ``known`` caches the reason for each text by its hash, "" if it has no credential.
    """
    if secret.find(file.name):
        return LeftOutFile(secret.scrub(file.name), _LIKE_A_KEY)
    if known is None:
        known = {}
    digest = sha256(file.content)
    if digest not in known:
        hits = secret.find(decode(file.content))
        why = f"line {hits[0].line} looks like a credential ({hits[0].rule})" if hits else ""
        known[digest] = why
    return LeftOutFile(file.name, known[digest]) if known[digest] else file
