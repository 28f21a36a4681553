"""How large the program is, room by room, beside what each room may have: ``make size``.

The plan counts the lines of a room's Python files. Rooms that do not exist yet have no line here.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import memd

# Lines; of rooms that are to be split or renamed, what their parts may have together.
PLAN = {
    "daemon": 2_200,
    "cli": 3_400,
    "hooks": 900,
    "methods": 600,
    "mcp": 900,
    "ui": 1_250,
    "prompt": 400,
    "recall": 1_200,
    "extract": 2_400,
    "dream": 3_000,
    "review": 400,
    "memories": 900,
    "notes": 1_500,
    "context": 3_000,
    "server": 2_200,
    "team": 2_500,  # with remote
    "remote": 300,
    "messages": 1_500,  # with progress
    "progress": 400,
    "rules": 700,
    "instructions": 1_800,
    "portable": 1_800,
    "agent": 2_200,
    "jobs": 900,
    "model": 1_900,
    "store": 3_400,
    "projects": 900,
    "transcripts": 1_100,
    "conversation": 700,
    "state": 2_900,
    "rpc": 1_500,
    "client": 1_700,
    "base": 1_000,
    "text": 1_000,
}


@dataclass(frozen=True, slots=True)
class Size:
    """Lines, modules and classes of one room, or of all together."""

    room: str
    lines: int
    modules: int
    classes: int


def sizes(root: Path) -> tuple[Size, ...]:
    """Return the size of each room below a folder of rooms, the largest first."""
    rooms = sorted(folder for folder in root.iterdir() if (folder / "__init__.py").is_file())
    found = [_size(folder.name, folder.rglob("*.py")) for folder in rooms]
    return tuple(sorted(found, key=lambda size: (-size.lines, size.room)))


def table(root: Path) -> str:
    """Return the sizes as a Markdown table, with the plan and the sum."""
    lines = ["| room | lines | plan | modules | classes |", "|---|---|---|---|---|"]
    for size in (*sizes(root), _size("all", root.rglob("*.py"))):
        plan = PLAN.get(size.room)
        shown = "" if plan is None else f"{plan:,}"
        lines.append(
            f"| {size.room} | {size.lines:,} | {shown} | {size.modules} | {size.classes} |"
        )
    return "\n".join(lines) + "\n"


def _size(room: str, files: Iterator[Path]) -> Size:
    lines, modules, classes = 0, 0, 0
    for file in files:
        text = file.read_text("utf-8")
        lines += text.count("\n")
        modules += 1
        classes += sum(isinstance(node, ast.ClassDef) for node in ast.walk(ast.parse(text)))
    return Size(room, lines, modules, classes)


def main() -> int:
    """Print the table."""
    sys.stdout.write(table(Path(memd.__file__).parent))
    return 0


if __name__ == "__main__":  # pragma: no cover - run as a process
    sys.exit(main())
