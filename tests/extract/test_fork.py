"""What an extraction asks a model."""

from msgspec.structs import replace

from memd.agent.service import Task
from memd.conversation.dialogue import Dialogue, extended
from memd.core.values import Header, MemoryFile, MemoryType, Message
from memd.extract import fork

HEADER = Header(
    path="testing.md",
    name="testing",
    description="Tests run against <the> real database",
    type=MemoryType.FEEDBACK,
    mtime_ns=1_772_000_000_000_000_000,
    size=10,
    damaged=False,
    inode=1,
)
NOW = 1_772_528_400.0  # 2026-03-03, a Tuesday
CLIENT = {
    "system": [
        {"type": "text", "text": "You are a coder.", "cache_control": {"type": "ephemeral"}}
    ],
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "WebFetch"}],
    "model": "claude-opus-5-5",
    "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
}


def said(text: str, origin: str = "user") -> Message:
    """Return one piece."""
    return Message(id="1", role="user", text=text, origin=origin, at=1_772_528_400.0)


def own(dialogue: Dialogue, before: int = 0, new: int = 1) -> Task:
    """Return the run over memd's own prefix."""
    return fork.own(fork.News("/m", dialogue, new, [HEADER], NOW), "small", before)


def marked(task: Task) -> list[int]:
    """Return which blocks of the first message carry a mark for the cache."""
    content = task.messages[0]["content"]
    return [place for place, block in enumerate(content) if "cache_control" in block]


def test_a_conversation_that_goes_on_begins_as_before() -> None:
    """All but the marks and the task is the same, to the byte; the last run's end is marked."""
    first = extended(Dialogue(), [said("one"), said("two")])
    second = extended(first, [said("three")])
    a, b = own(first), own(second, before=2)
    assert (a.system, a.tools, a.model) == (b.system, b.tools, b.model)
    texts = [[block["text"] for block in task.messages[0]["content"]] for task in (a, b)]
    assert texts[0][:2] == texts[1][:2]
    assert (marked(a), marked(b)) == ([1, 2], [1, 2, 3])
    assert fork.changed(fork.fingerprints(a), fork.fingerprints(b)) == ()


def test_a_prefix_that_changed_is_named() -> None:
    """Another model, other tools or another beginning of the conversation are told apart."""
    a = own(extended(Dialogue(), [said("one")]))
    b = own(extended(Dialogue(), [said("uno")]))
    client = fork.prefix(CLIENT)
    assert client is not None
    shared = fork.shared(client, fork.News("/m", Dialogue(), 1, [], NOW))
    assert fork.changed(fork.fingerprints(a), fork.fingerprints(b)) == ("conversation",)
    assert fork.changed(fork.fingerprints(a), fork.fingerprints(shared)) == (
        "model",
        "tools",
        "system",
        "options",
        "conversation",
    )
    assert fork.changed({}, fork.fingerprints(a)) == ()


def test_a_memory_cannot_break_out_of_the_manifest() -> None:
    """What a description holds is no tag, and the manifest stands behind the conversation."""
    task = own(extended(Dialogue(), [said("one")]))
    text = task.messages[0]["content"][-1]["text"]
    assert "- [feedback] testing.md" in text
    assert "&lt;the> real database" in text


def single(dialogue: Dialogue, headers: int = 1, size: int = 10) -> Task:
    """Return the run with one request, shown memories of so many bytes."""
    listed = [replace(HEADER, path=f"{n}.md") for n in range(headers)]
    news = fork.News("/m", dialogue, 1, listed, NOW)
    files = [
        MemoryFile(header, b"t" * size, "", "t") for header in listed[: len(fork.touched(news))]
    ]
    return fork.single(news, "small", files)


def test_one_request_is_short_whatever_there_is() -> None:
    """Beside what is new it has at most 4,000 tokens, and whole memories only as they have room."""
    long = extended(Dialogue(), [said("word " * 5_000)] * 40 + [said("x" * 4_000)])
    task = single(long, headers=1_000, size=1_500)
    assert len(str(task.messages[0]["content"]).encode()) <= 4 * 4_000 + 4_100
    assert task.shown == {"0.md", "1.md"}
    assert (task.tools, task.budget.turns) == ((), 2)
    assert single(long, size=4_000).shown == frozenset()
