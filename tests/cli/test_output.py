"""What is shown, and how."""

import os
import pty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.cli import output
from memd.cli.output import Screen
from tests.cli.driver import Stream


def _screen(
    *,
    terminal: bool = False,
    environ: dict[str, str] | None = None,
    as_json: bool = False,
    quiet: bool = False,
    color: str = "auto",
) -> tuple[Screen, Stream, Stream]:
    out, err = Stream(terminal=terminal), Stream(terminal=terminal)
    screen = Screen(out, err, environ or {}, as_json=as_json, quiet=quiet, color=color)
    return screen, out, err


@pytest.mark.parametrize(
    ("terminal", "environ", "color", "colored"),
    [
        (True, {}, "auto", True),
        (True, {"NO_COLOR": "1"}, "auto", False),
        (True, {"TERM": "dumb"}, "auto", False),
        (False, {}, "auto", False),
        (False, {"NO_COLOR": "1"}, "always", True),
        (True, {}, "never", False),
    ],
)
def test_colour_is_for_terminals_unless_told(
    terminal: bool,  # noqa: FBT001 - a column of the table
    environ: dict[str, str],
    color: str,
    colored: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """NO_COLOR and a dumb terminal switch colour off, --color decides before them."""
    screen, out, _ = _screen(terminal=terminal, environ=environ, color=color)
    screen.answer({}, screen.paint("x", "red"))
    assert out.getvalue() == ("\x1b[31mx\x1b[0m\n" if colored else "x\n")


def test_control_characters_are_shown_on_a_terminal_only() -> None:
    """A memory cannot move the cursor, clear the screen or hide text; a pipe gets every byte."""
    text = "a\x1b[2J\x9b\u202eb\tc\n"
    for terminal, shown in ((True, "a\\u001b[2J\\u009b\\u202eb\tc\n"), (False, text)):
        screen, out, err = _screen(terminal=terminal, color="never")
        screen.text({}, text)
        screen.error(text[:-1])
        assert (out.getvalue(), err.getvalue()) == (shown, shown)


def test_a_text_can_win_no_more_than_a_colour() -> None:
    """The marks that stand for colours, in a memory's text, become nothing but table colours."""
    screen, out, _ = _screen(terminal=True)
    screen.answer({}, f"{output._OPEN}8;x{output._OPEN}31;y")
    assert "\x1b[8m" not in out.getvalue()
    screen.text({}, f"{output._OPEN}31;z")
    assert "\x1b[31mz" not in out.getvalue()


def test_the_width_is_the_terminals() -> None:
    """A real terminal's columns count; one that does not tell has 80; a pipe has no width."""
    assert _screen()[0].width is None
    assert _screen(terminal=True)[0].width == 80
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as stream:
        assert Screen(stream, stream, {}).width == 80
    os.close(leader)


def test_a_table_is_aligned_and_cut() -> None:
    """Columns line up by what a terminal shows, wide characters too; the last one is cut."""
    rows = [("a", "目录", "x" * 50), ("long", "b", "two\nlines"), ("c", "e\u0301", "")]
    assert output.table(rows, 33).splitlines() == [
        "a     目录  " + "x" * 20 + "…",
        "long  b     two lines",
        "c     e\u0301",
    ]
    assert output.table(rows).splitlines()[0].endswith("x" * 50)
    assert output.table([]) == ""
    assert output.table([("x" * 30, "y" * 30)], 20).splitlines()[0].endswith("y" * 19 + "…")


@given(st.text())
def test_no_text_reaches_a_terminal_raw(text: str) -> None:
    """Whatever a memory holds, no escape or control character but tab and newline is left."""
    shown = output.escape(text)
    assert not any((ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 for c in shown)
    assert output.escape(shown) == shown


def test_a_diff_is_coloured_line_by_line() -> None:
    """Only lines that begin with a mark are painted; the last one ends, and nothing stays so."""
    screen, _, _ = _screen(terminal=True, color="always")
    shown = screen.diff("@@ -1 +1 @@\n-old\n+new\n same\n\\ No newline")
    assert output._color_codes(shown).splitlines() == [
        "\x1b[36m@@ -1 +1 @@\x1b[0m",
        "\x1b[31m-old\x1b[0m",
        "\x1b[32m+new\x1b[0m",
        " same",
        "\\ No newline",
    ]
    assert (shown[-1], screen.diff("")) == ("\n", "")
