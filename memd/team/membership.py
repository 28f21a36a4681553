"""Store which directories joined a team: in ``team.toml`` beside the settings, with token files.

Rules of this file
- ``team.toml`` is ignored if others may write it, a token file if others may read it.
- A membership belongs to the real path of a directory. No repository's files can add one.
- Files are replaced as a whole, and a token is on disk before the row that names its file.
"""

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import DecodeError, toml
from msgspec.structs import fields, replace

from memd.base.addresses import is_loopback
from memd.base.errors import MemdError, Refused, Storage
from memd.base.names import is_text
from memd.base.text import sha256
from memd.store.directory import Directory, cause_of, unwritable
from memd.store.disk import Disk, real_disk, write_new
from memd.team.errors import team_not_joined, team_refused
from memd.team.values import Membership

FILE = "team.toml"
_FILE_HEADER = "# Written by memd: memctl team join, memctl team leave.\n"
_FILE_BYTES = 1024 * 1024  # the largest team.toml
_TOKEN_BYTES = 4096  # the largest token file
_TOKEN_FILE = r"team-[0-9a-f]{16}\.token"  # noqa: S105 - a pattern
_TOKEN = r"[A-Za-z0-9._~+/=-]{16,1024}"  # noqa: S105 - a pattern
_TEXT_MEMBERS = tuple(item.name for item in fields(Membership) if item.name != "at")
_WRITABLE_BY_OTHERS = "may be written by others; it is ignored until you run chmod go-w on it"

# Why an address is none of a server, in words for the sentence of its error.
_ADDRESS = "the address"  # in place of the address itself, which may have a password
_WRONG_URL = "it has to be https://host or https://host:port"
_HTTP_REFUSED = "plain http goes to this machine alone; use https"
_NOT_UTF8 = "a name in it is not UTF-8"
_NOT_VALID = "what it gave is no token"

Identity = tuple[int, int, int, int] | None


def server_address(url: str) -> str:
    """Return the address of a server as scheme, host and port, without the scheme's default port.

    Raises Refused unless it is https, or http to this machine, without other parts.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError as error:  # UnicodeError too
        raise team_refused(_ADDRESS, _WRONG_URL) from error
    has_space = any(character.isspace() for character in url.strip())
    has_other_parts = parts.username or parts.password or parts.query or parts.fragment
    if has_space or has_other_parts or parts.path not in ("", "/"):
        raise team_refused(_ADDRESS, _WRONG_URL)
    if parts.scheme not in ("http", "https"):
        raise team_refused(_ADDRESS, _WRONG_URL)
    if not re.fullmatch(r"[a-z0-9.-]+|[0-9a-f:.]*:[0-9a-f:.]*", host):  # a name or IPv6
        raise team_refused(_ADDRESS, _WRONG_URL)
    if parts.scheme == "http" and not is_loopback(host):
        raise team_refused(host, _HTTP_REFUSED)
    default_port = {"http": 80, "https": 443}[parts.scheme]
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = f":{port}" if port not in (None, default_port) else ""
    return f"{parts.scheme}://{shown_host}{shown_port}"


class Memberships:
    """The memberships in a folder's ``team.toml``, read again when it changes. Methods block."""

    def __init__(self, folder: str, disk: Disk | None = None) -> None:
        self.folder = folder
        self._disk = disk or real_disk()
        # Of the file that was read last: its identity, the memberships by directory, and sentences
        # about problems.
        self._cache: tuple[Identity, dict[str, Membership], tuple[str, ...]] = (None, {}, ())
        self.any = False  # whether there was a membership when the file was last read

    def joined(self, directory: str) -> bool:
        """Return whether a memory directory joined a team."""
        rows = self._read()[0]
        return bool(rows) and os.path.realpath(directory) in rows

    def of(self, directory: str) -> Membership | None:
        """Return the membership of a memory directory, ``None`` if it joined no team."""
        return self._read()[0].get(os.path.realpath(directory))

    def all(self) -> tuple[Membership, ...]:
        """Return all memberships, in the order in which they were joined."""
        return tuple(self._read()[0].values())

    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each membership or token that is ignored, and why."""
        rows, problems = self._read()
        names = {row.token: row.server for row in rows.values()}
        invalid_tokens = (
            f"{self.folder}/{name} holds no token for {server}, or others may read it"
            for name, server in names.items()
            if not self._read_token(name)
        )
        return (*problems, *invalid_tokens)

    def token(self, membership: Membership) -> str:
        """Return the token of a membership, "" if it is missing or others may read its file."""
        return self._read_token(membership.token)

    def token_for(self, server: str) -> Membership | None:
        """Return the newest membership on a server that has a valid token, else ``None``."""
        rows = [row for row in self.all() if row.server == server and self.token(row)]
        return max(rows, key=lambda row: row.at, default=None)

    def check_writable(self) -> None:
        """Check that a token can be stored, by writing a file. Raises Storage."""
        with self._locked() as directory:
            self._replace_file(directory, FILE, None)

    def add(self, membership: Membership, token: str) -> Membership:
        """Store a membership and its token; return it with the name of the token's file.

        The token replaces an earlier one of the same member on the same server. Raises
        Refused for an invalid token or text, and Storage.
        """
        if not re.fullmatch(_TOKEN, token):
            raise team_refused(membership.server, _NOT_VALID)
        if not all(is_text(getattr(membership, name)) for name in _TEXT_MEMBERS):
            raise team_refused(membership.directory, _NOT_UTF8)
        owner = f"{membership.server} {membership.member}".encode()
        membership = replace(
            membership,
            directory=os.path.realpath(membership.directory),
            token=f"team-{sha256(owner)[:16]}.token",
        )
        with self._locked() as directory:
            self._replace_file(directory, membership.token, f"{token}\n".encode())
            rows = {**self._read()[0], membership.directory: membership}
            self._replace_file(directory, FILE, _file_content(rows.values()))
        return membership

    def remove(self, directory: str) -> None:
        """Remove a directory's membership, and its token unless another membership uses it.

        Raises Off and Storage.
        """
        with self._locked() as folder:
            rows = dict(self._read()[0])
            removed = rows.pop(os.path.realpath(directory), None)
            if removed is None:
                raise team_not_joined(directory)
            self._replace_file(folder, FILE, _file_content(rows.values()))
            if all(row.token != removed.token for row in rows.values()):
                with suppress(OSError):  # a token that is not named any more does no harm
                    self._disk.unlink(folder.fd, removed.token)

    def is_last(self, membership: Membership) -> bool:
        """Return whether no other membership uses the same token."""
        return sum(row.token == membership.token for row in self.all()) == 1

    def _read_token(self, name: str) -> str:
        """Return the token in a file, "" if the file is invalid or others may read it."""
        if not re.fullmatch(_TOKEN_FILE, name):
            return ""
        with suppress(MemdError), Directory(self.folder) as directory:
            result = directory.read(name, _TOKEN_BYTES)
            if result is not None:
                content, status = result
                token = content.decode("utf-8", "replace").strip()
                is_private = not status.st_mode & 0o077
                return token if is_private and re.fullmatch(_TOKEN, token) else ""
        return ""

    def _read(self) -> tuple[dict[str, Membership], tuple[str, ...]]:
        """Return the memberships by directory and a sentence for each problem."""
        path = f"{self.folder}/{FILE}"
        try:
            status = os.lstat(path)
        except OSError as error:
            if isinstance(error, FileNotFoundError | NotADirectoryError):
                return {}, ()
            return {}, (f"{path} cannot be read: {cause_of(error)}",)
        identity = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        known_identity, memberships, problems = self._cache
        if known_identity != identity:
            memberships, problems = self._parse_file(path)
            self._cache, self.any = (identity, memberships, problems), bool(memberships)
        return memberships, problems

    def _parse_file(self, path: str) -> tuple[dict[str, Membership], tuple[str, ...]]:
        """Return the memberships in the file by directory, and a sentence for each problem."""
        try:
            with Directory(self.folder) as directory:
                result = directory.read(FILE, _FILE_BYTES)
            if result is None:
                return {}, ()
            content, status = result
            if status.st_mode & 0o022:
                return {}, (f"{path} {_WRITABLE_BY_OTHERS}",)
            rows = toml.decode(content.decode()).get("membership", [])
        except MemdError as error:
            return {}, (error.sentence,)
        except (ValueError, DecodeError, RecursionError) as error:  # no UTF-8, no TOML
            return {}, (f"{path} is not valid TOML ({error}); it is ignored",)
        memberships = [_parse_row(row) for row in rows] if isinstance(rows, list) else [None]
        problems = (
            (f"{path}: a membership is damaged; it is ignored",) if None in memberships else ()
        )
        return {row.directory: row for row in memberships if row}, problems

    @contextmanager
    def _locked(self) -> Iterator[Directory]:
        """Open and lock the folder, creating it if needed, so that one writer changes its files."""
        try:
            opened = Directory(self.folder, create=True)
        except Storage as error:
            raise unwritable(self.folder, str(error.facts["cause"])) from error
        with opened as directory:
            fcntl.flock(directory.fd, fcntl.LOCK_EX)
            yield directory

    def _replace_file(self, directory: Directory, name: str, content: bytes | None) -> None:
        """Write a file that only the user can read, or replace it. Raises Storage."""
        disk, folder, temp = self._disk, directory.fd, f".memd-{secrets.token_hex(8)}.tmp"
        try:
            try:
                write_new(disk, folder, temp, content or b"\n")
                if content is None:
                    return
                if os.path.lexists(f"{self.folder}/{name}"):
                    disk.exchange(folder, temp, name)
                else:
                    disk.move(folder, temp, name)
                disk.sync_folder(folder)
            finally:
                disk.unlink(folder, temp)  # after an exchange this is the old file
        except OSError as error:
            path = f"{self.folder}/{name}"
            raise unwritable(path, error) from error


def _parse_row(row: Any) -> Membership | None:
    """Return the membership in a row of the file, ``None`` if a member is missing or invalid."""
    if not isinstance(row, dict) or type(row.get("at")) is not float:
        return None
    texts: dict[str, Any] = {name: row.get(name) for name in _TEXT_MEMBERS}
    for name, text in texts.items():
        if not isinstance(text, str) or (not text and name != "origin"):
            return None
    with suppress(Refused):
        is_address = server_address(row["server"]) == row["server"]
        if is_address and re.fullmatch(_TOKEN_FILE, row["token"]):
            return Membership(at=row["at"], **texts)
    return None


def _file_content(rows: Iterable[Membership]) -> bytes:
    """Return the text of ``team.toml`` with these memberships."""
    lines = [_FILE_HEADER]
    for row in rows:
        lines.append("\n[[membership]]\n")
        for name in _TEXT_MEMBERS:  # a TOML string is like JSON's, but with DEL escaped
            text = json.dumps(getattr(row, name), ensure_ascii=False)
            lines.append(f"{name} = {text}\n".replace("\x7f", "\\u007f"))
        lines.append(f"at = {float(row.at)!r}\n")
    return "".join(lines).encode()
