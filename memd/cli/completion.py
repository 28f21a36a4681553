"""Completion scripts for bash, zsh and fish, written from the tables of commands.

A script is static: pressing the tab key never starts a program, so it never waits.
"""

from collections.abc import Callable, Mapping

from memd.cli.arguments import COMMANDS, GROUPS, verbs
from memd.cli.grammar import GLOBAL_OPTIONS, Command, Option

_FILES = ("FILE", "DIR", "PATH")


def bash() -> str:
    """Return the script for bash."""
    words = [
        f"""    "{name}") words="{" ".join(_completed(command))}" ;;"""
        for command in COMMANDS
        for name in _names(command)
    ]
    groups = [f"""    "{name}") words="{" ".join(verbs(name))}" ;;""" for name in GROUPS]
    followed = dict.fromkeys(command.words[0] for command in COMMANDS if len(command.words) > 1)
    return _BASH.format(
        firsts=" ".join(_firsts()),
        globals=" ".join(option.flag for option in GLOBAL_OPTIONS),
        valued="|".join(_valued()),
        groups="|".join(followed),
        free="|".join(f'*" {flag}"' for flag in _valued()),
        choices="\n".join(_bash_choices()),
        words="\n".join([*groups, *words]),
    )


def zsh() -> str:
    """Return the script for zsh, which runs the one for bash."""
    return _ZSH + bash()


def fish() -> str:
    """Return the script for fish."""
    lines = ["# memctl completion for fish", "complete -c memctl -f"]
    lines += [_fish_option("", option) for option in GLOBAL_OPTIONS]
    for first, summary in _firsts().items():
        lines.append(
            f"complete -c memctl -n __fish_use_subcommand -a {first} -d {_quoted(summary)}"
        )
    for command in COMMANDS:
        seen = f"__fish_seen_subcommand_from {' '.join((command.words[0], *command.aliases))}"
        others = " ".join(verbs(command.words[0]))
        alone = f"{seen}; and not __fish_seen_subcommand_from {others}"
        if len(command.words) > 1:
            verb = command.words[1]
            lines.append(
                f"complete -c memctl -n {_quoted(alone)} -a {verb} -d {_quoted(command.summary)}"
            )
            seen = f"{seen}; and __fish_seen_subcommand_from {verb}"
        elif others:
            seen = alone
        lines += [_fish_option(seen, option) for option in command.options]
        lines += [
            f"complete -c memctl -n {_quoted(seen)} -a {_quoted(' '.join(operand.choices))}"
            for operand in command.operands
            if operand.choices
        ]
    return "\n".join(lines) + "\n"


SCRIPTS: Mapping[str, Callable[[], str]] = {"bash": bash, "zsh": zsh, "fish": fish}


def _firsts() -> dict[str, str]:
    """Return each first word with its summary."""
    return GROUPS | {
        first: command.summary
        for command in COMMANDS
        if len(command.words) == 1
        for first in (command.words[0], *command.aliases)
    }


def _names(command: Command) -> list[str]:
    """Return what a person may type for a command."""
    return [command.name, *(" ".join((first, *command.words[1:])) for first in command.aliases)]


def _completed(command: Command) -> list[str]:
    """Return what may follow a command: verbs, choices and options."""
    words = [choice for operand in command.operands for choice in operand.choices]
    if len(command.words) == 1:
        words += verbs(command.words[0])
    return [*words, *(option.flag for option in (*command.options, *GLOBAL_OPTIONS))]


def _valued() -> list[str]:
    options = [option for command in COMMANDS for option in command.options]
    return sorted({o.flag for o in (*options, *GLOBAL_OPTIONS) if not o.switch})


def _bash_choices() -> list[str]:
    """Return a case for each option with choices or a file, by command and flag."""
    lines = []
    for command in COMMANDS:
        for option in command.options:
            typed = "|".join(f'"{name} {option.flag}"' for name in _names(command))
            if option.choices:
                words = " ".join(option.choices)
                lines.append(f"""    {typed}) words="{words}" ;;""")
            elif option.metavar in _FILES:
                lines.append(f"""    {typed}) files=1 ;;""")
    for option in GLOBAL_OPTIONS:
        if option.choices:
            lines.append(f"""    *" {option.flag}") words="{" ".join(option.choices)}" ;;""")
        elif option.metavar in _FILES:
            lines.append(f"""    *" {option.flag}") files=1 ;;""")
    return lines


def _fish_option(condition: str, option: Option) -> str:
    when = f" -n {_quoted(condition)}" if condition else ""
    value = ""
    if option.choices:
        value = f" -x -a {_quoted(' '.join(option.choices))}"
    elif not option.switch:
        value = " -r -F" if option.metavar in _FILES else " -x"
    name = option.flag.removeprefix("--")
    return f"complete -c memctl{when} -l {name}{value} -d {_quoted(option.help)}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_BASH = """\
# memctl completion for bash
_memctl() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev="" command="" words="" files="" index word
  [ "$COMP_CWORD" -gt 0 ] && prev=${{COMP_WORDS[COMP_CWORD - 1]}}
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${{COMP_WORDS[index]}}
    case $word in
    {valued}) ((index++)) ;;
    -*) ;;
    *)
      case $command in
      "") command=$word ;;
      {groups}) command="$command $word" ;;
      esac
      ;;
    esac
  done
  COMPREPLY=()
  case "$command $prev" in
{choices}
    {free}) return ;;
  *)
    case $command in
    "") words="{firsts} {globals}" ;;
{words}
    esac
    ;;
  esac
  if [ -n "$files" ]; then
    local IFS=$'\\n'
    COMPREPLY=($(compgen -f -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -F _memctl memctl
"""
_ZSH = """\
#compdef memctl
autoload -U +X bashcompinit && bashcompinit
"""
