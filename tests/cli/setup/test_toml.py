"""A table of TOML, in and out by its place."""

import tomllib

import pytest

from memd.cli.setup import toml

TABLE = {"command": "/a/memctl", "args": ["mcp"]}
GROUP = "mcp_servers"

TOML = [
    "",
    "\n",
    "\n\n\n",
    "x = 1",
    "x = 1\n",
    "x = 1\n\n\n",
    "x = 1 # one",
    "# only a comment",
    '# c\r\nx = "é"\r\n',
    '\tx\t=\t"a"\n',
    "[mcp_servers]\n",
    '[mcp_servers.a]\ncommand = "b"\n',
    '[mcp_servers]\na = { command = "x" }\n',
    '[ mcp_servers . "a b" ]\ncommand = "b"\n\n[mcp_servers.a.env]\nX = "1"',
    'mcp_servers.a.command = "b"\n',
    "[[a]]\nx = 1\n[[a]]\nx = 2\n",
    'x = """\n[a]\n"""\n',
    "x = [\n  1,\n  2, # two\n]\n",
    "[z]\n[a]\n[m]\n",
    "[a]\n# about nothing\n\n",
    "x = '''\r\nmemd\r\n'''\r\n",
    "d = 2026-11-22T10:00:00Z\n",
]


@pytest.mark.parametrize("text", TOML)
def test_a_table_goes_in_and_out(text: str) -> None:
    """The table is there, nothing else differs, and taken out again leaves the same text."""
    into = toml.insert(text, GROUP, "memd", TABLE)
    assert into.startswith(text)
    assert tomllib.loads(into)[GROUP]["memd"] == TABLE == toml.find(into, GROUP, "memd")
    assert toml.remove(into, GROUP, "memd") == text
    assert toml.remove(text, GROUP, "memd") == text


@pytest.mark.parametrize("text", TOML)
def test_what_others_write_behind_a_table_stays(text: str) -> None:
    """Tables that follow, with the comments before them, are others'; tables below ours go."""
    into = toml.insert(text, GROUP, "memd", TABLE)
    later = into + '\n[mcp_servers.memd.env]\nX = "1"\n\n# of b\n[b]\nz = 1\n'
    left = toml.remove(later, GROUP, "memd")
    assert left.endswith("\n# of b\n[b]\nz = 1\n")
    expected = tomllib.loads(text) | {"b": {"z": 1}}
    assert {k: v for k, v in tomllib.loads(left).items() if v} == {
        k: v for k, v in expected.items() if v
    }


@pytest.mark.parametrize(
    "text",
    [
        "x =",
        "x = 1\nx = 2\n",
        "mcp_servers = 3\n",
        'mcp_servers = { a = { command = "b" } }\n',
        '[mcp_servers]\nmemd.command = "x"\n',
        '[mcp_servers.memd]\ncommand = "x"\n',
        "a\rb = 1",
        'x = """\n[mcp_servers.memd]\n"""\n',
    ],
)
def test_tables_of_another_shape_are_refused(text: str) -> None:
    """What cannot take the table, or could not give it back, is an error."""
    with pytest.raises(toml.NotTomlError):
        toml.insert(text, GROUP, "memd", TABLE)


def test_a_table_that_is_written_otherwise_stays() -> None:
    """Taken out is only what stands as a table of its own."""
    with pytest.raises(toml.NotTomlError):
        toml.remove('[mcp_servers]\nmemd = { command = "memctl" }\n', GROUP, "memd")
