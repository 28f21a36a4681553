"""What the local extractor keeps: ``python -m benchmarks.extraction_quality``.

``conversations.jsonl`` holds conversations as people have them, labelled by what should be saved. A
third is held out: it is measured and never tuned on. Each conversation is read turn by turn, as a
client's Stop hook has it read, in the shape of Claude Code's transcripts or of plain messages, and
its memories come to a directory in memory. ``--show`` names what went wrong in the tuned part.

A memory is right when its type and key words (and day) are those of a label. Labels that the
extractor does not claim to meet count for nothing when missed. Every word of all conversations is
read twice more, as a tool's output and as a quotation: nothing may come of that.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from memd.core.text import sha256
from memd.core.values import FileEdit, Header, MemoryFile, Message
from memd.documents import document
from memd.extract.candidates import find
from memd.extract.merge import finish, merge
from memd.transcripts import reading

SET = Path(__file__).parent / "conversations.jsonl"
TYPES = ("user", "feedback", "project", "reference")
CLAUDE_CODE = "claude-code"
NOISE = {"sidechain": "isSidechain", "meta": "isMeta", "summary": "isCompactSummary"}


@dataclass(frozen=True, slots=True)
class Label:
    """A memory that should come of a conversation: any of ``types``, all ``words`` in its text."""

    types: tuple[str, ...]
    words: tuple[str, ...]
    date: str
    claimed: bool

    def fits(self, memory: MemoryFile) -> bool:
        """Return whether a memory is the one that is meant."""
        text = memory.content.decode().casefold()
        kind = memory.header.type.value if memory.header.type else ""
        return kind in self.types and all(
            word.casefold() in text for word in (*self.words, self.date)
        )


@dataclass(frozen=True, slots=True)
class Conversation:
    """One of the set. ``untrusted`` is whether it holds words that are not the user's own."""

    id: str
    language: str
    held_out: bool
    untrusted: bool
    labels: tuple[Label, ...]
    turns: tuple[tuple[Message, ...], ...]
    spoken: tuple[str, ...]


@dataclass(slots=True)
class Directory:
    """A memory directory in memory."""

    files: dict[str, MemoryFile] = field(default_factory=dict)
    lines: bytes | None = None

    def headers(self) -> tuple[Header, ...]:
        """All memories."""
        return tuple(file.header for file in self.files.values())

    def read(self, path: str) -> MemoryFile | None:
        """One memory."""
        return self.files.get(path)

    def index(self) -> bytes | None:
        """Return the index: there is none."""
        return self.lines

    def learn(self, messages: Sequence[Message]) -> int:
        """Extract from messages as one job does; return how many files changed."""
        now = messages[-1].at or 0.0
        merged = merge(finish(find(messages, now).candidates), self, session="s", at=now)
        for edit in merged.draft.edits:
            self._write(edit)
        return len(merged.draft.edits)

    def _write(self, edit: FileEdit) -> None:
        content = edit.content or b""
        parsed = document.parse(content, edit.path)
        header = Header(
            path=edit.path,
            name=parsed.name,
            description=parsed.description,
            type=parsed.type,
            mtime_ns=0,
            size=len(content),
            damaged=parsed.damaged,
            inode=1,
        )
        self.files[edit.path] = MemoryFile(header, content, sha256(content), parsed.body)


@dataclass(slots=True)
class Figures:
    """Counts of one part of the set; ``twice`` are memories that say what another one says."""

    conversations: int = 0
    saved: int = 0
    right: int = 0
    claimed: int = 0
    met: int = 0
    twice: int = 0
    untrusted: int = 0

    @property
    def precision(self) -> float:
        """The share of memories that are right; 1 when there are none."""
        return self.right / self.saved if self.saved else 1.0

    @property
    def recall(self) -> float:
        """The share of the claimed labels that are met; 1 when there are none."""
        return self.met / self.claimed if self.claimed else 1.0


@dataclass(slots=True)
class Report:
    """Figures by part of the set, and sentences about what went wrong in the tuned part."""

    parts: dict[str, Figures] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def part(self, name: str) -> Figures:
        """Return the figures of a part, from now on."""
        return self.parts.setdefault(name, Figures())


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction_quality")
    parser.add_argument(
        "--show", action="store_true", help="name what went wrong in the tuned part"
    )
    parser.add_argument("--set", default=str(SET), help="another file of labelled conversations")
    options = parser.parse_args()
    report = measure(load(Path(options.set)))
    head = ("part", "conv.", "saved", "right", "precision", "claimed", "met", "recall")
    print(f"{head[0]:<20}" + "".join(f"{word:>10}" for word in (*head[1:], "twice", "untrusted")))
    for name, part in report.parts.items():
        counts = f"{part.conversations:>10}{part.saved:>10}{part.right:>10}{part.precision:>10.3f}"
        recall = f"{part.claimed:>10}{part.met:>10}{part.recall:>10.3f}"
        print(f"{name:<20}{counts}{recall}{part.twice:>10}{part.untrusted:>10}")
    print(f"{report.seconds * 1000:.0f} ms for all of it")
    if options.show:
        print("\n".join(report.wrong))
    return 0


def load(path: Path = SET) -> tuple[Conversation, ...]:
    """Return the labelled conversations of a file."""
    with TemporaryDirectory() as folder, path.open(encoding="utf-8") as lines:
        return tuple(_conversation(json.loads(line), Path(folder)) for line in lines)


def measure(conversations: Sequence[Conversation]) -> Report:
    """Return what came of conversations, of their words as a tool's, and as quotations."""
    report = Report()
    for name in ("tuned", "held out"):
        report.part(name)
    started = time.perf_counter()
    for conversation in conversations:
        _judge(conversation, report)
    for name in ("as a tool's output", "as a quotation"):
        part = report.part(name)
        for conversation in conversations:
            directory = Directory()
            directory.learn(tuple(_planted(conversation, name)))
            part.conversations += 1
            part.saved += len(directory.files)
            part.untrusted += len(directory.files)
            report.wrong += [f"{conversation.id} {name}: {path}" for path in directory.files]
    report.seconds = time.perf_counter() - started
    return report


def _judge(conversation: Conversation, report: Report) -> None:
    directory = Directory()
    read: list[Message] = []
    for turn in conversation.turns:
        directory.learn(turn)
        read += turn
    again = directory.learn(read) if read else 0  # a crash may have a stretch read twice
    left = list(conversation.labels)
    parts = _parts(conversation, report)
    for part in parts:
        part.conversations += 1
        part.twice += again
    for memory in directory.files.values():
        label = next((item for item in left if item.fits(memory)), None)
        known = label or next((item for item in conversation.labels if item.fits(memory)), None)
        left = [item for item in left if item is not label]
        kind = memory.header.type.value if memory.header.type else ""
        for part in (*parts, report.part(kind)):
            part.saved += 1
            part.right += label is not None
            part.twice += label is None and known is not None
            part.untrusted += known is None and conversation.untrusted
        if label is None and not conversation.held_out:
            why = "twice" if known else "wrong"
            report.wrong.append(f"{conversation.id} {why}: [{kind}] {memory.body.strip()!r}")
    for label in conversation.labels:
        for part in (*parts, report.part(label.types[0])):
            part.claimed += label.claimed
            part.met += label.claimed and label not in left
        if label.claimed and label in left and not conversation.held_out:
            said = " / ".join(conversation.spoken)
            report.wrong.append(f"{conversation.id} missed: {label.types[0]} {label.words}: {said}")


def _parts(conversation: Conversation, report: Report) -> list[Figures]:
    split = "held out" if conversation.held_out else "tuned"
    return [report.part(split), report.part(f"{split}, {conversation.language}")]


def _planted(conversation: Conversation, name: str) -> Iterator[Message]:
    """Yield the user's words as somebody else's."""
    for text in conversation.spoken:
        if name == "as a quotation":
            quoted = "\n".join(f"> {line}" for line in text.splitlines())
            yield Message("q", "user", f"{quoted}\n\n```\n{text}\n```", "user", at=0.0)
        else:
            yield Message("t", "user", text, "tool", at=0.0)


def _conversation(item: dict[str, Any], folder: Path) -> Conversation:
    labels = tuple(
        Label(
            tuple(label["type"]),
            tuple(label["words"]),
            label.get("date", ""),
            bool(label["claimed"]),
        )
        for label in item["expect"]
    )
    messages = _read(item, folder)
    return Conversation(
        id=item["id"],
        language=item["language"],
        held_out=item["held_out"],
        untrusted=item["untrusted"],
        labels=labels,
        turns=tuple(_by_turn(messages)),
        spoken=tuple(turn["text"] for turn in item["turns"] if turn["role"] == "user"),
    )


def _by_turn(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Yield what a Stop hook gives to read: the user's words and all that follows them."""
    turn: list[Message] = []
    for message in messages:
        if message.origin == "user" and turn:
            yield tuple(turn)
            turn = []
        turn.append(message)
    if turn:
        yield tuple(turn)


def _read(item: dict[str, Any], folder: Path) -> tuple[Message, ...]:
    """Return a conversation as the store reads it."""
    lines = [_line(number, turn) for number, turn in enumerate(item["turns"])]
    if item["shape"] == CLAUDE_CODE:
        path = folder / f"{item['id']}.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
        return reading.read(str(path)).messages
    plain = [line["message"] | {"timestamp": line["timestamp"]} for line in lines]
    return reading.from_messages(plain)


def _line(number: int, turn: dict[str, str]) -> dict[str, Any]:
    """Return one turn as a line of a transcript, with the block that it is in the API."""
    call = f"toolu_{number}"
    content: str | list[dict[str, Any]] = turn["text"]
    if turn["role"] == "tool_use":
        name, _, argument = turn["text"].partition(" ")
        block = {"type": "tool_use", "id": call, "name": name, "input": {"argument": argument}}
        content = [block]
    elif turn["role"] == "tool_result":
        before = f"toolu_{number - 1}"
        content = [{"type": "tool_result", "tool_use_id": before, "content": turn["text"]}]
    role = "assistant" if turn["role"] in ("assistant", "tool_use") else "user"
    noise = NOISE.get(turn["role"])
    return {
        "type": role,
        "uuid": f"u{number}",
        "timestamp": turn["at"],
        "message": {"role": role, "id": f"m{number}", "content": content},
    } | ({noise: True} if noise else {})


if __name__ == "__main__":
    sys.exit(main())
