"""Set-up and its removal, for every client, on files as people have them."""

import os
from pathlib import Path

import pytest

from memd.cli.commands import setup
from memd.cli.operation_table import CLIENTS, SHELLS
from memd.cli.setup.clients import ClientRow
from memd.cli.setup.pieces import Copy
from memd.cli.setup.plan import changes, tidy
from tests.cli.driver import invocation, memctl
from tests.cli.home import Home
from tests.cli.setup import test_toml

KEYS = {"vscode": "servers", "zed": "context_servers", "opencode": "mcp"}
NAMES = (
    "claude-code",
    "codex",
    "gemini",
    "cursor",
    "vscode",
    "zed",
    "opencode",
    "claude-desktop",
    "copilot",
    "goose",
)
# K is the key under which a client lists its servers, E one of its events.
JSON = {
    "empty": b"",
    "blank": b" \n\n",
    "object": b"{}",
    "object, spaced": b"{ }\n",
    "object, two lines": b"{\n}\n",
    "one line": b'{"a":1,"K":{"x":{"command":"y"}}}',
    "one line, spaced": b'{ "a": 1, "b": [1, 2.50] }\n',
    "two spaces": b'{\n  "a": 1,\n  "hooks": {\n    "E": []\n  },\n  "K": {}\n}\n',
    "four spaces, no newline": b'{\n    "K": {\n        "x": {}\n    }\n}',
    "tabs": b'{\n\t"z": {\n\t\t"y": true\n\t},\n\t"a": "\\u00e9 \\/"\n}\n',
    "windows": b'{\r\n  "a": 1,\r\n  "K": {}\r\n}\r\n',
    "byte order mark": b'\xef\xbb\xbf{\n  "a": 1\n}\n',
    "comments": b'// top\n{ // open\n  /* a */ "a": 1, // one\n  // nothing\n}\n// end\n',
    "comment only": b"// nothing yet\n",
    "trailing commas": b'{\n  "K": {\n    "x": {"command": "y",},\n  },\n}\n',
    "braces in text": b'{\n  "a": "{\\"K\\": {}, // no",\n  "b": "http://x"\n}\n',
    "odd order": b'{"z" :\n1 ,"K":{\n"x" :{}} , "a"\n:[ ]}\n',
    "others' hooks": b'{\n  "hooks": {\n    "E": [\n      {"hooks": [{"type": "command", '
    b'"command": "lint"}]}\n    ],\n    "Other": [{"matcher": "x", "hooks": []}]\n  }\n}\n',
    "hooks of another kind": b'{"hooks": {"enabled": true, "disabled": ["x"]}}\n',
    "keys twice elsewhere": b'{\n  "a": 1,\n  "a": 2\n}\n',
    "not ascii": '{\n  "模型": "é 😀"\n}\n'.encode(),
}
REFUSED_JSON = {
    "broken": b'{"a": 1',
    "a list": b"[]\n",
    "not utf-8": b'{"a": "\xff"}\n',
    "utf-16": '{"a": 1}\n'.encode("utf-16"),
    "keys twice": b'{"K": {}, "hooks": {}, "K": {}, "hooks": {}}\n',
    "no place": b'{"K": [], "hooks": []}\n',
    "deep": b"[" * 5000,
}
TOML = {text: text.encode() for text in test_toml.TOML}
REFUSED_TOML = {"broken": b"a = \n", "inline": b"mcp_servers = {}\n", "not utf-8": b"a = '\xff'\n"}
YAML = {text: text.encode() for text in test_toml.YAML}
REFUSED_YAML = {"flow": b"extensions: {}\n", "not utf-8": b"a: \xff\n"}


def _client(home: Home, name: str) -> ClientRow:
    rows = setup.clients(invocation(home, "setup"))
    return next(row for row in rows if row.name == name)


def _files(client: ClientRow) -> list[Path]:
    return [Path(piece.path) for piece in client.pieces if not isinstance(piece, Copy)]


def _forget_backups(path: Path) -> None:
    for backup in path.parent.glob("*.memd-backup"):
        backup.unlink()


def _configurations(path: Path, name: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    if path.suffix == ".toml":
        return TOML, REFUSED_TOML
    if path.suffix == ".yaml":
        return YAML, REFUSED_YAML
    key = KEYS.get(name, "mcpServers").encode()
    event = b"AfterAgent" if name == "gemini" else b"Stop"
    good, bad = (
        {
            title: text.replace(b'"K', b'"' + key).replace(b'"E"', b'"' + event + b'"')
            for title, text in texts.items()
        }
        for texts in (JSON, REFUSED_JSON)
    )
    return good, bad


def test_every_client_is_played(home: Home) -> None:
    """Table, command line and this file name the same clients; Neovim and shells have copies."""
    rows = setup.clients(invocation(home, "setup"))
    assert tuple(row.name for row in rows) == CLIENTS
    assert {*NAMES, "neovim", *SHELLS} == set(CLIENTS)


@pytest.mark.parametrize("name", NAMES)
def test_removing_gives_back_the_same_bytes(home: Home, name: str) -> None:
    """For each file and each way of writing it: twice is once, and out is as before."""
    client = _client(home, name)
    for path in _files(client):
        path.parent.mkdir(parents=True, exist_ok=True)
        for title, content in _configurations(path, name)[0].items():
            path.write_bytes(content)
            assert _set_up(client), title
            once = path.read_bytes()
            assert once != content, title
            assert not _set_up(client), title
            assert _set_up(client, remove=True), title
            assert path.read_bytes() == content, title
            assert os.listdir(path.parent) == [path.name]
        path.unlink()


@pytest.mark.parametrize("name", NAMES)
def test_without_backups_nothing_of_others_is_lost(home: Home, name: str) -> None:
    """Where the backups are gone, the same bytes come back, but for what was empty before."""
    client = _client(home, name)
    for path in _files(client):
        path.parent.mkdir(parents=True, exist_ok=True)
        for title, content in _configurations(path, name)[0].items():
            if not content.strip() or title in {"two spaces", "windows", "comment only"}:
                continue
            path.write_bytes(content)
            _set_up(client)
            _forget_backups(path)
            _set_up(client, remove=True)
            left = path.read_bytes() if path.exists() else b"{}"
            assert left == content or left.strip() == b"{}" == b"".join(content.split()), title


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_edited_is_refused_untouched(home: Home, name: str) -> None:
    """Each is an error that names the file and the reason, and nothing at all is written."""
    client = _client(home, name)
    for path in _files(client):
        path.parent.mkdir(parents=True, exist_ok=True)
        for title, content in _configurations(path, name)[1].items():
            path.write_bytes(content)
            before = _everything(home)
            ran = memctl(home, "setup", name)
            assert (ran.status, ran.out) == (78, ""), title
            assert f"{path} is left as it is: " in ran.err, title
            assert _everything(home) == before, title
        path.unlink()


@pytest.mark.parametrize("name", NAMES)
def test_odd_files_are_refused_and_links_are_followed(home: Home, name: str) -> None:
    """A read-only file, a folder and a pipe stay; a link stays a link, and its file's mode too."""
    client = _client(home, name)
    for path in _files(client):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = next(c for c in _configurations(path, name)[0].values() if c.strip())
        path.write_bytes(content)
        path.chmod(0o444)
        assert "it is read-only" in memctl(home, "setup", name).err
        assert path.read_bytes() == content
        path.unlink()
        path.mkdir()
        assert "Is a directory" in memctl(home, "setup", name).err
        path.rmdir()
        os.mkfifo(path)
        assert "it is no plain file" in memctl(home, "setup", name).err
        path.unlink()
        target = Path(home.path) / f"dotfiles{path.suffix}"
        target.write_bytes(content)
        target.chmod(0o640)
        path.symlink_to(target)
        assert memctl(home, "setup", name).status == 0
        assert path.is_symlink()
        assert target.read_bytes() != content
        assert memctl(home, "setup", name, "--remove").status == 0
        assert (path.is_symlink(), target.read_bytes()) == (True, content)
        assert target.stat().st_mode & 0o777 == 0o640
        path.unlink()


@pytest.mark.parametrize("name", [*NAMES, *SHELLS])
def test_files_of_memd_s_own_go_with_it(home: Home, name: str) -> None:
    """Where a client had no files there are none afterwards, and a dry run makes none either."""
    before = _everything(home)
    assert memctl(home, "setup", name, "--dry-run").out.startswith("--- ")
    assert _everything(home) == before
    assert memctl(home, "setup", name).status == 0
    assert memctl(home, "setup", name, "--remove").status == 0
    assert _everything(home) == before


def _set_up(client: ClientRow, *, remove: bool = False) -> int:
    """Do what the command does to a client's files and return how many changed."""
    plan = changes(client, remove=remove)
    for change in plan:
        change.apply()
    tidy(client)
    return len(plan)


def _everything(home: Home) -> dict[str, bytes]:
    """Return every file below a home by its path."""
    return {
        str(path): path.read_bytes()
        for path in sorted(Path(home.path).rglob("*"))
        if path.is_file()
    }
