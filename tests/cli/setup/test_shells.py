"""Completion of memctl in shells: set up, used in the real shells, and taken out again."""

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memd.cli.operation_table import SHELLS
from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

SECONDS = 60.0  # only what does not work needs them
TERMINAL = "import pty, sys; pty.spawn(sys.argv[1:])"
START = {
    "bash": ("bash", "--rcfile", "{home}/.bashrc", "-i"),
    "zsh": ("zsh", "-i"),
    "fish": ("fish", "-i"),
}
# A person's own, as needed for any completion there is.
RC = {
    "bash": (".bashrc", ". ~/.local/share/bash-completion/completions/memctl\n"),
    "zsh": (".zshrc", "autoload -Uz compinit; compinit -u -D\n"),
    "fish": (".config/fish/config.fish", "set fish_greeting\n"),
}
MEMORY = {"name": "", "description": "", "type": "user", "age": "today", "damaged": False}
LISTED = {
    "memory_dir": "/m",
    "memories": [{**MEMORY, "path": path} for path in ("user_role.md", "tabs_of_go.md")],
    "index": {"lines": 2, "bytes": 9, "cut": None},
    "problems": [],
}
ZSHRC = {
    "none": None,
    "empty": b"",
    "lines": b"export A=1\nalias m=memctl  # memd\n",
    "no end": b"export A=1",
    "windows": b"export A=1\r\n",
    "not utf-8": b"export A='\xff'\n\n\n",
}


@pytest.mark.parametrize("before", ZSHRC.values(), ids=ZSHRC)
def test_a_line_goes_in_and_out_again(home: Home, before: bytes | None) -> None:
    """What a person wrote stays, a second run changes nothing, and removing gives it back."""
    rc = Path(home.path, ".zshrc")
    if before is not None:
        rc.write_bytes(before)
    assert memctl(home, "setup", "zsh").status == 0
    once = rc.read_bytes()
    assert once.startswith(before or b"")
    assert once.count(b"fpath+=") == 1
    assert memctl(home, "setup", "zsh").out == "completion in zsh: already set up\n"
    assert memctl(home, "setup", "zsh", "--status").status == 0
    assert rc.read_bytes() == once
    assert memctl(home, "setup", "zsh", "--remove").status == 0
    assert (rc.read_bytes() if rc.exists() else None) == before


def test_other_lines_stay_when_ours_goes(home: Home) -> None:
    """A line that was added since stays; one of another place is replaced; ZDOTDIR is honoured."""
    rc = Path(home.path, "dots/.zshrc")
    rc.parent.mkdir()
    rc.write_bytes(b"one\n")
    folder = str(rc.parent)
    memctl(home, "setup", "zsh", ZDOTDIR=folder)
    rc.write_bytes(rc.read_bytes() + b"two\n")
    data = f"{home.path}/it's data"
    ran = memctl(home, "setup", "zsh", "--status", ZDOTDIR=folder, XDG_DATA_HOME=data)
    assert "outdated" in ran.out
    memctl(home, "setup", "zsh", ZDOTDIR=folder, XDG_DATA_HOME=data)
    assert rc.read_bytes().splitlines()[:2] == [b"one", b"two"]
    assert rc.read_bytes().count(b"fpath+=") == 1
    memctl(home, "setup", "zsh", "--remove", ZDOTDIR=folder, XDG_DATA_HOME=data)
    assert rc.read_bytes() == b"one\ntwo\n"


def test_the_shell_of_the_login_is_offered(home: Home) -> None:
    """Of the shells that a machine has only the person's own is offered, fish where it was used."""
    assert memctl(home, "setup", SHELL="/bin/sh").out == ""
    (Path(home.path) / ".config/fish").mkdir(parents=True)
    names = [
        row["client"] for row in memctl(home, "setup", "--json", SHELL="/bin/bash").json["clients"]
    ]
    assert names == ["bash", "fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_completes(home: Home, shell: str) -> None:
    """After a set-up a tab completes a command, and then the only memory that fits."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    path, text = RC[shell]
    rc = Path(home.path, path)
    rc.parent.mkdir(parents=True, exist_ok=True)
    rc.write_text(text)
    assert memctl(home, "setup", shell).status == 0
    command = [word.format(home=home.path) for word in START[shell]]
    with ScriptedDaemon(home.places.socket, {"memory.list": LISTED}):
        assert b"tabs_of_go.md" in _typed(command, home, b"memctl sho\tta\t", b"tabs_of_go.md")


def _typed(command: list[str], home: Home, keys: bytes, wanted: bytes) -> bytes:
    """Return what a shell on a terminal of its own shows until that is in it."""
    environ = {**home.environ, "TERM": "xterm"}
    environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    shown = b""
    with subprocess.Popen(
        [sys.executable, "-c", TERMINAL, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environ,
        cwd=home.cwd,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(keys)
        process.stdin.flush()
        while wanted not in shown and select.select([process.stdout], [], [], SECONDS)[0]:
            shown += (read := os.read(process.stdout.fileno(), 4096))
            if not read:
                break
        process.kill()  # the terminal is gone then, and the shell with it
    return shown
