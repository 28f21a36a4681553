"""What setup keeps beside a client's files: one private copy while it is set up, nothing after."""

import json
import signal
from itertools import count

import pytest

from tests.net.kit import PYTHON, Home
from tests.net.wire import BIN

KEY = "sk-of-the-person-0123456789"
JSON = f'{{\n  "env": {{"KEY": "{KEY}"}},\n  "a": 1\n}}\n'.encode()
TOML = f'key = "{KEY}"\n\n[a]\nb = 1\n'.encode()
RC = f"export KEY={KEY}\n".encode()
FILES = {
    "claude-code": {".claude/settings.json": JSON, ".claude.json": JSON},
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


OLDER = {
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "zed": (".config/zed/settings.json", "context_servers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "copilot": (".copilot/mcp-config.json", "mcpServers"),
}


def test_what_an_older_version_wrote_goes(own: Home) -> None:
    """Removal takes memd's entry out of files that memd writes no more, or names the file."""
    others = b'{\n  "K": {\n    "x": {\n      "command": "y"\n    }\n  }\n}\n'
    entry = b'\n    "memd": {\n      "command": "/x/memctl",\n      "args": ["mcp"]\n    },'
    before = {}
    for name, key in OLDER.values():
        before[name] = others.replace(b"K", key.encode())
        path = own.path / "h" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(before[name].replace(b'": {', b'": {' + entry, 1))
    (own.path / "h/.cursor/mcp.json.memd-backup").write_bytes(b"{}")
    goose = own.path / "h/.config/goose/config.yaml"
    goose.parent.mkdir(parents=True)
    goose.write_text("extensions:\n  memd:\n    cmd: /x/memctl\n")
    done = own.memctl("setup", "--remove")
    assert done.returncode == 0
    assert _tree(own) == before | {".config/goose/config.yaml": goose.read_bytes()}
    assert "memctl setup goose --remove" in done.stderr
    assert str(goose) in own.memctl("setup", "goose", "--remove").stderr


TOKEN = "team-0123456789abcdef.token"  # noqa: S105 - the name of a file


def _used(home: Home) -> dict[str, bytes]:
    """Set clients up on a person's files, and leave what memd leaves; return the files before."""
    before = {**_given(home, "claude-code"), **_given(home, "codex"), **_given(home, "zsh")}
    for client in ("claude-code", "codex", "zsh", "opencode"):
        _setup(home, client)
    assert home.memctl("--no-start", "service", "install", "--no-enable").returncode == 0
    home.configure("enabled = true\n")
    (home.path / "h/.config/memd" / TOKEN).write_text("secret\n")
    (home.state / "spool").mkdir(parents=True)
    (home.state / "spool/00000000000000000001-1").write_text("{}")
    return before | {".config/memd/memd.toml": b"enabled = true\n"}


def test_all_is_taken_out_without_a_daemon(own: Home) -> None:
    """Clients, service, copies, tokens, spool and hook go; settings and memories stay."""
    before = _used(own)
    during = _tree(own)
    refused = own.memctl("--no-start", "setup", "--remove", "--all")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    said = _setup(own, "--remove", "--all", "--dry-run")
    assert TOKEN in said
    assert _tree(own) == during
    done = own.memctl("--no-start", "--json", "setup", "--remove", "--all", "--yes")
    assert done.returncode == 0, done.stderr
    assert _tree(own) == before
    assert len(json.loads(done.stdout)["removed"]) == 4
    assert not (own.path / "h/.local/share/memd").exists()
    assert all(name in done.stdout for name in (TOKEN, "memd.service", "spool"))
    assert "trust" in done.stderr
    again = own.memctl("--no-start", "setup", "--remove", "--all", "--yes")
    assert (again.returncode, _tree(own)) == (0, before)


@pytest.mark.full
def test_all_is_taken_out_beside_a_daemon(own: Home) -> None:
    """A daemon that runs is ended; what it remembers is there for the next one."""
    project = own.start().project()
    project.write("a.md", "A.")
    _used(own)
    done = own.memctl("setup", "--remove", "--all", "--yes")
    assert done.returncode == 0, done.stderr
    assert own.process is not None
    assert own.process.wait(60) == 0
    assert not (own.state / "spool").exists()
    assert "a.md" in project.tree()
    own.start()
    assert own.call("memory.history", cwd=project.cwd)["changes"]


@pytest.mark.parametrize("words", [["--all"], ["codex", "--remove", "--all"]], ids=" ".join)
def test_all_goes_with_removal_alone(own: Home, words: list[str]) -> None:
    """The option --all is refused without --remove and beside a client's name."""
    done = own.memctl("--no-start", "setup", *words)
    assert (done.returncode, "--remove --all" in done.stderr) == (2, True)


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
@pytest.mark.parametrize("client", ["codex", "claude-code"])
@pytest.mark.parametrize("removes", [False, True])
def test_a_kill_leaves_old_or_new(own: Home, client: str, removes: bool) -> None:  # noqa: FBT001 - a parameter
    """Whenever setup is killed a file is whole, and a removal later leaves nothing beside it."""
    before = _given(own, client)
    _setup(own, client)
    after = _tree(own)
    _setup(own, client, "--remove")
    for number in count():
        if removes:
            _setup(own, client)
        killed = own.run(
            *(PYTHON, "-c", KILLER, str(own.path / "h"), str(number), f"{BIN}/memctl"),
            *("--no-start", "setup", client, *(["--remove"] if removes else [])),
        )
        for name in FILES[client]:
            content = (own.path / "h" / name).read_bytes()
            assert content in {before[name], after[name]}, f"{name} after change {number}"
        _setup(own, client, "--remove")
        assert _tree(own) == before, f"after change {number}"
        if killed.returncode == 0:
            assert number > 2, "no kill came"
            return
        assert killed.returncode == -signal.SIGKILL, killed.stderr
