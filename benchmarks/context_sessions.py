"""Recorded agent sessions of our own making, and questions about what happened in them.

A session is what a model said and what its tools answered, request by request, so that any number
of runs can play it again. Tools answer in the sizes that they have in practice: most results are
small, some are large, a few are huge; calls come alone or side by side; some turns begin after a
pause in which the prompt cache dies. Five facts are planted in each session, and asked for later.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.context_texts import name, path, sentence, source, text

SESSIONS = 20
FACTS = ("person", "small", "deep", "said", "written")
# Tool: how often it is called, what it answers, and the characters of a usual and of a rare answer.
_TOOLS: dict[str, tuple[int, tuple[str, ...], tuple[int, int], tuple[int, int]]] = {
    "read": (30, ("code", "code", "chinese", "page"), (1_500, 14_000), (20_000, 60_000)),
    "bash": (30, ("log", "tests", "json"), (80, 6_000), (20_000, 160_000)),
    "grep": (14, ("matches",), (200, 7_000), (20_000, 60_000)),
    "glob": (6, ("matches",), (200, 2_500), (3_000, 9_000)),
    "edit": (10, ("code",), (200, 1_200), (1_300, 2_500)),
    "write": (4, ("code",), (60, 200), (200, 400)),
    "web_fetch": (4, ("page", "chinese"), (3_000, 16_000), (20_000, 40_000)),
    "mcp__tracker__list": (2, ("json",), (2_000, 30_000), (110_000, 250_000)),
}
_RARE = 0.07
_ASKED = {
    "person": "Which codeword did the person give for the release?",
    "small": "Which port did the preview server report?",
    "deep": "Which worker lost its lease?",
    "said": "Which table did you say holds the totals?",
    "written": "Which constant did you write for the limit?",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """A planted fact: its kind, the question, and the one answer."""

    kind: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request: what comes before it, what the model says to it, what its tools answer.

    ``prompt`` begins a turn of the person, "" goes on with the results. ``seconds`` pass before.
    """

    prompt: str
    seconds: float
    reply: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session."""

    name: str
    exchanges: tuple[Exchange, ...]
    facts: tuple[Fact, ...]


_FIXED = source(0)
SYSTEM = " ".join(sentence(_FIXED) for _ in range(150))
TOOLS: Sequence[dict[str, Any]] = [
    {"name": tool, "description": SYSTEM[:400], "input_schema": {"type": "object"}}
    for tool in _TOOLS
]


def sessions(count: int = SESSIONS) -> Iterator[Session]:
    """Yield sessions of different lengths, the same ones every time."""
    for number in range(count):
        yield session(number, source(number * 7 + 1).randrange(30, 111))


def session(number: int, requests: int, *, rare: float = _RARE, scale: float = 1.0) -> Session:
    """Return a session of about so many requests.

    ``rare`` is the share of large results, ``scale`` changes the size of all.
    """
    return _Recorder(number, requests, rare, scale).session()


def long_run(requests: int) -> Session:
    """Return one run of so many requests, as agents have that work for hours."""
    return session(5, requests, rare=0.1, scale=0.5)


class _Recorder:
    """Makes one session, exchange by exchange."""

    def __init__(self, number: int, requests: int, rare: float, scale: float) -> None:
        self._number, self._requests = number, requests
        self._rare, self._scale = rare, scale
        self._chance = source(number)
        self._calls = 0
        self._planted: set[str] = set()
        self._facts = {
            kind: Fact(kind, _ASKED[kind], f"{name(self._chance)}_{number}{place}{number * 37}")
            for place, kind in enumerate(FACTS)
        }

    def session(self) -> Session:
        made: list[Exchange] = []
        while len(made) < self._requests:
            made += self._person(len(made))
        return Session(f"session-{self._number}", tuple(made), tuple(self._facts.values()))

    def _person(self, before: int) -> Iterator[Exchange]:
        """Yield the exchanges of one turn: the last of them calls nothing."""
        prompt = " ".join(sentence(self._chance) for _ in range(self._chance.randrange(1, 6)))
        if before == 0:
            prompt += f" The codeword of the release is {self._facts['person'].answer}."
        seconds = self._chance.choice((20.0, 45.0, 90.0, 150.0, 240.0, 1500.0))
        length = self._chance.randrange(4, 18)
        for place in range(length):
            yield self._exchange(before + place, prompt, seconds)
            prompt, seconds = "", self._chance.uniform(4, 25)
        said = " ".join(sentence(self._chance) for _ in range(4))
        yield Exchange(prompt, seconds, (self._thought(), {"type": "text", "text": said}), ())

    def _exchange(self, place: int, prompt: str, seconds: float) -> Exchange:
        reply, results = [self._thought()], []
        share = place / self._requests
        if self._chance.random() < 0.5:
            reply.append({"type": "text", "text": sentence(self._chance)})
        if self._due("said", share, 0.45):
            held = f"The table {self._facts['said'].answer} holds the totals."
            reply.append({"type": "text", "text": held})
        for _ in range(self._chance.choice((1, 1, 1, 2, 2, 4))):
            call, result = self._call(share)
            reply.append(call)
            results.append(result)
        return Exchange(prompt, seconds, tuple(reply), tuple(results))

    def _call(self, share: float) -> tuple[dict[str, Any], dict[str, Any]]:
        tools = list(_TOOLS)
        tool = self._chance.choices(tools, [_TOOLS[each][0] for each in tools])[0]
        kind, size = self._answer(tool)
        planted = written = ""
        if self._due("small", share, 0.2):
            tool, kind, size = "bash", "log", 300
            planted = f"preview server listens on {self._facts['small'].answer}"
        elif self._due("deep", share, 0.3):
            tool, kind, size = "bash", "log", 90_000
            planted = f"worker {self._facts['deep'].answer} lost its lease"
        elif self._due("written", share, 0.6):
            tool, kind, size = "write", "code", 80
            written = f"LIMIT = '{self._facts['written'].answer}'"
        self._calls += 1
        called = f"toolu_{self._number}_{self._calls}"
        given = {"target": path(self._chance), "content": written}
        call = {"type": "tool_use", "id": called, "name": tool, "input": given}
        content = text(self._chance, kind, size, planted)
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": called, "content": content}
        if tool == "bash" and self._chance.random() < 0.08:
            result["is_error"] = True
        return call, result

    def _answer(self, tool: str) -> tuple[str, int]:
        _, kinds, usual, rare = _TOOLS[tool]
        low, high = rare if self._chance.random() < self._rare else usual
        skewed = self._chance.random() ** 2  # most are near the lower end
        return self._chance.choice(kinds), int((low + (high - low) * skewed) * self._scale)

    def _due(self, kind: str, share: float, at: float) -> bool:
        """Return whether a fact is planted now: once, from its place on."""
        due = share >= at and kind not in self._planted
        if due:
            self._planted.add(kind)
        return due

    def _thought(self) -> dict[str, Any]:
        words = " ".join(sentence(self._chance) for _ in range(self._chance.randrange(1, 8)))
        return {"type": "thinking", "thinking": words}
