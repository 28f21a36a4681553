"""What the tests of set-up share: Claude Code's settings, and doctor's rows."""

from pathlib import Path

from memd.cli.commands import setup
from tests.cli.driver import invocation
from tests.cli.home import Home


def settings_file(home: Home, content: bytes | None = None) -> Path:
    """Return where Claude Code's settings are, written first if there is a content."""
    path = Path(home.path) / ".claude" / "settings.json"
    if content is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return path


def rows(home: Home) -> list[dict[str, str]]:
    """Return what doctor says of clients, where no program is on the path."""
    return setup.check(invocation(home, "doctor", PATH="/nothing"))


def row_state(home: Home) -> str:
    """Return the state of the only row."""
    (row,) = rows(home)
    return row["state"]
