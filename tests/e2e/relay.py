"""A relay: each program recalls what the one before it saved, then saves something itself.

One person, one home, one daemon, many programs. What a program saved is looked for in the store,
what it recalled where its model or its user saw it, and each run becomes a row of the table in
``docs/clients.md``.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.programs import HERE, ROOT
from tests.support.daemon import Home, client

PAGE = ROOT / "docs" / "clients.md"
_BEGIN = "<!-- runs: make e2e writes what stands between these lines -->"
_END = "<!-- end of runs -->"
_HEAD = ("| program | version | what was seen |", "|---|---|---|")


class Fact(NamedTuple):
    """A statement of the person, a question that it answers, and the word that gives it away."""

    statement: str
    question: str
    word: str

    @property
    def request(self) -> str:
        """The statement as a person asks an assistant to remember it."""
        return f"Remember that {self.statement[0].lower()}{self.statement[1:]}"

    def said(self, text: str) -> bool:
        """Return whether a text gives the statement away."""
        return self.word.casefold() in text.casefold()


# One a line: statement, question, word.
FACTS = tuple(Fact(*line.split("\t")) for line in (HERE / "facts.tsv").read_text().splitlines())


class Step(NamedTuple):
    """What one program has to recall and to save."""

    recalls: Fact
    saves: Fact


@dataclass
class Relay:
    """The person's home, the facts in turn, and a row for each program that ran."""

    home: Home
    project: str
    rows: list[Sequence[str]] = field(default_factory=list)
    _turn: int = 0

    def begin(self) -> None:
        """Save the first fact with memd's own command line's method."""
        with client(self.home) as caller:
            caller.call("memory.write", self.memory(FACTS[0]))

    def step(self) -> Step:
        """Return what the next program is to recall and to save."""
        return Step(FACTS[self._turn], FACTS[self._turn + 1])

    def done(self, name: str, version: str, seen: str) -> None:
        """Note a run that was as it must be; the next program recalls what this one saved."""
        self._turn += 1
        self.rows.append((name, version, seen))

    def skipped(self, name: str, reason: str) -> None:
        """Note a program that could not be had."""
        self.rows.append((name, "", f"skipped: {reason}"))

    def memory(self, fact: Fact) -> dict[str, Any]:
        """Return the parameters of ``memory.write`` for a fact."""
        name = "-".join(fact.statement.rstrip(".").lower().split()[:5])
        return {
            "cwd": self.project,
            "path": f"{name}.md",
            "name": name,
            # No more than what it is about, so that no index gives it away.
            "description": fact.question,
            "type": "project",
            "body": fact.statement,
        }

    def stored(self, fact: Fact) -> Path:
        """Return the file of the memory that holds a fact, once every job has ended."""
        with client(self.home) as caller:
            for job in caller.call("job.list", {})["jobs"]:
                caller.call("job.wait", {"job": job["job"]}, timeout=60)
            folder = Path(caller.call("memory.list", {"cwd": self.project})["memory_dir"])
        files = [path for path in folder.rglob("*.md") if path.name != "MEMORY.md"]
        holding = [path for path in files if fact.said(path.read_text())]
        assert len(holding) == 1, (fact.statement, holding)
        return holding[0]


def write_table(rows: Sequence[Sequence[str]], page: Path = PAGE) -> None:
    """Write the runs into the page, between its two lines; all else stays."""
    head, begin, rest = page.read_text().partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    assert begin, f"{page} lacks the line {_BEGIN}"
    assert end, f"{page} lacks the line {_END}"
    lines = [*_HEAD, *(f"| {' | '.join(row)} |" for row in rows)]
    page.write_text(f"{head}{begin}\n{chr(10).join(lines)}\n{end}{tail}")


Run = Callable[[Relay, Step], str]


def environment(relay: Relay, step: Step, session: str) -> dict[str, str]:
    """Return what the scripts of clients of the socket read."""
    recall = {"cwd": relay.project, "session_id": session, "query": step.recalls.question}
    return {
        "E2E_SOCKET": relay.home.places.socket,
        "E2E_RECALL": json.dumps(recall),
        "E2E_ABSENT": json.dumps({"cwd": relay.project, "path": "no.md"}),
        "E2E_SAVE": json.dumps(relay.memory(step.saves)),
    }
