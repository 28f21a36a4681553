"""instructions list, show, check, approve and deny."""

import os
from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

OUTSIDE = "it lies outside of where the session works, and nobody has allowed that"
UNMET = "no file that was touched matches its paths"


def file(path: str, why_not: str = "", **more: Any) -> dict[str, Any]:
    """Return one file as the daemon lists it."""
    about = {"path": path, "kind": "project", "scope": "project", "depth": 0, "included_by": ""}
    about |= {"condition": [], "chars": 0 if why_not else 1234, "loaded": not why_not}
    return {**about, "why_not": why_not, **more}


def listed(home: Home, *more: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an answer about the home's directory."""
    cwd = os.path.realpath(home.cwd)
    files = [
        file(f"{home.path}/.claude/CLAUDE.md", kind="user"),
        file(f"{cwd}/CLAUDE.md"),
        file(f"{cwd}/docs/a\nb.md", kind="include", included_by=f"{cwd}/CLAUDE.md"),
        file("/srv/x.md", OUTSIDE, kind="include", included_by=f"{cwd}/CLAUDE.md"),
        *more,
    ]
    answer = {"view": "union", "files": files, "external": ["/srv/x.md"], "allowed": None}
    return {**answer, "problems": [f"{cwd}/CLAUDE.md: has \x1b[31m many"], **members}


@pytest.mark.parametrize("words", [("instructions",), ("instructions", "list")])
def test_what_is_loaded_and_what_is_not_fits_one_screen(home: Home, words: Any) -> None:
    """Loaded files in their order, the others by their reasons, few of a reason, and problems."""
    rules = (
        file(f"{home.cwd}/.claude/rules/{n}.md", UNMET, kind="rule", condition=["*.ts", "\x1b[2J"])
        for n in range(12)
    )
    answer = listed(home, *rules)
    with ScriptedDaemon(home.places.socket, {"instructions.list": answer}) as daemon:
        ran = memctl(home, *words)
        as_json = memctl(home, *words, "--json")
    assert daemon.params("instructions.list") == {"cwd": home.cwd}
    assert ran.out.splitlines() == [
        "loaded, union: 3 files with 3,702 characters",
        "    1,234  user     ~/.claude/CLAUDE.md",
        "    1,234  project  CLAUDE.md",
        "    1,234  include  docs/a\\nb.md, by CLAUDE.md",
        f"not loaded: {OUTSIDE}",
        "           include  /srv/x.md, by CLAUDE.md",
        "  to allow what this project includes from outside: memctl instructions approve",
        f"not loaded: {UNMET}",
        *(f"           rule     .claude/rules/{n}.md (*.ts, \\x1b[2J)" for n in range(5)),
        "           and 7 more, which --json names",
        "problem: CLAUDE.md: has \\x1b[31m many",
    ]
    assert (ran.status, ran.err, as_json.json) == (0, "", answer)


def test_view_and_touched_files_are_passed_on(home: Home) -> None:
    """A touched file is meant from where the person is."""
    with ScriptedDaemon(home.places.socket, {"instructions.list": listed(home)}) as daemon:
        memctl(home, "instructions", "--view", "codex", "--touched", "a.ts", "--touched", "/b")
    assert daemon.params("instructions.list") == {
        "cwd": home.cwd,
        "view": "codex",
        "touched": [f"{home.cwd}/a.ts", "/b"],
    }


def test_nothing_loaded_is_said(home: Home) -> None:
    """A directory without instruction files has an answer too."""
    empty = {**listed(home), "files": [], "external": [], "problems": []}
    text = {**empty, "text": "", "etag": "e"}
    with ScriptedDaemon(
        home.places.socket, {"instructions.list": empty, "instructions.read": text}
    ):
        assert memctl(home, "instructions").out == "loaded, union: 0 files with 0 characters\n"
        ran = memctl(home, "instructions", "show")
    assert (ran.out, ran.err) == ("", "no instruction file is loaded here\n")


def test_the_text_is_printed_as_it_is(home: Home) -> None:
    """Problems go to standard error; a terminal obeys no control character of a file."""
    read = {**listed(home), "text": "# Instruction files\n\n\x1b[2J\n", "etag": "e"}
    with ScriptedDaemon(home.places.socket, {"instructions.read": read}) as daemon:
        terminal = memctl(home, "instructions", "show", terminal=True)
        as_json = memctl(home, "instructions", "show", "--json")
        ran = memctl(home, "instructions", "show", "--view", "claude")
    assert daemon.params("instructions.read") == {"cwd": home.cwd, "view": "claude"}
    assert (ran.out, ran.err) == (read["text"], f"{read['problems'][0]}\n")
    assert "\x1b[2J" not in terminal.out
    assert as_json.json == read


def test_what_is_to_be_mended_is_printed_by_kind(home: Home) -> None:
    """The status tells whether there is anything."""
    cwd = os.path.realpath(home.cwd)
    issues = [
        ("repeated_memory", "a.md", f"says what {cwd}/CLAUDE.md says"),
        ("problem", "", f"{cwd}/x.md: has 40,001 characters; 40,000 are many"),
        ("dead_include", f"{cwd}/CLAUDE.md", f"includes {cwd}/none.md: there is no such file"),
    ]
    names = ("kind", "path", "text")
    checked = {"files": 1, "issues": [dict(zip(names, issue, strict=True)) for issue in issues]}
    with ScriptedDaemon(home.places.socket, {"instructions.check": checked}) as daemon:
        ran = memctl(home, "instructions", "check")
        assert memctl(home, "instructions", "check", "--json").json == checked
    assert daemon.params("instructions.check") == {"cwd": home.cwd}
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "files",
        "  x.md: has 40,001 characters; 40,000 are many",
        "includes that lead nowhere",
        "  CLAUDE.md includes none.md: there is no such file",
        "memories that say what a file says",
        "  a.md says what CLAUDE.md says",
    ]
    with ScriptedDaemon(home.places.socket, {"instructions.check": {"files": 1, "issues": []}}):
        ran = memctl(home, "instructions", "check")
    assert (ran.status, ran.out) == (0, "nothing is to be mended in 1 file\n")


@pytest.mark.parametrize(("verb", "allow"), [("approve", True), ("deny", False)])
def test_a_decision_names_what_it_is_about(home: Home, verb: str, *, allow: bool) -> None:
    """The project and the files, or that there are none now."""
    decided = {"root": "/p", "allowed": allow, "external": [f"{home.path}/x.md"]}
    with ScriptedDaemon(home.places.socket, {"instructions.approve": decided}) as daemon:
        ran = memctl(home, "instructions", verb)
        assert memctl(home, "instructions", verb, "--json").json == decided
    assert daemon.params("instructions.approve") == {"cwd": home.cwd, "allow": allow}
    words = "allowed" if allow else "not allowed"
    assert ran.out == f"includes from outside of /p: {words}\n  ~/x.md\n"
    decided["external"] = []
    with ScriptedDaemon(home.places.socket, {"instructions.approve": decided}):
        assert "no file includes anything" in memctl(home, "instructions", verb).out
