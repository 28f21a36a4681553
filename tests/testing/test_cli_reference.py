"""The reference of the command line."""

from memd.cli.arguments import COMMANDS
from memd.cli.grammar import synopsis
from memd.testing import cli_reference


def test_every_command_is_documented() -> None:
    """Each command has a section with its usage, its operands and its options."""
    text = cli_reference.reference()
    for command in COMMANDS:
        assert f"### memctl {command.name}\n```\n{synopsis(command)}\n```\n" in text
        for option in command.options:
            assert f"- `{option.shown}`: {option.help}" in text
