"""A process that listens at a socket and counts what clients send to it."""

import subprocess
import sys
from types import TracebackType
from typing import Self

NOBODY = 65534

# The kernel tells a client who called listen(), so the user is changed before that.
_CODE = """
import os, select, socket, sys
path, user = sys.argv[1], int(sys.argv[2])
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, int(sys.argv[3], 8))
os.chown(path, int(sys.argv[4]), -1)
if user != os.geteuid():
    os.setgroups([])
    os.setuid(user)
listener.listen(64)
print("listening", flush=True)
count = 0
while True:
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if listener in ready:
        with listener.accept()[0] as connection:
            count += len(connection.recv(1 << 20))
    elif sys.stdin in ready:
        break
print(count)
"""


class Stranger:
    """Listens while it is open; ``received`` is the number of bytes, known at its end.

    ``user`` is who listens, ``owner`` whose file the socket is, by default the same; only root can
    name others. A directory that the user may not enter is no hindrance: the name is made first.
    """

    def __init__(
        self, path: str, user: int, *, mode: int = 0o600, owner: int | None = None
    ) -> None:
        self._arguments = [path, str(user), oct(mode), str(user if owner is None else owner)]
        self.received = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "listening\n"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.received = int(self._process.communicate(timeout=60)[0])
