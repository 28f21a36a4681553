"""The generated documents."""

import pytest

from memd.cli.arguments import COMMANDS
from memd.cli.grammar import synopsis
from tools import documents, manual


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


def test_manual_pages_say_what_the_code_says() -> None:
    """The pages in docs/man are those that the code would write now, and no others."""
    there = {page.name: page.read_text("utf-8") for page in documents.MANUAL.iterdir()}
    assert there == manual.pages()


def test_every_command_is_in_the_manual() -> None:
    """Each command stands in memctl(1) or in the page of its first word, with all its options."""
    pages = manual.pages()
    for command in COMMANDS:
        page = pages.get(f"memctl-{command.words[0]}.1", pages["memctl.1"]).replace("\\-", "-")
        assert f"\n{synopsis(command)}\n" in page
        for option in command.options:
            assert f"\\fB{option.flag}\\fR" in page, command.name
