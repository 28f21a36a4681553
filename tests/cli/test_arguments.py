"""The parser."""

from importlib import import_module

import msgspec
import pytest

from memd.cli.arguments import COMMANDS, parser
from memd.cli.grammar import (
    Command,
    Operand,
    Option,
    synopsis,
)
from memd.daemon.table import methods

PARSER = parser()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_handler_and_a_help(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command names a function that exists, and its help shows everything it takes."""
    module, _, function = command.run.partition(":")
    assert callable(getattr(import_module(f"memd.cli.commands.{module}"), function))
    with pytest.raises(SystemExit) as left:
        PARSER.parse_args([*command.words, "--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: {synopsis(command)}\n\n{command.text.split()[0]}")
    assert max(map(len, shown.splitlines())) <= 80
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
