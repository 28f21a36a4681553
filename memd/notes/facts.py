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
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct, field, toml

from memd.base.package_files import read_text
from memd.base.recent import Recent
from memd.conversation.history import members_of, tool_kind
from memd.conversation.pieces import ASSISTANT, TITLE, USER, RecordedCall, TranscriptPiece
from memd.text.quoting import beginning

# Takes a message of the person and the assistant's text before it ("" at the start). Returns the
# sentences that extraction would save at once, and those that correct the assistant.
FindStatements = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]

_DONE_STATUSES = frozenset(("completed", "cancelled", "canceled", "deleted", "done"))
# How many characters are stored of each text.
_MESSAGE_CHARACTERS = 540
_SENTENCE_CHARACTERS = 320
_LINE_CHARACTERS = 220
_REQUEST_CHARACTERS = 120  # of the request of a turn
_NAME_CHARACTERS = 64
_ALL_MESSAGES_CHARACTERS = 9_000  # of all messages of the person together
# What is searched.
_SEARCHED_CHARACTERS = 4_000  # of a message, for statements
_OUTPUT_END_CHARACTERS = 8_000  # of an output's start and of its end, for lines
_TOTALS_CHARACTERS, _TOTAL_LINES = 2_000, 12  # of an output's end, for totals
_MOST_TOTALS = 4  # that are stored of one output
_MOST_ITEMS = 24  # of a plan


class FileUse(Struct):
    """How often a file or an address was read and edited, and when it last was."""

    read: int = 0
    edited: int = 0
    at: float | None = None


class CallUse(Struct):
    """How often a command was called, and how it last ended.

    ``state`` is ``open`` (it has no result yet), ``running``, ``passed`` or ``failed``.
    """

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
    kind: str  # of its tool
    edited: Sequence[str]  # paths, as ``read``
    command: str = ""
    read: Sequence[str] = ()  # paths or web addresses
    items: Sequence[tuple[str, str, str]] = ()  # of a plan: the name, the text and the status
    failed: bool = False


class SessionFacts:
    """The facts of one session so far; ``covers`` is the id of the last message in the notes.

    Collections are ordered from the oldest to the newest; their texts are as recorded.
    """

    def __init__(self, find_statements: FindStatements, covers: str = "") -> None:
        self._find_statements = find_statements
        self._covers = covers
        self._reply_key = ""  # of the reply with the last call
        self._calls_of_session = 0
        self._calls_in_notes = 0  # up to the message that the notes cover
        # By call id, or by "session ID" of a command in the background.
        self._open_calls: Recent[str, _OpenCall] = Recent(48)
        self.last_id = ""  # of the last message
        self.mid_turn = False  # whether the assistant called a tool and has not ended its turn
        self.title = ""
        self.last_reply = ""
        self.requests: list[str] = []  # messages of the person: the first and the newest ones
        self.requests_count = 0  # of all messages of the person
        # By name, the text and the status of the open items of the plan.
        self.items: Recent[str, tuple[str, str]] = Recent(_MOST_ITEMS)
        # Apart from the open items, which many done ones would push out. One may be opened again.
        self._done_items: Recent[str, tuple[str, str]] = Recent(_MOST_ITEMS)
        self.files: Recent[str, FileUse] = Recent(56)  # by path or web address
        self.commands: Recent[str, CallUse] = Recent(20)
        # By tool, subject, first line of the output and first line that names an error.
        self.failures: Recent[tuple[str, str, str, str], CallUse] = Recent(14)
        self.results: Recent[str, list[str]] = Recent(10)  # by command, the totals it printed
        # Sentences of the person that correct the assistant, and those that are worth remembering.
        self.corrections: Recent[str, None] = Recent(10)
        self.learnings: Recent[str, None] = Recent(10)
        self.turns: deque[TurnFacts] = deque([TurnFacts()], maxlen=28)

    @property
    def calls_since(self) -> int:
        """How many tools were called since the notes were written."""
        return self._calls_of_session - self._calls_in_notes

    def covered(self, message_id: str) -> None:
        """Record that the notes cover a message: the newest one or one that will be added."""
        self._covers = message_id
        if message_id == self.last_id:
            self._calls_in_notes = self._calls_of_session

    def add(self, piece: TranscriptPiece) -> None:
        """Add the next piece of the transcript: a text, a call, a result or an event.

        Of events only titles are used.
        """
        if piece.event:
            if piece.event == TITLE:
                self.title = beginning(piece.text, _LINE_CHARACTERS)
            return
        if piece.call is not None:
            self._add_call(piece, piece.call)
        elif piece.text and piece.origin == USER:
            self._add_request(piece)
        elif piece.text and piece.origin == ASSISTANT:
            self.last_reply = beginning(piece.text, _MESSAGE_CHARACTERS)
            # Text in the same reply as a call does not end the turn.
            self.mid_turn = self.mid_turn and bool(piece.key) and piece.key == self._reply_key
        if piece.answers or piece.failed:
            self._add_result(piece)
        if piece.id:
            self.last_id = piece.id
            if piece.id == self._covers:
                self._calls_in_notes = self._calls_of_session

    def _add_request(self, piece: TranscriptPiece) -> None:
        """Add a message of the person and the statements in it, unless it only interrupts."""
        if client_form("interrupted").match(piece.text):
            return
        text = beginning(piece.text, _MESSAGE_CHARACTERS)
        learnings, corrections = self._find_statements(
            piece.text[:_SEARCHED_CHARACTERS], self.last_reply
        )
        for sentences, stored in ((learnings, self.learnings), (corrections, self.corrections)):
            for sentence in sentences:
                stored.renewed(beginning(sentence, _SENTENCE_CHARACTERS), None)
        self.requests.append(text)
        self.requests_count += 1
        while sum(len(request) for request in self.requests) > _ALL_MESSAGES_CHARACTERS:
            self.requests.pop(1)  # the first one stays
        self.turns.append(TurnFacts(piece.at, beginning(text, _REQUEST_CHARACTERS)))

    def _add_call(self, piece: TranscriptPiece, call: RecordedCall) -> None:
        """Add a call of a tool; an event without a name repeats a call and is ignored."""
        if not call.name:
            return
        self._calls_of_session += 1
        self.mid_turn, self._reply_key = True, piece.key
        self.turns[-1].tools[call.name[:_NAME_CHARACTERS]] += 1
        if client_form("own").match(call.name):  # memd's own tool
            return
        # A call with a session id asks a running command for the rest of its output.
        running = self._open_calls.get(f"session {call.given.get('session_id')}")
        open_call = running or _make_open_call(call)
        # A command that only shows files counts as reading them.
        if open_call.command and not open_call.read and not running:
            use = self.commands.renewed(open_call.command, CallUse())
            use.times, use.state = use.times + 1, "open"
        if call.id:
            self._open_calls[call.id] = open_call
        else:  # it will have no result
            self._add_success(open_call, "", piece.at)

    def _add_result(self, piece: TranscriptPiece) -> None:
        """Add the result of a call, or mark a call as failed if its result follows later."""
        open_call = self._open_calls.get(piece.answers or piece.failed)
        if open_call is None:
            return
        open_call.failed = open_call.failed or bool(piece.failed)
        if piece.answers:
            del self._open_calls[piece.answers]
            if piece.role == ASSISTANT:  # the server called the tool itself, within the reply
                self.mid_turn = False
            output = _searched_output(piece.text)
            if open_call.command:
                self._add_command_end(open_call, output)
            if open_call.failed:
                self._add_failure(open_call, output)
            else:
                self._add_success(open_call, output, piece.at)

    def _add_command_end(self, open_call: _OpenCall, output: str) -> None:
        """Record how a command ended, and the totals at the end of its output."""
        if client_form("ended_badly").search(output):
            open_call.failed = True
        # A command that goes on in the background prints a session id, by which later calls ask
        # for the rest of its output.
        started = client_form("started").search(output[:_LINE_CHARACTERS])
        if started and started[1]:
            self._open_calls[f"session {started[1]}"] = open_call
        state = "running" if started else "passed"
        if open_call.failed:
            state = "failed"
        use = self.commands.get(open_call.command)
        if use is not None:
            use.state = state
        if state == "passed":  # earlier failures of the same command were repaired
            for failure_key, failure in self.failures.items():
                if failure_key[1] == open_call.command:
                    failure.state = state
        self._add_totals(open_call.command, output)

    def _add_totals(self, command: str, output: str) -> None:
        """Record the lines at the end of a command's output that count what it did."""
        last_lines = output[-_TOTALS_CHARACTERS:].splitlines()[-_TOTAL_LINES:]
        plain_lines = [_without_markup(line) for line in last_lines]
        is_total, has_total = client_form("total_line"), client_form("total")
        totals = [line for line in plain_lines if is_total.match(line) or has_total.search(line)]
        if totals:
            shown_totals = [beginning(line, _LINE_CHARACTERS) for line in totals[-_MOST_TOTALS:]]
            self.results.pop(command, None)  # so that it becomes the newest
            self.results[command] = shown_totals

    def _add_failure(self, open_call: _OpenCall, output: str) -> None:
        """Record a failed result by its first line and the first line that names an error."""
        self.turns[-1].errors += 1
        if open_call.kind == "sub_agent":
            output = ""  # its texts are ignored
        plain_lines = (_without_markup(line) for line in output.splitlines())
        first_line = next((line for line in plain_lines if line), "")
        error_line = _first_error_line(output)
        files = (*open_call.edited, *open_call.read)
        subject = open_call.command or next(iter(files), "")
        key = (
            open_call.name,
            subject,
            beginning(first_line, _LINE_CHARACTERS),
            beginning(error_line, _LINE_CHARACTERS),
        )
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
            self._done_items.clear()
        for name, text, status in open_call.items:
            created = None if name else client_form("task").search(output)
            key = created[1] if created else name  # a new task gets its name in the output
            old_text, old_status = self.items.get(key) or self._done_items.pop(key, ("", ""))
            self.items[key] = (text or old_text, status or old_status)
            if status.lower() in _DONE_STATUSES:
                self._done_items[key] = self.items.pop(key)


@cache
def client_form(name: str) -> re.Pattern[str]:
    """Return one of the patterns of ``clients.toml``."""
    return re.compile(_client_forms()["patterns"][name])


@cache
def _client_forms() -> dict[str, Any]:
    forms: dict[str, Any] = toml.decode(read_text("notes/clients.toml"))
    return forms


def _searched_output(output: str) -> str:
    """Return an output, of a long one only its start and its end."""
    if len(output) <= 2 * _OUTPUT_END_CHARACTERS:
        return output
    return f"{output[:_OUTPUT_END_CHARACTERS]}\n{output[-_OUTPUT_END_CHARACTERS:]}"


def _first_error_line(output: str) -> str:
    """Return the first line of an output that names an error, "" for none."""
    offsets = [output.find(word) for word in _client_forms()["errors"]]
    first = min((offset for offset in offsets if offset >= 0), default=-1)
    if first < 0:
        return ""
    start = output.rfind("\n", 0, first) + 1
    return _without_markup(output[start:].partition("\n")[0])


def _without_markup(line: str) -> str:
    """Return a line of an output without the client's prefix, its tags and signs around it."""
    head = client_form("head").match(line)
    return line[head.end() if head else 0 :].removesuffix("</tool_use_error>").strip(" =\t\r")


def _make_open_call(call: RecordedCall) -> _OpenCall:
    """Return a call with the command, files and plan items in its input, by its kind of tool."""
    arguments = call.given
    kind, edited = tool_kind(call.name), tuple(_as_recorded(call))
    open_call = _OpenCall(call.name[:_NAME_CHARACTERS], kind, edited)
    if open_call.kind == "shell":
        open_call.command = beginning(_command(arguments), _LINE_CHARACTERS)
        shows = client_form("shows").match(open_call.command)
        open_call.read = client_form("shown").findall(shows[1]) if shows else ()
    elif open_call.kind == "read":
        open_call.read = [
            beginning(path, _LINE_CHARACTERS) for path in members_of(arguments, "path")
        ]
    elif open_call.kind in ("web", "web_search"):
        texts = list(_texts(arguments))
        addresses = [address for text in texts for address in client_form("address").findall(text)]
        open_call.read = [beginning(address, _LINE_CHARACTERS) for address in addresses]
    elif open_call.kind == "plan":
        lists = (value for value in arguments.values() if isinstance(value, list))
        plan = next(lists, [])[:_MOST_ITEMS]
        open_call.items = [_plan_item(item, f"item {n}") for n, item in enumerate(plan)]
    elif open_call.kind == "task":
        open_call.items = [_plan_item(arguments, str(arguments.get("taskId") or ""))]
    return open_call


def _plan_item(value: Any, name: str) -> tuple[str, str, str]:
    """Return the name, the text and the status of an item of a plan."""
    item = value if isinstance(value, Mapping) else {}
    text = next(iter(members_of(item, "item")), "")
    return (
        name[:_NAME_CHARACTERS],
        beginning(text, _LINE_CHARACTERS),
        str(item.get("status") or "")[:_NAME_CHARACTERS],
    )


def _command(arguments: Mapping[str, Any]) -> str:
    """Return the script in a shell call's input, or its arguments joined with " … "."""
    words = members_of(arguments, "command")
    match words:
        case [_shell, "-c" | "-lc", script]:
            return script
    return " … ".join(words)


def _as_recorded(call: RecordedCall) -> Iterator[str]:
    """Yield the paths that a call writes, absolute or relative as in the call's input."""
    recorded = list(_texts(call.given)) if call.writes else []
    for path in call.writes:
        parts = path.split("/")
        # The path and its ends, the longest first; the first one that occurs in the input.
        ends = (path, *("/".join(parts[at:]) for at in range(1, len(parts))))
        for end in ends:
            if end and any(end in text for text in recorded):
                yield beginning(end, _LINE_CHARACTERS)
                break


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
