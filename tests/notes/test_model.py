"""Runs of a model that keeps notes, over real HTTP: what it may do and what it costs."""

from dataclasses import replace
from typing import Any

import anthropic
import pytest

from memd.agent import service as agent
from memd.agent.service import RunEnd
from memd.conversation.dialogue import NewPieces
from memd.conversation.pieces import RecordedCall, TranscriptPiece
from memd.core.settings import ModelSettings, NotesSettings, Settings
from memd.model.configured import Models
from memd.notes import fork, sections
from memd.notes.editing import NotesBench
from memd.notes.sections import SessionNotes
from memd.notes.templates import chosen
from memd.testing.clock import FakeClock
from memd.testing.messages import Cut, Failure, ReceivedMessage, messages_server, text, tools
from tests.promises import noting

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sdk")]
PATH = "/home/you/.claude/projects/-p/s1/session-memory/summary.md"
TEMPLATE = chosen(NotesSettings(), "/nowhere")
WORDS = (
    "the parser reads each record once and keeps what it needs of it before the next one comes; "
)


async def run(
    server: Any, notes: SessionNotes, news: NewPieces, cache: Any = None
) -> tuple[SessionNotes, RunEnd]:
    """Return the notes after an update, and how it ended."""
    models = Models({}, FakeClock())
    settings = Settings(model=ModelSettings(base_url=server.url))
    model = models.for_(settings)
    assert model is not None
    update = fork.NotesUpdate(notes, PATH, TEMPLATE, news.messages, "/m")
    task, *_ = fork.tasks(update, models.name(settings, fork.KIND), cache)
    bench = NotesBench(PATH, sections.rendered(notes, cursor=False))
    ended = await agent.run(task, model, bench, FakeClock(), lambda *_, **__: None)
    await models.aclose()
    return sections.checked(notes, bench.text)[0], ended


def talk(news: NewPieces, number: int) -> None:
    """Add a turn of some 600 tokens: a question, a file that is read, an answer."""
    call = RecordedCall(f"c{number}", "Read", f"Read /p/src/part{number}.py")
    for piece in (
        TranscriptPiece("user", f"Question {number}: {WORDS}", "user"),
        TranscriptPiece("assistant", origin="assistant", call=call),
        TranscriptPiece("user", WORDS * 15, answers=f"c{number}"),
        TranscriptPiece("assistant", f"Answer {number}: {WORDS * 8}", "assistant"),
    ):
        news.add(replace(piece, id=f"u{number}"))


async def test_a_whole_session_costs_less_than_a_million_tokens() -> None:
    """200,000 tokens of conversation, an update after each 5,000, and no prefix of a client's."""
    titles = [section.title for section in sections.parse(TEMPLATE.text).sections]
    notes, news, turns = sections.parse(TEMPLATE.text), NewPieces(), 0

    def script(request: Any) -> Any:
        number = len(server.messages)
        title, line = titles[number % len(titles)], f"- step {number}: {WORDS * 6}"
        return noting.edits((noting.STATE, line), (title, line * 2))(request)

    with messages_server(script) as server:
        for _ in range(39):
            for _ in range(9):
                turns += 1
                talk(news, turns)
            notes, ended = await run(server, notes, news)
            assert (ended.finished, ended.turns) == (True, 1)
            news.covered(f"u{turns}")
        used = [request.usage["input_tokens"] for request in server.messages]
    size = sum(map(sections.section_tokens, notes.sections))
    figures = f"{len(used)} updates, {sum(used)} tokens of input, at most {max(used)} at once"
    print(f"{figures}, notes of {size}")  # noqa: T201 - the proof's figures
    assert size > 9_000
    assert max(used) <= fork.SHORT_TOKENS
    assert sum(used) <= 1_000_000


async def test_a_clients_cache_serves_nine_tokens_in_ten() -> None:
    """Over the client's own prefix an update reads what the client's last request wrote."""
    notes, news = sections.parse(TEMPLATE.text), NewPieces()
    tool = {"name": "Edit", "input_schema": {"type": "object"}}
    mark = {"cache_control": {"type": "ephemeral"}}
    turns: list[dict[str, Any]] = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"Part {n}: {WORDS * 40}"}
        for n in range(40)
    ]
    rates = []
    with messages_server(noting.edits((noting.STATE, WORDS))) as server:
        for length in (30, 32, 34):
            last = turns[length - 1]
            marked = {**last, "content": [{"type": "text", "text": last["content"], **mark}]}
            cache = {"model": "claude-opus-5-5", "tools": [tool], "system": "You are a coder."}
            cache = {**cache, "messages": [*turns[: length - 1], marked]}
            ask(server.url, cache)
            notes, ended = await run(server, notes, news, cache)
            read = ended.usage.cache_read
            rates.append(read / (read + ended.usage.input + ended.usage.cache_created))
            assert (ended.finished, ended.turns) == (True, 1)
    print(f"read from the client's cache: {', '.join(f'{rate:.1%}' for rate in rates)}")  # noqa: T201 - the proof's figures
    assert min(rates) >= 0.9


KEY, REMOVED = "sk-ant-api03-" + "A1b2C3d4E5" * 9, "[removed: assigned-secret]"
STATE = (noting.STATE, "- mending the parser")
FOREIGN = (
    ("Write", {"file_path": PATH, "content": "x"}),
    ("Bash", {"command": f"rm {PATH}"}),
    ("Edit", {"file_path": "/etc/passwd", "old_string": "root", "new_string": "x"}),
)


def renamed(request: ReceivedMessage) -> Any:
    """Take a section's heading away."""
    name, given = noting.below(request, *STATE)
    return tools((name, {**given, "new_string": "- mending the parser\n"}))


def flood(request: ReceivedMessage) -> Any:
    """Write some 5,000 tokens into a section, and once call what cannot be used."""
    more = FOREIGN[1:2] if noting.turn(request) == 1 else ()
    return tools(noting.below(request, noting.STATE, "word\n" * 4_000), *more)


@pytest.mark.parametrize(
    ("script", "finished", "turns", "denied", "state"),
    [
        (noting.edits(STATE, (noting.WORKLOG, "- 09:00")), True, 1, 0, "- mending the parser"),
        (renamed, True, 1, 0, ""),
        (noting.then(flood, flood), True, 2, 1, "word\n" * 2_399 + "word"),
        (noting.edits((noting.STATE, "word\n" * 9_000)), False, 1, 0, ""),
        (noting.edits((noting.STATE, f"key: {KEY}\n- b")), True, 1, 0, f"{REMOVED}\n- b"),
        (noting.then(noting.calls(*FOREIGN), noting.edits(STATE)), True, 2, 3, STATE[1]),
        (noting.calls(*FOREIGN), False, 4, 9, ""),
        (noting.calls(("Edit", {"file_path": PATH})), False, 4, 2, ""),
        (noting.calls(("Edit", {"file_path": PATH, "old_string": "gone", "new_string": "x"})),
         False, 4, 2, ""),
        (lambda _: text("so on " * 9_000, stop="max_tokens"), False, 1, 0, ""),
        (lambda _: Failure(429, retry_after=0), False, 0, 0, ""),
        (lambda _: Cut(tools(FOREIGN[0])), False, 0, 0, ""),
    ],
)  # fmt: skip
async def test_notes_stay_valid_whatever_a_model_does(
    script: Any, *, finished: bool, turns: int, denied: int, state: str
) -> None:
    """Headings and italic lines stay, the bounds hold, refusals are counted."""
    before = sections.parse(TEMPLATE.text)
    news = NewPieces()
    talk(news, 1)
    with messages_server(script) as server:
        notes, ended = await run(server, before, news)
        assert len(server.messages) <= 4 * 3
    done = ended.finished and bool(ended.touched)
    assert (done, ended.turns, ended.denied) == (finished, turns, denied)
    section = notes.section(noting.STATE)
    assert section is not None
    assert section.content == state
    lines = [(section.title, section.guide) for section in notes.sections]
    assert lines == [(section.title, section.guide) for section in before.sections]


def ask(url: str, request: dict[str, Any]) -> None:
    """Send a client's own request, as its SDK does."""
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        client.messages.create(max_tokens=16_000, **request)
