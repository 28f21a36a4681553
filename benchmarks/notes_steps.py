"""What happens in a made-up conversation, before it takes the shape of a client's transcript."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """A tool call with its result.

    ``kind`` is read, edit, write, run, fetch, plan, task (one item made), task_state or agent;
    ``given`` has ``path``, ``command``, ``url``, ``items`` and the like. ``status`` is the exit
    status of a command; with ``failed`` the call came to nothing.
    """

    kind: str
    given: Mapping[str, Any]
    result: str = ""
    failed: bool = False
    status: int = 0


@dataclass(frozen=True)
class Step:
    """One thing that happens.

    ``kind`` is said (by the person), replied, called (parallel calls), injected (memd's own text),
    compacted, titled or seldom (lines that hold nothing of the conversation).
    """

    kind: str
    text: str = ""
    calls: Sequence[Call] = ()


@dataclass
class Planted:
    """What the notes of a conversation must have, and what they must not have."""

    requests: list[str] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)
    edited: dict[str, int] = field(default_factory=dict)
    commands: dict[str, list[bool]] = field(default_factory=dict)  # how each run went
    # Each command that failed, with the lines of its last error that say what went wrong.
    failing: dict[str, list[str]] = field(default_factory=dict)
    corrections: list[str] = field(default_factory=list)
    open_items: list[str] = field(default_factory=list)
    done_items: list[str] = field(default_factory=list)
    title: str = ""
    shell: bool = False  # files are read by the shell alone
    never: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """A conversation with what is planted in it. ``client`` is claude-code or codex."""

    name: str
    client: str
    language: str
    steps: Sequence[Step]
    planted: Planted
    torn: bool = False
