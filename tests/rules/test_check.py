"""Checks on shell lines: a table that was written before the parser, and hostile lines."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from memd.rules.check import Check, PlannedCall, parse
from memd.rules.command_line import PIECES, started
from tests.rules.shell_table import cases, figures, sees

SIZES = (64 * 1024, 1024 * 1024)
HOSTILE: dict[str, str] = {
    "commands": "a;",
    "words": "git ",
    "options": "git -a x ",
    "substitutions": "$(",
    "double quotes": '"a',
    "quotes in quotes": '"$("',
    "backticks": "`a",
    "escaped backticks": "\\`",
    "arithmetic": "$((",
    "subshells": "(",
    "documents": "<<A ",
    "documents that end": "cat <<A\nA\n",
    "tabs of documents": "cat <<-A\n\t\t\t\n",
    "arrays": "x=(",
    "wrappers": "sudo ",
    "xargs": "xargs -I x git ",
    "find": "find -exec git ",
    "nested shells": 'sh -c "',
    "backslashes": "\\",
    "ansi": "$'\\'",
    "one word": "x",
}


def test_the_table_is_seen_as_it_says() -> None:
    """Each line is seen or passed over as the table has it, with its known gaps."""
    assert [case for case in cases() if sees(case.check, case.line) != case.seen] == []


def test_the_published_figures_are_those_of_the_table() -> None:
    """docs/rules.md says how many lines of the table are seen."""
    with open("docs/rules.md", encoding="utf-8") as page:
        assert figures() in page.read()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_line_costs_what_its_length_does(name: str) -> None:
    """Steps are bounded, and the functions called with them: a longer line costs no more."""
    checks = [parse("git push --force"), parse("a b"), parse("git x")]
    costs = []
    for size in SIZES:
        call = _shell((HOSTILE[name] * size)[:size])
        costs.append(counted(partial(_any_fits, checks, call)))
    assert max(costs) < 60 * PIECES, costs
    assert costs[1] < 2 * costs[0] + 100, costs


@pytest.mark.parametrize("rules", [10, 200])
def test_many_rules_cost_in_proportion(rules: int) -> None:
    """A call is read once for all rules, and each adds a few steps."""
    text = "cd app && git add -A && git commit -m 'x y' && git -C app push origin main"
    checks = [parse(f"git push --x{number}") for number in range(rules)]

    def work() -> None:
        call = _shell(text)
        assert not any(check.fits(call) for check in checks)

    assert counted(work) < 2_000 + 60 * rules


def test_texts_within_texts_have_an_end() -> None:
    """Eight levels are read, and a line that holds itself over and over is not read for ever."""
    line = "git push"
    for _ in range(6):
        line = f"sh -c '{line.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'"
    assert any(each.program == "git" for each in started(line))
    for _ in range(6):
        line = f"sh -c '{line.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'"
        if len(line) > 1_000_000:
            break
    assert list(started(line))


def _any_fits(checks: Sequence[Check], call: PlannedCall) -> bool:
    return any([check.fits(call) for check in checks])  # noqa: C419 - all of them


def _shell(text: str) -> PlannedCall:
    return PlannedCall("Bash", {"command": text}, "/p")


def counted(work: Callable[[], Any]) -> int:
    """Return how many functions were called, Python's and C's: the same in every run."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
