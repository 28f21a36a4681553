"""Collect the files of an export one at a time, or a reason for each file left out.

Rules of this file
- Bytes are exported as on the disk, or as in the archive from which they were imported.
- No text and no name that looks like a credential is exported.
- One file is in memory at a time, except for the lines of one project's history.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memd.core.imports import PastChange, RawNotes, is_import, past_of
from memd.core.names import LOGS, TEAM, in_catalogue
from memd.core.text import decode, sha256
from memd.core.values import Change
from memd.documents import document, secrets
from memd.portable.settings_text import settings_text
from memd.portable.values import ExportPart, LeftOutFile
from memd.state.tables import ImportTable
from memd.store.service import StillFile

SETTINGS = "settings.toml"
BLOBS = "history/blobs/"
_OPTION_IS_PRIVATE = "it is a key, a path, a program, or no option of memd"
_LIKE_A_KEY = "its name looks like a credential"
_WORDS_LIKE_A_KEY = "what it says of itself looks like a credential"


class Collected(Struct, frozen=True):
    """A file to export: its name in its folder, content, and manifest fields."""

    name: str
    content: bytes
    mtime_ns: int = 0
    type: str = ""
    origin: str = ""


Item = Collected | LeftOutFile


def memories(
    files: Iterable[StillFile], originals: ImportTable, directory: str, known: dict[str, str]
) -> Iterator[Item]:
    """Yield the files of a memory directory for an export, or why each is left out.

    ``known`` caches the reason to leave a text out by its hash, "" for none, so that a second pass
    over the same files is quick.
    """
    imported = originals.of_directory(directory)
    for file in files:
        if file.problem:
            yield LeftOutFile(file.path, file.problem)
            continue
        original = imported.get((file.path, sha256(file.content)))
        if original and not original.exported:
            continue  # an index that the archive did not have, and nobody changed since
        body = originals.body(original.exported) if original else None
        content = file.content if body is None else body
        kind, origin = "", original.origin if original and body is not None else ""
        if in_catalogue(file.path):
            parsed = document.parse(content, file.path)
            kind = parsed.type or ""
            if body is None:  # not the archive's bytes, so the archive's claim does not hold
                origin = parsed.origin
        yield _without_credentials(
            Collected(file.path, content, file.mtime_ns, kind, origin), known
        )


def notes(session_notes: Iterable[RawNotes]) -> Iterator[Item]:
    """Yield session notes for an export, ordered by session, or why each is left out."""
    for each in sorted(session_notes, key=lambda each: each.session):
        name = f"{each.session}.md"
        if each.problem:
            yield LeftOutFile(name, each.problem)
        else:
            yield _without_credentials(Collected(name, each.content, each.mtime_ns))


def settings(options: Mapping[str, Any], mtime_ns: int) -> Iterator[Item]:
    """Yield a file with the user's settings, and each option that is left out."""
    text, left_out = settings_text(options)
    names = map(secrets.scrub, left_out)
    yield from (LeftOutFile(f"{SETTINGS}: {name}", _OPTION_IS_PRIVATE) for name in names)
    if text:
        yield _without_credentials(Collected(SETTINGS, text.encode(), mtime_ns))


def changes(
    own: Iterable[Change], past: Iterable[PastChange], parts: frozenset[ExportPart]
) -> list[PastChange]:
    """Return the changes of a directory, oldest first, with only the files that are exported.

    Changes made by imports are left out; the past changes that imports brought are included.
    """
    own_changes = [past_of(change) for change in own if not is_import(change.by.origin)]
    # An archive of this directory that was imported again repeats its own changes.
    repeated = set(own_changes)
    all_changes = [*(change for change in past if change not in repeated), *own_changes]
    is_exported = partial(covers, parts=parts - {ExportPart.LOGS})
    result: list[PastChange] = []
    for change in all_changes:
        files = tuple(file for file in change.files if is_exported(file.path))
        if files:
            result.append(replace(change, files=files))
    return result


def history(
    past_changes: Iterable[PastChange], originals: ImportTable, project: str
) -> Iterator[Item]:
    """Yield the stored texts that changes name, then one file with the changes as JSON lines.

    Changes whose words, and files whose names, look like credentials are left out. ``project`` is
    the project's id in the archive.
    """
    name, newest = f"{project}.jsonl", 0.0
    lines: list[bytes] = []
    exported_hashes: set[str] = set()  # also of texts that are missing or left out
    for number, change in enumerate(past_changes, 1):
        safe_files = tuple(file for file in change.files if not secrets.find(file.path))
        if len(safe_files) < len(change.files):
            yield LeftOutFile(f"{name}: a file of change {number}", _LIKE_A_KEY)
        public = replace(change, files=safe_files)
        if secrets.find(public.words):
            yield LeftOutFile(f"{name}: change {number}", _WORDS_LIKE_A_KEY)
            continue
        lines.append(msgspec.json.encode(public) + b"\n")
        newest = max(newest, change.at)
        for digest in (each for file in safe_files for each in (file.before, file.after)):
            if not digest or digest in exported_hashes:  # None where there was no file
                continue
            exported_hashes.add(digest)
            body = originals.body(digest)
            if body is not None:
                yield _without_credentials(Collected(f"blobs/{digest}", body, _ns(change.at)))
    if lines:
        yield Collected(name, b"".join(lines), _ns(newest))


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
    if secrets.find(file.name):
        return LeftOutFile(secrets.scrub(file.name), _LIKE_A_KEY)
    if known is None:
        known = {}
    digest = sha256(file.content)
    if digest not in known:
        hits = secrets.find(decode(file.content))
        why = f"line {hits[0].line} looks like a credential ({hits[0].rule})" if hits else ""
        known[digest] = why
    return LeftOutFile(file.name, known[digest]) if known[digest] else file


def _ns(seconds: float) -> int:
    """Return seconds in nanoseconds."""
    return int(seconds * 1_000_000_000)
