"""What a program can tell of a session from its transcript alone: a fold over its pieces. Pure.

Rules of this file
- The same pieces give the same facts, however often they are asked for in between.
- Texts stay as they were recorded, only cut; what is shown of them is decided in ``local``.
- A call counts when its result is there; one that failed touched nothing.
- Nothing is taken from what memd's own tools say, and no words of a sub-agent.
- Every collection has a bound: a session takes at most 256 KB, however long it is.
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from memd.conversation.pieces import ASSISTANT, TITLE, USER, RecordedCall, TranscriptPiece
from memd.core.recent import Recent
from memd.core.text import cut_bytes

# From a message of the person and the assistant's words before it ("" at the start): the sentences
# that extraction would save at once, and those that correct what was done.
FindStatements = Callable[[str, str], tuple[Sequence[str], Sequence[str]]]

_WORDS, _LINE, _PATH, _NAME = 1_000, 400, 200, 64  # characters of a message, line, path, tool
_FINDABLE = 4_000  # characters of a message in which statements are looked for
_REQUESTS = 16_000  # characters of all messages together
_ENDS = 8_000  # characters of an output's start and of its end in which lines are looked for
_SHELLS = frozenset(
    (
        "bash",
        "shell",
        "shell_command",
        "exec_command",
        "local_shell",
        "run_shell_command",
        "container.exec",
    )
)
_READERS = frozenset(("read", "read_file", "view", "view_image", "notebookread", "read_many_files"))
_WEB = frozenset(("webfetch", "web_fetch", "fetch_webpage", "web_search"))
_PLANS = frozenset(("todowrite", "write_todos", "update_plan"))
_TASKS = frozenset(("taskcreate", "taskupdate"))
_SUB_AGENTS = frozenset(("task", "agent"))
_OWN = re.compile(r"memory$|mcp__(?:plugin_memd_)?memd_")
_PATHS = ("file_path", "absolute_path", "notebook_path", "path", "paths")
_ITEM = ("content", "step", "description", "subject")
_MOST_ITEMS = 30
_SHELL_READ = re.compile(r"\s*(?:cat|nl|head|tail|less|bat|sed -n)\b([^|<>&;`$(\n]*)$")
_SHELL_PATH = re.compile(r"(?<!\S)[\w@+~./-]*\w[./]\w[\w@+./-]*(?!\S)")
_DOCUMENT = re.compile(
    r"\.(?:md|mdx|rst|txt|adoc|org|pdf|html?|docx)$|(?:^|/)README", re.IGNORECASE
)
ADDRESS = re.compile(r"https?://[^\s\"'<>()\[\]`]+[^\s\"'<>()\[\]`.,;:]")
_INTERRUPTED = "[Request interrupted"  # what a client writes in the person's place
_TASK = re.compile(r"#(\w+)")
_STARTED = re.compile(r"running (?:with session|in background with) ID:? (\w+)|moved to background")
_ENDED_BADLY = re.compile(r"^Exit Code: [1-9]", re.MULTILINE)
_HEAD = re.compile(  # what clients put before an output, and lines that only divide
    r"\s*(?:<tool_use_error>|(?:Process exited with|Exit) code:? \d+\s*$|Chunk ID: .*|Output:"
    r"|Wall time:? .*|Original token count: .*|Total output lines: .*|[=_*-]{3,}.*$)",
    re.IGNORECASE,
)
_NAMES_ERROR = re.compile(
    r"\b(?:\w*(?:Error|Exception)\b|error\b|fatal\b|panic|FAIL|not found|denied)|错误|失败"
)
# The lines in which tests, compilers and checkers give their totals.
_TOTAL = re.compile(
    r"\d+ (?:passed|failed|passing|failing|errors? in|examples?, \d|tests? passed|warnings?,)\b"
    r"|^(?:test result:|Tests?:? +\d|Test Suites:|Tests run:|Ran \d+ tests?|TOTAL\b.*\d%)"
    r"|^(?:ok|FAIL|---? FAIL:?)\s+\S+|^(?:OK|FAILED) \(|BUILD (?:SUCCESS|FAIL)\w*"
    r"|^(?:All checks passed|Success: no issues|Found \d+ errors?|Finished `|Compiled |webpack )"
    r"|^\u2716 \d+ problems?|compiled successfully|\d+% tests passed"
)
_TOTAL_LINES, _TOTAL_CHARACTERS = 30, 200  # from an output's end; a longer line is no total
K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class FileUse:
    """How often a file was read, and edited: by calls, and by events that tell of the same."""

    read: int = 0
    calls: int = 0
    events: int = 0
    at: float | None = None

    @property
    def edited(self) -> int:
        """How often it was edited, as far as either tells."""
        return max(self.calls, self.events)


@dataclass(slots=True)
class CommandUse:
    """How often a command ran, and how it ended last: open, running, passed or failed."""

    times: int = 0
    state: str = "open"


@dataclass(slots=True)
class CallFailure:
    """How often a call failed in one way, and whether the same command passed later."""

    times: int = 0
    passed: bool = False


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
    command: str = ""
    read: Sequence[str] = ()
    edited: Sequence[str] = ()
    items: Sequence[tuple[str, str]] = ()
    task: str | None = None
    failed: bool = False


class SessionFacts:
    """The facts of one session so far; ``covers`` names the message up to which notes are written.

    Collections are ordered from the oldest to the newest; their texts are as they were recorded.
    """

    def __init__(self, find_statements: FindStatements, covers: str = "") -> None:
        self._find = find_statements
        self._covers, self._reply = covers, ""
        self._all_calls = self._covered_calls = 0
        self._ids: deque[tuple[str, int]] = deque(maxlen=512)
        self._calls: Recent[str, _OpenCall] = Recent(64)
        self._sessions: Recent[str, str] = Recent(8)
        self.last_id = ""
        self.mid_turn = False
        self.title = self.first_request = self.last_reply = ""
        self.requests: deque[str] = deque()
        self.requests_count = 0
        self.items: Recent[str, tuple[str, str]] = Recent(_MOST_ITEMS)
        self.files: Recent[str, FileUse] = Recent(80)
        self.documents: Recent[str, None] = Recent(40)
        self.commands: Recent[str, CommandUse] = Recent(24)
        self.failures: Recent[tuple[str, str, str, str], CallFailure] = Recent(16)
        self.results: Recent[str, str] = Recent(16)
        self.corrections: Recent[str, None] = Recent(12)
        self.learnings: Recent[str, None] = Recent(12)
        self.turns: deque[TurnFacts] = deque([TurnFacts()], maxlen=40)

    @property
    def calls_since(self) -> int:
        """How many tools were called since the notes were written."""
        return self._all_calls - self._covered_calls

    def covered(self, message_id: str) -> None:
        """Say that notes are written up to a message, whether it has been added yet or not."""
        self._covers = message_id
        known = [calls for name, calls in self._ids if name == message_id]
        self._covered_calls = known[-1] if known else self._covered_calls

    def add(self, piece: TranscriptPiece) -> None:
        """Add what a piece tells; events are no messages."""
        if piece.event:
            self.title = _cut(piece.text, _PATH) if piece.event == TITLE else self.title
            return
        if piece.call is not None:
            self._call(piece, piece.call)
        elif piece.text and piece.origin == USER:
            self._request(piece)
        elif piece.text and piece.origin == ASSISTANT:
            self.last_reply = _cut(piece.text, _WORDS)
            # Words beside a call, in the same reply, end no turn.
            self.mid_turn = self.mid_turn and bool(piece.key) and piece.key == self._reply
        if piece.answers or piece.failed:
            self._result(piece)
        if piece.id:
            self.last_id = piece.id
            self._ids.append((piece.id, self._all_calls))
            if piece.id == self._covers:
                self._covered_calls = self._all_calls

    def _request(self, piece: TranscriptPiece) -> None:
        """Add a message of the person."""
        if piece.text.startswith(_INTERRUPTED):
            return
        text = _cut(piece.text, _WORDS)
        learnings, corrections = self._find(piece.text[:_FINDABLE], self.last_reply)
        for sentences, known in ((learnings, self.learnings), (corrections, self.corrections)):
            for sentence in sentences:
                _renewed(known, _cut(sentence, _LINE), None)
        self.first_request = self.first_request or text
        self.requests.append(text)
        self.requests_count += 1
        while sum(map(len, self.requests)) > _REQUESTS:
            self.requests.popleft()
        self.turns.append(TurnFacts(piece.at, text[:_LINE]))

    def _call(self, piece: TranscriptPiece, call: RecordedCall) -> None:
        """Add a call, or an event without a name that tells what a call changed."""
        edited = tuple(_as_recorded(call))
        if not call.name:
            self._edited(edited, piece.at, event=True)
            return
        self._all_calls += 1
        self.mid_turn, self._reply = True, piece.key
        self.turns[-1].tools[call.name[:_NAME]] += 1
        if _OWN.match(call.name):
            return
        made = self._calls[call.id] = _open_call(call, edited)
        if made.command:
            use = _renewed(self.commands, made.command, CommandUse())
            use.times, use.state = use.times + 1, "open"
        else:  # an answer to a command that still runs ends that one
            made.command = self._sessions.get(str(call.given.get("session_id")), "")

    def _result(self, piece: TranscriptPiece) -> None:
        """Add a call's result, or that a call failed whose result is still to come."""
        made = self._calls.get(piece.answers or piece.failed)
        if made is None:
            return
        made.failed = made.failed or bool(piece.failed)
        if not piece.answers:
            return
        del self._calls[piece.answers]
        self.mid_turn = self.mid_turn and piece.role != ASSISTANT  # the server called it itself
        output = piece.text
        if len(output) > 2 * _ENDS:
            output = f"{output[:_ENDS]}\n{output[-_ENDS:]}"
        if made.command:
            self._ended(made, output)
        if made.failed:
            self._failure(made, output)
        else:
            self._success(made, output, piece.at)

    def _ended(self, made: _OpenCall, output: str) -> None:
        """Add how a command ended, and the totals that it printed."""
        made.failed = made.failed or _ENDED_BADLY.search(output) is not None
        started = _STARTED.search(output[:_LINE])
        if started and started[1]:
            self._sessions[started[1]] = made.command
        state = "failed" if made.failed else "running" if started else "passed"
        self.commands.setdefault(made.command, CommandUse()).state = state
        if state == "passed":
            for (_, subject, *_), failure in self.failures.items():
                failure.passed = failure.passed or subject == made.command
        for line in output.splitlines()[-_TOTAL_LINES:]:
            if len(line) <= _TOTAL_CHARACTERS and _TOTAL.search(line):
                self.results.pop(line, None)
                self.results[line] = made.command

    def _failure(self, made: _OpenCall, output: str) -> None:
        """Add a failed result: its first line, and the first that names an error."""
        self.turns[-1].errors += 1
        own = "" if made.name.lower() in _SUB_AGENTS else output
        lines = [line for each in own.splitlines() if (line := _HEAD.sub("", each, 1).strip())]
        first = lines[0] if lines else ""
        named = next(filter(_NAMES_ERROR.search, lines), first)
        subject = made.command or next(iter((*made.edited, *made.read)), "")
        key = (made.name, subject, _cut(first, _LINE), _cut(named, _LINE))
        failure = _renewed(self.failures, key, CallFailure())
        failure.times, failure.passed = failure.times + 1, False

    def _success(self, made: _OpenCall, output: str, at: float | None) -> None:
        """Add what a call did that went well."""
        for name in made.read:
            address = ADDRESS.match(name)
            if address or _DOCUMENT.search(name):
                _renewed(self.documents, name, None)
            if not address:
                use = _renewed(self.files, name, FileUse())
                use.read, use.at = use.read + 1, at
        self._edited(made.edited, at)
        if made.task is None and made.name.lower() in _PLANS:
            self.items.clear()
            self.items.update((str(number), item) for number, item in enumerate(made.items))
        elif made.task is not None:
            created = _TASK.search(output)  # a new task's id stands in the result
            key = made.task or (created[1] if created else "")
            text, status = made.items[0]
            known = self.items.get(key, ("", ""))
            self.items[key] = (text or known[0], status or known[1])

    def _edited(self, paths: Sequence[str], at: float | None, *, event: bool = False) -> None:
        """Add edits of files, which a call and an event may both tell of."""
        for path in paths:
            use = _renewed(self.files, path, FileUse())
            before, use.at = use.edited, at
            use.calls, use.events = use.calls + (not event), use.events + event
            self.turns[-1].edits += use.edited - before


def _renewed(entries: Recent[K, V], key: K, new: V) -> V:
    """Return an entry, made where there is none, as the newest of all."""
    value = entries.pop(key, new)
    entries[key] = value
    return value


def _cut(text: str, most: int) -> str:
    """Return the start of a text, shorter where its characters take more room."""
    text = text[:most]
    return text if text.isascii() else cut_bytes(text, 2 * most)


def _open_call(call: RecordedCall, edited: Sequence[str]) -> _OpenCall:
    """Return what a call will have done when its result is there."""
    name, given = call.name.lower(), call.given
    made = _OpenCall(call.name[:_NAME], edited=edited)
    if name in _SHELLS:
        made.command = _cut(_command(given), _LINE)
        shown = _SHELL_READ.match(made.command)
        made.read = _SHELL_PATH.findall(shown[1]) if shown else ()
    elif name in _READERS:
        made.read = [_cut(path, _PATH) for key in _PATHS for path in _texts(given.get(key))]
    elif name in _WEB:
        made.read = [_cut(url, _PATH) for text in _texts(given) for url in ADDRESS.findall(text)]
    elif name in _PLANS:
        listed = next((value for value in given.values() if isinstance(value, list)), [])
        made.items = [_item(item) for item in listed[:_MOST_ITEMS]]
    elif name in _TASKS:
        made.task, made.items = str(given.get("taskId") or ""), [_item(given)]
    return made


def _item(given: Any) -> tuple[str, str]:
    """Return the text and the status of an item of a plan."""
    item = given if isinstance(given, Mapping) else {}
    text = next((item[key] for key in _ITEM if isinstance(item.get(key), str)), "")
    return _cut(text, _PATH), str(item.get("status") or "")[:_NAME]


def _command(given: Mapping[str, Any]) -> str:
    """Return a shell's script; arguments stand apart, since the transcript has them apart."""
    words = [text for key in ("command", "cmd") for text in _texts(given.get(key))]
    script = len(words) == 3 and words[1] in ("-c", "-lc")  # noqa: PLR2004 - shell, flag, script
    return words[2] if script else " … ".join(words)


def _as_recorded(call: RecordedCall) -> Iterator[str]:
    """Yield the paths that a call writes as its input has them: absolute or relative."""
    recorded = "\n".join(_texts(call.given)) if call.writes else ""
    for path in call.writes:
        parts = path.split("/")
        ends = (path, *("/".join(parts[at:]) for at in range(1, len(parts))))
        yield from [_cut(end, _PATH) for end in ends if end and end in recorded][:1]


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
