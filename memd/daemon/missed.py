"""Handle what nobody told the daemon: events in the spool, grown transcripts, its files gone.

Rules of this file
- A hook that got no answer left its request in the spool, one file each. It is answered as if the
  hook sent it now, the oldest first, and its file goes once it is: what an answer promises has a
  row by then. After a crash in between it is answered again, and the conversation's cursor says
  that nothing is new.
- A file that is no such request is removed; only a regular one of this user is opened.
- Conversations that memd has read before are looked at once, at the start: a client that was killed
  told nobody of its last turn. One that still goes on is left to its own client.
- One timer for all checks, so that an idle machine is woken once in 30 seconds. An event waits so
  long at most where a daemon hung; at a start it is answered at once.
- A client that waits goes first: one conversation at a time, and only the newest.
"""

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from heapq import nsmallest
from typing import Any

from anyio import to_thread
from msgspec import Struct

from memd.base.errors import MemdError
from memd.base.text import read_object
from memd.base.values import Caller
from memd.daemon.core import Daemon
from memd.extract.cursors import transcript_cursors
from memd.projects.known import Visit, visits_by_directory
from memd.projects.switches import by_files
from memd.rpc.call import Call, Connection, Handler
from memd.rpc.server import contain
from memd.state.database import StateUnusableError
from memd.state.docs import Docs

CHECK_SECONDS = 30.0  # how often an idle machine is woken for this
_EVENTS = 200  # read at once; hooks store no more
_EVENT_BYTES = 4096  # of one event; a larger file is no event
_OLDEST_SECONDS = 7 * 86_400.0  # a transcript that last changed before is not read
_QUIET_SECONDS = 60.0  # a transcript that did not change for so long is not being written
_CONVERSATIONS = 20  # the ones that changed last
_UNREAD_BYTES = 64 * 1024 * 1024  # of all transcripts together


class _GrownConversation(Struct, frozen=True):
    """A conversation whose transcript has unread lines; ``changed`` is seconds since 1970."""

    directory: str
    session: str
    path: str
    size: int
    changed: float


async def check_regularly(daemon: Daemon, hook: Handler, in_place: Callable[[], bool]) -> None:
    """Check the daemon's own files and answer the events in the spool, now and every 30 seconds.

    Once ``in_place`` returns false, clients cannot reach the daemon or its state any more: it is
    ended, so that the next client starts another. ``in_place`` blocks.
    """
    log = daemon.log
    handled: set[str] = set()  # files of answered events that could not be removed

    def read() -> tuple[bool, list[tuple[str, dict[str, Any]]]]:
        """Return whether the files are in place, and the events. Blocks."""
        return in_place(), _events(daemon.places.spool)

    while True:
        is_in_place, events = await to_thread.run_sync(read)
        if not is_in_place:
            detail = "the socket, the lock file or the state file was removed or replaced; ending"
            log.warning("unreachable", detail=detail)
            daemon.ending.set()
            return
        answered = 0
        for path, params in events:
            if path in handled:
                continue
            result = await contain(log, partial(hook, _call(), params))
            if isinstance(result, MemdError) and result.of_disk:
                break  # the events stay until the disk works again
            answered += 1
            if not await to_thread.run_sync(_remove, path):
                handled.add(path)
        if answered:
            log.note("spool", answered=answered)
        await daemon.clock.sleep(CHECK_SECONDS)


async def catch_up(daemon: Daemon, extract: Handler) -> None:
    """Extract once from conversations that grew while no daemon ran."""
    clock, docs, log = daemon.clock, daemon.docs, daemon.log
    try:
        visits = await to_thread.run_sync(visits_by_directory, docs)
        conversations = await to_thread.run_sync(_grown_conversations, docs, clock.now())
    except StateUnusableError:
        return
    for grown in conversations:
        await clock.sleep(max(0.0, grown.changed + _QUIET_SECONDS - clock.now()))
        visit = visits.get(grown.directory)
        size_now = await to_thread.run_sync(_size, grown.path)
        # A conversation that still goes on is left to its own client.
        if visit is not None and size_now == grown.size:
            await contain(log, partial(_extract, daemon, extract, visit, grown))


async def _extract(
    daemon: Daemon, extract: Handler, visit: Visit, grown: _GrownConversation
) -> None:
    """Extract from the unread lines of one conversation, and return when that is done."""
    project, _, _ = await daemon.projects.find(*visit.caller, by_files=True)
    directory = await to_thread.run_sync(os.path.realpath, project.memory_dir)
    # Otherwise this cursor does not count there.
    if project.enabled and directory == grown.directory:
        params = {"cwd": visit.cwd, "session_id": grown.session, "transcript_path": grown.path}
        await extract(_call(visit.client, by_files(visit.environment)), params | {"wait": True})


def _call(client: str = "", environment: Mapping[str, str] | None = None) -> Call:
    """Return a call of the daemon itself, without a peer that waits for its answer."""
    caller = Caller(0, os.getuid(), os.getpid(), client=client, environment=environment or {})
    return Call(Connection(caller))


def _events(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the oldest events' paths and parameters; remove files that are no event. Blocks."""
    result: list[tuple[str, dict[str, Any]]] = []
    with suppress(OSError):
        for name in nsmallest(_EVENTS, os.listdir(folder)):
            if name.startswith("."):
                continue  # a hook is still writing it
            path = f"{folder}/{name}"
            request = read_object(_content(path))
            if request.get("method") == "hook" and isinstance(request.get("params"), dict):
                result.append((path, request["params"]))
            else:
                _remove(path)
    return result


def _content(path: str) -> bytes:
    """Return the bytes of a small regular file of this user, b"" for any other."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return b""
        return os.read(file, _EVENT_BYTES)  # a longer file is cut, so it is not JSON
    except OSError:
        return b""
    finally:
        os.close(file)


def _remove(path: str) -> bool:
    """Remove a file; return whether that worked. Blocks."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _grown_conversations(docs: Docs, now: float) -> list[_GrownConversation]:
    """Return the conversations that grew last, the longest unchanged one first. Blocks."""
    candidates = []  # each with the bytes that are not read yet
    for directory, cursor in transcript_cursors(docs):
        with suppress(OSError):
            status = os.stat(cursor.source)
            unread = status.st_size - cursor.position
            is_recent = now - status.st_mtime < _OLDEST_SECONDS
            if 0 < unread <= _UNREAD_BYTES and is_recent:
                facts = (directory, cursor.session, cursor.source)
                grown = _GrownConversation(*facts, status.st_size, status.st_mtime)
                candidates.append((grown, unread))
    candidates.sort(key=lambda pair: pair[0].changed, reverse=True)
    result: list[_GrownConversation] = []
    bytes_left = _UNREAD_BYTES
    for grown, unread in candidates[:_CONVERSATIONS]:
        bytes_left -= unread
        if bytes_left >= 0:
            result.insert(0, grown)
    return result


def _size(path: str) -> int:
    """Return a file's size in bytes, -1 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1
