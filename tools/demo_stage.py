"""What each part of the demo is made of: a project, calls that are shown, checks that count."""

from typing import Any

from memd.client.launch import Client
from tests.support.daemon import Home

Checks = list[tuple[str, bool]]  # what was checked, and whether it holds
_WIDTH = 100


class Demo:
    """What was shown and what was checked, in order."""

    def __init__(self, client: Client, home: Home) -> None:
        self.client = client
        self.home = home
        self.cwd = home.project("ingest-service")
        self.checks: Checks = []

    def call(self, method: str, **params: Any) -> Any:
        """Ask the daemon about this project."""
        return self.client.call(method, {"cwd": self.cwd, **params})

    def check(self, sentence: str, holds: object) -> None:
        """Note whether something holds and say so."""
        self.checks.append((sentence, bool(holds)))
        print(f"   {'ok ' if holds else 'NO '} {sentence}")

    def show(self, text: str, limit: int = 12) -> None:
        """Print a text of the daemon's, indented and cut to some lines."""
        lines = text.rstrip().splitlines()
        for line in lines[:limit]:
            print("   | " + (line if len(line) <= _WIDTH else line[: _WIDTH - 2] + " …"))
        if len(lines) > limit:
            print(f"   | … {len(lines) - limit} more lines")
