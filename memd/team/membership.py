"""Which directories joined a team: ``team.toml`` beside the user's settings, a file for each token.

Rules of this file
- Both are the user's own or count for nothing: nobody else may write ``team.toml`` or read a token.
- A membership belongs to a directory, whatever links lead to it; no repository adds one.
- A file is replaced whole, and a token is on disk before the row that names it.
"""

import fcntl
import json
import os
import re
import secrets
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import fields, replace

from memd.core.addresses import is_loopback
from memd.core.errors import MemdError
from memd.core.names import is_text
from memd.core.settings import TeamSettings
from memd.core.text import sha256
from memd.files.directory import Directory, UnwrittenFileError, cause_of
from memd.files.disk import Disk, real_disk, write_new
from memd.team.errors import TeamNotJoinedError, TeamRefusedError
from memd.team.values import Membership

FILE = "team.toml"
_HEAD = "# Written by memd: memctl team join, memctl team leave.\n"
_BYTES = 1024 * 1024
_TOKEN_BYTES = 4096
_TOKEN_FILE = re.compile(r"team-[0-9a-f]{16}\.token")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,1024}")
_TEXTS = tuple(item.name for item in fields(Membership) if item.name != "at")
_OPEN = "may be written by others; it is ignored until you run chmod go-w on it"

# Why an address is none of a server, in words for the sentence of its error.
_ADDRESS = "the address"  # which may hold a password
_NO_URL = "it has to be https://host or https://host:port"
_PLAIN = "plain http goes to this machine alone; use https"
_NOT_UTF8 = "a name in it is not UTF-8"
_UNREADABLE = "what it gave is no token"

Identity = tuple[int, int, int, int] | None


def server_address(url: str) -> str:
    """Return a server's address as scheme, host and port. Raises TeamRefusedError.

    It is https, or http to this machine.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError as error:  # UnicodeError too
        raise TeamRefusedError(_ADDRESS, _NO_URL) from error
    extra = (
        any(map(str.isspace, url.strip()))
        or parts.username
        or parts.password
        or parts.query
        or parts.fragment
    )
    if parts.scheme not in ("http", "https") or extra or parts.path not in ("", "/"):
        raise TeamRefusedError(_ADDRESS, _NO_URL)
    if not re.fullmatch(r"[a-z0-9.-]+|[0-9a-f:.]*:[0-9a-f:.]*", host):
        raise TeamRefusedError(_ADDRESS, _NO_URL)
    if parts.scheme == "http" and not is_loopback(host):
        raise TeamRefusedError(host, _PLAIN)
    usual = {"http": 80, "https": 443}[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port not in (None, usual) else "")


def sends_by_itself(settings: TeamSettings) -> bool:
    """Say whether changes are sent without a person's word."""
    return settings.enabled != "false" and settings.push == "auto"


class Memberships:
    """What ``team.toml`` in a folder says, read again when it changes. Methods block."""

    def __init__(self, folder: str, disk: Disk | None = None) -> None:
        self.folder = folder
        self._disk = disk or real_disk()
        self._known: tuple[Identity, dict[str, Membership], tuple[str, ...]] = (None, {}, ())

    @property
    def any(self) -> bool:
        """Whether there was a membership when somebody last asked; nothing is read now."""
        return bool(self._known[1])

    def joined(self, directory: str) -> bool:
        """Say whether a memory directory joined a team."""
        return self.of(directory) is not None

    def of(self, directory: str) -> Membership | None:
        """Return a memory directory's membership, ``None`` where it joined nothing."""
        rows = self._read()[0]
        return rows.get(os.path.realpath(directory)) if rows else None

    def all(self) -> tuple[Membership, ...]:
        """Return all memberships, in the order in which they were joined."""
        return tuple(self._read()[0].values())

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each thing that keeps a membership or a token from counting."""
        rows, problems = self._read()
        names = {row.token: row.server for row in rows.values()}
        bad = (
            f"{self.folder}/{name} holds no token for {server}, or others may read it"
            for name, server in names.items()
            if not self._token(name)
        )
        return (*problems, *bad)

    def token(self, membership: Membership) -> str:
        """Return a membership's token, "" where there is none that only the user can read."""
        return self._token(membership.token)

    def token_for(self, server: str) -> Membership | None:
        """Return a membership whose token this device has for a server, the newest one."""
        rows = [row for row in self.all() if row.server == server and self.token(row)]
        return max(rows, key=lambda row: row.at, default=None)

    def add(self, membership: Membership, token: str) -> Membership:
        """Store a membership and its token; return it with the name of the token's file.

        The token takes the place of an earlier one of the same member on the same server. Raises
        TeamRefusedError for what no file can hold, and UnwrittenFileError.
        """
        if not _TOKEN.fullmatch(token):
            raise TeamRefusedError(membership.server, _UNREADABLE)
        if not all(is_text(getattr(membership, name)) for name in _TEXTS):
            raise TeamRefusedError(membership.directory, _NOT_UTF8)
        owner = f"{membership.server} {membership.member}".encode()
        membership = replace(
            membership,
            directory=os.path.realpath(membership.directory),
            token=f"team-{sha256(owner)[:16]}.token",
        )
        with self._locked() as directory:
            self._put(directory, membership.token, f"{token}\n".encode())
            rows = {**self._read()[0], membership.directory: membership}
            self._put(directory, FILE, _written(rows.values()))
        return membership

    def remove(self, directory: str) -> None:
        """Forget a directory's membership, and its token unless another one uses it.

        Raises TeamNotJoinedError and UnwrittenFileError.
        """
        with self._locked() as folder:
            rows = dict(self._read()[0])
            gone = rows.pop(os.path.realpath(directory), None)
            if gone is None:
                raise TeamNotJoinedError(directory)
            self._put(folder, FILE, _written(rows.values()))
            if all(row.token != gone.token for row in rows.values()):
                with suppress(OSError):
                    self._disk.unlink(folder.fd, gone.token)

    def is_last(self, membership: Membership) -> bool:
        """Say whether no other membership uses the same token."""
        return sum(row.token == membership.token for row in self.all()) == 1

    def _token(self, name: str) -> str:
        if not _TOKEN_FILE.fullmatch(name):
            return ""
        with suppress(MemdError), Directory(self.folder) as directory:
            result = directory.read(name, _TOKEN_BYTES)
            if result is not None and not result[1].st_mode & 0o077:
                token = result[0].decode("utf-8", "replace").strip()
                return token if _TOKEN.fullmatch(token) else ""
        return ""

    def _read(self) -> tuple[dict[str, Membership], tuple[str, ...]]:
        """Return the memberships by directory, and a sentence per problem."""
        path = f"{self.folder}/{FILE}"
        try:
            status = os.lstat(path)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            return {}, () if missing else (f"{path} cannot be read: {cause_of(error)}",)
        identity = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        if self._known[0] != identity:
            self._known = (identity, *self._parsed(path))
        return self._known[1:]

    def _parsed(self, path: str) -> tuple[dict[str, Membership], tuple[str, ...]]:
        try:
            with Directory(self.folder) as directory:
                result = directory.read(FILE, _BYTES)
            if result is None:
                return {}, ()
            if result[1].st_mode & 0o022:
                return {}, (f"{path} {_OPEN}",)
            rows = tomllib.loads(result[0].decode()).get("membership", [])
        except MemdError as error:
            return {}, (error.sentence,)
        except (ValueError, RecursionError) as error:  # no UTF-8, no TOML
            return {}, (f"{path} is not valid TOML ({error}); it is ignored",)
        memberships = [_membership(row) for row in rows] if isinstance(rows, list) else [None]
        problems = (
            (f"{path}: a membership is damaged; it is ignored",) if None in memberships else ()
        )
        return {row.directory: row for row in memberships if row}, problems

    @contextmanager
    def _locked(self) -> Iterator[Directory]:
        """Hold the folder, made if need be, so that one writer replaces its files at a time."""
        with Directory(self.folder, create=True) as directory:
            fcntl.flock(directory.fd, fcntl.LOCK_EX)
            yield directory

    def _put(self, directory: Directory, name: str, content: bytes) -> None:
        """Replace a file by one that only the user can read. Raises UnwrittenFileError."""
        disk, folder, temp = self._disk, directory.fd, f".memd-{secrets.token_hex(8)}.tmp"
        try:
            try:
                write_new(disk, folder, temp, content)
                there = os.path.lexists(f"{self.folder}/{name}")
                (disk.exchange if there else disk.move)(folder, temp, name)
                disk.sync_folder(folder)
            finally:
                disk.unlink(folder, temp)
        except OSError as error:
            path = f"{self.folder}/{name}"
            raise UnwrittenFileError(path, cause_of(error)) from error


def _membership(row: Any) -> Membership | None:
    """Return a row of the file, ``None`` for a damaged one."""
    if not isinstance(row, dict) or type(row.get("at")) is not float:
        return None
    texts: dict[str, Any] = {name: row.get(name) for name in _TEXTS}
    if not all(
        isinstance(text, str) and (text or name == "origin") for name, text in texts.items()
    ):
        return None
    with suppress(TeamRefusedError):
        if server_address(row["server"]) == row["server"] and _TOKEN_FILE.fullmatch(row["token"]):
            return Membership(at=row["at"], **texts)
    return None


def _written(rows: Iterable[Membership]) -> bytes:
    lines = [_HEAD]
    for row in rows:
        lines.append("\n[[membership]]\n")
        lines += [f"{name} = {_quoted(getattr(row, name))}\n" for name in _TEXTS]
        lines.append(f"at = {float(row.at)!r}\n")
    return "".join(lines).encode()


def _quoted(text: str) -> str:
    """Return a text as TOML writes it: JSON's form, which leaves DEL as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
