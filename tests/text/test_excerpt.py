"""A question around pasted text counts."""

import random
import time
from collections.abc import Callable

import pytest

from memd.text.excerpt import LENGTH, excerpt

QUESTION = "may I mock the database in the tests?"
PLACES: dict[str, Callable[[str], str]] = {
    "before": lambda paste: f"{QUESTION}\n\n{paste}",
    "behind": lambda paste: f"{paste}\n{QUESTION}",
    "between": lambda paste: f"{paste}\n{QUESTION}\n{paste}",
    "within a line": lambda paste: f"{paste[:-7]} {QUESTION} {paste[-7:]}{paste}",
}


def log_lines(length: int) -> str:
    """Return lines of a log with so many characters."""
    numbers = random.Random(7)  # noqa: S311 - the same lines each time
    lines: list[str] = []
    while length > 0:
        tests = f"tests/test_orders.py::test_total[{numbers.randrange(999)}] PASSED"
        request = f"{numbers.getrandbits(64):016x}"
        lines.append(f"2026-11-20T23:18:09Z INFO [req={request}] lost the database after {tests}")
        length -= len(lines[-1]) + 1
    return "\n".join(lines)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("length", [1_000, 20_000, 900_000])
def test_a_question_counts_wherever_it_stands(place: str, length: int) -> None:
    """The excerpt holds the question, and little besides."""
    found = excerpt(PLACES[place](log_lines(length)))
    assert QUESTION in found
    assert len(found) < LENGTH + 400


def test_a_short_prompt_counts_whole() -> None:
    """Up to 1,000 characters nothing is left out."""
    prompt = "\n".join(f"{at}. Rename the table of orders." for at in range(30))[:LENGTH]
    assert excerpt(prompt) == prompt


@pytest.mark.parametrize(
    "line", ["为什么测试里不能模拟数据库", "Warum dürfen Tests die Datenbank nicht nachahmen"]
)
def test_a_question_of_any_language_counts(line: str) -> None:
    """No list of words tells a question from a log."""
    paste = log_lines(20_000)
    assert line in excerpt(f"{paste}\n{line}\n{paste}")


@pytest.mark.parametrize("place", ["before", "behind"])
def test_both_ends_of_a_huge_prompt_are_read(place: str) -> None:
    """Four million characters hide no question at either end."""
    assert QUESTION in excerpt(PLACES[place](log_lines(4_000_000)))


@pytest.mark.parametrize("text", ["", "x", "a\n", "\n", " ", "字", "[ ", "a? "])
def test_any_text_takes_linear_time(text: str) -> None:
    """A hundred thousand characters of any sort are read in a moment, and little comes out."""
    began = time.process_time()
    found = excerpt(text * (100_000 // max(len(text), 1)))
    assert time.process_time() - began < 2
    assert len(found) < LENGTH + 400
