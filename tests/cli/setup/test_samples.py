"""Set-up and its removal on sixty files as people have them: JSON with comments, and TOML."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.cli.operation_table import CLIENTS
from tests.cli.driver import memctl
from tests.cli.home import Home

# Each file that memd writes into, with its client, the key of its servers and one of its events.
PLACES = {
    ".claude/settings.json": ("claude-code", "mcpServers", "Stop"),
    ".claude.json": ("claude-code", "mcpServers", "Stop"),
    ".codex/hooks.json": ("codex", "mcpServers", "Stop"),
    ".codex/config.toml": ("codex", "mcp_servers", "Stop"),
    ".gemini/settings.json": ("gemini", "mcpServers", "AfterAgent"),
    ".config/opencode/opencode.json": ("opencode", "mcp", "Stop"),
}
QUICK = (".claude.json", ".codex/config.toml")
# K is the key under which a client lists its servers, E one of its events.
JSON = (
    b"",
    b" \n\n",
    b"{}",
    b"{ }\n",
    b"{\n}\n",
    b'{"a":1,"K":{"x":{"command":"y"}}}',
    b'{ "a": 1, "b": [1, 2.50] }\n',
    b'{\n  "a": 1,\n  "hooks": {\n    "E": []\n  },\n  "K": {}\n}\n',
    b'{\n    "K": {\n        "x": {}\n    }\n}',
    b'{\n\t"z": {\n\t\t"y": true\n\t},\n\t"a": "\\u00e9 \\/"\n}\n',
    b'{\r\n  "a": 1,\r\n  "K": {}\r\n}\r\n',
    b'\xef\xbb\xbf{\n  "a": 1\n}\n',
    b'// top\n{ // open\n  /* a */ "a": 1, // one\n  // nothing\n}\n// end\n',
    b"// nothing yet\n",
    b'{\n  "K": {\n    "x": {"command": "y",},\n  },\n}\n',
    b'{\n  "a": "{\\"K\\": {}, // no",\n  "b": "http://x"\n}\n',
    b'{"z" :\n1 ,"K":{\n"x" :{}} , "a"\n:[ ]}\n',
    (
        b'{\n  "hooks": {\n    "E": [\n      {"hooks": [{"command": "lint"}]}\n    ],\n'
        b'    "Other": [{"matcher": "x", "hooks": []}]\n  }\n}\n'
    ),
    b'{"hooks": {"enabled": true, "disabled": ["x"]}}\n',
    b'{\n  "a": 1,\n  "a": 2\n}\n',
    '{\n  "模型": "é 😀"\n}\n'.encode(),
)
TOML = (
    b"",
    b"\n",
    b"\n\n\n",
    b"x = 1",
    b"x = 1\n",
    b"x = 1\n\n\n",
    b"x = 1 # one",
    b"# only a comment",
    '# c\r\nx = "é"\r\n'.encode(),
    b'\tx\t=\t"a"\n',
    b"[mcp_servers]\n",
    b'[mcp_servers.a]\ncommand = "b"\n\n# of z\n[z]\n',
    b'[mcp_servers]\na = { command = "x" }\n',
    b'[ mcp_servers . "a b" ]\ncommand = "b"\n\n[mcp_servers.a.env]\nX = "1"',
    b'mcp_servers.a.command = "b"\n',
    b'mcp_servers = { a = { command = "b" } } # mine\n',
    b"mcp_servers = {}\n",
    b"[[a]]\nx = 1\n[[a]]\nx = 2\n",
    b'[mcp_servers.a]\ncommand = "b"\n[z]\n# of c\n[mcp_servers.c]\ncommand = "d"\n',
    b'x = """\n[a]\n"""\n',
    b"x = [\n  1,\n  2, # two\n]\n",
    b"[z]\n[a]\n[m]\n",
    b"[a]\n# about nothing\n\n",
    b"x = '''\r\nmemd\r\n'''\r\n",
    b"d = 2026-11-22T10:00:00Z\n",
)
REFUSED_JSON = (
    b'{"a": 1',
    b"[]\n",
    b'{"a": "\xff"}\n',
    '{"a": 1}\n'.encode("utf-16"),
    b'{"K": {}, "hooks": {}, "K": {}, "hooks": {}}\n',
    b'{"K": [], "hooks": []}\n',
    b'{"K": {"memd": {"command": "other"}}, "hooks": 3}\n',
    b"[" * 5000,
)
REFUSED_TOML = (
    b"a = \n",
    b"a = 1\na = 2\n",
    b"a = '\xff'\n",
    b"mcp_servers = 3\n",
    b"[[a]]\nx = 1\n[z]\n[[a]]\nx = 2\n",  # tomlkit would bring the parts of a together
    b'[mcp_servers.memd]\ncommand = "other"\n',
    b'[mcp_servers]\nmemd = "memctl"\n',
    b"a\rb = 1",
)
EDIT = {".json": b"\n// of the person\n", ".toml": b"\n# of the person\n[later]\nz = 1\n"}


def _files(*, quick: bool = False) -> list[object]:
    """Return parameters for the files; the slow ones are marked."""
    full = pytest.mark.full
    return [name if name in QUICK and quick else pytest.param(name, marks=full) for name in PLACES]


def _samples(name: str, kinds: tuple[tuple[bytes, ...], tuple[bytes, ...]]) -> Iterator[bytes]:
    """Yield the JSON or TOML texts that fit to a file, with its client's names."""
    _, key, event = PLACES[name]
    for content in kinds[name.endswith(".toml")]:
        yield content.replace(b'"K"', f'"{key}"'.encode()).replace(b'"E"', f'"{event}"'.encode())


def _place(home: Home, name: str) -> Path:
    """Return where a client's file is; its folder exists."""
    path = Path(home.path, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _beside(path: Path) -> list[str]:
    """Return what setup left beside a file."""
    return [name for name in os.listdir(path.parent) if "memd-" in name]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_rehearsal_is_short(home: Home, client: str) -> None:
    """For each client that the help names, three lines at most are printed and none is written."""
    ran = memctl(home, "setup", client, "--dry-run")
    assert ran.status == 0
    is_snippet = "memd does not write its file" in ran.err
    assert is_snippet or len(ran.out.splitlines()) <= 3
    assert sorted(os.listdir(home.path)) == ["project", "run"]
    whole = memctl(home, "setup", client, "--diff").out
    assert is_snippet or whole.count("+++ ") == whole.count("--- ") > 0


@pytest.mark.parametrize("name", _files(quick=True))
def test_removing_gives_back_the_same_bytes(home: Home, name: str) -> None:
    """For each way to write a file a second set-up changes nothing, and out is as before."""
    client, path = PLACES[name][0], _place(home, name)
    for content in _samples(name, (JSON, TOML)):
        path.write_bytes(content)
        assert memctl(home, "setup", client).status == 0, content
        once = path.read_bytes()
        assert b"memd" in once.replace(content, b""), content
        assert "already set up" in memctl(home, "setup", client).out
        assert path.read_bytes() == once, content
        assert memctl(home, "setup", client, "--remove").status == 0, content
        assert path.read_bytes() == content
        assert _beside(path) == []


@pytest.mark.parametrize("name", _files(quick=True))
def test_what_was_edited_meanwhile_stays(home: Home, name: str) -> None:
    """All that is not memd's is there after a removal, to the byte in JSON; no copy is left."""
    client, path = PLACES[name][0], _place(home, name)
    for content in _samples(name, (JSON, TOML)):
        path.write_bytes(content)
        memctl(home, "setup", client)
        path.write_bytes(path.read_bytes() + EDIT[path.suffix])
        assert memctl(home, "setup", client, "--remove").status == 0, content
        left = path.read_bytes()
        assert _beside(path) == []
        if path.suffix == ".toml":
            # Blank lines, and blanks within a table on one line, may be others.
            expected = (content + EDIT[".toml"]).replace(b" ", b"").splitlines()
            assert [*filter(None, left.replace(b" ", b"").splitlines())] == [
                *filter(None, expected)
            ]
        elif b"{" in content:
            assert left == content + EDIT[".json"]
        else:  # the file had no object at all
            assert left.replace(b"{}", b"").split() == (content + EDIT[".json"]).split()
        path.unlink()


@pytest.mark.parametrize("name", _files(quick=True))
def test_what_cannot_be_edited_is_refused_untouched(home: Home, name: str) -> None:
    """Each is an error that names the file, and no file of the client is written."""
    client, path = PLACES[name][0], _place(home, name)
    for content in _samples(name, (REFUSED_JSON, REFUSED_TOML)):
        path.write_bytes(content)
        ran = memctl(home, "setup", client)
        assert (ran.status, str(path) in ran.err) == (78, True), content
        assert path.read_bytes() == content
        assert _beside(path) == []
