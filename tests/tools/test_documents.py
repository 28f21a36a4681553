"""The documents that are written from the code."""

import re
from pathlib import Path

import pytest

from memd.base import gone
from memd.base.settings import declared
from memd.cli.arguments import COMMANDS
from memd.cli.grammar import synopsis
from memd.daemon.table import methods
from tools import documents, manual


def test_make_docs_writes_what_the_packages_bring(tmp_path: Path) -> None:
    """All references and pages are written, each with text, and what an older run left is gone."""
    (tmp_path / "man").mkdir()
    (tmp_path / "man" / "memctl-old.1").write_text("old")
    written = documents.write(tmp_path)
    assert {*tmp_path.rglob("*.*")} == {*written}
    assert {path.name for path in written} == {*documents.REFERENCES, *manual.pages()}
    assert min(path.stat().st_size for path in written) > 800


def test_every_method_is_documented() -> None:
    """Each method has a section."""
    text = documents.protocol()
    assert [row.name for row in methods() if f"### `{row.name}`\n" not in text] == []


def test_every_command_is_documented() -> None:
    """Each command has a section with its usage, its operands and its options."""
    text = documents.command_line()
    for command in COMMANDS:
        assert f"### memctl {command.name}\n```\n{synopsis(command)}\n```\n" in text
        for option in command.options:
            assert f"- `{option.shown}`: {option.help}" in text


def test_every_command_is_in_the_manual() -> None:
    """Each command stands in memctl(1) or in the page of its first word, with all its options."""
    pages = manual.pages()
    for command in COMMANDS:
        page = pages.get(f"memctl-{command.words[0]}.1", pages["memctl.1"]).replace("\\-", "-")
        assert f"\n{synopsis(command)}\n" in page
        for option in command.options:
            assert f"\\fB{option.flag}\\fR" in page, command.name


@pytest.mark.parametrize(
    ("document", "table", "there"),
    [
        ("protocol.md", gone.METHODS, {row.name for row in methods()}),
        ("cli.md", gone.COMMANDS, {command.name for command in COMMANDS}),
        ("settings.md", gone.SETTINGS, {name for name, _, _ in declared()}),
    ],
)
def test_what_is_gone_is_listed(document: str, table: dict[str, str], there: set[str]) -> None:
    """Each gone name stands in its document with what holds now, and none is there any more."""
    text = (documents.DOCS / document).read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE))
    assert set(table.items()) - rows == set()
    assert there & set(table) == set()
