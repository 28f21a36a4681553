"""The parser."""

from importlib import import_module

import msgspec
import pytest

from memd.api.table import methods
from memd.cli import portable_table
from memd.cli.arguments import COMMANDS, parser
from memd.cli.grammar import (
    ALLOWED_VALUES,
    GLOBAL_OPTIONS,
    Command,
    Operand,
    Option,
    synopsis,
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_handler_and_a_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command names a function that exists, and its help shows everything it takes."""
    module, _, function = command.run.partition(":")
    assert callable(getattr(import_module(f"memd.cli.commands.{module}"), function))
    with pytest.raises(SystemExit) as left:
        parser().parse_args([*command.words, "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: {synopsis(command)}\n\n{command.text.split()[0]}")
    words = " ".join(shown.split())
    helps = [option.help for option in command.options]
    for text in (*helps, *(operand.help for operand in command.operands)):
        assert " ".join(text.split()) in words
    for line, _ in command.examples:
        assert f"  {line}\n" in shown


@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command.api_method],
    ids=lambda command: command.name,
)
def test_a_command_takes_what_its_method_takes(command: Command) -> None:
    """Operands and options have a parameter's name, and are switches or have choices as it has."""
    (row,) = (row for row in methods() if row.name == command.api_method)
    shape = msgspec.inspect.type_info(row.params)
    assert isinstance(shape, msgspec.inspect.StructType)
    taken = {field.encode_name: field.type for field in shape.fields}
    every: list[Operand | Option] = [*command.operands, *command.options]
    arguments = [argument for argument in every if argument.parameter]
    assert {argument.parameter for argument in arguments} <= set(taken)
    for argument in arguments:
        if argument.parameter == "instructions":
            continue  # the method takes any name, and says which are gone
        kinds = taken[argument.parameter]
        some = kinds.types if isinstance(kinds, msgspec.inspect.UnionType) else (kinds,)
        words: set[str] = set()
        for kind in some:
            if isinstance(kind, msgspec.inspect.LiteralType):
                words |= {str(value) for value in kind.values}
            if isinstance(kind, msgspec.inspect.EnumType):
                words |= {str(member.value) for member in kind.cls}
        assert words == set(argument.choices)
        switch = isinstance(argument, Option) and argument.switch
        assert switch == any(isinstance(kind, msgspec.inspect.BoolType) for kind in some)


def test_common_options_stand_before_or_after_the_command() -> None:
    """An option of every command counts in both places, and the second does not reset the first."""
    for words in (
        ["--json", "--timeout", "3", "job", "list"],
        ["job", "list", "--json", "--timeout", "3"],
        ["--json", "job", "list", "--timeout", "3"],
    ):
        options = parser().parse_args(words)
        assert (options.json, options.timeout, options.quiet) == (True, 3.0, False)
        assert options.run.name == "job list"


@pytest.mark.parametrize(
    "words",
    [["nothing"], ["job"], ["job", "nothing"], ["show"], ["--timeout", "0", "status"], ["li"]],
)
def test_a_wrong_command_line_is_status_two(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The usage, or the nearest, and what is wrong go to standard error; no prefix is enough."""
    with pytest.raises(SystemExit) as left:
        parser().parse_args(words)
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: memctl") or "the nearest is list" in shown.err


def test_each_kind_of_value_says_what_it_takes() -> None:
    """A value that no function of the tables takes is answered with what it may be."""
    options = [*GLOBAL_OPTIONS, *(option for command in COMMANDS for option in command.options)]
    kinds = {option.kind.__name__ for option in options} - {"str"}
    assert kinds == ALLOWED_VALUES.keys() | portable_table.ALLOWED_VALUES.keys()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_refused_option_is_never_its_own_nearest(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option that only other commands have is refused by the command's name."""
    own_flags = {flag for option in command.options for flag in option.flags}
    values = [operand.choices[0] if operand.choices else "1" for operand in command.operands]
    top = parser()
    for flag in {"--yes", "--limit", "--reason", "--remove", "--type"} - own_flags:
        with pytest.raises(SystemExit) as left:
            top.parse_args([*command.words, *values, flag])
        shown = capsys.readouterr().err
        assert left.value.code == 2
        assert f"memctl: {command.name} takes no {flag}\n" in shown
        assert f"see memctl {command.name} --help\n" in shown


def test_an_option_of_a_command_may_not_stand_before_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a command takes is refused before its words with the line that does it."""
    with pytest.raises(SystemExit):
        parser().parse_args(["team", "--yes", "leave"])
    assert capsys.readouterr().err == (
        "memctl: team leave takes no --yes there\n"
        "  it stands behind the command: memctl team leave --yes\n"
    )


def test_an_option_between_words_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """A word behind an option that stands between words is no misspelt option."""
    with pytest.raises(SystemExit):
        parser().parse_args(["search", "a", "--limit", "2", "hallo"])
    shown = capsys.readouterr().err
    assert "takes no hallo there" in shown
    assert "options stand before or behind" in shown
