"""The creation of a state file, run as a process of its own so that it can be killed.

Usage: ``creating.py <root> create run``. Prints ``acknowledged`` when the file is open.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.state.database import open_database
from memd.state.schemas import SCHEMAS as TABLES
from memd.store import log, sync

SCHEMAS = (*TABLES, log.SCHEMA, sync.SCHEMA)

if __name__ == "__main__":
    open_database(f"{sys.argv[1]}/state.db", SCHEMAS).close()
    os.write(1, b"acknowledged\n")
