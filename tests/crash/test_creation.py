"""Kill -9 at every system call of the creation of a state file."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memd.base.errors import MemdError
from memd.state.database import open_database
from tests.crash import creating, kill
from tests.crash.conftest import FIGURE

pytestmark = pytest.mark.skipif(bool(kill.missing()), reason=kill.missing() or "strace works")
DRIVER = Path(creating.__file__)
SCHEMAS = creating.SCHEMAS
EVERY = [pytest.param(100, id="sample"), pytest.param(1, id="all", marks=pytest.mark.crash)]


def dump(path: Path) -> list[str]:
    """Return all that a state file holds."""
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()
        return [f"{version}", *connection.iterdump()]


@pytest.mark.parametrize("every", EVERY)
def test_a_kill_while_the_file_is_created_leaves_one_that_opens(
    tmp_path: Path, every: int, record_property: Callable[[str, object], None]
) -> None:
    """The next start completes it, whatever SQLite left beside it."""
    root = tmp_path / "root"

    def empty() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()

    empty()
    points, bad = kill.points(root, "create", "run", output=False, driver=DRIVER), []
    made = dump(root / "state.db")
    # A journal that only a writer can roll back lies there around the first waits for the disk.
    first = [point for point in points if point.call == "fdatasync"][:6]
    chosen = list(dict.fromkeys([*points[::every], *first]))
    for point in chosen:
        empty()
        kill.killed(root, "create", "run", point, driver=DRIVER)
        try:
            open_database(str(root / "state.db"), SCHEMAS).close()
        except MemdError as error:
            bad.append((point, str(error)))
            continue
        if dump(root / "state.db") != made or os.listdir(root) != ["state.db"]:
            bad.append((point, "it is not as a new one"))
    record_property(FIGURE, f"a new state file, kill: {len(chosen)} points, {len(bad)} bad")
    assert len(points) > 50
    assert bad == []
