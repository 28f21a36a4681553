"""The generated documents."""

import pytest

from memd.cli.arguments import COMMANDS
from memd.cli.grammar import synopsis
from tools import documents


@pytest.mark.parametrize("name", sorted(documents.GENERATED))
def test_documents_say_what_the_code_says(name: str) -> None:
    """A generated document equals what the code would write now; `make docs` mends it."""
    results = (documents.DOCS / name).read_text(encoding="utf-8")
    assert results == documents.expected(name)


def test_every_command_is_documented() -> None:
    """Each command has a section with its usage, its operands and its options."""
    text = documents.command_line()
    for command in COMMANDS:
        assert f"### memctl {command.name}\n```\n{synopsis(command)}\n```\n" in text
        for option in command.options:
            assert f"- `{option.shown}`: {option.help}" in text
