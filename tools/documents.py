"""The references below docs/reference and docs/man, written by ``make docs`` from the code.

They are not tracked: ``tools.dist`` writes them into the source before it makes packages.
"""

import importlib
import pkgutil
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import memd
from memd.base.errors import MemdError
from memd.base.settings import declared
from memd.cli.arguments import COMMANDS, EXIT_STATUS
from memd.cli.grammar import GLOBAL_OPTIONS, Command, synopsis
from memd.daemon.table import methods
from tools import manual
from tools.protocol import markdown

DOCS = Path(__file__).resolve().parents[1] / "docs"


def protocol() -> str:
    """Return the method and error tables of docs/protocol.md."""
    for module in pkgutil.walk_packages(memd.__path__, "memd."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # every failure is to be in the table
    return markdown(methods(), _all_errors(MemdError))


def settings() -> str:
    """Return the table of options of docs/settings.md."""
    lines = ["| option | default | what it does |", "|---|---|---|"]
    for name, default, words in declared():
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        shown = str(list(default)) if isinstance(default, tuple) else shown
        lines.append(f"| `{name}` | {f'`{shown}`' if shown else ''} | {words} |")
    return "\n".join(lines) + "\n"


def command_line() -> str:
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


REFERENCES: dict[str, Callable[[], str]] = {
    "cli.md": command_line,
    "protocol.md": protocol,
    "settings.md": settings,
}


def write(docs: Path) -> list[Path]:
    """Write all references and manual pages below a folder of documents and return their paths."""
    texts = {f"reference/{name}": make() for name, make in REFERENCES.items()}
    texts |= {f"man/{name}": page for name, page in manual.pages().items()}
    for folder in ("reference", "man"):
        shutil.rmtree(docs / folder, ignore_errors=True)
        (docs / folder).mkdir(parents=True)
    paths = [docs / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def main() -> int:
    """Write everything below docs/, and print what was written."""
    print("\n".join(str(path.relative_to(DOCS.parent)) for path in write(DOCS)))
    return 0


def _all_errors(root: type[MemdError]) -> list[type[MemdError]]:
    found = [root]
    for child in sorted(root.__subclasses__(), key=lambda cls: (cls.__name__, cls.__module__)):
        # memd-team has a protocol of its own: what it refuses is no error of the socket.
        if child.__module__.startswith("memd.") and not child.__module__.startswith("memd.server."):
            found += _all_errors(child)
    return found


if __name__ == "__main__":  # pragma: no cover - run as a process
    sys.exit(main())
