"""The one way to change a memory directory: look, plan, log, exchange, compare, done.

This holds at every instant, also when the process dies:
- A reader sees the old text of a file or the new one; never a torn, empty or missing file.
- The log has the whole change on the medium (what was there, what shall be there) before a live
  file is touched. "Done" is said after the new files, the folders and the log's mark are on it.
- A live file is only replaced by an exchange, and what comes out is compared with what the change
  was made from. If another program saved in that instant, its file goes back, and the plan runs
  again on what it says.
- A change that dies, or that the disk refuses, is undone by the same exchanges (``exchange.py``):
  at once, before the next change in the directory, or at the next start; that works on a full disk.
  If even that fails, the change stays open, the caller is told, and nothing is lost.
- A replaced file stays under its temporary name, which the log knows, until no program can write to
  it: whoever had it open goes on writing there. Each look asks whether somebody did; such a late
  save is merged into the live file, or is in the history.
- A failed fsync fails the change, and no descriptor is fsynced again after that.

A write of one memory and its index line waits five times for the disk: the log, two files, one
folder, the mark (FSYNCS_PER_CHANGE, which a test holds).
"""

import os
import re
import secrets as tokens
from contextlib import ExitStack, suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from memd.base import limits
from memd.base.clock import Clock
from memd.base.errors import Conflict, MemdError, NotFound, Storage
from memd.base.names import concerns
from memd.base.text import sha256
from memd.base.values import (
    CommitResult,
    Draft,
    Plan,
    Provenance,
)
from memd.state.database import StateFaultError
from memd.store import memory
from memd.store.directory import Directory, cause_of, unwritable
from memd.store.disk import FILE_MODE, NOT_A_MEMORY, Content, Disk, write_new
from memd.store.draft import Prepared, delayed_save_plan, prepare, prepare_refused
from memd.store.exchange import ForeignSaveError, is_torn, open_folders, put_back, swap
from memd.store.log import CONFLICT, DONE, OPEN, UNDONE, ChangeLog, ChangeRecord, More, Step
from memd.store.sync import BY, FileRow, Rows, header_of
from memd.store.tree import LiveTree
from memd.store.words import words_of

FSYNCS_PER_CHANGE = 5
LATE_SAVE = replace(BY, reason="saved while memd was writing the same file")
_ATTEMPTS = 10  # a program that saves the same file ten times in a row is a conflict to report
_EMPTY = sha256(b"")
_TEMP = re.compile(r"(?P<name>\.memd-(?P<change>[0-9]{1,18})-[0-9]{1,9}-[0-9a-f]{8})(-old)?\.tmp")


class ChangeRequest(Struct, frozen=True):
    """A change that somebody wants: ``directory`` is a real path, ``by`` the writer.

    A request whose ``id`` the same client sent before is answered with the earlier result. With
    ``wait`` files that a program has open for writing are not replaced (BeingWrittenError).
    With ``listing`` the plan needs no headers, only which files there are. ``path`` led to the
    directory, and must do so still (MovedError).
    """

    directory: str
    plan: Plan
    by: Provenance
    id: str = ""
    wait: bool = False
    listing: bool = False
    path: str = ""


class MovedError(Exception):
    """The path of a directory leads elsewhere by now."""


class BeingWrittenError(Exception):
    """Another program has files open for writing that a change would replace."""


class Writer:
    """Changes memory directories. Blocks; its methods may be called in any thread."""

    def __init__(self, rows: Rows, disk: Disk, clock: Clock) -> None:
        self._rows = rows
        self._log: ChangeLog = rows.log
        self._disk = disk
        self._clock = clock

    def scan(
        self, directory: str, *, patient: bool = False, claim: bool = False, last: bool = False
    ) -> tuple[list[ChangeRecord], bool]:
        """Make the rows of a directory true and take in late saves; return what others changed.

        The second value says whether to look again soon. With ``last`` replaced files that nobody
        has open go at once. The caller holds the lock. Raises Refused and Storage.
        """
        scan = self._rows.sync(directory, patient=patient, claim=claim, all_files=patient or last)
        records, again = self.clear(directory, last=last)
        return [*([scan.record] if scan.record else []), *records], again or bool(scan.waiting)

    def clear(self, directory: str, *, last: bool = False) -> tuple[list[ChangeRecord], bool]:
        """Remove replaced files that nobody can write to any more; first take in late saves.

        Returns what ``scan`` does; the caller holds the lock. Raises Refused and Storage.
        """
        known = self._rows.of(directory)
        if known.rows is None:  # dropped from memory meanwhile, and with them what was replaced
            return self.scan(directory, last=last)
        replaced, known.replaced, records = known.replaced, {}, []
        held = set[str]()  # that programs may have open
        if replaced:
            with Directory(directory) as opened:
                for path, by_change in replaced.items():
                    record, waits = self._clear(opened, path, by_change, held, last=last)
                    records += [record] if record else []
                    if waits:
                        known.replaced[path] = by_change
        self._rows.watch.hold(directory, held & known.replaced.keys())
        return records, bool(known.replaced)

    def commit(self, request: ChangeRequest) -> tuple[CommitResult, list[ChangeRecord]]:
        """Run the plan on the live directory and make all of what it wants, or nothing.

        The list is what others had changed meanwhile. Raises what ``check.py`` refuses, Conflict,
        BeingWrittenError, MovedError, Storage, and what the plan and opening the directory raise.
        """
        directory = request.directory
        if request.path and os.path.realpath(request.path) != directory:
            raise MovedError
        with self._rows.of(directory).lock:
            try:
                if request.id:
                    earlier = self._log.answer(directory, request.by.client, request.id)
                    if earlier is not None:
                        return earlier, []
                with Directory(directory, create=True) as opened:
                    for died in self._rows.open_changes(directory):
                        self._undo(opened, died)
                    scan = self._rows.sync(
                        directory, claim=True, listing=request.listing, opened=opened
                    )
                    result, others = self._commit(request, opened)
                    return result, [*([scan.record] if scan.record else []), *others]
            except OSError as error:
                raise unwritable(directory, error) from error

    def rehearse(self, request: ChangeRequest) -> CommitResult:
        """Return what ``commit`` would do to the directory as it is now, and do nothing."""
        directory = request.directory
        with self._rows.of(directory).lock, ExitStack() as stack:
            rows = self._rows.sync(directory).rows
            opened = None
            with suppress(NotFound):
                opened = stack.enter_context(Directory(directory))
            unclear = "" in self._rows.of(directory).problems
            tree = LiveTree(directory, opened, rows, self._log, unclear=unclear)
            draft = request.plan(tree)
            made = prepare(draft, tree, self._log, request.by.origin)
            return replace(self._record_of(request, draft, made).result(), change=None)

    def recover(self) -> tuple[str, ...]:
        """Undo what a crash left, in all directories; return sentences about what happened.

        A directory that cannot be used now is left for later. Raises Storage for the state file.
        """
        sentences: list[str] = []
        for path in {record.directory for record in self._log.open_changes()}:
            with self._rows.of(path).lock:
                self._rows.drop(path)
                try:
                    with Directory(path) as opened:
                        for record in self._rows.open_changes(path):
                            self._undo(opened, record)
                            sentences.append(
                                f"change {record.id} in {path} was undone after an interruption"
                            )
                except (OSError, MemdError) as error:
                    why = error.sentence if isinstance(error, MemdError) else cause_of(error)
                    sentences.append(f"a change in {path} waits to be undone: {why}")
        return tuple(sentences)

    def _commit(
        self, request: ChangeRequest, opened: Directory
    ) -> tuple[CommitResult, list[ChangeRecord]]:
        """Plan and make a change; start again if another program saves the same files meanwhile.

        The list is what others had changed in these files.
        """
        others: list[ChangeRecord] = []
        saved: list[str] = []  # paths that another program has saved
        for _ in range(_ATTEMPTS):
            if saved:  # first the log gets what others wrote
                scan = self._rows.sync(request.directory, paths=saved)
                others += [scan.record] if scan.record else []
            known = self._rows.of(request.directory)
            rows = known.rows or {}
            unclear = "" in known.problems
            tree = LiveTree(request.directory, opened, rows, self._log, unclear=unclear)
            draft, made = self._plan(request, opened, tree)
            saved = [
                step.path
                for step in made.steps
                if step.before != ((row := rows.get(step.path)) and row.header.hash)
            ]
            if saved:  # since the look
                continue
            if not made.steps:
                return self._record_effects(request, draft), others
            opening, known.none_open_in = known.none_open_in, 0
            record = self._record_of(request, draft, made)
            # On the medium, with its texts, before its first file is touched.
            with self._log.database.transaction() as cursor:
                record = self._log.add(cursor, record, made.bodies, token=tokens.token_hex(4))
            try:
                rows_after = self._make(opened, record, made)
            except ForeignSaveError as error:
                saved = [error.path]
                continue
            self._finish(request, draft, record, made, rows_after)
            known.none_open_in = opening
            return record.result(), others
        raise Conflict(
            f"{saved[0]} was changed by another program {_ATTEMPTS} times in a row;"
            " nothing was written",
            path=saved[0],
            attempts=_ATTEMPTS,
        )

    def _plan(
        self, request: ChangeRequest, opened: Directory, tree: LiveTree
    ) -> tuple[Draft, Prepared]:
        """Run the plan and prepare its draft; after a conflict the log keeps the refused texts."""
        draft: Draft | None = None
        try:
            draft = request.plan(tree)
            made = prepare(draft, tree, self._log, request.by.origin)
        except MemdError as error:
            # The plan or the merge may have failed because it read a half-written save.
            if request.wait and any(map(opened.is_open_for_writing, tree.paths_read())):
                raise BeingWrittenError from error
            is_conflict = isinstance(error, Conflict) and "expected" in error.facts
            if draft is None or not is_conflict or all(e.content is None for e in draft.edits):
                raise
            refused = prepare_refused(draft, tree)
            steps = tuple(refused.steps)
            refused_record = ChangeRecord(
                0, request.directory, CONFLICT, self._clock.now(), request.by, steps
            )
            with self._log.database.transaction() as cursor:
                change = self._log.add(cursor, refused_record, refused.bodies).id
            error.sentence += f"; what was refused is kept as {change}"
            error.args = (error.sentence,)
            error.facts["change"] = change
            raise
        if request.wait:
            replaced = (step.path for step in made.steps if step.before is not None)
            if any(map(opened.is_open_for_writing, replaced)):
                raise BeingWrittenError
        return draft, made

    def _record_effects(self, request: ChangeRequest, draft: Draft) -> CommitResult:
        """Make the effects of a draft true that changes no file."""
        undone = str(draft.undid[0]) if draft.undid else ""
        result = CommitResult(None, conflicts=draft.conflicts, undone=undone)
        if draft.effects or request.id:
            with self._log.database.transaction() as cursor:
                for effect in draft.effects:
                    effect(cursor, None)
                if request.id:
                    self._log.save_answer(cursor, request.directory, request.by, request.id, result)
        return result

    def _record_of(self, request: ChangeRequest, draft: Draft, made: Prepared) -> ChangeRecord:
        """Return a change that is ready as the log has it, without a number."""
        by = request.by
        if draft.undid:  # the plan may have chosen it only now
            by = replace(by, reason=f"undo of {draft.undid[0]}")
        more = More(
            merged=tuple(sorted(made.merged)),
            conflicts=draft.conflicts,
            undid=tuple((each.first, each.last) for each in draft.undid),
            transcript=draft.transcript,
            message=draft.message,
            note="; ".join(made.notes),
        )
        steps = tuple(made.steps)
        return ChangeRecord(0, request.directory, OPEN, self._clock.now(), by, steps, more)

    def _make(
        self, opened: Directory, record: ChangeRecord, made: Prepared
    ) -> dict[str, FileRow | None]:
        """Put the files of a recorded change in place; return their rows.

        If one fails, all are put back. Raises ForeignSaveError, Storage and what the disk raises.
        """
        disk, rows = self._disk, dict[str, FileRow | None]()
        try:
            with open_folders(opened, record.steps, create=True) as folders:
                for step in record.steps:
                    rows[step.path] = None
                    if step.after is not None:
                        body, folder = made.bodies[step.after], folders[os.path.dirname(step.path)]
                        mode = FILE_MODE if step.mode is None else step.mode
                        status = write_new(
                            disk, folder, step.temp, body, mode=mode, mtime_ns=step.after_mtime_ns
                        )
                        _, new = made.memories.get(step.path, (None, None))
                        facts = (step.path, new, step.after, status.st_mtime_ns, len(body))
                        rows[step.path] = FileRow(header_of(*facts), (), status.st_mode & 0o777)
                for step in record.steps:
                    folder = folders[os.path.dirname(step.path)]
                    swap(disk, folder, step, emptied=step.path in made.emptied)
                for fd in folders.values():
                    disk.sync_folder(fd)
        except (OSError, MemdError, ForeignSaveError) as error:
            self._undo_after(opened, record, error)
            raise
        return rows

    def _finish(
        self,
        request: ChangeRequest,
        draft: Draft,
        record: ChangeRecord,
        made: Prepared,
        rows: dict[str, FileRow | None],
    ) -> None:
        """Mark a change done, with the rows of its files and its effects, in one transaction."""
        words = {
            path: words_of(row.header, made.memories.get(path, (None, None))[1])
            for path, row in rows.items()
            if row is not None
        }
        try:
            with self._log.database.transaction() as cursor:
                self._log.mark(cursor, record, DONE)
                self._rows.save(cursor, request.directory, rows, words)
                for effect in draft.effects:
                    effect(cursor, record.id)
                if request.id:
                    answer = record.result()
                    self._log.save_answer(cursor, request.directory, request.by, request.id, answer)
        except StateFaultError:  # it has its entry in the log
            self._rows.drop(request.directory)
            raise
        except Storage as error:
            # Whether the mark is on the medium is seen when the state file is read again.
            self._rows.drop(request.directory)
            sentence = f"{request.directory} cannot be written: {error.sentence}"
            why = "; memd undoes the change before the next one"
            raise Storage(sentence + why, directory=request.directory, unfinished=True) from error
        self._rows.put(request.directory, rows)
        done = replace(record, state=DONE)
        self._rows.of(request.directory).replaced |= {
            os.path.join(os.path.dirname(step.path), step.temp): done
            for step in record.steps
            if step.before is not None
        }

    def _undo_after(self, opened: Directory, record: ChangeRecord, error: Exception) -> None:
        """Undo a change whose files could not all be put in place.

        If that fails as well, the change stays open, and Storage names both causes.
        """
        try:
            self._undo(opened, record)
        except (OSError, MemdError) as second:
            causes = "; ".join(
                each.sentence if isinstance(each, MemdError) else cause_of(each)
                for each in (error, second)
                if isinstance(each, OSError | MemdError)
            )
            raise Storage(
                f"{record.directory} cannot be written: {causes}; memd undoes the change before the"
                " next one",
                directory=record.directory,
                unfinished=True,
            ) from second

    def _undo(self, opened: Directory, record: ChangeRecord) -> None:
        """Put every file of a change back as it was, and mark the change undone."""
        # The state file may be damaged: names are checked like those of a client.
        steps = [
            each for each in record.steps if concerns(each.path) and _TEMP.fullmatch(each.temp)
        ]
        with open_folders(opened, steps, create=False) as folders:
            for step in reversed(steps):
                folder = folders.get(os.path.dirname(step.path))
                if folder is not None:
                    save = partial(self._save_of_others, record.directory, step)
                    put_back(self._disk, folder, step, self._log, save)
            for fd in folders.values():
                self._disk.sync_folder(fd)
        with self._log.database.transaction() as cursor:
            self._log.mark(cursor, record, UNDONE)

    def _save_of_others(self, directory: str, step: Step, file: Content) -> None:
        """Record the text of a file, if another program saved it while memd was replacing it."""
        if file.hash in (step.before, step.after, NOT_A_MEMORY):
            return
        by_others = Step(step.path, step.before, file.hash, step.before_mtime_ns, file.mode)
        record = ChangeRecord(0, directory, DONE, self._clock.now(), BY, (by_others,))
        parsed = memory.parse(file.content, step.path)
        facts = (step.path, parsed, file.hash, file.mtime_ns, len(file.content))
        row = FileRow(header_of(*facts), (), file.mode)
        rows, words = {step.path: row}, {step.path: words_of(row.header, parsed)}
        with suppress(Storage):  # what is under the temporary name is looked at all the same
            with self._log.database.transaction() as cursor:
                self._log.add(cursor, record, {file.hash: file.content})
                self._rows.save(cursor, directory, rows, words)
            self._rows.put(directory, rows)

    def _clear(  # noqa: PLR0911 - one for each thing that the file may be
        self,
        opened: Directory,
        path: str,
        record: ChangeRecord | None,
        held: set[str],
        *,
        last: bool,
    ) -> tuple[ChangeRecord | None, bool]:
        """Remove a temporary file that nobody can write to any more; first take in a late save.

        ``record`` is the change that made it, if that is known. Return the change that the late
        save made, and whether to look at the file again soon. The path of a file that a program may
        have open is added to ``held``.
        """
        match = _TEMP.fullmatch(os.path.basename(path))
        if match and record is None:
            record = self._log.record(int(match["change"]))
        if match is None or record is None or record.directory != opened.path:
            self._drop_unknown(opened, path, last=last)
            return None, False
        # With a new state file numbers begin again, so the whole name is compared.
        step = next((each for each in record.steps if each.temp == f"{match['name']}.tmp"), None)
        if step is None:
            self._drop_unknown(opened, path, last=last)
            return None, False
        if record.state == OPEN:  # it may be needed to undo the change
            return None, False
        is_open = opened.is_open_for_writing(path)
        held |= set() if is_open is False else {path}
        age = abs(self._clock.now() - record.at)
        # A program may have looked up the file just before it was replaced, and open it a moment
        # after. Where the system does not say who has a file open, it is kept for longer.
        least = limits.HOLD_SECONDS if is_open is None else 0.0 if last else limits.LOOK_SECONDS
        if is_open or age < least:
            return None, True
        try:
            with opened.parent(path) as (folder, name):
                file = self._disk.read(folder, name)
                if file is None or not file.hash:  # too large for a memory: it stays
                    return None, False
                delayed = None
                is_known = file.hash in (step.before, step.after, _EMPTY)
                # Only a change that died has torn files; in a done one it is somebody's text.
                torn = record.state == UNDONE and is_torn(file.content, step, self._log)
                if not is_known and not torn:
                    delayed = self._take_in(opened, step, file.content)
                    again = self._disk.read(folder, name)
                    if again is None or again.hash != file.hash:
                        return delayed, True
                self._disk.unlink(folder, name)
        except OSError:
            return None, False  # the next look tries again
        return delayed, False

    def _drop_unknown(self, opened: Directory, path: str, *, last: bool) -> None:
        """Remove a temporary file of no known change if the log has its text; any other stays."""
        if not last or opened.is_open_for_writing(path) is not False:
            return
        with suppress(OSError, MemdError), opened.parent(path) as (folder, name):
            file = self._disk.read(folder, name)
            if file and file.hash and (not file.content or self._log.body(file.hash) is not None):
                self._disk.unlink(folder, name)

    def _take_in(self, opened: Directory, step: Step, body: bytes) -> ChangeRecord | None:
        """Merge a late save into the live file; where it changes none, record it all the same."""
        plan = delayed_save_plan(step, body, self._log)
        request = ChangeRequest(opened.path, plan, LATE_SAVE)
        with suppress(MemdError):  # a refused text goes into the history as well
            result, _ = self._commit(request, opened)
            if result.change is not None:
                return self._log.find(opened.path, result.change)
        text_hash = sha256(body)
        steps = (Step(step.path, step.before, text_hash),)
        record = ChangeRecord(0, opened.path, DONE, self._clock.now(), LATE_SAVE, steps)
        with self._log.database.transaction() as cursor:
            return self._log.add(cursor, record, {text_hash: body})
