"""The sessions of a folder, and which of them a new one was made from: it has their messages.

What Claude Code 2.1.329 does (other versions may write less; then nothing is found):
- A fork gets a session id of its own, and no hook names its parent.
- Its transcript is written after its first answer: the parent's lines again, with the fork's id.
  The answers among them keep the id of the session that asked for them.
- Its first event says how many seconds ago the parent was answered. While the fork has no
  transcript, that is what tells its parent from the other sessions of the folder.

In doubt several sessions are named: to hold a memory back once costs less than to bring it twice.
Blocks: call it from a worker thread.
"""

import json
import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress

from memd.conversation.pieces import parse_time
from memd.transcripts.opening import TranscriptRefusedError, opened

_SUFFIX = ".jsonl"
_NAMED = re.compile(rb'"(?:sessionId|requestSessionId)" ?: ?"([^"\\]{1,200})"')
_MESSAGE = b'"parentUuid"'  # in each line that is part of the conversation, and in no other
_HEAD_BYTES = 1024 * 1024  # the first answer stands there, behind copies of what was sent
_TAIL_BYTES = 256 * 1024  # the last answer stands there
_SLACK_SECONDS = 2.0  # the client rounds to whole seconds, and its hook takes a moment to arrive
_SIBLINGS = 100  # some 1 ms each


def sessions_of(folder: str) -> dict[str, float]:
    """Return the sessions of a folder with their last change, in seconds since 1970.

    Costs one scan of the folder and one ``stat`` per transcript. A folder that is not there, or
    that we may not read, has none; a transcript that goes away meanwhile is left out. Blocks.
    """
    result: dict[str, float] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        result[entry.name.removesuffix(_SUFFIX)] = facts.st_mtime
    return result


def parents(transcript: str, session: str, answered: float | None = None) -> frozenset[str]:
    """Return the sessions that a session with this transcript was made from, none for most.

    ``answered`` is when the parent was last answered, in seconds since 1970, if the client said
    so; without it a session that has no transcript has no parent.
    """
    with suppress(TranscriptRefusedError), opened(transcript) as file:
        head = file.read(_HEAD_BYTES)
        if _MESSAGE in head:
            named = {name.decode("utf-8", "replace") for name in _NAMED.findall(head)}
            return frozenset(named - {session})
    if answered is None:
        return frozenset()
    folder = os.path.dirname(transcript)
    since = answered - _SLACK_SECONDS  # what ended before cannot be it
    result = sorted((at, name) for name, at in sessions_of(folder).items() if at >= since)
    near = [name for _, name in result if name != session][:_SIBLINGS]
    last = {name: _last_answer(f"{folder}/{name}.jsonl") for name in near}
    fitting = [name for name, at in last.items() if at and abs(at - answered) <= _SLACK_SECONDS]
    return frozenset(fitting or near)


def _last_answer(transcript: str) -> float | None:
    """Return when the last answer of a transcript was given, in seconds since 1970."""
    with suppress(TranscriptRefusedError), opened(transcript) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return _answer(reversed(file.read(_TAIL_BYTES).splitlines()))
    return None


def _answer(lines: Iterable[bytes]) -> float | None:
    for line in lines:
        if b'"assistant"' in line:
            with suppress(ValueError, RecursionError):
                value = json.loads(line)
                if isinstance(value, dict) and value.get("type") == "assistant":
                    return parse_time(value.get("timestamp"))
    return None
