"""What setup keeps beside a client's files: one private copy while it is set up, nothing after."""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.net.kit import PYTHON, Home
from tests.net.wire import BIN

KEY = "sk-of-the-person-0123456789"
JSON = f'{{\n  "env": {{"KEY": "{KEY}"}},\n  "a": 1\n}}\n'.encode()
TOML = f'key = "{KEY}"\n\n[a]\nb = 1\n'.encode()
RC = f"export KEY={KEY}\n".encode()
FILES = {
    "claude-code": {".claude/settings.json": JSON},
    "codex": {".codex/hooks.json": JSON, ".codex/config.toml": TOML},
    "gemini": {".gemini/settings.json": JSON},
    "opencode": {".config/opencode/opencode.jsonc": b"// mine\n" + JSON},
    "neovim": {".config/nvim/init.lua": b"-- mine\n"},
    "bash": {".bashrc": RC},
    "zsh": {".zshrc": RC},
    "fish": {".config/fish/config.fish": RC},
}
# Runs memctl and kills it before its Nth change of a file below the home.
KILLER = """
import os, runpy, signal, sys
home, countdown, *sys.argv = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.symlink", "os.link"}
def hook(event, args):
    global countdown
    opens = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if (opens or event in CHANGES) and (isinstance(args[0], int) or home in str(args[0])):
        countdown -= 1
        if countdown < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def _tree(home: Home) -> dict[str, bytes]:
    """Return the files below a home, but for a new daemon's own, with what each holds."""
    root = home.path / "h"
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".local/share/memd" not in str(path)
    }


def _given(home: Home, client: str) -> dict[str, bytes]:
    """Write a person's own files of a client; return the tree with them."""
    for name, content in FILES[client].items():
        path = home.path / "h" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o644)
    return _tree(home)


def _setup(home: Home, *arguments: str) -> str:
    """Run setup without a daemon; return what it printed."""
    done = home.memctl("--no-start", "setup", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


QUICK = ("claude-code", "zsh")
SLOW = [pytest.param(name, marks=pytest.mark.full) for name in FILES if name not in QUICK]


@pytest.mark.parametrize("client", [*QUICK, *SLOW])
def test_one_private_copy_and_none_after_removal(own: Home, client: str) -> None:
    """Each file has one copy at most, mode 0600, which goes with the set-up; bytes come back."""
    before = _given(own, client)
    _setup(own, client)
    once = _tree(own)
    kept = [own.path / "h" / name for name in once if "memd-backup" in name]
    assert [(path.stat().st_mode & 0o777, KEY.encode() in path.read_bytes()) for path in kept] == [
        (0o600, True)
    ] * len(kept)
    assert len(kept) <= len(before)
    assert _setup(own, client).count("already set up") == 1
    assert _tree(own) == once
    _setup(own, client, "--remove")
    assert _tree(own) == before


@pytest.mark.full
@pytest.mark.parametrize("name", ["claude-code", ""])
def test_copies_of_older_versions_go(own: Home, name: str) -> None:
    """Numbered copies and a killed setup's draft go; files that only look similar stay."""
    before = _given(own, "claude-code")
    _setup(own, "claude-code")
    folder = own.path / "h/.claude"
    written = (folder / "settings.json").read_bytes()
    (folder / "settings.json.memd-backup").unlink(missing_ok=True)
    copies = {"settings.json.memd-backup-1": JSON, "settings.json.memd-backup-2": written}
    copies |= {"settings.json.memd-backup-10": written, ".settings.json.memd-4194305": JSON}
    similar = {
        "settings.json.memd-backup-x": b"1",
        "settings.json.backup-1": b"2",
        "settings.jsonx.memd-backup-1": b"3",
        ".settings.json.memd-": b"4",
    }
    for path, content in {**copies, **similar}.items():
        (folder / path).write_bytes(content)
    _setup(own, "claude-code")
    left = {path.name for path in folder.iterdir()} - {*similar}
    assert left == {"settings.json", "settings.json.memd-backup"}
    assert (folder / "settings.json").read_bytes() == written
    for path, content in copies.items():
        (folder / path).write_bytes(content)
    _setup(own, *filter(None, [name]), "--remove")
    assert _tree(own) == before | {f".claude/{path}": text for path, text in similar.items()}
    (folder / "settings.json.memd-backup-3").write_bytes(JSON)
    _setup(own, *filter(None, [name]), "--remove")
    assert not (folder / "settings.json.memd-backup-3").exists()


def test_a_file_that_an_older_version_wrote_is_named(own: Home) -> None:
    """Removal names a file of a client that memd does not write any more, and leaves it."""
    path = own.path / "h/.cursor/mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"memd": {"command": "/x/memctl", "args": ["mcp"]}}}')
    before = path.read_text()
    done = own.memctl("setup", "--remove", "--yes")
    assert done.returncode == 0
    assert str(path) in done.stderr
    assert "setup cursor --remove" in done.stderr
    assert path.read_text() == before


@pytest.mark.full
def test_a_copy_is_of_the_file_before_memd(own: Home) -> None:
    """Further set-ups keep the first copy; what a person edits meanwhile stays after removal."""
    before = _given(own, "claude-code")
    _setup(own, "claude-code")
    _setup(own, "claude-code", "--messages")
    _setup(own, "claude-code", "--rules")
    copy = own.path / "h/.claude/settings.json.memd-backup"
    assert copy.read_bytes() == JSON
    settings = own.path / "h/.claude/settings.json"
    settings.write_bytes(settings.read_bytes().replace(b'"a": 1', b'"a": 2'))
    _setup(own, "claude-code", "--remove")
    edited = {".claude/settings.json": JSON.replace(b'"a": 1', b'"a": 2')}
    assert _tree(own) == before | edited


@pytest.mark.full
@pytest.mark.parametrize("removes", [False, True])
def test_a_kill_leaves_old_or_new(own: Home, removes: bool) -> None:  # noqa: FBT001 - a parameter
    """Whenever setup is killed a file is whole, and a removal later leaves nothing beside it."""
    before = _given(own, "codex")
    _setup(own, "codex")
    after = _tree(own)
    _setup(own, "codex", "--remove")
    for number in count():
        if removes:
            _setup(own, "codex")
        killed = own.run(
            *(PYTHON, "-c", KILLER, str(own.path / "h"), str(number), f"{BIN}/memctl"),
            *("--no-start", "setup", "codex", *(["--remove"] if removes else [])),
        )
        for name, content in _own_files(own):
            assert content in {before[name], after[name]}, f"{name} after change {number}"
        _setup(own, "codex", "--remove")
        assert _tree(own) == before, f"after change {number}"
        if killed.returncode == 0:
            assert number > 2, "no kill came"
            return
        assert killed.returncode == -signal.SIGKILL, killed.stderr


def _own_files(home: Home) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of Codex's files."""
    for name in FILES["codex"]:
        yield name, Path(home.path / "h" / name).read_bytes()
