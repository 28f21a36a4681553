"""Command lines of a hostile agent, run between two system calls that a tracer can tell.

``python -m tests.agent.traced_commands FOLDER COUNT``: each of the 160 that were thought of, a few
good ones, and so many that chance put together.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from tests.agent.home import NOW, Home, never
from tests.agent.hostile_calls import commands, random_lines

BEGIN, END = "/memd-trace-begins", "/memd-trace-ends"
_GOOD = (
    "ls -la", "cat a.md | head -3", "grep -rn beta .", "find . -name b.md", "wc a.md", "stat a.md",
    "tail -n 2 MEMORY.md", "grep -c alpha a.md sub/b.md",
)  # fmt: skip


def main() -> None:
    """Run them all."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    home = Home(folder)
    lines = [*_GOOD, *commands(home), *random_lines(home, count)]
    with home.workspace() as workspace:
        for line in _GOOD:  # what is imported and compiled at first use
            workspace.call("Bash", {"command": line}, NOW, never)
        _mark(BEGIN)
        for line in lines:
            workspace.call("Bash", {"command": line}, NOW, never)
        _mark(END)
    sys.stdout.write(f"{len(lines)}\n")


def _mark(path: str) -> None:
    with suppress(FileNotFoundError):
        os.close(os.open(path, os.O_RDONLY))


if __name__ == "__main__":
    main()
