"""List the sessions of a folder, and find the parents of a forked session.

What Claude Code 2.1.329 does (other versions may write less; then no parent is found):
- A fork gets a session id of its own, and no hook names its parent.
- Its transcript is written after its first answer: the parent's lines again, with the fork's id.
  The answers among them keep the id of the session that asked for them.
- Its first event says how many seconds ago the parent got an answer. While the fork has no
  transcript, only that distinguishes its parent from the other sessions of the folder.

In doubt several sessions are returned: withholding a memory once is better than bringing it twice.
Blocks: call it from a worker thread.
"""

import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress

from memd.base.errors import Refused
from memd.conversation.pieces import parse_time
from memd.transcripts.opening import opened

_SUFFIX = ".jsonl"
_SESSION_ID = rb'"(?:sessionId|requestSessionId)" ?: ?"([^"\\]{1,200})"'
_MESSAGE = b'"parentUuid"'  # in each line that is part of the conversation, and in no other
_HEAD_BYTES = 1024 * 1024  # contains the first answer, behind copies of what was sent
_TAIL_BYTES = 256 * 1024  # contains the last answer
_SLACK_SECONDS = 2.0  # the client rounds to whole seconds, and its hook takes a moment to arrive
_SIBLINGS = 100  # most sessions to read; about 1 ms each


def sessions_of(folder: str) -> dict[str, float]:
    """Return the sessions of a folder with their last change, in seconds since 1970.

    Costs one scan of the folder and one ``stat`` per transcript. A folder that is missing, or
    that we may not read, has none; a transcript deleted meanwhile is left out. Blocks.
    """
    result: dict[str, float] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        result[entry.name.removesuffix(_SUFFIX)] = status.st_mtime
    return result


def parents(transcript: str, session: str, answered: float | None = None) -> frozenset[str]:
    """Return the sessions that this session was forked from, an empty set if it is no fork.

    ``answered`` is the time of the parent's last answer, in seconds since 1970, if the client sent
    it; without it, and without messages in the transcript, the set is empty. If no session's last
    answer fits, all other sessions changed since then are returned.
    """
    with suppress(Refused), opened(transcript) as file:
        head = file.read(_HEAD_BYTES)
        if _MESSAGE in head:
            sessions = {name.decode("utf-8", "replace") for name in re.findall(_SESSION_ID, head)}
            return frozenset(sessions - {session})
    if answered is None:
        return frozenset()
    folder = os.path.dirname(transcript)
    since = answered - _SLACK_SECONDS  # a session that ended before is not the parent
    changed = sorted((at, name) for name, at in sessions_of(folder).items() if at >= since)
    candidates = [name for _, name in changed if name != session][:_SIBLINGS]
    last_answers = {name: _last_answer(f"{folder}/{name}.jsonl") for name in candidates}
    fitting = [
        name for name, at in last_answers.items() if at and abs(at - answered) <= _SLACK_SECONDS
    ]
    return frozenset(fitting or candidates)


def _last_answer(transcript: str) -> float | None:
    """Return the time of a transcript's last answer in seconds since 1970, or ``None``."""
    with suppress(Refused), opened(transcript) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return _first_answer(reversed(file.read(_TAIL_BYTES).splitlines()))
    return None


def _first_answer(lines: Iterable[bytes]) -> float | None:
    """Return the time of the first line that is an assistant's message, or ``None``."""
    for line in lines:
        if b'"assistant"' in line:
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict) and value.get("type") == "assistant":
                    return parse_time(value.get("timestamp"))
    return None
