"""Check and carry out a write to a repository, inside its transaction.

Rules of this file
- The repository's row is locked first. So its writes run one after the other, and revisions are
  numbered in the order in which they become visible.
- Role, id, bases, names and limits are checked before anything changes: a refused write has no
  effect.
- An accepted write is stored with its answer. A repetition with the same id gets that answer.
- A new version overwrites no older one, which stays in the history.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from memd.core.team import REMOVED, Limits
from memd.core.text import sha256
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
from memd.server.values import Answer, PutEntry, Repository, Role, Session, Version

HOUR, DAY = 3600.0, 86400.0
REMOVALS_AN_HOUR = 20  # by a member in all repositories
REMOVALS_A_DAY = 5  # by a member in a repository, or ``REMOVED_SHARE`` of its entries if larger
REMOVED_SHARE = 0.2
OPERATOR = Session(0, "memd-team", "server")  # stands for commands run on the server's machine
VERSION = "key, revision, hash, size, at, member, device, reason"
REPOSITORY_ROW = "id, remote, epoch, revision, oldest, entries, bytes"
CREATED = "created"
_REMOVALS = "removals"
_ROLES = tuple(Role)
_HEADS = f"SELECT {VERSION} FROM versions WHERE repository = ? AND replaced IS NULL AND key IN"  # noqa: S608 - our own names
_REPLACE = "UPDATE versions SET replaced = ? WHERE repository = ? AND key = ? AND replaced IS NULL"
_ADD = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
_AUDIT = (
    "INSERT INTO audit"
    " (at, repository, member, device, address, act, key, hash_before, hash_after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# The member who wrote the first version after the key's last removal.
_OWNER = (
    "SELECT member FROM versions WHERE repository = ? AND key = ? AND revision > (SELECT"
    " coalesce(max(revision), 0) FROM versions WHERE repository = ? AND key = ? AND hash = '')"
    " ORDER BY revision LIMIT 1"
)


class Request(Struct, frozen=True):
    """A write request: its session, repository, id, and the digest of its content."""

    session: Session
    repository: str
    id: str
    digest: str
    at: float


class OpenWrite(Struct, frozen=True):
    """A write that is being accepted: the repository's row is locked."""

    transaction: Transaction
    repository: Repository
    session: Session
    at: float

    def heads(self, keys: Sequence[str]) -> dict[str, Version]:
        """Return the newest versions of keys, without contents; unknown keys are left out."""
        slots = ", ".join("?" * len(keys))
        rows = self.transaction.rows(f"{_HEADS} ({slots})", self.repository.id, *keys)
        return {row[0]: Version(*row) for row in rows}

    def room(
        self, contents: Mapping[str, bytes | None], heads: Mapping[str, Version]
    ) -> tuple[int, int]:
        """Return how many live entries and bytes the repository has after writing ``contents``.

        ``heads`` are the newest versions of their keys.
        """
        bodies = [body for body in contents.values() if body is not None]
        before = [heads[key] for key in contents if key in heads and heads[key].hash != REMOVED]
        return (
            self.repository.entries + len(bodies) - len(before),
            self.repository.bytes + sum(map(len, bodies)) - sum(head.size for head in before),
        )

    def store(
        self,
        act: str,
        contents: Mapping[str, bytes | None],
        heads: Mapping[str, Version],
        reason: str = "",
    ) -> int:
        """Store new versions by key (``None``: a tombstone) and return the new revision.

        ``heads`` are the newest versions so far. The audit log gets each key with the old and the
        new hash.
        """
        here, revision = self.repository.id, self.repository.revision + 1
        by, run = self.session, self.transaction
        hashes = {key: REMOVED if body is None else sha256(body) for key, body in contents.items()}
        entries, total = self.room(contents, heads)
        run.run(
            "UPDATE repositories SET revision = ?, entries = ?, bytes = ? WHERE id = ?",
            *(revision, entries, total, here),
        )
        run.run_many(_REPLACE, [(self.at, here, key) for key in contents])
        who = (self.at, by.member, by.device, reason)
        run.run_many(
            _ADD,
            [
                (here, key, revision, hashes[key], len(body or b""), *who, body)
                for key, body in contents.items()
            ],
        )
        acted = (self.at, here, by.member, by.device, by.address, act)
        then = {key: head.hash for key, head in heads.items()}
        run.run_many(_AUDIT, [(*acted, key, then.get(key, ""), hashes[key]) for key in contents])
        return revision


def audit(
    transaction: Transaction,
    by: Session,
    at: float,
    act: str,
    *,
    repository: str = "",
    key: str = "",
) -> None:
    """Add an act of a session to the audit log."""
    who = (by.member, by.device, by.address)
    transaction.run(_AUDIT, at, repository, *who, act, key, "", "")


def repository_row(transaction: Transaction, repository: str, *, lock: bool = False) -> Repository:
    """Return a repository. Raises NotThereError."""
    query = f"SELECT {REPOSITORY_ROW} FROM repositories WHERE id = ?"  # noqa: S608 - as above
    # An invalid id may contain characters that a database refuses, so it is not queried.
    if not checking.is_id(repository) or not (
        row := transaction.row(query + " FOR UPDATE" * lock, repository)
    ):
        raise NotThereError(REPOSITORY)
    return Repository(*row)


def allow(transaction: Transaction, member: str, repository: str, least: Role) -> None:
    """Check that a member has at least the role ``least`` in a repository.

    Raises NotThereError without any role there, and RoleMissingError for a lower one.
    """
    row = checking.is_id(repository) and transaction.row(
        "SELECT role FROM grants WHERE member = ? AND repository = ?", member, repository
    )
    if not row:
        raise NotThereError(REPOSITORY)
    if _ROLES.index(row[0]) < _ROLES.index(least):
        raise RoleMissingError(least)


def answered(transaction: Transaction, request: Request) -> Answer | None:
    """Return the stored answer to a write with this id, or ``None`` for a new id.

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
    """Call ``act`` for a new write, store its answer and return it.

    A repeated write gets the stored answer. Raises the errors of ``answered`` and of ``act``.
    """
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
    """Store all entries or none; return the new revision and each entry's status.

    An entry whose content is there already is unchanged. Raises EntriesChangedError if a base or
    ``if_match`` is out of date, EntriesRefusedError and OverLimitError.
    """
    heads = write.heads([entry.key for entry in entries])
    revisions = {key: head.revision for key, head in heads.items()}
    same = {each.key for each in entries if each.key in heads and heads[each.key].hash == each.hash}
    changed = [entry for entry in entries if entry.key not in same]
    differing = [each.key for each in changed if each.base != revisions.get(each.key)]
    if differing or if_match not in (None, write.repository.mark):
        raise EntriesChangedError([_difference(key, heads.get(key)) for key in differing])
    revision = write.repository.revision
    if changed:
        contents = {entry.key: entry.content for entry in changed}
        _check_clash(write, [key for key in contents if _put_status(heads.get(key)) == CREATED])
        _check_room(write.repository, write.room(contents, heads), limits)
        revision = write.store("put", contents, heads)
    return {
        "revision": revision,
        "entries": [
            {"key": entry.key, "revision": revisions[entry.key], "status": "unchanged"}
            if entry.key in same
            else {
                "key": entry.key,
                "revision": revision,
                "status": _put_status(heads.get(entry.key)),
            }
            for entry in entries
        ],
    }


def remove(write: OpenWrite, key: str, revision: int, reason: str) -> Answer:
    """Replace an entry by a tombstone and return the new revision.

    Only its owner and maintainers may. Raises NotThereError, EntriesChangedError for another
    revision, RoleMissingError and SlowDownError.
    """
    heads = write.heads([key])
    if key not in heads:
        raise NotThereError(ENTRY)
    if heads[key].hash == REMOVED or heads[key].revision != revision:
        raise EntriesChangedError([_difference(key, heads[key])])
    owner = write.transaction.row(_OWNER, *(write.repository.id, key) * 2)
    if owner != (write.session.member,):
        allow(write.transaction, write.session.member, write.repository.id, Role.MAINTAINER)
    _check_pace(write)
    return {"revision": write.store("remove", {key: None}, heads, reason)}


def _put_status(before: Version | None) -> str:
    """Return "created" for a key that had no content before, else "updated"."""
    return CREATED if before is None or before.hash == REMOVED else "updated"


def _difference(key: str, head: Version | None) -> Answer:
    """Return a key's revision and hash: 0 and "" if it is unknown, hash "" if it was removed."""
    revision, digest = (head.revision, head.hash) if head else (0, REMOVED)
    return {"key": key, "revision": revision, "hash": digest}


def _check_clash(write: OpenWrite, new: Sequence[str]) -> None:
    """Check that no new key names the same file as another key on some file systems.

    Raises EntriesRefusedError.
    """
    if new:
        live = write.transaction.rows(
            "SELECT key FROM versions WHERE repository = ? AND replaced IS NULL AND hash <> ''",
            write.repository.id,
        )
        checking.check_clash(new, [*new, *(key for (key,) in live)])


def _check_room(had: Repository, room: tuple[int, int], limits: Limits) -> None:
    """Check that a write does not enlarge a repository beyond its limits. Raises OverLimitError."""
    for limit, before, after, most in (
        ("max_entries", had.entries, room[0], limits.max_entries),
        ("max_bytes", had.bytes, room[1], limits.max_bytes),
    ):
        if after > max(before, most):
            raise OverLimitError(limit, most, after)


def _check_pace(write: OpenWrite) -> None:
    """Check that a member has not removed too many entries lately. Raises SlowDownError."""
    mine = "SELECT count(*), min(at) FROM versions WHERE hash = '' AND member = ? AND at > ?"
    rows, member, here = write.transaction.rows, write.session.member, write.repository.id
    [(an_hour, first)] = rows(mine, member, write.at - HOUR)
    if an_hour >= REMOVALS_AN_HOUR:
        raise SlowDownError(_REMOVALS, first + HOUR - write.at)
    [(a_day, first)] = rows(f"{mine} AND repository = ?", member, write.at - DAY, here)
    share = REMOVED_SHARE * (write.repository.entries + a_day)
    if a_day >= max(REMOVALS_A_DAY, int(share)):
        raise SlowDownError(_REMOVALS, first + DAY - write.at)
