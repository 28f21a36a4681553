"""Session notes by a model: whatever it does they are valid or as they were, and within the caps.

The model is a script behind real HTTP, asked with the real SDK; its figures are those of a server
that caches and counts as the API documents it.
"""

from pathlib import Path
from typing import Any

import anthropic
import anyio
import pytest
from anyio import to_thread

from memd.notes import sections
from memd.testing.messages import (
    Cut,
    Failure,
    Hang,
    ReceivedMessage,
    text,
    tools,
)
from tests.promises import noting
from tests.promises.learning import MODEL, Desk, desk, members
from tests.promises.transcripts import Conversation

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
WORDS = (
    "the parser reads each record once and keeps what it needs of it before the next one comes; "
)
STATE = (noting.STATE, "- mending the parser")
KEY = "sk-ant-api03-" + "A1b2C3d4E5" * 9
ABSENT = {"old_string": "this stands nowhere", "new_string": "x"}


def talk(said: Conversation, turns: int) -> None:
    """Add turns of some 600 tokens: a question, a file that is read, an answer."""
    for _ in range(turns):
        said.user(f"Question {said.lines}: {WORDS}")
        said.tool("Read", {"file_path": f"/p/src/part{said.lines}.py"}, WORDS * 15)
        said.assistant(f"Answer {said.lines}: {WORDS * 8}")


async def update(here: Desk, said: Conversation, **more: Any) -> Any:
    """Ask for an update and wait for its end."""
    params = {"session_id": said.session, "transcript_path": said.path, "wait": True, **more}
    return await here.call("notes.update", **params)


async def done(here: Desk, said: Conversation, step: float = 0.0, **more: Any) -> Any:
    """Return an update's job once it has ended; time goes on between its tries, or all along."""
    params = {"session_id": said.session, "transcript_path": said.path, **more}
    job = (await here.call("notes.update", **params))["job"]
    with anyio.fail_after(60):
        while True:
            facts = await here.call_plain("job.get", job=job)
            if facts["ended"] is not None:
                return facts
            here.clock.advance(10.0 if facts["state"] == "queued" else step)


def file(said: Conversation) -> Path:
    """Return where a conversation's notes lie."""
    return Path(said.path.removesuffix(".jsonl")) / "session-memory" / "summary.md"


def content(said: Conversation, title: str) -> str:
    """Return what a section of the notes on the disk says."""
    section = sections.parse(file(said).read_text(encoding="utf-8")).section(title)
    assert section is not None
    return section.content


async def test_a_model_that_edits_well_is_asked_once() -> None:
    """Its edits are the notes, the run ends with them, and the next one sees only what is new."""
    async with desk(noting.edits(STATE, (noting.WORKLOG, "- 09:00 parser"))) as here:
        said = here.conversation("s1")
        talk(said, 20)
        result = await update(here, said)
        assert len(here.server.messages) == 1
        assert (result["status"], result["engine"], result["turns"]) == ("completed", MODEL, 1)
        assert result["sections"] == ["Current State", "Worklog"]
        assert result["usage"]["output"] > 0
        assert content(said, noting.STATE) == STATE[1]
        cursor = sections.parse(file(said).read_text(encoding="utf-8")).cursor
        assert cursor is not None
        assert (cursor.engine, cursor.covers) == ("model", result["covers"])
        assert (await update(here, said))["gate"] == "growth"
        talk(said, 10)
        said.user("Something that is said now.")
        assert (await update(here, said, force=True))["engine"] == MODEL
        first, second = (str(request.json["messages"]) for request in here.server.messages)
        spent = (await here.call_plain("spend", by="kind"))["rows"]
    assert "Question 76" in first
    assert "Question 76" not in second
    assert "said now" in second
    assert [row["requests"] for row in spent if row["label"] == "notes"] == [2]


def without_heading(request: ReceivedMessage) -> Any:
    """Take a section's heading away."""
    name, given = noting.below(request, *STATE)
    return tools((name, {**given, "new_string": "- mending the parser\n"}))


def flood(request: ReceivedMessage) -> Any:
    """Write some 5,000 tokens into a section, and once call what cannot be used."""
    more = (("Bash", {"command": "id"}),) if noting.turn(request) == 1 else ()
    return tools(noting.below(request, noting.STATE, "word\n" * 4_000), *more)


def foreign(request: ReceivedMessage) -> Any:
    """Call everything but an edit of the notes."""
    path = noting.path(request)
    return tools(
        ("Write", {"file_path": path, "content": "x"}),
        ("Bash", {"command": f"rm {path}"}),
        ("Read", {"file_path": path}),
        ("Edit", {"file_path": "/etc/passwd", "old_string": "root", "new_string": "x"}),
    )


def loop(request: ReceivedMessage) -> Any:
    """Try an edit that can never apply."""
    return tools(("Edit", {"file_path": noting.path(request), **ABSENT}))


@pytest.mark.parametrize(
    ("script", "state", "fault", "refused"),
    [
        (without_heading, "- as it was", "heading", 0),
        (noting.then(flood, flood), "word\n" * 2_399 + "word", "3000", 1),
        (noting.edits((noting.STATE, f"key: {KEY}")), "[removed: ", "credential", 0),
        (noting.then(foreign, noting.edits(STATE)), STATE[1], "", 4),
    ],
)
async def test_what_a_model_breaks_is_mended(
    script: Any, state: str, fault: str, refused: int
) -> None:
    """Titles and italic lines stay to the byte, sizes hold, no credential gets in, all is told."""

    def answer(request: ReceivedMessage) -> Any:
        first = noting.edits((noting.STATE, "- as it was"))
        return (script if "as it was" in noting.notes(request) else first)(request)

    async with desk(answer) as here:
        said = here.conversation("s1")
        talk(said, 20)
        await update(here, said)
        before = form(said)
        talk(said, 10)
        result = await update(here, said)
        assert (result["status"], result["engine"]) == ("completed", MODEL)
        assert (result.get("refused") or 0) == refused
        assert fault in " ".join(result.get("faults") or [])
        assert content(said, noting.STATE).startswith(state)
        assert KEY not in file(said).read_text(encoding="utf-8")
        assert form(said) == before


def form(said: Conversation) -> list[tuple[str, str]]:
    """Return the titles and italic lines of the notes on the disk."""
    notes = sections.parse(file(said).read_text(encoding="utf-8"))
    return [(section.title, section.guide) for section in notes.sections]


@pytest.mark.parametrize(
    ("script", "requests", "step"),
    [
        (foreign, 12, 0.0),
        (loop, 12, 0.0),
        (lambda _: text("Nothing to note."), 3, 0.0),
        (lambda _: text("and so on " * 4_000, stop="max_tokens"), 3, 0.0),
        (lambda _: Failure(429, retry_after=0.01), 9, 0.0),
        (lambda _: Failure(400, "prompt is too long: 230000 tokens > 200000 maximum"), 3, 0.0),
        (lambda _: Cut(tools(("Bash", {"command": "id"}))), 9, 0.0),
        (lambda _: Hang(text("too late")), 9, 10.0),
    ],
)
async def test_a_failing_model_leaves_the_notes_as_they_were(
    script: Any, requests: int, step: float
) -> None:
    """To the byte, with how far they go; then the session's breaker is open and memd goes on."""

    def answer(request: ReceivedMessage) -> Any:
        first = noting.edits((noting.STATE, "- as it was"))
        return (script if "as it was" in noting.notes(request) else first)(request)

    async with desk(answer) as here:
        said = here.conversation("s1")
        talk(said, 20)
        await update(here, said)
        before = file(said).read_bytes()
        talk(said, 10)
        ended = await done(here, said, step)
        assert (ended["state"], ended["error"]["kind"]) == ("failed", "notes_unfinished")
        assert file(said).read_bytes() == before
        assert 3 <= len(here.server.messages) - 1 <= requests
        known = len(here.server.messages)
        result = await update(here, said)
        assert (result["engine"], result["gate"]) == ("local", "breaker")
        assert "part117.py" in content(said, "Files and Functions")
        assert content(said, noting.STATE).startswith("- as it was")
        other = here.conversation("s2")
        talk(other, 20)
        assert (await update(here, other))["engine"] == MODEL
        assert len(here.server.messages) == known + 1


async def test_the_caps_hold() -> None:
    """A request more than the day has is not sent; the local writer does it and says why."""
    options = "notes_requests_per_day = 2\n"
    async with desk(noting.edits(STATE), spend=options) as here:
        engines = []
        for number in range(4):
            said = here.conversation(f"s{number}")
            talk(said, 20)
            result = await update(here, said)
            engines.append((result["engine"], result.get("gate")))
        assert len(here.server.messages) == 2
    assert engines == [(MODEL, None)] * 2 + [("local", "cap")] * 2
    assert "spend.notes_requests_per_day" in result["problem"]


def request_of(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a client sends itself, with its marks for the cache."""
    mark = {"cache_control": {"type": "ephemeral"}}
    last = {**turns[-1], "content": [{"type": "text", "text": turns[-1]["content"], **mark}]}
    listed = [{"name": name, "input_schema": {"type": "object"}} for name in ("Bash", "Edit")]
    head = {"model": "claude-opus-5-5", "system": "You are a coder.", "tools": listed}
    return {**head, "messages": [*turns[:-1], last]}


async def send(here: Desk, request: dict[str, Any]) -> None:
    """Send a client's own request, as its SDK does."""

    def ask() -> None:
        with anthropic.Anthropic(base_url=here.server.url, api_key="k", max_retries=0) as client:
            client.messages.create(max_tokens=16_000, **request)

    await to_thread.run_sync(ask)


async def test_a_clients_cache_serves_nine_tokens_in_ten() -> None:
    """Its own prefix goes out to the byte, and its cache serves it."""

    def answer(request: ReceivedMessage) -> Any:
        return noting.edits(STATE)(request) if noting.path(request) else text("hi")

    rates = []
    async with desk(answer) as here:
        turns: list[dict[str, Any]] = []
        for number in range(3):
            for _ in range(10):
                kind = "user" if len(turns) % 2 == 0 else "assistant"
                turns.append({"role": kind, "content": f"Part {len(turns)}: {WORDS * 60}"})
            turns.append({"role": "user", "content": f"Go on {number}."})
            cache = request_of(turns)
            await send(here, cache)
            result = await here.call(
                "notes.update", session_id="s1", messages=turns, cache=cache, force=True, wait=True
            )
            turns.append({"role": "assistant", "content": "I go on."})
            assert result["engine"] == "claude-opus-5-5"
            theirs, ours = (members(request.body) for request in here.server.messages[-2:])
            assert ours["messages"].startswith(theirs["messages"][:-1] + ",")
            assert all(ours[name] == theirs[name] for name in ("model", "system", "tools"))
            usage = result["usage"]
            read = usage["cache_read"]
            rates.append(read / (read + usage["input"] + usage["cache_created"]))
    print("read from the client's cache:", *(f"{rate:.1%}" for rate in rates))  # noqa: T201 - the proof's figures
    assert min(rates) >= 0.9


async def test_a_prefix_too_dear_for_the_caps_gives_way_to_the_short_form() -> None:
    """What the day has no room for is not asked; what is new costs little."""
    turns = [{"role": "user", "content": WORDS * 10_000}]
    async with desk(noting.edits(STATE), spend="dollars_per_day = 1\n") as here:
        result = await here.call(
            "notes.update",
            session_id="s1",
            messages=turns,
            cache=request_of(turns),
            wait=True,
        )
        (request,) = here.server.messages
    assert (result["engine"], request.usage["input_tokens"] <= 20_000) == (MODEL, True)


async def test_a_whole_session_costs_less_than_a_million_tokens() -> None:
    """200,000 tokens of conversation, an update after each 5,000, and no prefix of a client's."""

    def answer(request: ReceivedMessage) -> Any:
        number = len(here.server.messages)
        titles = [line[2:] for line in noting.notes(request).split("\n") if line.startswith("# ")]
        line = f"- step {number}: {WORDS * 6}"
        return noting.edits((noting.STATE, line), (titles[number % 10], line * 2))(request)

    async with desk(answer) as here:
        said = here.conversation("s1")
        size = 0
        while size < 200_000:
            talk(said, 1)
            result = await update(here, said)
            size = result.get("tokens") or size
        used = [request.usage["input_tokens"] for request in here.server.messages]
    figures = f"{len(used)} updates, {sum(used)} tokens of input, at most {max(used)} at once"
    print(f"{figures}, a conversation of {size}")  # noqa: T201 - the proof's figures
    assert len(used) > 30
    assert max(used) <= 20_000
    assert sum(used) <= 1_000_000
