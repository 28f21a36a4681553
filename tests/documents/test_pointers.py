"""The lines of the index that memd writes: a short title, a whole sentence, nothing twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import Pointer
from memd.documents.document import name_of_statement
from memd.documents.index import (
    entries,
    of_memory,
    pointer_line,
    with_followed_lines,
    with_pointer,
)

LONG = (
    "Our integration tests must hit a real Postgres, never SQLite, because the SQLite tests hid"
    " a broken migration last spring."
)
BEGINS_WITH_CONTENT = "Integration tests hit real databases in staging, as mocks hid a migration."


def line(name: str, description: str) -> str:
    """Return the line of a memory."""
    return pointer_line("a.md", of_memory(name, description))


def followed(text: str, old: tuple[str, str], new: tuple[str, str]) -> str:
    """Return an index after a change of a memory's head."""
    return with_followed_lines(text.encode(), {"a.md": (old, new)}).decode()


def test_a_long_sentence_is_whole() -> None:
    """The title has content words, the hook the whole sentence."""
    found = line(name_of_statement(LONG), LONG)
    assert found == f"- [Integration tests hit real Postgres](a.md) — {LONG}"


def test_a_title_does_not_begin_the_sentence() -> None:
    """Where a sentence begins with its content words, the title has the longest of them."""
    pointer = of_memory(name_of_statement(BEGINS_WITH_CONTENT), BEGINS_WITH_CONTENT)
    assert pointer == Pointer("Integration databases staging migration", BEGINS_WITH_CONTENT)


def test_a_short_sentence_is_its_own_title() -> None:
    """What fits into a title is said once."""
    assert line("never-deploy-on-friday", "never deploy on a Friday") == (
        "- [Never deploy on a Friday](a.md)"
    )


def test_a_denial_stays_in_a_title() -> None:
    """No title says the opposite of its sentence."""
    sentence = "use uv and never pip when you install anything in this repository of ours"
    assert "never pip" in of_memory(name_of_statement(sentence), sentence).title


def test_a_name_of_somebody_is_the_title() -> None:
    """A given name stays; where the description repeats it, it is said once."""
    assert line("real-database", "Tests run against a real database") == (
        "- [real-database](a.md) — Tests run against a real database"
    )
    assert line("friday-deploys", "Friday deploys.") == "- [Friday deploys.](a.md)"
    assert line("alone", "") == "- [alone](a.md)"


@given(st.text(), st.text())
def test_no_line_says_the_same_twice(name: str, description: str) -> None:
    """Whatever a head says, title and hook are no repetition of each other."""
    (entry,) = entries(line(name, description).encode())
    assert not entry.hook or entry.title.casefold() != entry.hook.casefold()


OLD = ("integration-tests", LONG)
NEW = ("integration-tests", "Integration tests may use SQLite where no storage is touched.")


@pytest.mark.parametrize(
    "hook", [LONG, f"{LONG[:60].rstrip()}…", f"{LONG[:100].rstrip()}…", f"{LONG} (outside)"]
)
def test_a_line_of_memd_follows(hook: str) -> None:
    """The hook becomes the new description, also in lines of earlier versions."""
    text = f"# Mine\n* [integration-tests](./a.md) — {hook}\n"
    new = f"# Mine\n* [integration-tests](./a.md) — {NEW[1]}\n"
    assert followed(text, OLD, NEW) == new


def test_title_and_hook_follow() -> None:
    """Where memd made the name, too, both say what now holds."""
    old, new = (name_of_statement(LONG), LONG), (name_of_statement(NEW[1]), NEW[1])
    for text in (line(*old), f"- [{LONG[:49]}…](a.md) — {LONG[:55]}…"):
        assert followed(text, old, new) == line(*new)
    short = ("never-deploy-on-friday", "never deploy on a Friday")
    assert followed(line(*short), short, new) == line(*new)
    assert followed(line(*new), new, short) == line(*short)


@pytest.mark.parametrize(
    "text",
    [
        "- [integration-tests](a.md) — my own words\n",
        "- [integration-tests](a.md) — Our integration tests\n",
        "- [Mine](a.md)\n",
        "- [integration-tests](b.md) — other\n",
        f"See [integration-tests](a.md): {LONG}\n",
    ],
)
def test_a_line_of_a_person_stays(text: str) -> None:
    """Whatever memd does not write itself is not rewritten."""
    assert followed(text, OLD, NEW) == text


def test_a_title_of_a_person_stays() -> None:
    """Only the hook follows where the title is a person's."""
    assert followed(f"- [Mine](a.md) — {LONG}\n", OLD, NEW) == f"- [Mine](a.md) — {NEW[1]}\n"


def test_of_two_lines_the_first_follows() -> None:
    """A second line to the same memory stays."""
    twice = f"- [integration-tests](a.md) — {LONG}\n" * 2
    assert followed(twice, OLD, NEW).endswith(twice[: len(twice) // 2])


def test_a_repeated_hook_is_left_out() -> None:
    """A writer's hook with only the words of the title is not written."""
    assert with_pointer(b"- [x](a.md)\n", "a.md", Pointer("Two words", "two words.")) == (
        b"- [Two words](a.md)\n"
    )
