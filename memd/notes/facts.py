"""Collect facts about a session from the pieces of its transcript, without a model. Pure.

Rules of this file
- The facts depend only on the pieces, not on how often they are read in between.
- Texts are stored as recorded, only cut; ``local`` decides how they are shown.
- A call counts once it has a result. A failed call counts as having touched no file.
- Results of memd's own tools and texts of sub-agents are ignored.
- Every collection is bounded: a session takes at most 256 KB, however long it is.
- The names of tools (``conversation/tools.toml``) and the form of their output (``clients.toml``)
  are data.
"""

import re
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice
from typing import Any

from msgspec import Struct, field

from memd.conversation.history import members_of, tool_kind
from memd.conversation.pieces import ASSISTANT, TITLE, USER, RecordedCall, TranscriptPiece
from memd.core.recent import Recent
from memd.text.quoting import beginning

# Takes a message of the person and the assistant's text before it ("" at the start). Returns the
# sentences that extraction would save at once, and those that correct the assistant.
FindStatements = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]

_TABLE: dict[str, Any] = tomllib.loads(files("memd.notes").joinpath("clients.toml").read_text())
_DONE = frozenset(("completed", "cancelled", "canceled", "deleted", "done"))
_ERRORS: list[str] = _TABLE["errors"]
_PATTERNS = {name: re.compile(pattern) for name, pattern in _TABLE["patterns"].items()}
DOCUMENT = _PATTERNS["document"]
_IS_TOTAL, _HAS_TOTAL = _PATTERNS["total_line"].match, _PATTERNS["total"].search
# Characters that are stored of one text, and of all messages of the person together.
_MESSAGE, _SENTENCE, _LINE, _REQUEST, _NAME, _MESSAGES = 540, 320, 220, 120, 64, 9_000
_SEARCHED = 4_000  # characters of a message that are searched for statements
_ENDS = 8_000  # characters of an output's start and of its end that are searched for lines
# Characters and lines of an output's end that may be totals, and how many of a command are stored.
_TOTALS, _TOTAL_LINES, _MOST_TOTALS = 2_000, 12, 4
_ITEMS = 24


class FileUse(Struct):
    """How often a file or an address was read and edited, and when it last was."""

    read: int = 0
    edited: int = 0
    at: float | None = None


class CallUse(Struct):
    """How often a command was called, and how it last ended: open, running, passed or failed."""

    times: int = 0
    state: str = "open"


class TurnFacts(Struct):
    """What followed one message of the person."""

    at: float | None = None
    request: str = ""
    tools: Counter[str] = field(default_factory=Counter)
    edits: int = 0
    errors: int = 0


class _OpenCall(Struct):
    """A call without its result yet: the command, files and plan items that it names."""

    name: str
    kind: str
    edited: Sequence[str]
    command: str = ""
    read: Sequence[str] = ()
    items: Sequence[tuple[str, str, str]] = ()
    failed: bool = False


class SessionFacts:
    """The facts of one session so far; ``covers`` is the id of the last message in the notes.

    Collections are ordered from the oldest to the newest; their texts are as recorded.
    """

    def __init__(self, find_statements: FindStatements, covers: str = "") -> None:
        self._find = find_statements
        self._covers, self._reply = covers, ""
        self._all_calls = self._covered_calls = 0
        self._calls: Recent[str, _OpenCall] = Recent(48)
        self.last_id = ""
        self.mid_turn = False
        self.title = self.last_reply = ""
        self.requests: list[str] = []
        self.requests_count = 0
        self.items: Recent[str, tuple[str, str]] = Recent(_ITEMS)
        # Apart from the open items, which many done ones would push out. One may be opened again.
        self._done: Recent[str, tuple[str, str]] = Recent(_ITEMS)
        self.files: Recent[str, FileUse] = Recent(56)
        self.commands: Recent[str, CallUse] = Recent(20)
        self.failures: Recent[tuple[str, str, str, str], CallUse] = Recent(14)
        self.results: Recent[str, list[str]] = Recent(10)
        self.corrections: Recent[str, None] = Recent(10)
        self.learnings: Recent[str, None] = Recent(10)
        self.turns: deque[TurnFacts] = deque([TurnFacts()], maxlen=28)

    @property
    def calls_since(self) -> int:
        """How many tools were called since the notes were written."""
        return self._all_calls - self._covered_calls

    def covered(self, message_id: str) -> None:
        """Record that the notes cover a message: the newest one or one that will be added."""
        self._covers = message_id
        if message_id == self.last_id:
            self._covered_calls = self._all_calls

    def add(self, piece: TranscriptPiece) -> None:
        """Add the next piece of the transcript: a text, a call, a result or an event.

        Of events only titles are used.
        """
        if piece.event:
            self.title = beginning(piece.text, _LINE) if piece.event == TITLE else self.title
            return
        if piece.call is not None:
            self._add_call(piece, piece.call)
        elif piece.text and piece.origin == USER:
            self._add_request(piece)
        elif piece.text and piece.origin == ASSISTANT:
            self.last_reply = beginning(piece.text, _MESSAGE)
            # Text in the same reply as a call does not end the turn.
            self.mid_turn = self.mid_turn and bool(piece.key) and piece.key == self._reply
        if piece.answers or piece.failed:
            self._add_result(piece)
        if piece.id:
            self.last_id = piece.id
            if piece.id == self._covers:
                self._covered_calls = self._all_calls

    def _add_request(self, piece: TranscriptPiece) -> None:
        """Add a message of the person and the statements in it, unless it only interrupts."""
        if _PATTERNS["interrupted"].match(piece.text):
            return
        text = beginning(piece.text, _MESSAGE)
        learnings, corrections = self._find(piece.text[:_SEARCHED], self.last_reply)
        for sentences, stored in ((learnings, self.learnings), (corrections, self.corrections)):
            for sentence in sentences:
                stored.renewed(beginning(sentence, _SENTENCE), None)
        self.requests.append(text)
        self.requests_count += 1
        while sum(map(len, self.requests)) > _MESSAGES:
            self.requests.pop(1)  # the first one stays
        self.turns.append(TurnFacts(piece.at, beginning(text, _REQUEST)))

    def _add_call(self, piece: TranscriptPiece, call: RecordedCall) -> None:
        """Add a call of a tool; an event without a name repeats a call and is ignored."""
        if not call.name:
            return
        self._all_calls += 1
        self.mid_turn, self._reply = True, piece.key
        self.turns[-1].tools[call.name[:_NAME]] += 1
        if _PATTERNS["own"].match(call.name):
            return
        # A call with a session id asks a running command for the rest of its output.
        running = self._calls.get(f"session {call.given.get('session_id')}")
        open_call = running or _open_call(call)
        # A command that only shows files counts as reading them.
        if open_call.command and not open_call.read and not running:
            use = self.commands.renewed(open_call.command, CallUse())
            use.times, use.state = use.times + 1, "open"
        if call.id:
            self._calls[call.id] = open_call
        else:  # it will have no result
            self._add_success(open_call, "", piece.at)

    def _add_result(self, piece: TranscriptPiece) -> None:
        """Add the result of a call, or mark a call as failed if its result follows later."""
        open_call = self._calls.get(piece.answers or piece.failed)
        if open_call is None:
            return
        open_call.failed = open_call.failed or bool(piece.failed)
        if piece.answers:
            del self._calls[piece.answers]
            self.mid_turn = self.mid_turn and piece.role != ASSISTANT  # the server called it itself
            is_long = len(piece.text) > 2 * _ENDS
            output = f"{piece.text[:_ENDS]}\n{piece.text[-_ENDS:]}" if is_long else piece.text
            if open_call.command:
                self._add_command_end(open_call, output)
            if open_call.failed:
                self._add_failure(open_call, output)
            else:
                self._add_success(open_call, output, piece.at)

    def _add_command_end(self, open_call: _OpenCall, output: str) -> None:
        """Record how a command ended, and the totals at the end of its output."""
        open_call.failed = open_call.failed or _PATTERNS["ended_badly"].search(output) is not None
        # A command that goes on in the background prints a session id, by which later calls ask
        # for the rest of its output.
        started = _PATTERNS["started"].search(output[:_LINE])
        if started and started[1]:
            self._calls[f"session {started[1]}"] = open_call
        state = "failed" if open_call.failed else "running" if started else "passed"
        self.commands.get(open_call.command, CallUse()).state = state
        if state == "passed":  # earlier failures of the same command were repaired
            for (_, subject, *_), failure in self.failures.items():
                failure.state = state if subject == open_call.command else failure.state
        last = output[-_TOTALS:].splitlines()[-_TOTAL_LINES:]
        totals = [
            line for line in map(_without_markup, last) if _IS_TOTAL(line) or _HAS_TOTAL(line)
        ]
        if totals:
            self.results.pop(open_call.command, None)
            self.results[open_call.command] = [
                beginning(line, _LINE) for line in totals[-_MOST_TOTALS:]
            ]

    def _add_failure(self, open_call: _OpenCall, output: str) -> None:
        """Record a failed result by its first line and the first line that names an error."""
        self.turns[-1].errors += 1
        output = "" if open_call.kind == "sub_agent" else output  # its texts are ignored
        first = next(filter(None, map(_without_markup, output.splitlines())), "")
        offsets = [at for word in _ERRORS if (at := output.find(word)) >= 0]
        start = output.rfind("\n", 0, min(offsets)) + 1 if offsets else len(output)
        error = _without_markup(output[start:].partition("\n")[0])
        subject = open_call.command or next(iter((*open_call.edited, *open_call.read)), "")
        key = (open_call.name, subject, beginning(first, _LINE), beginning(error, _LINE))
        failure = self.failures.renewed(key, CallUse())
        failure.times, failure.state = failure.times + 1, "failed"

    def _add_success(self, open_call: _OpenCall, output: str, at: float | None) -> None:
        """Record the files and plan items of a successful call that ended at time ``at``."""
        for name in (*open_call.read, *open_call.edited):
            use = self.files.renewed(name, FileUse())
            use.read += name in open_call.read
            use.edited += name in open_call.edited
            use.at = at
        self.turns[-1].edits += len(open_call.edited)
        if open_call.kind == "plan":  # a call of this kind names the whole plan
            self.items.clear()
            self._done.clear()
        for name, text, status in open_call.items:
            created = None if name else _PATTERNS["task"].search(output)
            key = created[1] if created else name
            known = self.items.get(key) or self._done.pop(key, ("", ""))
            self.items[key] = (text or known[0], status or known[1])
            if status.lower() in _DONE:
                self._done[key] = self.items.pop(key)


def _without_markup(line: str) -> str:
    """Return a line of an output without the client's prefix, its tags and signs around it."""
    head = _PATTERNS["head"].match(line)
    return line[head.end() if head else 0 :].removesuffix("</tool_use_error>").strip(" =\t\r")


def _open_call(call: RecordedCall) -> _OpenCall:
    """Return a call with the command, files and plan items in its input, by its kind of tool."""
    given = call.given
    kind, edited = tool_kind(call.name), tuple(_as_recorded(call))
    open_call = _OpenCall(call.name[:_NAME], kind, edited)
    if open_call.kind == "shell":
        open_call.command = beginning(_command(given), _LINE)
        shows = _PATTERNS["shows"].match(open_call.command)
        open_call.read = _PATTERNS["shown"].findall(shows[1]) if shows else ()
    elif open_call.kind == "read":
        open_call.read = [beginning(path, _LINE) for path in members_of(given, "path")]
    elif open_call.kind in ("web", "web_search"):
        addresses = (_PATTERNS["address"].findall(text) for text in _texts(given))
        open_call.read = [beginning(address, _LINE) for each in addresses for address in each]
    elif open_call.kind == "plan":
        listed = next((value for value in given.values() if isinstance(value, list)), [])
        open_call.items = [_plan_item(item, f"item {n}") for n, item in enumerate(listed[:_ITEMS])]
    elif open_call.kind == "task":
        open_call.items = [_plan_item(given, str(given.get("taskId") or ""))]
    return open_call


def _plan_item(given: Any, name: str) -> tuple[str, str, str]:
    """Return the name, the text and the status of an item of a plan."""
    item = given if isinstance(given, Mapping) else {}
    text = next(iter(members_of(item, "item")), "")
    return name[:_NAME], beginning(text, _LINE), str(item.get("status") or "")[:_NAME]


def _command(given: Mapping[str, Any]) -> str:
    """Return the script in a shell call's input, or its arguments joined with " … "."""
    words = members_of(given, "command")
    script = len(words) == 3 and words[1] in ("-c", "-lc")  # noqa: PLR2004 - shell, flag, script
    return words[2] if script else " … ".join(words)


def _as_recorded(call: RecordedCall) -> Iterator[str]:
    """Yield the paths that a call writes, absolute or relative as in the call's input."""
    recorded = list(_texts(call.given)) if call.writes else []
    for path in call.writes:
        parts = path.split("/")
        # The longest end of the absolute path that occurs in the input.
        ends = (path, *("/".join(parts[at:]) for at in range(1, len(parts))))
        in_input = (end for end in ends if end and any(end in text for text in recorded))
        yield from (beginning(end, _LINE) for end in islice(in_input, 1))


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts within a JSON value, including the names of members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.items():
            yield from _texts(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts(member)
