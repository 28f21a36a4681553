"""The reference part of docs/cli.md, written from memctl's tables.

``make docs`` writes it anew; a test holds the document to the code.
"""

from memd.cli.arguments import COMMANDS, EXIT_STATUS
from memd.cli.grammar import GLOBAL_OPTIONS, Command, synopsis


def reference() -> str:
    """Return the options of every command, the exit statuses and each command."""
    parts = ["## Options of every command", "Before or after the command.", ""]
    parts += [f"- `{option.shown}`: {option.help}" for option in GLOBAL_OPTIONS]
    parts += ["", "## Exit status", "", "| status | meaning |", "|---|---|"]
    parts += [f"| {status} | {words} |" for status, words in EXIT_STATUS]
    parts += ["", "## Commands", ""]
    parts += [
        f"- [`memctl {command.name}`](#{_anchor(command)}): {command.summary}"
        for command in COMMANDS
    ]
    for command in COMMANDS:
        parts += ["", *_section(command)]
    return "\n".join(parts) + "\n"


def _anchor(command: Command) -> str:
    return f"memctl-{command.name.replace(' ', '-')}"


def _section(command: Command) -> list[str]:
    lines = [f"### memctl {command.name}", "```", synopsis(command), "```", command.text]
    if command.aliases:
        lines.append(f"Also: `memctl {'`, `memctl '.join(command.aliases)}`.")
    lines.append("")
    for operand in command.operands:
        choices = f" ({', '.join(operand.choices)})" if operand.choices else ""
        lines.append(f"- `{operand.name}`: {operand.help}{choices}")
    for option in command.options:
        again = "; may be given again" if option.repeat else ""
        lines.append(f"- `{option.shown}`: {option.help}{again}")
    if command.operands or command.options:
        lines.append("")
    if command.examples:
        lines.append("```")
        lines += [f"{line}    # {why}" for line, why in command.examples]
        lines += ["```", ""]
    return lines[:-1]
