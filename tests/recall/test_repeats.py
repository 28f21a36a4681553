"""What a memory says twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.recall.repeats import once, repeats, sentences, stands_in

FACT = "Integration tests hit a real database."


@pytest.mark.parametrize(
    "statement",
    [
        "Integration tests hit a real database",
        "integration tests hit a real database.",
        "**Integration tests** hit a  real database. Never mock it",
        "Integration tests hit a real…",
        "Never mock it. Integration tests hit…",
        "“Integration tests hit a real database.”",
        "",
    ],
)
def test_a_statement_that_stands_elsewhere_is_a_repetition(statement: str) -> None:
    """Case of the first letter, full stop, bold, white space and a cut end do not count."""
    text = "# Never mock it\n\n- Integration tests hit\n  a real database.\n"
    assert repeats(statement, sentences(text))


@pytest.mark.parametrize(
    "statement",
    [
        "Integration tests hit a database",
        "Tests hit a real database",
        "Integration tests hit a real Database",
        "Integration tests hit a real database. Use a container",
        "Integration tests hit a fake…",
        "Use a container. Integration tests…",
        "Integration tests hit a real database?",
        "--force is fine",
    ],
)
def test_one_with_anything_of_its_own_is_none(statement: str) -> None:
    """A word more, less or other, a question and what an option begins with all count."""
    assert not repeats(statement, sentences(f"{FACT}\nforce is fine"))


def test_a_reason_that_only_says_it_again_goes() -> None:
    """A "Why" or "How to apply" without anything new goes, with the space around it."""
    apply = "**How to apply:** integration tests hit a real database"
    assert once(f"{FACT}\n\n**Why:** {FACT}\n\n{apply}\n") == FACT
    assert once(f"{FACT}\n\n**Why:** {FACT}\n\n{apply} too") == f"{FACT}\n\n{apply} too"
    assert once("数据库要用真的。\n\n**Why:** 数据库要用真的") == "数据库要用真的。"


@pytest.mark.parametrize(
    "rest",
    [
        f"**Why:** {FACT} Mocks hid a bug.",
        f"**Why:** {FACT}\nMocks hid a bug.",
        f"**Why:** {FACT}\n\n- Mocks hid a bug.",
        "**Why:**\n\nMocks hid a bug.",
        "**Why:**\n**How to apply:** always",
        f"**Why:** because.\n**How to apply:** because.\n\n{FACT}",
    ],
)
def test_nothing_that_stands_only_once_is_lost(rest: str) -> None:
    """A reason with a word of its own, or that more text belongs to, stays as it is."""
    content = f"{FACT}\n\n{rest}\n"
    assert once(content) == content


_PIECES = [FACT, f"**Why:** {FACT}", "**Why:** other.", "**How to apply:** x", "- x", "", "```"]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map("\n".join))
def test_every_sentence_is_still_there(content: str) -> None:
    """Whatever is left out, each sentence stands in what is left, and nothing is new."""
    left = once(content)
    assert set(filter(None, left.split("\n"))) <= set(content.split("\n"))
    for words in (FACT, "other.", "x"):
        assert (words in left) == (words in content)


@pytest.mark.parametrize(
    ("statement", "text", "expected"),
    [
        ("Deploys go out on Tuesday.", "# Deploys go out on **Tuesday**\n\nMore.", True),
        ("deploys go out on Tuesday", "Deploys go\nout on Tuesday. More.", True),
        ("Deploys go out on Tuesd\u2026", "Deploys go out on Tuesday.", True),
        ("Deploys go out on Monday", "Deploys go out on Tuesday.", False),
        ("部署只在周二进行。之后冻结。", "部署只在周二进行。\n之后冻结。", True),
        ("", "anything", True),
    ],
)
def test_what_stands_in_a_text(statement: str, text: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    """A statement stands in a text where all its sentences do, however the text is laid out."""
    assert stands_in(statement, text) is expected
