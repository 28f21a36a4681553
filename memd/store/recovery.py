"""Finishing what a crash left: recorded change sets are rolled forward, comparing hashes.

For each file of a recorded set three bodies decide: the live one, the one under the set's
temporary name, and what the journal says was before and shall be after. Doing it twice, or being
killed in the middle of it, changes nothing of the result.

| live   | temporary           | what it means                     | what is done           |
|--------|---------------------|-----------------------------------|------------------------|
| after  | none, before, after | in place                          | clean up               |
| after  | anything else       | a foreign save was swapped out    | put it back, conflict  |
| before | none, ours, torn    | not in place yet                  | stage and swap         |
| else   | any                 | saved by somebody since           | leave it, conflict     |

A conflict keeps the live text; the set's version stays in the journal. A body that no set knows
is never removed: it stays under its name and is reported at each start. The journal is not
trusted: names are checked like a client's, bodies are hashed, and an invalid row is left alone.
"""

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from memd.base.names import INDEXES, in_catalogue
from memd.files.directory import Directory, PathRefusedError
from memd.files.disk import Content, Disk, hash_of
from memd.state.changes import ChangeRecord, Journal, Step
from memd.store.apply import Application, ForeignSaveError, is_torn, temporary_path

# Groups of a temporary file's name: the number of its set, and the position of its step.
_TEMP = re.compile(r"\.memd-([0-9]{1,18})-([0-9]{1,9})-[0-9a-f]{8}(?:-old)?\.tmp")
_HASH = re.compile(r"[0-9a-f]{64}")


class RolledForward(Struct, frozen=True):
    """What recovery did in one directory."""

    sentences: tuple[str, ...] = ()  # one for each finished set or unknown file
    conflicts: bool = False  # some files of a set were left as another program wrote them
    open: tuple[Step, ...] = ()  # whose temporary file is still there; for ``replaced.py``


def roll_forward(journal: Journal, disk: Disk, directory: Directory, at: float) -> RolledForward:
    """Roll forward every recorded set of an open directory; ``at`` is seconds since 1970.

    Raises OSError and MemdError where the disk or the state file refuses; the set then stays
    recorded, and this may be called again.
    """
    sentences: list[str] = []
    conflicts = False
    open_steps: list[Step] = []
    for record in journal.pending(directory.path):
        with Application(directory, disk) as application:
            left_alone = _finish_set(journal, application, record, open_steps)
        journal.mark_applied(record, at, left_alone)
        conflicts = conflicts or bool(left_alone)
        sentences.append(_sentence(record, left_alone))
    return RolledForward(tuple(sentences), conflicts, tuple(open_steps))


def sweep_strays(journal: Journal, disk: Disk, directory: Directory) -> RolledForward:
    """Remove temporary files of ended sets, except those that may hold or get a late save.

    The result has a sentence for each file that no set knows. Raises OSError and MemdError.
    """
    sentences: list[str] = []
    still_open: list[Step] = []
    folders: list[str] = []
    for _ in directory.walk(enter=folders.append):
        pass  # only the folders matter: one without memories may have temporary files, too
    for folder in sorted(folders):
        with directory.parent(os.path.join(folder, "x")) as (fd, _):
            for name in disk.temporaries(fd):
                path = os.path.join(folder, name)
                step = _step_of(journal, directory.path, path)
                # ``None`` means unknown: a program may have the file open.
                if step is not None and directory.open_for_writing(path) is not False:
                    still_open.append(step)
                    continue
                file = disk.read(fd, name)
                if file is None or _is_disposable(journal, name, file):
                    disk.unlink(fd, name)
                elif step is not None and file.hash:  # it has a late save
                    still_open.append(step)
                else:
                    place = os.path.join(directory.path, path)
                    sentences.append(
                        f"{place} holds a text that memd does not know; it is kept for you to see"
                    )
    return RolledForward(tuple(sentences), open=tuple(still_open))


def _finish_set(
    journal: Journal, application: Application, record: ChangeRecord, open_steps: list[Step]
) -> list[str]:
    """Roll one set forward as the table above says; return the paths that it leaves alone.

    Steps whose temporary file cannot be removed yet are added to ``open_steps``.
    """
    left_alone: list[str] = []
    usable: list[tuple[Step, bytes]] = []  # steps with their new body
    to_redo: list[tuple[Step, bytes]] = []
    for step in record.steps:
        body = _new_body(journal, step)
        if body is None or not _is_valid(step) or not _is_reachable(application, step):
            left_alone.append(step.path)
            continue
        usable.append((step, body))
        live, temp = application.live_content(step), application.temporary_content(step)
        if hash_of(live) == step.after:  # done before the death
            application.mark_for_sync(step)
            # The step swapped out a text that is neither its old nor its new one: a person's save.
            if step.before is not None and not _is_known(step, temp):
                application.swap_back(step)
                left_alone.append(step.path)
        elif hash_of(live) == step.before and _is_ours(step, body, temp):  # not done yet
            to_redo.append((step, body))
        else:  # changed by somebody since
            left_alone.append(step.path)
    left_alone += _redo_steps(application, to_redo)
    application.sync()
    for step, body in usable:
        if not application.remove_temporary(step, unfinished=body):
            open_steps.append(step)
    return left_alone


def _redo_steps(application: Application, steps: list[tuple[Step, bytes]]) -> list[str]:
    """Put files in place that are not there yet; return the paths that were saved meanwhile.

    All bodies are on the disk before the first file is replaced.
    """
    for step, body in steps:
        # The temporary name must be free for the new body.
        application.remove_temporary(step, unfinished=body)
        if step.after is not None:
            application.stage(step, body)
    saved_meanwhile: list[str] = []
    for step, _ in steps:
        try:
            application.swap(step)
        except ForeignSaveError:
            saved_meanwhile.append(step.path)
    return saved_meanwhile


def _is_reachable(application: Application, step: Step) -> bool:
    """Say whether the step's path can be opened; a link in it means that it cannot.

    Raises FileUnreadableError and OSError, which may be temporary.
    """
    try:
        application.live_content(step)
    except PathRefusedError:
        return False
    return True


def _new_body(journal: Journal, step: Step) -> bytes | None:
    """Return a step's new body, b"" for a deletion, ``None`` if the journal does not have it."""
    return b"" if step.after is None else journal.blob(step.after)


def _is_valid(step: Step) -> bool:
    """Say whether memd could have written this row of the journal.

    A damaged or forged row must not make memd open a path outside the memories.
    """
    hashes = [digest for digest in (step.before, step.after) if digest is not None]
    if not hashes or not all(_HASH.fullmatch(digest) for digest in hashes):
        return False
    # ``in_catalogue`` also allows odd names of a person's files: an undo or import restores them.
    valid_path = step.path in INDEXES or in_catalogue(step.path)
    return valid_path and bool(_TEMP.fullmatch(step.temp))


def _is_ours(step: Step, body: bytes, temp: Content | None) -> bool:
    """Say whether a temporary file is none, one of the step's bodies, or a torn new body."""
    return _is_known(step, temp) or (temp is not None and is_torn(temp, body))


def _is_known(step: Step, temp: Content | None) -> bool:
    """Say whether a temporary file is none, or has the step's body before or after."""
    return temp is None or temp.hash in (step.before, step.after)


def _is_disposable(journal: Journal, name: str, file: Content) -> bool:
    """Say whether the journal has a temporary file's text, or a text that begins with it.

    Then nothing is lost when the file is removed.
    """
    match = _TEMP.fullmatch(name)
    if match is None or not file.hash:
        return False
    if journal.blob(file.hash) is not None:
        return True
    set_number, position = int(match[1]), int(match[2])
    return any(is_torn(file, body) for body in _bodies_of(journal, set_number, position))


def _step_of(journal: Journal, directory: str, path: str) -> Step | None:
    """Return the step that put a replaced file under a path, ``None`` if there is no such step.

    The name of a temporary file has the number of its set.
    """
    match = _TEMP.fullmatch(path.rpartition("/")[2])
    record = journal.load(int(match[1])) if match else None
    if record is None or record.directory != directory:
        return None
    for step in record.steps:
        if step.before is not None and temporary_path(step) == path and _is_valid(step):
            return step
    return None


def _bodies_of(journal: Journal, number: int, position: int) -> Iterator[bytes]:
    """Yield the new body of a set's step at a position; nothing without that set or step."""
    record = journal.load(number)
    for step in record.steps[position : position + 1] if record else ():
        body = journal.blob(step.after) if step.after else None
        yield body or b""


def _sentence(record: ChangeRecord, left_alone: list[str]) -> str:
    """Return the sentence for the log about a finished set and the paths that it left alone."""
    words = f"change {record.id} in {record.directory} was completed after an interruption"
    if not left_alone:
        return words
    return f"{words}; left as they are, since something else changed them: {', '.join(left_alone)}"
