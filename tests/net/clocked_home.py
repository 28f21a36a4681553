"""A home whose daemon has the test clock, for more than one test."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.net.kit import Home, until


@contextmanager
def clocked_home() -> Iterator[Home]:
    """Run a daemon with the test clock in a new home for the length of the block."""
    path = Path(tempfile.mkdtemp(prefix="net-", dir="/tmp"))
    path.chmod(0o755)
    home = Home(path)
    try:
        yield home.start(clock=True)
    finally:
        home.stop()
        shutil.rmtree(path, ignore_errors=True)


def pass_until(home: Home, condition: Any, seconds: float = 1.0) -> Any:
    """Let the home's clock go on in steps until a condition holds; return its value."""

    def look() -> Any:
        if not (value := condition()):
            home.pass_time(seconds=seconds)
        return value

    return until(look)
