"""What a text includes, and what a model gets of it."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.instructions import includes

SAMPLES = json.loads(Path(__file__).with_name("samples.json").read_text())
# Names that Claude Code includes and memd does not: in an item of a list, indented code that
# stands behind text that is indented as far.
_ODD = {"h": "- x\n      @g.md\n\n      @h.md"}


def _names(text: str) -> str:
    """Return the letters of the files ``a.md`` to ``h.md`` that a text includes."""
    paths = (path.removeprefix("./") for path in includes.parsed(text).includes)
    return "".join(sorted(path[0] for path in paths if path in ("c_d.md", f"{path[0]}.md")))


@pytest.mark.parametrize(("text", "expected"), SAMPLES["texts"])
def test_what_is_included(text: str, expected: str) -> None:
    """Of each text that asks something the files are included that Claude Code includes."""
    odd = {name for name, part in _ODD.items() if part in text}
    assert _names(text) == "".join(name for name in expected if name not in odd)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n<!-- x -->\nb\n", "a\nb\n"),
        ("a\n\n<!-- x\ny\n-->\n\nb", "a\n\n\nb"),
        ("<!-- x --> b <!-- y --> c\nd", " b  c\nd"),
        ("   <!-- x -->\nb", "b"),
        ("a\r\n<!-- x -->\r\nb\r\n", "a\r\nb\r\n"),
        ("a <!-- x --> b", None),
        ("```\n<!-- x -->\n```\n", None),
        ("    <!-- x -->\n", None),
        ("- a\n  <!-- x -->\n", None),
        ("> <!-- x -->\n", None),
        ("<div>\n<!-- x -->\n</div>\n", None),
        ("a\n<!-- x\n\nb\n", None),
        ("<!-- x -->", ""),
        ("", None),
    ],
)
def test_comments_of_blocks_are_removed(text: str, expected: str | None) -> None:
    """A comment with which a block begins is not shown to the model; any other is."""
    assert includes.parsed(text).text == (text if expected is None else expected)


def test_paths_are_resolved_where_the_file_lies() -> None:
    """A path is relative to the file that names it, to the home, or absolute."""
    targets = [
        includes.target(name, "/p/d/a.md", "/h") for name in ("b.md", "../c", "~/d", "/e/./f")
    ]
    assert targets == ["/p/d/b.md", "/p/c", "/h/d", "/e/f"]


_UNITS = [
    "\n", "a\n\n", "- a\n", "1. a\n", "- a\n  b\n\n  c\n", "> @a\n", "> > > > > > > > @a\n",
    "- - - - - - - - @a\n", "` `` ```  @b\n", "*@a _@b ", "[@a](", "[@a](b) ", "<a <b @c ",
    "<!-- @a -->\n", "x <!-- @a\n\n", "x <!-- @a --> y ", "```\n~~~\n@a\n", "\\*@a", " @a\\ ",
    "<div>\n@a\n\n", "*" * 30 + "a\n", "_@a_", "---\n", "\t@a\n", "[x]: y\n@a\n", "<!--",
]  # fmt: skip


@pytest.mark.parametrize("unit", _UNITS)
def test_work_is_linear(unit: str) -> None:
    """Twice the text costs at most a little more than twice the steps, whatever is repeated."""
    short, long = (
        _steps(partial(includes._parse, f"{unit * count}@x <!--")) for count in (200, 400)
    )
    assert long <= 2.2 * short + 100


def _steps(act: Callable[[], object]) -> int:
    """Return how many lines of Python an act runs."""
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


@given(st.text(alphabet="@a.md/~\\ \n\t`*_<>!-[]()#>1\ufeff\r\x00é", max_size=120))
def test_any_text_is_read(text: str) -> None:
    """No text raises; what is included stands in the text, and without comments all of it stays."""
    parsed = includes.parsed(text)
    assert len(set(parsed.includes)) == len(parsed.includes)
    assert all("@" + path.replace(" ", "\\ ") in text for path in parsed.includes)
    assert parsed.text == text or "<!--" in text
