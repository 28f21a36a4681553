"""Whether local notes are true: each quotation stands in the transcript, each number holds.

The transcript is read here by other code than memd's, and the notes by the grammar that
``memd/notes/local.py`` gives: what stands between backticks is a quotation, the rest are labels.
A quotation must stand in a text of the kind that its line speaks of: the person's messages, the
assistant's, the input of a tool call, or a result.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.notes_steps import Case, Planted

_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
_PARTS = re.compile(r"…|\[removed: [^\]]*\]")
_INSERTED = re.compile(r"<(memd-context|command-\w+|local-command-\w+)>.*?</\1>", re.DOTALL)
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_NUMBERED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|\d+")
_MARKER = "- (from the transcript)"
_LONG = 80  # characters of a fact after which a quotation may be cut
_SHORT = 6  # characters of a correction's sentence; less tells nothing
# Whose words a line quotes, by the labels of its quotations in their order.
_KINDS: Mapping[str, tuple[str, ...]] = {
    "- last request: Q": ("person",),
    "- first request: Q": ("person",),
    "- request: Q": ("person",),
    "- in progress: Q": ("input",),
    "- open: Q": ("input",),
    "- assistant's words: Q": ("assistant",),
    "- person: Q": ("person",),
    "- read: Q": ("input",),
    "- address: Q": ("input",),
    "- Q after Q": ("result", "input"),
    "- failed: Q, Q: Q": ("tool", "input", "result"),
    "- failed: Q, Q: Q, Q": ("tool", "input", "result", "result"),
    "- failed: Q: Q": ("tool", "result"),
    "- failed: Q: Q, Q": ("tool", "result", "result"),
    "- failed: Q, Q": ("tool", "input"),
    "- failed: Q": ("tool",),
}
_ENDS = re.compile(
    r"(?P<runs>: (?:passed|failed|running|open), N times)|(?P<used>: (?:(?:read|edited) N(?:, )?)+"
    r"(?:, last T)?)|(?P<again>; N times)?(?P<later>[;,] later passed)?"
)


@dataclass(frozen=True)
class Line:
    """A line of the local writer: its section, its quotations, and its labels with Q for each."""

    section: str
    text: str
    quotations: tuple[str, ...]
    labels: str


@dataclass
class Findings:
    """What one conversation's notes showed; ``found`` counts planted facts by kind."""

    lines: int = 0
    quotations: int = 0
    faults: list[str] = field(default_factory=list)
    found: dict[str, tuple[int, int]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    others: int = 0  # sentences that are called corrections and were none
    size: int = 0
    transcript: int = 0


def check(case: Case, notes: str, transcript: str | Path, cwd: str) -> Findings:
    """Return what is true in notes, and what they have of the facts that were planted."""
    result = Findings(size=len(notes.encode()), transcript=Path(transcript).stat().st_size)
    texts = _Texts(Path(transcript).read_text("utf-8"))
    listed = list(local_lines(notes))
    for line in listed:
        result.lines += 1
        result.quotations += len(line.quotations)
        why = _fault(line, texts, case.planted, cwd)
        if why:
            result.faults.append(f"{case.name}: {line.section}: {why}: {line.text}")
    lower = notes.lower()
    for word in case.planted.never:
        if word.lower() in lower:
            result.faults.append(f"{case.name}: {word[:12]} must not be there")
    _planted(case.planted, listed, cwd, result)
    result.missed = [f"{case.name}: {text}" for text in result.missed]
    return result


def local_lines(notes: str) -> Iterator[Line]:
    """Yield the lines of the local writer, with the section in which each stands."""
    section, local = "", False
    for text in notes.splitlines():
        if text.startswith("# "):
            section, local = text[2:], False
        elif text == _MARKER:
            local = True
        elif local and text.startswith("- "):
            spans = [match[2].strip() for match in _SPAN.finditer(text)]
            yield Line(section, text, tuple(spans), _SPAN.sub("Q", text))


class _Texts:
    """All texts of a transcript with their kind, white space folded."""

    def __init__(self, transcript: str) -> None:
        self._all: dict[str, list[str]] = {}
        self._known: dict[tuple[str, str], bool] = {}
        for line in transcript.splitlines():
            try:
                read = json.loads(line)
            except ValueError:
                continue
            of_codex = isinstance(read.get("payload"), dict)
            for kind, text in _codex(read) if of_codex else _claude_code(read):
                words = _INSERTED.sub(" ", text) if kind == "person" else text
                self._all.setdefault(kind, []).append(_folded(words))

    def have(self, kind: str, quotation: str) -> bool:
        """Return whether one text of a kind has the parts of a quotation in their order."""
        asked = kind, quotation
        if asked not in self._known:
            parts = parts_of(quotation)
            found = any(_stands(parts, text) for text in self._all.get(kind, ()))
            self._known[asked] = found
        return self._known[asked]

    @property
    def requests(self) -> int:
        """How many messages the person wrote."""
        return sum(bool(text) for text in self._all.get("person", ()))


def parts_of(quotation: str) -> list[str]:
    """Return what is quoted to the letter, without the marks of what was left out."""
    return [part.strip() for part in _PARTS.split(quotation) if part.strip()]


def _fault(line: Line, texts: _Texts, planted: Planted, cwd: str) -> str:
    """Return what is untrue in a line, "" if nothing is."""
    shape = _NUMBERED.sub(lambda match: "T" if "-" in match[0] else "N", line.labels)
    if line.section == "Worklog":
        kinds: tuple[str, ...] = ("person", *("tool",) * (len(line.quotations) - 1))
    elif line.section == "Session Title":
        title = texts.have("title", line.quotations[0])
        kinds = ("title" if title else "person",)
    elif line.section == "Task specification" and shape == "- N requests left out":
        shown = 0  # the number itself is checked by the planted requests
        return "" if int(line.text.split()[1]) + shown <= texts.requests else "more than there are"
    elif line.section in ("Files and Functions", "Workflow"):
        kinds = ("input",)
    else:
        kinds = _KINDS.get(_ENDS.sub("", shape) if "failed" in shape else shape, ())
    if not kinds or len(kinds) != len(line.quotations):
        return "a line of no known form"
    for kind, quotation in zip(kinds, line.quotations, strict=True):
        if not texts.have(kind, quotation):
            return f"not in the transcript ({kind})"
    if line.section == "Files and Functions":
        return _used(line, planted, cwd)
    return _ran(line, planted) if line.section == "Workflow" else ""


def _used(line: Line, planted: Planted, cwd: str) -> str:
    """Return what is untrue in a line that says how often a file was used."""
    path = line.quotations[0].removeprefix(f"{cwd}/")
    said = dict(re.findall(r"(read|edited) (\d+)", line.labels))
    read, edited = int(said.get("read", 0)), int(said.get("edited", 0))
    if edited != planted.edited.get(path, 0):
        return f"edited {planted.edited.get(path, 0)} times"
    # What Codex's shell reads is not always told, but never told wrongly.
    true = {planted.read.get(path, 0)} | ({0} if planted.shell else set())
    return "" if read in true else f"read {planted.read.get(path, 0)} times"


def _ran(line: Line, planted: Planted) -> str:
    """Return what is untrue in a line that says how a command went."""
    parts = parts_of(line.quotations[0])
    runs = [went for command, went in planted.commands.items() if _stands(parts, _folded(command))]
    if not runs:
        return ""  # a command that only reads or edits a file
    said = re.search(r": (passed|failed)(?:, (\d+) times)?$", line.labels)
    result = said and (said[1] == "passed", int(said[2] or 1))
    return "" if any(result == (went[-1], len(went)) for went in runs) else "it went otherwise"


def _planted(planted: Planted, lines: list[Line], cwd: str, result: Findings) -> None:
    """Count the planted facts that the notes have, each in the section where it belongs."""

    def quoted(section: str, label: str = "") -> list[str]:
        of_section = (line for line in lines if line.section == section)
        labelled = [line for line in of_section if line.labels.startswith(label)]
        return [quotation for line in labelled for quotation in line.quotations]

    items = quoted("Current State", "- in progress") + quoted("Current State", "- open")
    paths = {path.removeprefix(f"{cwd}/") for path in quoted("Files and Functions")}
    corrections = quoted("Errors & Corrections", "- person")
    last = planted.requests[-1]
    told = {
        "last request": {last: _any(quoted("Current State", "- last request"), last)},
        "edited file": {path: path in paths for path in planted.edited},
        "failing command": {
            command: any(_explains(line, command, errors) for line in lines)
            for command, errors in planted.failing.items()
        },
        # What holds from now on is a rule, and stands among these.
        "correction": {
            words: _part_of(words, [*corrections, *quoted("Learnings", "- person")])
            for words in planted.corrections
        },
        "open item": {item: _any(items, item) for item in planted.open_items},
    }
    for kind, facts in told.items():
        result.found[kind] = sum(facts.values()), len(facts)
        result.missed += [f"{kind}: {fact}" for fact, there in facts.items() if not there]
    for item in planted.done_items:
        if _any(items, item):
            result.faults.append(f"an item that is done is called open: {item}")
    if planted.title and not _any(quoted("Session Title"), planted.title):
        result.faults.append(f"the client's title is not there: {planted.title}")
    whole = " ".join(map(_folded, planted.corrections))
    result.others = sum(not _stands(parts_of(one), whole) for one in corrections)


def _any(quotations: list[str], fact: str) -> bool:
    return any(_tells(quotation, fact) for quotation in quotations)


def _part_of(words: str, sentences: list[str]) -> bool:
    """Return whether one of the quoted sentences is of these words, and says something."""
    text = _folded(words)
    return any(_stands(parts_of(one), text) for one in sentences if len(one) > _SHORT)


def _explains(line: Line, command: str, errors: list[str]) -> bool:
    """Return whether a line has a command that failed together with what its error says."""
    if not line.labels.startswith("- failed: Q, Q: Q") or not _tells(line.quotations[1], command):
        return False
    return any(_any(list(line.quotations[2:]), error) for error in errors)


def _tells(quotation: str, fact: str) -> bool:
    """Return whether a quotation is a fact, as a whole or from its beginning on."""
    parts, words = parts_of(quotation), _folded(_INSERTED.sub(" ", fact))
    if not parts or not _stands(parts, words):
        return False
    return words.startswith(parts[0]) and sum(map(len, parts)) >= min(len(words) * 0.9, _LONG)


def _stands(parts: list[str], text: str) -> bool:
    position = 0
    for part in parts:
        position = text.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


def _folded(text: str) -> str:
    return " ".join(_HIDDEN.sub("", text).split())


def _claude_code(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line of Claude Code's, each with its kind."""
    if line.get("type") == "custom-title":
        yield "title", line["customTitle"]
    marks = ("isSidechain", "isMeta", "isCompactSummary")
    if line.get("type") not in ("user", "assistant") or any(map(line.get, marks)):
        return
    speaker = "person" if line["type"] == "user" else "assistant"
    content = line["message"]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "text":
            yield speaker, block["text"]
        elif block["type"] == "tool_use":
            yield "tool", block["name"]
            yield from (("input", text) for text in _strings(block["input"]))
        elif block["type"] == "tool_result":
            yield from (("result", text) for text in _strings(block["content"]))


def _codex(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a line of Codex's, each with its kind."""
    payload = line["payload"]
    kind, item = payload.get("type", ""), payload.get("item", {})
    if kind == "message" and payload.get("role") == "assistant":
        yield from (("assistant", block["text"]) for block in payload["content"])
    elif kind in ("function_call", "custom_tool_call"):
        yield "tool", payload["name"]
        given = json.loads(payload["arguments"]) if "arguments" in payload else payload["input"]
        yield from (("input", text) for text in _strings(given))
    elif kind == "web_search_call":
        yield from (("tool", "web_search"), *(("input", text) for text in _strings(payload)))
    elif kind.endswith("_output"):
        output = payload["output"]
        read = json.loads(output) if output.startswith("{") else output
        yield from (("result", text) for text in _strings(read))
    elif kind == "user_message":
        yield "person", payload["message"]
    elif item.get("type") == "UserMessage":
        yield from (("person", block["text"]) for block in item["content"])
    elif item.get("type") == "FileChange":
        yield from (("input", path) for path in item["changes"])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(part)
