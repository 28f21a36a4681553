"""Shell lines as their commands: what a real shell runs is among what is read."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.rules.command_line import PIECES, started
from tests.rules.shell_table import cases

BASH = shutil.which("bash")
# Commands that no shell knows are told to this function, with their words.
LOG = "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\1' >> \"$LOG\"; };"
WORDS = (
    "push",
    "--force",
    "-f",
    "a b",
    "",
    "it's",
    'say "x"',
    "a;b",
    "x|y",
    "$x",
    "#no",
    "é",
    "\\",
    "*",
)


def quoted(word: str) -> st.SearchStrategy[str]:
    """Return ways to write a word."""
    single = "'" + word.replace("'", "'\\''") + "'"
    escaped = "".join(f"\\{letter}" for letter in word) if word else "''"
    double = '"' + "".join(f"\\{c}" if c in '"\\$`' else c for c in word) + '"'
    split = f"{double}''"
    return st.sampled_from((single, escaped, double, split))


command = st.builds(
    lambda name, words: " ".join([name, *words]),
    st.sampled_from(("c1", "c2", "'c3'", "c\\4", '"c5"')),
    st.lists(st.sampled_from(WORDS).flatmap(quoted), max_size=3),
)
redirected = st.builds(
    "{} {}".format, command, st.sampled_from((">/dev/null", "2>&1", "<<< text", "2>/dev/null"))
)
line = st.recursive(
    st.one_of(command, redirected),
    lambda inner: st.one_of(
        st.builds("{}; {}".format, inner, inner),
        st.builds("{} && {}".format, inner, inner),
        st.builds("{} || {}".format, inner, inner),
        st.builds("{} | {}".format, inner, inner),
        st.builds("{}\n{}".format, inner, inner),
        st.builds("({})".format, inner),
        st.builds("{{ {}; }}".format, inner),
        st.builds('echo "$({})"'.format, inner),
        st.builds("x=$({}) y=({})".format, inner, st.sampled_from(("a b", "'c1 d'"))),
        st.builds("if {}; then {}; else {}; fi".format, inner, inner, inner),
        st.builds("for i in 1; do {}; done".format, inner),
        st.builds("case a in b) {};; (a|c) {};; esac".format, inner, inner),
        st.builds("f() {{ {}\n}}; f".format, inner),
        st.builds("cat <<E >/dev/null\nc1 not a command\nE\n{}".format, inner),
        st.builds("[ a = b ] || {}".format, inner),
        st.builds("echo $((1 << 2)); {} # {}".format, command, command),
    ),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(line)
def test_what_bash_runs_is_read(tmp_path: Path, text: str) -> None:
    """Each command that bash runs, word by word, is among the commands of its line."""
    read = [tuple(each.words[each.at :]) for each in started(text)]
    missing = [words for words in ran(tmp_path, text) if words not in read]
    assert missing == [], (text, read)


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_the_table_tells_what_bash_runs(tmp_path: Path) -> None:
    """A line that is passed over and that the table calls harmless runs no such words."""
    for case in cases():
        first, *rest = case.check.split()
        # A path might name a real program, which nothing here may run.
        if case.runs or case.seen or "/" in case.line + case.check:
            continue
        run = [words for words in ran(tmp_path, case.line) if words[0] == first]
        assert not [words for words in run if list(words[1 : len(rest) + 1]) == rest], case


@given(st.text(st.sampled_from("ab \n\t'\"\\$`(){}[];&|<>#=!-~*é\0"), max_size=60))
def test_any_text_is_read(text: str) -> None:
    """No text fails."""
    list(started(text))


def test_a_line_without_end_is_read_to_the_bound() -> None:
    """What stands behind the bound is not read, and what stands before it is."""
    programs = [each.program for each in started("first;" + "a;" * PIECES + "last")]
    assert "first" in programs
    assert "last" not in programs


def ran(folder: Path, text: str) -> list[tuple[str, ...]]:
    """Return the commands that bash ran and did not know, each as its words."""
    log = folder / "log"
    log.write_bytes(b"")
    subprocess.run(
        [str(BASH), "-c", f'{LOG} eval "$1"', "bash", text],
        env={"PATH": "/nowhere", "LOG": str(log)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    groups = os.fsdecode(log.read_bytes()).split("\1\0")
    return [tuple(group.split("\0")[:-1]) for group in groups if group]
