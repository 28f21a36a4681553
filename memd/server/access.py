"""Manage the members of a server with their roles, invitations and tokens.

Rules of this file
- A code has 128 random bits and a token 256. Each is shown once; only its SHA-256 is stored.
- A code works once: the request that deletes its row has used it.
"""

import secrets
from collections.abc import Mapping

from memd.base.text import sha256
from memd.server import checking
from memd.server.accepting import REPOSITORY_ROW, repository_row
from memd.server.driver import Driver, Transaction
from memd.server.errors import MEMBER, TOKEN, NotThereError, RequestPart, UnauthorisedError
from memd.server.values import DeviceToken, Repository, Role, Session

INVITATION_SECONDS = 72 * 3600.0
TOKEN_SECONDS = 365 * 86400.0
_REPOSITORIES = f"SELECT {REPOSITORY_ROW}"


class Access:
    """Who may do what on a server. Every method blocks; times are seconds since 1970."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def add_repository(self, remote: str) -> Repository:
        """Return the repository of a normalised remote; create it if there is none.

        Raises MalformedRequestError.
        """
        checking.remote(remote)
        new_id = secrets.token_hex(8)
        with self.driver.writing() as transaction:
            transaction.run(
                "INSERT INTO repositories VALUES (?, ?, ?, 0, 0, 0, 0)"
                " ON CONFLICT (remote) DO NOTHING",
                *(new_id, remote, secrets.token_hex(8)),
            )
            row = transaction.row(f"{_REPOSITORIES} FROM repositories WHERE remote = ?", remote)
        return Repository(*row or ())  # there is always a row now

    def all_repositories(self) -> tuple[Repository, ...]:
        """Return every repository, by remote."""
        with self.driver.reading() as transaction:
            rows = transaction.rows(f"{_REPOSITORIES} FROM repositories ORDER BY remote")
        return tuple(Repository(*row) for row in rows)

    def repositories(self, member: str) -> tuple[tuple[Repository, Role], ...]:
        """Return the repositories in which a member has a role, by remote."""
        with self.driver.reading() as transaction:
            rows = transaction.rows(
                f"{_REPOSITORIES}, role FROM repositories JOIN grants ON repository = id"
                " WHERE member = ? ORDER BY remote",
                member,
            )
        return tuple((Repository(*row[:-1]), Role(row[-1])) for row in rows)

    def remove_member(self, name: str, *, now: float) -> None:
        """Remove a member with roles and invitations, revoke the tokens. Raises NotThereError."""
        with self.driver.writing() as transaction:
            _check_member(transaction, name)
            transaction.run("DELETE FROM grants WHERE member = ?", name)
            transaction.run("DELETE FROM invitations WHERE member = ?", name)
            transaction.run(
                "UPDATE tokens SET revoked = ? WHERE member = ? AND revoked IS NULL", now, name
            )
            transaction.run("DELETE FROM members WHERE name = ?", name)

    def members(self) -> dict[str, dict[str, str]]:
        """Return the roles of all members by name and remote."""
        with self.driver.reading() as transaction:
            rows = transaction.rows(
                "SELECT name, remote, role FROM members"
                " LEFT JOIN grants ON member = name LEFT JOIN repositories ON id = repository"
                " ORDER BY name, remote"
            )
        result: dict[str, dict[str, str]] = {name: {} for name, _, _ in rows}
        for name, remote, role in rows:
            if role is not None:
                result[name][remote] = role
        return result

    def grant(self, member: str, repository: str, role: Role | None) -> None:
        """Give a member a role in a repository, or with ``None`` take it away.

        Raises NotThereError.
        """
        with self.driver.writing() as transaction:
            _check_member(transaction, member)
            _grant(transaction, member, repository, role)

    def invite(self, member: str, roles: Mapping[str, Role], *, now: float) -> str:
        """Return a code with which a device joins once, as a member with these roles.

        ``roles`` go by repository id. A member who is not known yet is added. Raises NotThereError
        and MalformedRequestError.
        """
        checking.label(member, RequestPart.MEMBER)
        code = secrets.token_urlsafe(16)
        with self.driver.writing() as transaction:
            # Nothing reads the column ``admin``, which tables of an earlier version have.
            transaction.run(
                "INSERT INTO members (name, admin) VALUES (?, 0) ON CONFLICT (name) DO NOTHING",
                member,
            )
            for repository, role in roles.items():
                _grant(transaction, member, repository, role)
            transaction.run(
                "INSERT INTO invitations (hash, member, expires) VALUES (?, ?, ?)",
                *(_digest(code), member, now + INVITATION_SECONDS),
            )
        return code

    def join(self, code: str, device: str, *, now: float) -> tuple[str, str]:
        """Return a new token and its member in exchange for an invitation's code.

        Raises UnauthorisedError and MalformedRequestError.
        """
        checking.label(device, RequestPart.DEVICE)
        token = secrets.token_urlsafe(32)
        with self.driver.writing() as transaction:
            row = transaction.row(
                "SELECT member, expires FROM invitations WHERE hash = ?", _digest(code)
            )
            deleted = transaction.run("DELETE FROM invitations WHERE hash = ?", _digest(code))
            if row is None or not deleted:  # another request may have used the code meanwhile
                raise UnauthorisedError
            member, expires = row
            if expires <= now:
                raise UnauthorisedError
            transaction.run(
                "INSERT INTO tokens (hash, member, device, at, expires) VALUES (?, ?, ?, ?, ?)",
                *(_digest(token), member, device, now, now + TOKEN_SECONDS),
            )
        return token, member

    def session(self, token: str, *, now: float) -> Session | None:
        """Return the session of a token, or ``None`` if it is unknown, expired or revoked."""
        with self.driver.reading() as transaction:
            row = transaction.row(
                "SELECT number, member, device FROM tokens"
                " WHERE hash = ? AND revoked IS NULL AND expires > ?",
                *(_digest(token), now),
            )
        return None if row is None else Session(*row)

    def tokens(self) -> tuple[DeviceToken, ...]:
        """Return the tokens of all members, the oldest first."""
        with self.driver.reading() as transaction:
            rows = transaction.rows(
                "SELECT number, member, device, at, expires, revoked FROM tokens ORDER BY number"
            )
        return tuple(DeviceToken(*row) for row in rows)

    def revoke(self, number: int, *, now: float) -> None:
        """Revoke a token for good. Raises NotThereError."""
        with self.driver.writing() as transaction:
            if transaction.row("SELECT 1 FROM tokens WHERE number = ?", number) is None:
                raise NotThereError(TOKEN)
            transaction.run(
                "UPDATE tokens SET revoked = ? WHERE number = ? AND revoked IS NULL", now, number
            )


def _check_member(transaction: Transaction, name: str) -> None:
    """Raise NotThereError if there is no member of this name."""
    if transaction.row("SELECT 1 FROM members WHERE name = ?", name) is None:
        raise NotThereError(MEMBER)


def _grant(transaction: Transaction, member: str, repository: str, role: Role | None) -> None:
    """Replace a member's role in a repository; ``None`` removes it. Raises NotThereError."""
    repository_row(transaction, repository)
    transaction.run("DELETE FROM grants WHERE member = ? AND repository = ?", member, repository)
    if role is not None:
        transaction.run(
            "INSERT INTO grants (member, repository, role) VALUES (?, ?, ?)",
            *(member, repository, role.value),
        )


def _digest(text: str) -> str:
    """Return the SHA-256 of a code or token, which is stored in its place."""
    return sha256(text.encode(errors="surrogatepass"))
