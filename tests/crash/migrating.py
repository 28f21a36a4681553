"""One change of a state file's format, run as a process of its own so that it can be killed.

Usage: ``migrating.py <root> 1|2 prepare|run``; the number is the format that is there. ``prepare``
makes the file of an older memd, ``run`` opens it as the daemon does. Prints ``acknowledged`` when
it is open.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.state.changes import migrate
from memd.state.database import open_database
from memd.state.tables import SCHEMAS


def main() -> None:
    """Do what the arguments say."""
    root, version, step = sys.argv[1:]
    if step == "prepare":
        from tests.state.test_migration import landed  # noqa: PLC0415 - what is killed needs none

        landed(Path(root), version=int(version))
        return
    open_database(f"{root}/state.db", SCHEMAS, migrate=migrate).close()
    os.write(1, b"acknowledged\n")


if __name__ == "__main__":
    main()
