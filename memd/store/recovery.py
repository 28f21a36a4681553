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
from contextlib import suppress

from msgspec import Struct

from memd.core.health import Health
from memd.core.names import INDEXES, in_catalogue
from memd.files.directory import Directory, PathRefusedError
from memd.files.disk import Content, Disk, hash_of, is_probe
from memd.state.changes import ChangeRecord, Journal, Step
from memd.store.apply import Application, ForeignSaveError, beside, is_torn

_TEMP = re.compile(r"\.memd-([0-9]{1,18})-([0-9]{1,9})-[0-9a-f]{8}(?:-old)?\.tmp")
_HASH = re.compile(r"[0-9a-f]{64}")


class RolledForward(Struct, frozen=True):
    """The sets finished in one directory, a sentence for each; ``conflicts``: some files were left.

    ``open`` are the steps whose temporary file is still there; ``replaced.py`` handles those.
    """

    sentences: tuple[str, ...] = ()
    conflicts: bool = False
    open: tuple[Step, ...] = ()


def roll_forward(
    journal: Journal, disk: Disk, directory: Directory, at: float, health: Health | None = None
) -> RolledForward:
    """Roll forward every recorded set of an open directory; ``at`` is seconds since 1970.

    Raises OSError and MemdError where the disk or the state file refuses; the set then stays
    recorded, and this may be called again.
    """
    sentences: list[str] = []
    conflicts = False
    open_steps: list[Step] = []
    for record in journal.pending(directory.path):
        with Application(directory, disk, health) as application:
            left = _finish(journal, application, record, open_steps)
        journal.applied(record, at, left)
        conflicts = conflicts or bool(left)
        sentences.append(_sentence(record, left))
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
                if step is not None and directory.open_for_writing(path) is not False:
                    still_open.append(step)
                    continue
                result = disk.read(fd, name)
                if result is None or is_probe(name, result) or _disposable(journal, name, result):
                    disk.unlink(fd, name)
                elif step is not None and result.hash:
                    still_open.append(step)
                else:
                    place = os.path.join(directory.path, path)
                    sentences.append(
                        f"{place} holds a text that memd does not know; it is kept for you to see"
                    )
    return RolledForward(tuple(sentences), open=tuple(still_open))


def _finish(
    journal: Journal, application: Application, record: ChangeRecord, open_steps: list[Step]
) -> list[str]:
    """Roll one set forward; return the paths left alone. Add steps still open to ``open_steps``."""
    left: list[str] = []
    ours: list[tuple[Step, bytes]] = []
    redo: list[tuple[Step, bytes]] = []
    for step in record.steps:
        body = _body(journal, step)
        if body is None or not _sane(step) or not _reachable(application, step):
            left.append(step.path)
            continue
        ours.append((step, body))
        live, temp = application.live(step), application.temp(step)
        if hash_of(live) == step.after:
            application.touch(step)
            if step.before is not None and not _is_known(step, temp):
                application.restore(step)
                left.append(step.path)
        elif hash_of(live) == step.before and _is_ours(step, body, temp):
            redo.append((step, body))
        else:
            left.append(step.path)
    _redo(application, redo, left)
    application.sync()
    open_steps += [step for step, body in ours if not application.sweep(step, unfinished=body)]
    return left


def _redo(application: Application, redo: list[tuple[Step, bytes]], left: list[str]) -> None:
    """Stage and swap files that are not in place yet; add those saved meanwhile to ``left``."""
    for step, body in redo:
        application.sweep(step, unfinished=body)
        if step.after is not None:
            application.stage(step, body)
    for step, _ in redo:
        with suppress(ForeignSaveError):
            application.swap(step)
            continue
        left.append(step.path)


def _reachable(application: Application, step: Step) -> bool:
    """Say whether the step's path can be opened; a link in it means that it cannot.

    Raises FileUnreadableError and OSError, which may be temporary.
    """
    try:
        application.live(step)
    except PathRefusedError:
        return False
    return True


def _body(journal: Journal, step: Step) -> bytes | None:
    """Return the new body, b"" for a deletion, or ``None`` when the journal does not have it."""
    return b"" if step.after is None else journal.blob(step.after)


def _sane(step: Step) -> bool:
    """Say whether a row could have been written by memd."""
    hashes = [key for key in (step.before, step.after) if key is not None]
    if not hashes or not all(_HASH.fullmatch(key) for key in hashes):
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


def _disposable(journal: Journal, name: str, result: Content) -> bool:
    """Say whether the journal has a temporary file's text, or a text that begins with it."""
    match = _TEMP.fullmatch(name)
    if match is None or not result.hash:
        return False
    if journal.blob(result.hash) is not None:
        return True
    return any(is_torn(result, body) for body in _bodies_of(journal, int(match[1]), int(match[2])))


def _step_of(journal: Journal, directory: str, path: str) -> Step | None:
    """Return the step that put a replaced file under a path, ``None`` if there is no such step."""
    match = _TEMP.fullmatch(path.rpartition("/")[2])
    record = journal.load(int(match[1])) if match else None
    steps = record.steps if record and record.directory == directory else ()
    step_candidates = (step for step in steps if step.before is not None and beside(step) == path)
    return next((step for step in step_candidates if _sane(step)), None)


def _bodies_of(journal: Journal, number: int, position: int) -> Iterator[bytes]:
    """Yield the new body of a set's step at a position; nothing without that set or step."""
    record = journal.load(number)
    for step in record.steps[position : position + 1] if record else ():
        yield (step.after and journal.blob(step.after)) or b""


def _sentence(record: ChangeRecord, left: list[str]) -> str:
    words = f"change {record.id} in {record.directory} was completed after an interruption"
    if not left:
        return words
    return f"{words}; left as they are, since something else changed them: {', '.join(left)}"
