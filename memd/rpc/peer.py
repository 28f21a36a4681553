"""The user and process at the other end of a Unix socket, by the kernel, and whether it is gone."""

import select
import socket
import struct
import sys

from msgspec import Struct

_UCRED = struct.Struct("3i")  # pid, uid, gid: struct ucred of unix(7)
_XUCRED = struct.Struct("IIh16I")  # struct xucred of macOS <sys/ucred.h>
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2  # macOS <sys/un.h>


class Peer(Struct, frozen=True):
    """The user and the process that connected; the process may have gone since."""

    uid: int
    pid: int


def peer_of(connected: socket.socket) -> Peer:
    """Return the user and process that connected. Raises OSError where the kernel does not tell."""
    if sys.platform == "darwin":  # pragma: no cover - macOS alone
        return _darwin_peer(connected)
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    return Peer(uid, pid)


def is_gone(connected: socket.socket) -> bool:
    """Return whether the peer closed its whole socket, and not only its sending side.

    Reading gives the end of the stream in both cases. Linux reports a hang-up only in the first;
    other systems do not distinguish them, so there this is false and sending fails later.
    """
    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(connected, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _darwin_peer(connected: socket.socket) -> Peer:  # pragma: no cover - macOS alone
    """Return the peer on macOS (written from its headers; never run there)."""
    raw = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size)
    uid = _XUCRED.unpack(raw.ljust(_XUCRED.size, b"\0"))[1]
    pid = struct.unpack("i", connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0]
    return Peer(uid, pid)
