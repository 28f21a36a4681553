"""The rows: what each file of a directory said last; ``sync`` makes them true.

A row has path, hash, stamp and header of one file, and its words for the search. Everything that
reads memories reads rows; people, their editors, git and Claude Code change files without asking.
Rules of this file
- Content decides. A file is not read if its stamp (inode, times, size) is unchanged, unless that is
  so young that another save could have left the same one. No watcher is trusted.
- What others did is one done change of the actor ``external`` with the earlier texts, so it is in
  the history and can be undone. The first look at a directory records no change.
- A file that is empty while a program has it open for writing is half saved: its row stays. A
  *patient* look leaves every empty or missing file for the next one.
- A file is gone when the system says so, not when a listing left it out.
- A directory of up to 500 files is looked at by each use; a write of one memory lists it, and
  compares what it replaces with the rows. A larger one is looked at when the watch has told of it,
  and where there is no watch, once in two seconds.
- Rows are also in memory. A reader that cannot have the directory's lock, since a change is being
  made, or cannot use the state file, looks all the same and only keeps nothing.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress

from msgspec import Struct, field
from msgspec.structs import replace

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import MemdError, NotFound, Refused, Storage
from memd.base.names import INDEX, INDEXES, SUFFIX, TEAM, printable
from memd.base.text import sha256
from memd.base.values import IMPORT, TEAM_MATE, Actor, Header, MemoryType, Provenance, newest_first
from memd.base.yielding import yield_to_requests
from memd.state.database import Cursor, Row
from memd.store import memory, stamp
from memd.store.directory import Directory
from memd.store.log import DONE, ChangeLog, ChangeRecord, Step
from memd.store.memory import Memory
from memd.store.stamp import Stamp, now_of, stamp_of
from memd.store.watch import Watch
from memd.store.words import words_of
from memd.text.invisible import without_directions

SCHEMA = """
CREATE TABLE IF NOT EXISTS file (
    id INTEGER PRIMARY KEY, directory INTEGER NOT NULL, path TEXT NOT NULL,
    hash TEXT NOT NULL,
    stamp TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    size INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    type TEXT,
    origin TEXT NOT NULL,
    damaged INTEGER NOT NULL,
    words TEXT NOT NULL,
    heading INTEGER NOT NULL,
    UNIQUE (directory, path)
);
"""
BY = Provenance(Actor.EXTERNAL, reason="edited outside memd")
_LARGEST = 2**63 - 1  # of SQLite
_DIRECTORIES = 16  # whose rows are in memory
_FEW_FILES = 500  # a directory of so many is looked at by each use
_LOOK_SECONDS = 2.0  # between two looks at a larger one that is not watched
_STAMPS = 64  # new stamps in memory before they are written
_LOOK_BYTES = 32 * 1024 * 1024  # of texts that one look keeps
_NAMED_FILES = 10  # in the reason of a change


class FileRow(Struct, frozen=True, gc=False):
    """What one file said last; ``stamp`` is empty where it could not prove that it says it still.

    ``mode`` are the permissions. The header of an index has no name.
    """

    header: Header
    stamp: Stamp
    mode: int


class Scan(Struct):
    """What a look at a directory found."""

    rows: dict[str, FileRow]  # as the files are now, by path
    steps: list[Step] = field(default_factory=list)  # what others changed
    bodies: dict[str, bytes] = field(default_factory=dict)  # their new texts by hash
    waiting: set[str] = field(default_factory=set)  # paths to look at again soon
    problems: dict[str, str] = field(default_factory=dict)  # by path: why it cannot be read
    temporaries: list[str] = field(default_factory=list)  # paths of memd's own temporary files
    record: ChangeRecord | None = None  # of what others changed
    size: int = 0  # bytes of the bodies


class KnownDirectory(Struct):
    """The rows of one directory in memory, and how they came there."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    rows: dict[str, FileRow] | None = None  # ``None`` until they are read from the state file
    opened: int = 0  # which opening of the state file they are of
    none_open_in: int = 0  # the opening of the state file in which no change was open
    is_new: bool = False  # nobody has looked at the directory yet
    # Paths whose new stamp, time or mode is not written yet.
    stamps: set[str] = field(default_factory=set)
    # By path: why it cannot be read; under "" why a folder cannot, so that files may be missing.
    problems: dict[str, str] = field(default_factory=dict)
    looked: float = float("-inf")  # the last look at all files, in monotonic seconds
    # Paths of memd's own temporary files, with the change that replaced them where that is known.
    replaced: dict[str, ChangeRecord | None] = field(default_factory=dict)
    headers: tuple[Header, ...] | None = None  # newest first, as long as no row changes


class Rows:
    """The rows of all directories, which are named by their real paths. Blocks; thread-safe."""

    def __init__(self, log: ChangeLog, clock: Clock, watch: Watch) -> None:
        self.log = log
        self._clock = clock
        self.watch = watch
        # By real path; the one used last comes last.
        self._known: OrderedDict[str, KnownDirectory] = OrderedDict()
        self._lock = threading.Lock()  # guards ``_known``

    def of(self, directory: str) -> KnownDirectory:
        """Return what memory has of a directory; whoever changes it holds its lock."""
        with self._lock:
            known = self._known.setdefault(directory, KnownDirectory())
            self._known.move_to_end(directory)
            for other in list(self._known)[:-_DIRECTORIES]:
                if self._known[other].lock.acquire(blocking=False):
                    self._known.pop(other).lock.release()
            return known

    def forget(self) -> None:
        """Drop all rows from memory; they are read again from the state file."""
        with self._lock:
            for known in self._known.values():
                known.rows, known.headers, known.none_open_in = None, None, 0

    def drop(self, directory: str) -> None:
        """Read the rows of a directory anew, after a failure; the caller holds the lock."""
        known = self.of(directory)
        known.rows, known.headers, known.none_open_in = None, None, 0

    def sync(
        self,
        directory: str,
        *,
        paths: Collection[str] | None = None,
        patient: bool = False,
        claim: bool = False,
        all_files: bool = False,
        listing: bool = False,
        opened: Directory | None = None,
    ) -> Scan:
        """Make the rows of a directory true; the caller holds its lock.

        Only ``paths`` are looked at, if given. With ``all_files`` a large directory is looked at in
        any case; with ``listing`` a small one is only listed: what its files say is left to the
        next look. With ``claim`` a missing one counts as seen, so that a
        file that appears in it is a change. Whoever has it ``opened`` has undone its open changes.
        Raises Refused and Storage.
        """
        known, database = self.of(directory), self.log.database
        none_died = opened is not None or known.none_open_in == database.file.openings
        died = () if none_died else self.open_changes(directory)
        rows, began = self._loaded(directory, known), self._clock.monotonic()
        if paths is None and not all_files:
            is_small = len(rows) <= _FEW_FILES
            listing = listing and is_small
            is_watched = is_small or self.watch.add(directory)
            is_due = not is_watched and began - known.looked >= _LOOK_SECONDS
            must_scan = is_small or self.watch.take(directory) or is_due
            if not must_scan and known.looked != float("-inf"):
                return Scan(rows, problems=known.problems)
        if died:
            # What memd has half done would look like the work of others.
            return self.scan(directory, dict(rows))
        scan = self.scan(directory, rows, paths, patient=patient, listing=listing, opened=opened)
        if paths is None:
            known.problems, known.looked = scan.problems, began
            known.replaced = dict.fromkeys(scan.temporaries)
        if scan.steps or (known.is_new and (claim or os.path.isdir(directory))):
            if database.renewed() != known.opened:  # the rows are of a file that was replaced
                return self.sync(directory, paths=paths, patient=patient, claim=claim)
            self._record(directory, known, scan)
        if scan.rows is not rows:
            known.stamps |= {
                path
                for path, row in scan.rows.items()
                if path in rows and rows[path] is not row and rows[path] != row
            }
            known.rows, known.headers = scan.rows, None
            if len(known.stamps) >= _STAMPS:
                self.write_stamps(directory, known)
        return scan

    def open_changes(self, directory: str) -> tuple[ChangeRecord, ...]:
        """Return the changes of a directory that died, the newest first. Raises Storage.

        Opens the state file anew if it was replaced. The caller holds the directory's lock.
        """
        known, opening = self.of(directory), self.log.database.renewed()
        if known.none_open_in == opening:
            return ()
        records = self.log.open_changes(directory)
        known.none_open_in = 0 if records else opening
        return records

    def _record(self, directory: str, known: KnownDirectory, scan: Scan) -> None:
        """Write what a look has met into the state file, as a change unless it is the first look.

        Raises Storage.
        """
        changed = {step.path: scan.rows.get(step.path) for step in scan.steps}
        words = {}  # before others have to wait
        for path, row in changed.items():
            content = scan.bodies.get(row.header.hash) if row else None
            if row is not None:
                yield_to_requests()
                parsed = None if content is None else memory.parse(content, path)
                words[path] = words_of(row.header, parsed)
        with self.log.database.transaction() as cursor:
            if scan.steps and not known.is_new:
                by, steps = self._by(scan), tuple(scan.steps)
                record = ChangeRecord(0, directory, DONE, self._clock.now(), by, steps)
                scan.record = self.log.add(cursor, record, scan.bodies)
            else:
                self.log.directory_id(cursor, directory)
                for text_hash in scan.bodies:
                    self.log.save_body(cursor, text_hash, scan.bodies)
            self.save(cursor, directory, changed, words)
        known.is_new = False

    def save(
        self,
        cursor: Cursor,
        directory: str,
        rows: Mapping[str, FileRow | None],
        words: Mapping[str, tuple[str, int]],
    ) -> None:
        """Write rows in the transaction of the caller; ``None`` is a file that is gone.

        ``words`` are those of ``words_of``.
        """
        number = self.log.directory_id(cursor, directory)
        for path, row in rows.items():
            if row is None:
                cursor.execute("DELETE FROM file WHERE (directory, path) = (?, ?)", (number, path))
                continue
            header = row.header
            cursor.execute(
                "INSERT INTO file (directory, path, hash, stamp, mtime_ns, mode, size, name,"
                " description, type, origin, damaged, words, heading)"
                " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (directory, path) DO UPDATE SET"
                " hash=excluded.hash, stamp=excluded.stamp, mtime_ns=excluded.mtime_ns,"
                " mode=excluded.mode, size=excluded.size, name=excluded.name,"
                " description=excluded.description, type=excluded.type, origin=excluded.origin,"
                " damaged=excluded.damaged, words=excluded.words, heading=excluded.heading",
                (
                    *(number, path, header.hash, stamp.to_text(row.stamp)),
                    *(max(-_LARGEST, min(header.mtime_ns, _LARGEST)), row.mode, header.size),
                    *(header.name, header.description, header.type, header.origin),
                    *(header.damaged, *words[path]),
                ),
            )

    def put(self, directory: str, rows: Mapping[str, FileRow | None]) -> None:
        """Put rows that were written into those in memory; the caller holds the lock."""
        known = self.of(directory)
        if known.rows is not None:
            fresh = {**known.rows}
            for path, row in rows.items():
                if row is None:
                    fresh.pop(path, None)
                else:
                    fresh[path] = row
            known.rows = fresh
            known.headers = None

    def scan(
        self,
        directory: str,
        rows: dict[str, FileRow],
        paths: Collection[str] | None = None,
        *,
        patient: bool = False,
        listing: bool = False,
        opened: Directory | None = None,
    ) -> Scan:
        """Compare a directory with its rows and keep nothing. Raises Refused and Storage."""
        scan, at = Scan(rows), self._clock.now()
        with ExitStack() as stack:
            try:
                opened = opened or stack.enter_context(Directory(directory))
            except NotFound:
                scan.rows = {}
                scan.steps = [_step(path, row, None) for path, row in rows.items()]
                return scan
            # Those whose stamp differs from the row's, and those that are not listed any more.
            doubted = set(rows if paths is None else paths)
            problems = list[str]()
            listed = opened.walk(problems, scan.temporaries, rows) if paths is None else ()
            if listing:
                doubted ^= {path for path, _ in listed}
                listed = ()
            for path, entry in listed:
                row = rows.get(path)
                if row is None:
                    doubted.add(path)
                    continue
                try:  # a row without a stamp was too young for one
                    if row.stamp == now_of(entry.stat(follow_symlinks=False)):
                        doubted.discard(path)
                except OSError:  # deleted while we looked
                    pass
            if problems:
                scan.problems[""] = "\n".join(problems)
            if doubted:
                scan.rows = dict(rows)
            for path in sorted(doubted):
                yield_to_requests()
                self._compare(opened, path, scan, at, patient=patient)
        return scan

    def _compare(
        self, opened: Directory, path: str, scan: Scan, at: float, *, patient: bool
    ) -> None:
        """Compare one file with its row, and note in ``look`` what differs."""
        row = scan.rows.get(path)
        try:
            row_now, content = _read(opened, path, at, row)
        except MemdError as error:
            if not isinstance(error, Refused) or opened.is_regular(path):
                scan.problems[path] = error.sentence
                if row is None or isinstance(error, Refused):
                    scan.rows.pop(path, None)
                return  # it is there and cannot be read: whether it changed is unknown
            row_now, content = None, None  # a link or a folder took its place
        if row is not None and row_now is not None and row.header.hash == row_now.header.hash:
            scan.rows[path] = row_now
            return
        was_text = row is not None and row.header.size > 0
        if row_now is None:
            if row is not None and patient:
                scan.waiting.add(path)
            elif row is not None:
                scan.steps.append(_step(path, row, None))
                del scan.rows[path]
            return
        if content == b"" and was_text and (patient or opened.is_open_for_writing(path)):
            scan.waiting.add(path)
            return
        scan.rows[path] = row_now
        scan.steps.append(_step(path, row, row_now))
        if content is not None and scan.size <= _LOOK_BYTES:
            scan.bodies[row_now.header.hash] = content
            scan.size += len(content)

    def _loaded(self, directory: str, known: KnownDirectory) -> dict[str, FileRow]:
        """Return the rows of a directory from memory, or from the state file. Raises Storage."""
        database = self.log.database
        if known.rows is None or known.opened != database.file.openings:
            number = database.read("SELECT id FROM directory WHERE path = ?", (directory,))
            rows = database.read(
                "SELECT path, hash, stamp, mtime_ns, mode, size, name, description, type, origin,"
                " damaged FROM file WHERE directory = ?",
                (number[0]["id"] if number else 0,),
            )
            known.rows = {row["path"]: _row(row) for row in rows}
            known.opened, known.headers, known.is_new = database.file.openings, None, not number
            known.looked = float("-inf")
        return known.rows

    def write_stamps(self, directory: str, known: KnownDirectory) -> None:
        """Write the stamps that are only in memory, so that the next process need not read."""
        rows, known.stamps = known.rows or {}, (stamps := known.stamps) and set()
        values = [
            (stamp.to_text(row.stamp), row.header.mtime_ns, row.mode, directory, path)
            for path in stamps
            if (row := rows.get(path)) is not None
        ]
        with suppress(Storage), self.log.database.transaction(synced=False) as cursor:
            cursor.executemany(
                "UPDATE file SET stamp = ?, mtime_ns = ?, mode = ? WHERE directory ="
                " (SELECT id FROM directory WHERE path = ?) AND path = ?",
                values,
            )

    def _by(self, scan: Scan) -> Provenance:
        """Return who made an external change; files too large to be kept are named."""
        lost = [
            step.path
            for step in scan.steps
            if any(
                each and each not in scan.bodies and not self.log.has_body(each)
                for each in (step.before, step.after)
            )
        ]
        if not lost:
            return BY
        shown = ", ".join(map(printable, lost[:_NAMED_FILES]))
        more = f" and {len(lost) - _NAMED_FILES} more" if len(lost) > _NAMED_FILES else ""
        return replace(BY, reason=f"{BY.reason}; too large to be kept for an undo: {shown}{more}")


def header_of(path: str, parsed: Memory | None, text_hash: str, mtime_ns: int, size: int) -> Header:
    """Return the header of a file that was parsed, or of which the head was; an index need not."""
    if path in INDEXES or parsed is None:
        facts = (mtime_ns, size, False, text_hash)
        return Header(path, INDEX.removesuffix(SUFFIX), "", None, *facts)
    facts = (mtime_ns, size, parsed.damaged, text_hash)
    # No team mate wrote an imported memory.
    is_theirs = path.startswith(TEAM) and parsed.origin != IMPORT
    name, description = without_directions(parsed.name), without_directions(parsed.description)
    origin = TEAM_MATE if is_theirs else parsed.origin
    return Header(path, name, description, parsed.type, *facts, origin)


def headers_of(rows: Mapping[str, FileRow | None]) -> tuple[Header, ...]:
    """Return the headers of the rows of memories, newest first."""
    headers = (row.header for path, row in rows.items() if row and path not in INDEXES)
    return tuple(sorted(headers, key=newest_first))


def _read(
    opened: Directory, path: str, at: float, row: FileRow | None
) -> tuple[FileRow | None, bytes | None]:
    """Return the row of a file as it is now, and its text if that is not too large to keep.

    ``row`` is what it said last.
    """
    result = opened.read(path, limits.READ_BYTES, whole=False)
    if result is None:
        return None, None
    content, status = result
    stored: bytes | None = content
    if max(len(content), status.st_size) > limits.READ_BYTES:
        digest = opened.digest(path)
        if digest is None:
            return None, None
        text_hash, status = digest
        content, stored = content[: memory.HEAD_BYTES + 1], None
    else:
        text_hash = sha256(content)
    if row is not None and row.header.hash == text_hash:
        header = replace(row.header, mtime_ns=status.st_mtime_ns)
    else:
        parsed = memory.parse(content, path)
        header = header_of(path, parsed, text_hash, status.st_mtime_ns, status.st_size)
    return FileRow(header, stamp_of(status, at), status.st_mode & 0o777), stored


def _step(path: str, old: FileRow | None, new: FileRow | None) -> Step:
    """Return the step from one known state of a file to another."""
    either = old or new
    return Step(
        path,
        old.header.hash if old else None,
        new.header.hash if new else None,
        before_mtime_ns=old.header.mtime_ns if old else None,
        mode=either.mode if either else None,
    )


def _row(row: Row) -> FileRow:
    """Return the row of a file from its row in the state file."""
    kind = MemoryType(row["type"]) if row["type"] in set(MemoryType) else None
    header = Header(
        *(row["path"], row["name"], row["description"], kind, row["mtime_ns"], row["size"]),
        bool(row["damaged"]),
        row["hash"],
        row["origin"],
    )
    return FileRow(header, stamp.from_text(row["stamp"]), row["mode"])
