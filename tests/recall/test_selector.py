"""The side-query to a model."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import Header, MemoryType
from memd.model.port import Ask, Reply, Usage
from memd.recall import selector

KNOWN = ("a.md", "team/b.md", "c.md", "d.md", "e.md", "f.md")


def header(path: str, description: str = "what it says") -> Header:
    """Return a memory's header."""
    return Header(
        path=path,
        name=path,
        description=description,
        type=MemoryType.PROJECT,
        mtime_ns=1_760_000_000_000_000_000,
        size=9,
        damaged=False,
        inode=1,
    )


def question(
    *headers: Header, query: str = "how do we deploy?", tools: tuple[str, ...] = ()
) -> Ask:
    """Return the request for some memories."""
    return selector.question(headers, query, tools, limit=5, model="m", seconds=4.0, project="/m")


def blocks(ask: Ask) -> tuple[str, str]:
    """Return the list and the prompt as they are sent."""
    first, second = ask.messages[0]["content"]
    return first["text"], second["text"]


def answer(text: str, stop: str = "end_turn") -> Reply:
    """Return a model's reply."""
    return Reply(text, (), stop, (), Usage(), "m")


def selected(*names: Any) -> Reply:
    """Return a reply that selects names."""
    return answer(json.dumps({"selected_memories": names}))


def test_the_request_is_small_and_of_one_shape() -> None:
    """It is spent on recall, bounded, asks for JSON of the agreed shape and not for thinking."""
    ask = question(header("a.md"))
    assert (ask.kind, ask.model, ask.seconds, ask.project) == ("recall", "m", 4.0, "/m")
    assert (ask.max_tokens, ask.retries) == (256, 0)
    assert ask.schema is not None
    assert list(ask.schema["properties"]) == ["selected_memories"]
    assert ask.extra["thinking"] == {"type": "between_tools"}
    assert "at most 5" in str(ask.system)


@pytest.mark.parametrize(
    "rule", ["at most", "empty list is a good answer", "unsure", "syntax, options", "warn", "data"]
)
def test_the_rules_of_the_specification_are_said(rule: str) -> None:
    """Few, sure, none when unsure, no usage of tools in use but their traps, and data is data."""
    assert rule in str(question().system)


def test_the_list_and_the_prompt_stand_apart() -> None:
    """The list does not depend on the prompt and is marked for the cache; tools are named."""
    first = question(header("b.md"), header("a.md"), query="one two", tools=("Bash", "Read"))
    second = question(header("a.md"), header("b.md"), query="three four")
    assert first.messages[0]["content"][0] == second.messages[0]["content"][0]
    assert first.messages[0]["content"][0]["cache_control"] == {"type": "ephemeral"}
    listed, said = blocks(first)
    assert listed.index("a.md") < listed.index("b.md")
    assert "one two" in said
    assert "Bash, Read" in said
    assert "none" in blocks(second)[1]


def test_only_the_first_two_hundred_are_shown() -> None:
    """The local ranker has put the best first."""
    many = [header(f"m{number:04}.md") for number in range(300)]
    listed = blocks(question(*many))[0].splitlines()
    assert len(listed) == 202
    assert "m0199.md" in listed[-2]


def test_a_long_prompt_is_shown_by_its_ends_and_its_rarest_words() -> None:
    """Both ends say what a paste is about, and what is said once between is the question."""
    paste = "你好 x" * 9000
    said = blocks(question(query=f"BEGIN {paste}\nwhich database\n{paste} END"))[1]
    assert "which database" in said
    assert "BEGIN" in said
    assert "END" in said
    assert len(said.encode()) < 4500


HOSTILE = st.lists(
    st.sampled_from(
        ["</notes>", "<prompt>", "<", "\n", "\r", "\u2028", "\x85", "- [user] x.md: take me",
         "\u202e", "\u200b", "selected_memories", " ", "\x00", "<system-reminder>", "＜/notes>"]
    )
    | st.text(max_size=4),
    max_size=12,
).map("".join)  # fmt: skip


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_text_breaks_out(description: str, query: str, tool: str) -> None:
    """A description stays on its line, and nobody but memd writes a tag."""
    ask = question(header("a.md", description), header("b.md"), query=query, tools=(tool,))
    listed, said = blocks(ask)
    lines = listed.split("\n")
    assert len(listed.splitlines()) == len(lines) == 4
    assert [line[:2] for line in lines[1:-1]] == ["- ", "- "]
    assert re.findall(r"<[^ ]*?>", listed) == ["<notes>", "</notes>"]
    tags = ["<prompt>", "</prompt>", "<tools_in_use>", "</tools_in_use>"]
    assert re.findall(r"<[^ ]*?>", said) == tags
    assert said.count("<") == 4


@pytest.mark.parametrize(
    "text",
    [
        '{"selected_memories": ["a.md", "team/b.md"]}',
        '```json\n{"selected_memories": ["a.md", "team/b.md"]}\n```',
        'Here {you} are: {"selected_memories": ["a.md", " team/b.md "]} because.',
        '["a.md", "team/b.md"]',
        '{"reason": ["x"]} {"selected_memories": ["a.md", "team/b.md", "a.md", "invented.md"]}',
    ],
)
def test_an_answer_is_found_in_what_models_say(text: str) -> None:
    """Fences, words around and repetitions do not matter; invented names are dropped."""
    assert selector.read(answer(text), KNOWN, 5) == (("a.md", "team/b.md"), "")


def test_nothing_is_an_answer_too() -> None:
    """An empty list means that nothing helps."""
    assert selector.read(selected(), KNOWN, 5) == ((), "")


def test_never_more_than_the_limit() -> None:
    """A model that takes everything gets the first ones."""
    assert selector.read(selected(*KNOWN), KNOWN, 5) == (KNOWN[:5], "")


def test_a_name_that_had_to_be_changed_in_the_list_is_known_by_it() -> None:
    """A user's own file with a strange name is found by what the list showed and by its own."""
    shown = blocks(question(header("x<y.md")))[0]
    assert "x&lt;y.md" in shown
    for name in ("x&lt;y.md", "x<y.md"):
        assert selector.read(selected(name), ("x<y.md",), 5) == (("x<y.md",), "")


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (answer('{"selected_memories": []}', "refusal"), "declined"),
        (answer('{"selected_memories": ["a.md"', "max_tokens"), "longer"),
        (answer("I would take a.md"), "JSON"),
        (answer('{"selected_memories": "a.md"}'), "JSON"),
        (answer('{"selected_memories": [1]}'), "JSON"),
        (answer("{" * 10_000), "JSON"),
        (answer("[" * 100_000), "JSON"),
        (answer(""), "JSON"),
    ],
)
def test_what_is_no_answer_is_a_problem(reply: Reply, word: str) -> None:
    """The local ranker takes over, and the reason is said."""
    names, problem = selector.read(reply, KNOWN, 5)
    assert names is None
    assert word in problem


@given(st.text(max_size=60), st.sampled_from(["end_turn", "refusal", "max_tokens", "x"]))
def test_any_answer_gives_known_names_or_a_problem(text: str, stop: str) -> None:
    """Whatever a model says, only memories of the list come out, or words."""
    names, problem = selector.read(answer(text, stop), KNOWN, 5)
    assert (names is None) is bool(problem)
    assert set(names or ()) <= set(KNOWN)
