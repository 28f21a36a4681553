"""Files as they grow, and who no longer reads."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from memd.cli.following import GrowingFile
from memd.cli.output import Screen

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.text("ab\r\x00é\n", max_size=8)),
        st.tuples(st.sampled_from(["read", "rotate", "remove"]), st.just("")),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_whole_line_comes_once_and_in_order(steps: list[tuple[str, str]]) -> None:
    """However a log is written, put aside and begun anew, nothing is lost or told twice."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        growing = GrowingFile(str(path))
        seen: list[str] = []
        wanted: list[str] = []
        rest = ""
        for number, (step, text) in enumerate(steps):
            if step == "add":
                with path.open("ab") as file:
                    file.write(text.encode())
                *whole, rest = (rest + text).split("\n")
                wanted += whole
            elif step == "read":
                seen += growing.lines()
            else:  # a log that nobody has read yet is looked at before it goes
                seen += growing.lines()
                rest = ""
                if path.exists() and step == "rotate":
                    path.rename(f"{path}.{number}")
                elif path.exists():
                    path.unlink()
        seen += growing.lines()
        growing.close()
    assert seen == wanted


def test_a_log_that_was_cut_begins_anew(tmp_path: Path) -> None:
    """What is written after the cut is told, and what was told before is not told again."""
    path = tmp_path / "log"
    path.write_text("one\ntwo\nhal")
    growing = GrowingFile(str(path))
    assert list(growing.lines()) == ["one", "two"]
    path.write_text("new\n")
    assert list(growing.lines()) == ["new"]
    growing.close()


def test_a_line_that_is_written_while_the_log_is_put_aside_is_told(tmp_path: Path) -> None:
    """Who held the old file open goes on writing there for a moment."""
    path = tmp_path / "log"
    with path.open("a") as writer:
        writer.write("one\n")
        writer.flush()
        growing = GrowingFile(str(path))
        assert list(growing.lines()) == ["one"]
        path.rename(tmp_path / "log.1")
        writer.write("two\n")
        writer.flush()
    path.write_text("three\n")
    assert list(growing.lines()) == ["two", "three"]
    growing.close()


def test_a_closed_pipe_has_no_reader() -> None:
    """Only a pipe whose other end is closed is read by nobody."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stream:
        screen = Screen(stream, stream, {})
        assert not screen.reader_gone
        os.close(reading)
        assert screen.reader_gone
