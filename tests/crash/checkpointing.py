"""Durable commits without end, run as a process of its own so that it can be killed.

Usage: ``checkpointing.py <state file>``. Prints the number of each commit once it is acknowledged.
"""

import os
import sys
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memd.state.database import open_database

SCHEMA = "CREATE TABLE IF NOT EXISTS things (number INTEGER PRIMARY KEY, body TEXT);"


def main() -> None:
    """Commit until killed."""
    database = open_database(sys.argv[1], [SCHEMA])
    begin = database.read("SELECT coalesce(max(number), 0) AS last FROM things")[0]["last"]
    for number in count(begin + 1):
        database.write("INSERT INTO things VALUES (?, ?)", (number, "x" * 20_000))
        os.write(1, b"%d\n" % number)


if __name__ == "__main__":
    main()
