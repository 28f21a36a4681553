"""The table of shell lines beside the checks that they may break: ``shell_lines.txt``."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memd.rules.check import PlannedCall, parse


class ShellCase(NamedTuple):
    """A line, whether the shell would run such a command, and whether memd is to see it."""

    check: str
    line: str
    runs: bool
    seen: bool


def cases() -> Iterator[ShellCase]:
    """Yield the table's cases."""
    check = ""
    for row in Path(__file__).with_name("shell_lines.txt").read_text("utf-8").splitlines():
        sign, _, text = row.partition(" ")
        if sign == "==":
            check = text
        elif sign[:1] in {"+", "-"}:
            runs = sign[0] == "+"
            yield ShellCase(check, text.replace("⏎", "\n"), runs, runs != sign.endswith("!"))


def sees(check: str, line: str) -> bool:
    """Say whether a check answers a shell's call with this line."""
    return parse(check).fits(PlannedCall("Bash", {"command": line}, "/project"))


def figures() -> str:
    """Return how many of the table's lines are seen rightly."""
    pairs = [(case.runs, sees(case.check, case.line)) for case in cases()]
    runs, quiet = (sum(r is value for r, _ in pairs) for value in (True, False))
    seen = sum(r and s for r, s in pairs)
    wrongly = sum(s and not r for r, s in pairs)
    return f"{len(pairs)} lines: {seen} of {runs} seen, {wrongly} of {quiet} seen wrongly"


if __name__ == "__main__":
    print(figures())  # noqa: T201 - its purpose
