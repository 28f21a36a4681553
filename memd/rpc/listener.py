"""Make the listening socket, or take the one from systemd or launchd.

Rules of this file
- The directory must belong to this user and be closed to others; that is checked on the open
  directory, not on its name. One that is a link, another user's or open to others is refused and
  not changed: its owner may share it on purpose.
- The socket has mode 0600 from its creation: it is bound under umask 0177.
- An old socket file is replaced without a check whether a process listens, so the caller must hold
  the instance lock. Any other file at that path is left alone and refused.
"""

import ctypes
import os
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from memd.base import limits
from memd.base.errors import Refused
from memd.base.places import socket_path_too_long

BACKLOG = 1024  # a client that finds it full is refused by the system, before memd can say why
_MACOS = sys.platform == "darwin"
FIRST_INHERITED = 3  # sd_listen_fds(3)
_NOT_LISTENING = "it is no listening Unix socket"
_OTHER_FILE_THERE = "something that is no socket of ours is there"


def directory_refused(path: str, cause: str) -> Refused:
    """Return the error that a directory for private files is another user's, a link."""
    return Refused(
        f"the directory {path} is refused: {cause}",
        kind="server_refused",
        exit_status=78,
        hint="make it a directory of your own with mode 0700, or choose another with MEMD_SOCKET",
        path=path,
        cause=cause,
    )


def socket_refused(path: str, cause: str) -> Refused:
    """Return the error that no socket can be made or taken over at this place."""
    return Refused(
        f"memd cannot listen on {path}: {cause}",
        kind="server_refused",
        exit_status=78,
        hint="move what is there away, or choose another path with MEMD_SOCKET",
        path=path,
        cause=cause,
    )


def make_listener(path: str) -> socket.socket:
    """Return a listening, non-blocking socket at a path; the caller holds the instance lock.

    Raises Refused.
    """
    limit = limits.SOCKET_PATH_BYTES_MACOS if _MACOS else limits.SOCKET_PATH_BYTES_LINUX
    if len(os.fsencode(path)) > limit:
        raise socket_path_too_long(path, limit)
    parent, name = os.path.split(path)
    directory = private_directory(parent)
    try:
        _remove_stale(path, name, directory)
        return _bind(path, name, directory)
    except OSError as error:
        raise socket_refused(path, error.strerror or type(error).__name__) from error
    finally:
        os.close(directory)


def private_directory(path: str) -> int:
    """Return an open descriptor of a directory that only we may enter, made 0700 if missing.

    Raises Refused.
    """
    try:
        with _umask(0o077):
            os.makedirs(path, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise directory_refused(path, error.strerror or type(error).__name__) from error
    status = os.fstat(descriptor)
    cause = ""
    if status.st_uid != os.geteuid():
        cause = f"it belongs to user {status.st_uid}"
    elif status.st_mode & 0o077:
        cause = f"others may use it (mode {stat.S_IMODE(status.st_mode):04o})"
    if cause:
        os.close(descriptor)
        raise directory_refused(path, cause)
    return descriptor


def inherited_listener(environ: Mapping[str, str], pid: int) -> socket.socket | None:
    """Return the socket that systemd hands over (sd_listen_fds), or ``None`` without one.

    It becomes close-on-exec and non-blocking. Removing ``LISTEN_*`` from the environment is the
    caller's matter. Raises Refused where the descriptor is no listening Unix socket.
    """
    if environ.get("LISTEN_PID") != str(pid) or environ.get("LISTEN_FDS", "0") in ("", "0"):
        return None
    return _inherited_socket(FIRST_INHERITED)


def launchd_listener(name: str) -> socket.socket | None:
    """Return the socket that launchd holds under a name of the plist's ``Sockets``.

    ``None`` off macOS and where launchd did not start us. Written from launch(3); untested here,
    since it needs a Mac. Raises Refused as ``inherited_listener`` does.
    """
    if not _MACOS:  # pragma: no branch - tested on Linux alone
        return None
    system = ctypes.CDLL(None)  # pragma: no cover - macOS alone, from here on
    descriptors = ctypes.POINTER(ctypes.c_int)()  # pragma: no cover
    count = ctypes.c_size_t()  # pragma: no cover
    failed = system.launch_activate_socket(  # pragma: no cover
        name.encode(), ctypes.byref(descriptors), ctypes.byref(count)
    )
    if failed or not count.value:  # pragma: no cover
        return None
    return _inherited_socket(int(descriptors[0]))  # pragma: no cover


def _inherited_socket(descriptor: int) -> socket.socket:
    """Return an inherited descriptor as a non-blocking socket. Raises Refused."""
    place = f"descriptor {descriptor}"
    try:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - its only form
        listener = socket.socket(fileno=descriptor)
        is_listening = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise socket_refused(place, str(error)) from error
    if listener.family != socket.AF_UNIX or not is_listening:
        listener.detach()  # the descriptor stays open: it is not ours
        raise socket_refused(place, _NOT_LISTENING)
    listener.settimeout(0)
    return listener


def _remove_stale(path: str, name: str, directory: int) -> None:
    """Remove this user's old socket, if there is one; raises Refused for other files.

    ``directory`` is the open folder of the path, and ``name`` the file's name in it.
    """
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.geteuid():
        raise socket_refused(path, _OTHER_FILE_THERE)
    os.unlink(name, dir_fd=directory)


def _bind(path: str, name: str, directory: int) -> socket.socket:
    """Return a listening socket; ``directory`` is the path's checked folder. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _umask(0o177):
            listener.bind(path)
        # Fails where the path led to another directory than the one that was checked.
        os.stat(name, dir_fd=directory, follow_symlinks=False)
        listener.listen(BACKLOG)
        listener.settimeout(0)
    except BaseException:
        listener.close()
        raise
    return listener


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    """Set the process's umask during the block."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
