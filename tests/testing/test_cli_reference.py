"""The reference of the command line."""

import pytest

from memd.cli.arguments import COMMANDS
from memd.cli.grammar import synopsis
from memd.testing import cli_reference, documents


def test_the_document_says_what_memctl_does() -> None:
    """docs/cli.md equals what the tables say now; `make docs` mends it."""
    if not cli_reference.DOCUMENT.exists():
        pytest.skip("this is an installed package, without the documents beside it")
    assert cli_reference.DOCUMENT.read_text(encoding="utf-8") == cli_reference.expected()
    assert cli_reference.MARKER == documents.MARKER


def test_every_command_is_documented() -> None:
    """Each command has a section with its usage, its operands and its options."""
    text = cli_reference.reference()
    for command in COMMANDS:
        assert f"### memctl {command.name}\n```\n{synopsis(command)}\n```\n" in text
        for option in command.options:
            assert f"- `{option.shown}`: {option.help}" in text
