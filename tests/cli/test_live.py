"""A running job on a terminal."""

from typing import Any

import pytest

from memd.cli.live import View
from memd.cli.output import Screen
from tests.cli.driver import Stream

SAID = {"turn": 1, "text": "I look\nfirst.", "tools": ["Read", "Read", "Grep"]}
TOLD: dict[str, Any] = {
    "job": "j1",
    "kind": "dream",
    "phase": "starting",
    "tool_calls": 3,
    "touched": [],
    "tokens": 1234,
    **SAID,
}


class Terminal:
    """A view, the time it goes by, and what it shows."""

    def __init__(self) -> None:
        self.now = 10.0
        self._err = Stream(terminal=True)
        self.view = View(Screen(Stream(terminal=True), self._err, {}), lambda: self.now)

    def shown(self) -> list[str]:
        """Return what was shown, each passing line an item that begins with its mark."""
        text = self._err.getvalue()
        return [part for part in text.replace("\r\x1b[K", "\x00~").split("\x00") if part.strip("~")]


@pytest.fixture(name="terminal")
def _terminal() -> Terminal:
    return Terminal()


def test_a_turn_is_a_line_for_good(terminal: Terminal) -> None:
    """Number, words on one line, tools and counts stand; below, where the job is now."""
    terminal.view.show(TOLD)
    assert terminal.shown() == [
        "~  1  I look first.  [Read x2, Grep, 3 calls, 1,234 tokens]\n",
        "~dream: starting, turn 1, 3 calls, 1,234 tokens",
    ]


def test_the_line_below_tells_files_and_time(terminal: Terminal) -> None:
    """Touched files are counted, and time goes on while nothing is told."""
    terminal.view.show({"kind": "dream", "phase": "updating", "touched": ["a.md"], "text": None})
    terminal.now += 75
    terminal.view.tick()
    assert terminal.shown() == ["~dream: updating, 1 file", "~dream: updating, 1 file, 1 min 15 s"]


def test_facts_that_are_not_known_are_shown_as_they_are(terminal: Terminal) -> None:
    """What another version tells is shown, but no more than a line holds."""
    more = {"files": 3, "slice": "2 of 3", "odd": {"x": 1}, "a": 1, "b": 2, "tokens": "many"}
    terminal.view.show({"phase": "reading", **more})
    assert terminal.shown() == ["~job: reading, files 3, slice 2 of 3, a 1, b 2"]


def test_a_turn_without_words_or_counts(terminal: Terminal) -> None:
    """A turn may say nothing at all."""
    terminal.view.show({"kind": "dream", "phase": "starting", "text": " ", "tools": "odd"})
    assert terminal.shown()[0] == "~     (no words)\n"


def test_what_is_long_is_cut_to_the_terminal(terminal: Terminal) -> None:
    """Neither a turn nor the line below is wider than the terminal."""
    terminal.view.show({**TOLD, "text": "目录 word " * 80, "phase": "starting" * 20})
    lines = [line.strip("~\n") for line in terminal.shown()]
    assert len(lines) == 2
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].endswith("…  [Read x2, Grep, 3 calls, 1,234 tokens]")


def test_who_comes_late_sees_each_turn_once(terminal: Terminal) -> None:
    """Turns from before come first; one that is told again is not shown again."""
    second = {"turn": 2, "text": "Now I write.", "tools": ["Write"]}
    terminal.view.catch_up({"kind": "dream", "phase": "starting", "texts": [SAID, second]})
    terminal.view.show({**TOLD, **second})
    terminal.view.show({**TOLD, **second})
    assert [line for line in terminal.shown() if line.endswith("\n")] == [
        "~  1  I look first.  [Read x2, Grep]\n",
        "~  2  Now I write.  [Write]\n",
        "~  2  Now I write.  [Write, 3 calls, 1,234 tokens]\n",
    ]


def test_control_characters_of_a_model_are_shown_and_not_obeyed(terminal: Terminal) -> None:
    """A reply cannot clear the screen or write another line."""
    terminal.view.show({**TOLD, "text": "\x1b[2Jx\ry", "tools": ["\x1b[H"]})
    assert terminal.shown()[0].startswith("~  1  \\u001b[2Jx y  [\\u001b[H, ")
