"""Check that this user's own process serves at a socket, before the first byte is sent.

A socket's path may be where others can write (a shared runtime directory, a MEMD_SOCKET below
/tmp), so another user could listen there first and read what a client sends. The daemon makes its
directory 0700 and its socket 0600 (``rpc/listener``); a client accepts no other modes, and asks the
kernel who listens. ``cli/hook.py`` has a copy of these checks, since it imports nothing; one table
of cases in tests/client/test_peer.py tests both.
"""

import os
import socket
import stat
import sys
from collections.abc import Callable

from memd.base.errors import Refused
from memd.client.errors import DaemonUnavailableError, server_refused

# Both structures have the user in bytes 4 to 8: ucred of unix(7), xucred of macOS <sys/ucred.h>.
_LEVEL, _OPTION, _BYTES = (
    (0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED
    if sys.platform == "darwin"
    else (socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
)


def connect(connection: socket.socket, path: str) -> None:
    """Connect to this user's daemon at a path; where that fails the connection is closed.

    Raises DaemonUnavailableError, and Refused before anything is sent.
    """
    try:
        _connect(connection, path)
    except OSError as error:
        connection.close()
        cause = error.strerror or type(error).__name__
        raise DaemonUnavailableError(path, cause) from error
    except Refused:
        connection.close()
        raise


def check_socket(path: str) -> None:
    """Check that a socket and its directory are this user's alone.

    Raises Refused, and OSError where they cannot be inspected.
    """
    # A relative path without a folder lies in the working directory.
    _check(path, os.path.dirname(path) or ".", stat.S_ISDIR, "directory")
    _check(path, path, stat.S_ISSOCK, "socket")


def _connect(connection: socket.socket, path: str) -> None:
    """Connect to a socket, and check that the same user serves there. Raises Refused."""
    check_socket(path)
    connection.connect(path)
    # The files may have been replaced since, so the user at this very connection is checked too.
    credentials = connection.getsockopt(_LEVEL, _OPTION, _BYTES)
    user = int.from_bytes(credentials[4:8], sys.byteorder)
    if user != os.geteuid():
        cause = f"a process of user {user} listens there"
        raise server_refused(path, cause)


def _check(path: str, name: str, is_kind: Callable[[int], bool], noun: str) -> None:
    """Check the kind, owner and mode of the file ``name``, the socket or its directory.

    ``path`` is the socket's, for the error; ``is_kind`` tests a mode, and ``noun`` is its name.
    Raises Refused and OSError.
    """
    facts = os.lstat(name)  # a link is refused: its owner could change its target
    cause = ""
    if not is_kind(facts.st_mode):
        cause = f"{name} is no {noun}"
    elif facts.st_uid != os.geteuid():
        cause = f"the {noun} {name} belongs to user {facts.st_uid}"
    elif facts.st_mode & 0o077:
        cause = f"others may use the {noun} {name} (mode {stat.S_IMODE(facts.st_mode):04o})"
    if cause:
        raise server_refused(path, cause)
