"""What a write does to a repository, inside its transaction.

Rules of this file
- The repository's row is locked first: its writes come one after the other, and revisions are
  given out in the order in which they become visible.
- Role, id, bases, names and limits are looked at before anything changes: a write that is refused
  has no effect.
- An accepted write is recorded with its answer. Repeated under its id it gets that answer.
- A new version overwrites none: the one before stays in the history.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memd.core.team import REMOVED, Limits
from memd.server import checking
from memd.server.driver import Transaction
from memd.server.errors import (
    ENTRY,
    REPOSITORY,
    EntriesChangedError,
    IdReusedError,
    NotThereError,
    OverLimitError,
    RoleMissingError,
    SlowDownError,
)
from memd.server.values import (
    Answer,
    Difference,
    PutEntry,
    Repository,
    Role,
    Session,
    Version,
)

HOUR, DAY = 3600.0, 86400.0
REMOVALS_AN_HOUR = 20  # by a member, wherever
REMOVALS_A_DAY = 5  # by a member in a repository, where the share of it is less
REMOVED_SHARE = 0.2
OPERATOR = Session(0, "memd-team", "server")  # whose acts the commands on the server's machine are
_REMOVALS = "removals"
_ROLES = tuple(Role)
_HEAD = (
    "SELECT key, revision, hash, size, at, member, device, reason FROM versions"
    " WHERE repository = ? AND key = ? AND replaced IS NULL"
)
_ADD = (
    "INSERT INTO versions"
    " (repository, key, revision, hash, size, at, member, device, reason, content)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_AUDIT = (
    "INSERT INTO audit"
    " (at, repository, member, device, address, act, key, hash_before, hash_after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# Who wrote the first version since the key was removed last.
_OWNER = (
    "SELECT member FROM versions WHERE repository = ? AND key = ? AND revision > (SELECT"
    " coalesce(max(revision), 0) FROM versions WHERE repository = ? AND key = ? AND hash = '')"
    " ORDER BY revision LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Request:
    """A write as it was sent: its id, and the digest of everything that it says."""

    session: Session
    repository: str
    id: str
    digest: str
    at: float


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A write that is being accepted: the repository's row is locked."""

    transaction: Transaction
    repository: Repository
    session: Session
    at: float

    def head(self, key: str) -> Version | None:
        """Return what a key is now, without its content, ``None`` for an unknown one."""
        row = self.transaction.row(_HEAD, self.repository.id, key)
        return None if row is None else Version(*row)

    def advance(self) -> int:
        """Give the repository its next revision and return it."""
        revision = self.repository.revision + 1
        self.transaction.run(
            "UPDATE repositories SET revision = ? WHERE id = ?", revision, self.repository.id
        )
        return revision

    def add(self, version: Version, before: Version | None, act: str) -> None:
        """Make a version what its key is, and record who did it."""
        self.transaction.run(
            "UPDATE versions SET replaced = ?"
            " WHERE repository = ? AND key = ? AND replaced IS NULL",
            self.at,
            self.repository.id,
            version.key,
        )
        each = version
        self.transaction.run(
            _ADD,
            *(self.repository.id, each.key, each.revision, each.hash, each.size, each.at),
            *(each.member, each.device, each.reason, each.content),
        )
        audit(
            self.transaction,
            self.session,
            self.at,
            act,
            repository=self.repository.id,
            key=version.key,
            hashes=(before.hash if before else "", version.hash),
        )


def audit(
    transaction: Transaction,
    session: Session,
    at: float,
    act: str,
    *,
    repository: str = "",
    key: str = "",
    hashes: tuple[str, str] = ("", ""),
) -> None:
    """Record who did what."""
    who = (session.member, session.device, session.address)
    transaction.run(_AUDIT, at, repository, *who, act, key, *hashes)


def repository_row(transaction: Transaction, repository: str, *, lock: bool = False) -> Repository:
    """Return a repository. Raises NotThereError."""
    query = "SELECT id, remote, epoch, revision, oldest FROM repositories WHERE id = ?"
    # What is no id may be no text that a database takes.
    if not checking.is_id(repository) or not (
        row := transaction.row(query + " FOR UPDATE" * lock, repository)
    ):
        raise NotThereError(REPOSITORY)
    return Repository(*row)


def role_row(transaction: Transaction, member: str, repository: str) -> Role | None:
    """Return a member's role in a repository, ``None`` where there is none."""
    row = checking.is_id(repository) and transaction.row(
        "SELECT role FROM grants WHERE member = ? AND repository = ?", member, repository
    )
    return Role(row[0]) if row else None


def allow(transaction: Transaction, member: str, repository: str, least: Role) -> None:
    """Do nothing where a member has a role. Raises NotThereError and RoleMissingError."""
    role = role_row(transaction, member, repository)
    if role is None:
        raise NotThereError(REPOSITORY)
    if _ROLES.index(role) < _ROLES.index(least):
        raise RoleMissingError(least)


def answered(transaction: Transaction, request: Request) -> Answer | None:
    """Return the answer that a write of this id got, ``None`` for a new one.

    Raises NotThereError, RoleMissingError and IdReusedError.
    """
    session = request.session
    allow(transaction, session.member, request.repository, Role.MEMBER)
    row = transaction.row(
        "SELECT body, answer FROM requests WHERE token = ? AND id = ?", session.token, request.id
    )
    if row is None:
        return None
    if row[0] != request.digest:
        raise IdReusedError
    answer: Answer = json.loads(row[1])
    return answer


def accept(
    transaction: Transaction, request: Request, act: Callable[[OpenWrite], Answer]
) -> Answer:
    """Return the answer to a write, which is done unless one of its id was."""
    repository = repository_row(transaction, request.repository, lock=True)
    answer = answered(transaction, request)
    if answer is None:
        answer = act(OpenWrite(transaction, repository, request.session, request.at))
        transaction.run(
            "INSERT INTO requests (token, id, body, answer, at) VALUES (?, ?, ?, ?, ?)",
            *(request.session.token, request.id, request.digest, json.dumps(answer), request.at),
        )
    return answer


def put(
    write: OpenWrite, entries: Sequence[PutEntry], if_match: str | None, limits: Limits
) -> Answer:
    """Write entries, all or none; bytes that are there already stay as they are."""
    heads = {entry.key: write.head(entry.key) for entry in entries}
    changed = [entry for entry in entries if not _is_there(entry, heads[entry.key])]
    differing = [
        _difference(entry.key, head)
        for entry in changed
        if entry.base != ((head := heads[entry.key]) and head.revision)
    ]
    if differing or if_match not in (None, write.repository.mark):
        raise EntriesChangedError(differing)
    revision = write.repository.revision
    if changed:
        _check_room(write, changed, heads, limits)
        revision = write.advance()
    who = (write.at, write.session.member, write.session.device)
    for entry in changed:
        version = Version(
            entry.key, revision, entry.hash, len(entry.content), *who, content=entry.content
        )
        write.add(version, heads[entry.key], "put")
    return {
        "revision": revision,
        "entries": [_status(entry, heads[entry.key], revision) for entry in entries],
    }


def remove(write: OpenWrite, key: str, revision: int, reason: str) -> Answer:
    """Put a tombstone in the place of an entry."""
    head = write.head(key)
    if head is None:
        raise NotThereError(ENTRY)
    if head.hash == REMOVED or head.revision != revision:
        raise EntriesChangedError([_difference(key, head)])
    owner = write.transaction.row(_OWNER, *(write.repository.id, key) * 2)
    if owner != (write.session.member,):
        allow(write.transaction, write.session.member, write.repository.id, Role.MAINTAINER)
    _check_pace(write)
    bury(write, head, reason, "remove")
    return {"revision": write.repository.revision + 1}


def bury(write: OpenWrite, head: Version, reason: str, act: str) -> None:
    """Put a tombstone in the place of whatever a key is."""
    who = (write.at, write.session.member, write.session.device)
    tombstone = Version(head.key, write.advance(), REMOVED, 0, *who, reason)
    write.add(tombstone, head, act)


def _is_there(entry: PutEntry, head: Version | None) -> bool:
    return head is not None and head.hash == entry.hash


def _difference(key: str, head: Version | None) -> Difference:
    return Difference(key, head.revision, head.hash) if head else Difference(key, 0, REMOVED)


def _status(entry: PutEntry, head: Version | None, revision: int) -> Answer:
    """Return what became of an entry: created, updated or unchanged."""
    if head is not None and _is_there(entry, head):
        return {"key": entry.key, "revision": head.revision, "status": "unchanged"}
    status = "created" if head is None or head.hash == REMOVED else "updated"
    return {"key": entry.key, "revision": revision, "status": status}


def _check_room(
    write: OpenWrite,
    changed: Sequence[PutEntry],
    heads: Mapping[str, Version | None],
    limits: Limits,
) -> None:
    """Refuse keys that clash and what makes a full repository larger.

    Raises EntriesRefusedError and OverLimitError.
    """
    before: dict[str, int] = dict(
        write.transaction.rows(
            "SELECT key, size FROM versions"
            " WHERE repository = ? AND replaced IS NULL AND hash <> ''",
            write.repository.id,
        )
    )
    after = before | {entry.key: len(entry.content) for entry in changed}
    checking.check_clash([key for key in heads if key not in before], before)
    sizes = {
        "max_entries": (len(before), len(after), limits.max_entries),
        "max_bytes": (sum(before.values()), sum(after.values()), limits.max_bytes),
    }
    for limit, (had, have, most) in sizes.items():
        if have > max(had, most):
            raise OverLimitError(limit, most, have)


def _check_pace(write: OpenWrite) -> None:
    """Refuse a removal beyond what a member may remove. Raises SlowDownError."""
    mine = "SELECT count(*), min(at) FROM versions WHERE hash = '' AND member = ? AND at > ?"
    run, member = write.transaction.rows, write.session.member
    [(an_hour, first)] = run(mine, member, write.at - HOUR)
    if an_hour >= REMOVALS_AN_HOUR:
        raise SlowDownError(_REMOVALS, first + HOUR - write.at)
    [(a_day, first)] = run(
        f"{mine} AND repository = ?", member, write.at - DAY, write.repository.id
    )
    [(live,)] = run(
        "SELECT count(*) FROM versions WHERE repository = ? AND replaced IS NULL AND hash <> ''",
        write.repository.id,
    )
    if a_day >= max(REMOVALS_A_DAY, int(REMOVED_SHARE * (live + a_day))):
        raise SlowDownError(_REMOVALS, first + DAY - write.at)
