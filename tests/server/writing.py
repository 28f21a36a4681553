"""A process that adds lines to an entry: writing.py <database> <number> <lines>."""

import sys

from memd.server.values import Session
from tests.server.desk import open_desk
from tests.server.test_concurrency import append

if __name__ == "__main__":
    address, number, lines = sys.argv[1:]
    with open_desk(address) as desk:
        [token] = desk.storage.tokens()
        desk.sessions["anna"] = Session(token.number, token.member, token.device)
        append(desk, int(number), int(lines))
