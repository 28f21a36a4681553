"""What a program can tell of a session from its transcript alone: a fold over its pieces. Pure.

Rules of this file
- The same pieces give the same facts, however often they are asked for in between.
- Texts stay as they were recorded, only cut; what is shown of them is decided in ``local``.
- A call counts when its result is there; one that failed touched nothing.
- Nothing is taken from what memd's own tools say, and no words of a sub-agent.
- Every collection has a bound: a session takes at most 256 KB, however long it is.
- What tools are called (``conversation/tools.toml``) and what their output looks like
  (``clients.toml``) is data.
"""

import re
import tomllib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import islice
from typing import Any

from memd.conversation.history import members_of, tool_kind
from memd.conversation.pieces import ASSISTANT, TITLE, USER, RecordedCall, TranscriptPiece
from memd.core.recent import Recent
from memd.text.quoting import beginning

# From a message of the person and the assistant's words before it ("" at the start): the sentences
# that extraction would save at once, and those that correct what was done.
FindStatements = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]

_TABLE: dict[str, Any] = tomllib.loads(files("memd.notes").joinpath("clients.toml").read_text())
_DONE = frozenset(("completed", "cancelled", "canceled", "deleted", "done"))
_ERRORS: list[str] = _TABLE["errors"]
_PATTERNS = {name: re.compile(pattern) for name, pattern in _TABLE["patterns"].items()}
DOCUMENT = _PATTERNS["document"]
_IS_TOTAL, _HAS_TOTAL = _PATTERNS["total_line"].match, _PATTERNS["total"].search
# Characters that are stored of one text, and of all messages of the person together.
_MESSAGE, _SENTENCE, _LINE, _REQUEST, _NAME, _MESSAGES = 540, 320, 220, 120, 64, 9_000
_SEARCHED = 4_000  # characters of a message in which statements are looked for
_ENDS = 8_000  # characters of an output's start and of its end in which lines are looked for
# Characters and lines of an output's end that may be totals, and how many of a command are stored.
_TOTALS, _TOTAL_LINES, _MOST_TOTALS = 2_000, 12, 4
_ITEMS = 24


@dataclass(slots=True)
class FileUse:
    """How often a file or an address was read and edited, and when last."""

    read: int = 0
    edited: int = 0
    at: float | None = None


@dataclass(slots=True)
class CallUse:
    """How often something was called, and how it ended last: open, running, passed or failed."""

    times: int = 0
    state: str = "open"


@dataclass(slots=True)
class TurnFacts:
    """What followed one message of the person."""

    at: float | None = None
    request: str = ""
    tools: Counter[str] = field(default_factory=Counter)
    edits: int = 0
    errors: int = 0


@dataclass(slots=True)
class _OpenCall:
    """A call without its result: what it will have run, read, edited and planned."""

    name: str
    kind: str
    edited: Sequence[str]
    command: str = ""
    read: Sequence[str] = ()
    items: Sequence[tuple[str, str, str]] = ()
    failed: bool = False


class SessionFacts:
    """The facts of one session so far; ``covers`` names the message up to which notes are written.

    Collections are ordered from the oldest to the newest; their texts are as they were recorded.
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
        # Apart, or many that are done would push open ones out; one may be taken up again.
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
        """Say that notes are written up to a message: the newest, or one that is still to come."""
        self._covers = message_id
        if message_id == self.last_id:
            self._covered_calls = self._all_calls

    def add(self, piece: TranscriptPiece) -> None:
        """Add what a piece tells; events are no messages."""
        if piece.event:
            self.title = beginning(piece.text, _LINE) if piece.event == TITLE else self.title
            return
        if piece.call is not None:
            self._call(piece, piece.call)
        elif piece.text and piece.origin == USER:
            self._request(piece)
        elif piece.text and piece.origin == ASSISTANT:
            self.last_reply = beginning(piece.text, _MESSAGE)
            # Words beside a call, in the same reply, end no turn.
            self.mid_turn = self.mid_turn and bool(piece.key) and piece.key == self._reply
        if piece.answers or piece.failed:
            self._result(piece)
        if piece.id:
            self.last_id = piece.id
            if piece.id == self._covers:
                self._covered_calls = self._all_calls

    def _request(self, piece: TranscriptPiece) -> None:
        """Add a message of the person."""
        if _PATTERNS["interrupted"].match(piece.text):
            return
        text = beginning(piece.text, _MESSAGE)
        learnings, corrections = self._find(piece.text[:_SEARCHED], self.last_reply)
        for sentences, known in ((learnings, self.learnings), (corrections, self.corrections)):
            for sentence in sentences:
                known.renewed(beginning(sentence, _SENTENCE), None)
        self.requests.append(text)
        self.requests_count += 1
        while sum(map(len, self.requests)) > _MESSAGES:
            self.requests.pop(1)  # the first one stays
        self.turns.append(TurnFacts(piece.at, beginning(text, _REQUEST)))

    def _call(self, piece: TranscriptPiece, call: RecordedCall) -> None:
        """Add a call; an event without a name repeats what a call did."""
        if not call.name:
            return
        self._all_calls += 1
        self.mid_turn, self._reply = True, piece.key
        self.turns[-1].tools[call.name[:_NAME]] += 1
        if _PATTERNS["own"].match(call.name):
            return
        # A command that still runs is asked for the rest of its output by another call.
        running = self._calls.get(f"session {call.given.get('session_id')}")
        made = running or _open_call(call)
        if made.command and not made.read and not running:  # what only shows files is told there
            use = self.commands.renewed(made.command, CallUse())
            use.times, use.state = use.times + 1, "open"
        if call.id:
            self._calls[call.id] = made
        else:  # no result tells of it
            self._success(made, "", piece.at)

    def _result(self, piece: TranscriptPiece) -> None:
        """Add a call's result, or that a call failed whose result is still to come."""
        made = self._calls.get(piece.answers or piece.failed)
        if made is None:
            return
        made.failed = made.failed or bool(piece.failed)
        if piece.answers:
            del self._calls[piece.answers]
            self.mid_turn = self.mid_turn and piece.role != ASSISTANT  # the server called it itself
            cut = len(piece.text) > 2 * _ENDS
            output = f"{piece.text[:_ENDS]}\n{piece.text[-_ENDS:]}" if cut else piece.text
            if made.command:
                self._ended(made, output)
            if made.failed:
                self._failure(made, output)
            else:
                self._success(made, output, piece.at)

    def _ended(self, made: _OpenCall, output: str) -> None:
        """Add how a command ended, and the totals that it printed."""
        made.failed = made.failed or _PATTERNS["ended_badly"].search(output) is not None
        started = _PATTERNS["started"].search(output[:_LINE])
        if started and started[1]:
            self._calls[f"session {started[1]}"] = made
        state = "failed" if made.failed else "running" if started else "passed"
        self.commands.get(made.command, CallUse()).state = state
        if state == "passed":
            for (_, subject, *_), failure in self.failures.items():
                failure.state = state if subject == made.command else failure.state
        last = output[-_TOTALS:].splitlines()[-_TOTAL_LINES:]
        totals = [line for line in map(_bare, last) if _IS_TOTAL(line) or _HAS_TOTAL(line)]
        if totals:
            self.results.pop(made.command, None)
            self.results[made.command] = [beginning(line, _LINE) for line in totals[-_MOST_TOTALS:]]

    def _failure(self, made: _OpenCall, output: str) -> None:
        """Add a failed result: its first line, and the first that names an error."""
        self.turns[-1].errors += 1
        output = "" if made.kind == "sub_agent" else output
        first = next(filter(None, map(_bare, output.splitlines())), "")
        places = [at for word in _ERRORS if (at := output.find(word)) >= 0]
        line = output.rfind("\n", 0, min(places)) + 1 if places else len(output)
        named = _bare(output[line:].partition("\n")[0])
        subject = made.command or next(iter((*made.edited, *made.read)), "")
        key = (made.name, subject, beginning(first, _LINE), beginning(named, _LINE))
        failure = self.failures.renewed(key, CallUse())
        failure.times, failure.state = failure.times + 1, "failed"

    def _success(self, made: _OpenCall, output: str, at: float | None) -> None:
        """Add what a call did that went well."""
        for name in (*made.read, *made.edited):
            use = self.files.renewed(name, FileUse())
            use.read, use.edited = (
                use.read + (name in made.read),
                use.edited + (name in made.edited),
            )
            use.at = at
        self.turns[-1].edits += len(made.edited)
        if made.kind == "plan":
            self.items.clear()
            self._done.clear()
        for name, text, status in made.items:
            created = None if name else _PATTERNS["task"].search(output)
            key = created[1] if created else name
            known = self.items.get(key) or self._done.pop(key, ("", ""))
            self.items[key] = (text or known[0], status or known[1])
            if status.lower() in _DONE:
                self._done[key] = self.items.pop(key)


def _bare(line: str) -> str:
    """Return a line of an output without what the client put around it."""
    head = _PATTERNS["head"].match(line)
    return line[head.end() if head else 0 :].removesuffix("</tool_use_error>").strip(" =\t\r")


def _open_call(call: RecordedCall) -> _OpenCall:
    """Return what a call will have done when its result is there."""
    given = call.given
    kind, edited = tool_kind(call.name), tuple(_as_recorded(call))
    made = _OpenCall(call.name[:_NAME], kind, edited)
    if made.kind == "shell":
        made.command = beginning(_command(given), _LINE)
        shows = _PATTERNS["shows"].match(made.command)
        made.read = _PATTERNS["shown"].findall(shows[1]) if shows else ()
    elif made.kind == "read":
        made.read = [beginning(path, _LINE) for path in members_of(given, "path")]
    elif made.kind in ("web", "web_search"):
        addresses = (_PATTERNS["address"].findall(text) for text in _texts(given))
        made.read = [beginning(address, _LINE) for each in addresses for address in each]
    elif made.kind == "plan":
        listed = next((value for value in given.values() if isinstance(value, list)), [])
        made.items = [_item(item, f"item {n}") for n, item in enumerate(listed[:_ITEMS])]
    elif made.kind == "task":
        made.items = [_item(given, str(given.get("taskId") or ""))]
    return made


def _item(given: Any, name: str) -> tuple[str, str, str]:
    """Return the name, the text and the status of an item of a plan."""
    item = given if isinstance(given, Mapping) else {}
    text = next(iter(members_of(item, "item")), "")
    return name[:_NAME], beginning(text, _LINE), str(item.get("status") or "")[:_NAME]


def _command(given: Mapping[str, Any]) -> str:
    """Return a shell's script; arguments stand apart, since the transcript has them apart."""
    words = members_of(given, "command")
    script = len(words) == 3 and words[1] in ("-c", "-lc")  # noqa: PLR2004 - shell, flag, script
    return words[2] if script else " … ".join(words)


def _as_recorded(call: RecordedCall) -> Iterator[str]:
    """Yield the paths that a call writes as its input has them: absolute or relative."""
    recorded = list(_texts(call.given)) if call.writes else []
    for path in call.writes:
        parts = path.split("/")
        ends = (path, *("/".join(parts[at:]) for at in range(1, len(parts))))
        known = (end for end in ends if end and any(end in text for text in recorded))
        yield from (beginning(end, _LINE) for end in islice(known, 1))


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value, names of members too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.items():
            yield from _texts(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _texts(member)
