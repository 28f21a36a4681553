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

from memd.base.team import REMOVED, Limits
from memd.base.text import sha256
from memd.server import checking
from memd.server.driver import Transaction
from memd.server.errors import (
    ENTRY,
    REPOSITORY,
    EntriesChangedError,
    EntriesRefusedError,
    NotThereError,
    OverLimitError,
    RoleMissingError,
    TooMuchError,
)
from memd.server.values import Answer, PutEntry, Repository, Role, Session, Version

DAY = 86400.0
_REMOVALS_A_DAY = 5  # by a member in a repository, or ``_REMOVED_SHARE`` of its entries if larger
_REMOVED_SHARE = 0.2
REQUESTS = 200  # of a token, whose answers are stored
_TICK = 0.001  # seconds between the stored times of a token's requests, whatever the clock does
OPERATOR = Session(0, "memd-team", "server")  # stands for commands run on the server's machine
VERSION = "key, revision, hash, size, at, member, device, reason"
REPOSITORY_ROW = "id, remote, epoch, revision, oldest, entries, bytes"
_CREATED = "created"
_ROLES = tuple(Role)
_ID_REUSED = "this Idempotency-Key was used for another request"
_NEWEST = "repository = ? AND replaced IS NULL"
_SELECT_NEWEST = f"SELECT {VERSION} FROM versions WHERE {_NEWEST} AND key IN"  # noqa: S608 - our own names
_MARK_REPLACED = f"UPDATE versions SET replaced = ? WHERE {_NEWEST} AND key = ?"  # noqa: S608 - as above
_INSERT_VERSION = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
_OLD = "replaced IS NOT NULL AND content IS NOT NULL"
# The member who wrote the first version after the key's last removal.
_SELECT_OWNER = (
    "SELECT member FROM versions WHERE repository = ? AND key = ? AND revision > (SELECT"
    " coalesce(max(revision), 0) FROM versions WHERE repository = ? AND key = ? AND hash = '')"
    " ORDER BY revision LIMIT 1"
)


class Bounds(Struct, frozen=True):
    """What a repository keeps at most: bytes of replaced texts, and tombstones."""

    old_bytes: int = 256 * 1024 * 1024
    tombstones: int = 10_000


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
    bounds: Bounds = Bounds()

    def heads(self, keys: Sequence[str]) -> dict[str, Version]:
        """Return the newest versions of keys, without contents; unknown keys are left out."""
        slots = ", ".join("?" * len(keys))
        rows = self.transaction.rows(f"{_SELECT_NEWEST} ({slots})", self.repository.id, *keys)
        return {row[0]: Version(*row) for row in rows}

    def room(
        self, contents: Mapping[str, bytes | None], heads: Mapping[str, Version]
    ) -> tuple[int, int]:
        """Return how many live entries and bytes the repository has after writing ``contents``.

        ``heads`` are the newest versions of their keys.
        """
        texts = [content for content in contents.values() if content is not None]
        replaced = [heads[key] for key in contents if key in heads and heads[key].hash != REMOVED]
        replaced_bytes = sum(head.size for head in replaced)
        return (
            self.repository.entries + len(texts) - len(replaced),
            self.repository.bytes + sum(map(len, texts)) - replaced_bytes,
        )

    def store(
        self,
        contents: Mapping[str, bytes | None],
        heads: Mapping[str, Version],
        reason: str = "",
    ) -> int:
        """Store new versions by key (``None``: a tombstone) and return the new revision.

        ``heads`` are the newest versions so far.
        """
        repository, revision = self.repository.id, self.repository.revision + 1
        session, transaction = self.session, self.transaction
        entries, total_bytes = self.room(contents, heads)
        transaction.run(
            "UPDATE repositories SET revision = ?, entries = ?, bytes = ? WHERE id = ?",
            *(revision, entries, total_bytes, repository),
        )
        transaction.run_many(_MARK_REPLACED, [(self.at, repository, key) for key in contents])
        author = (self.at, session.member, session.device, reason)
        versions = []
        for key, content in contents.items():
            digest = REMOVED if content is None else sha256(content)
            size = len(content or b"")
            versions.append((repository, key, revision, digest, size, *author, content))
        transaction.run_many(_INSERT_VERSION, versions)
        _drop_old_texts(transaction, repository, self.bounds.old_bytes)
        if None in contents.values():
            _drop_old_tombstones(transaction, repository, self.bounds.tombstones)
        return revision


def repository_row(transaction: Transaction, repository: str, *, lock: bool = False) -> Repository:
    """Return a repository. Raises NotThereError."""
    query = f"SELECT {REPOSITORY_ROW} FROM repositories WHERE id = ?"  # noqa: S608 - as above
    if lock:
        query += " FOR UPDATE"
    # An invalid id may contain characters that a database refuses, so it is not queried.
    row = transaction.row(query, repository) if checking.is_id(repository) else None
    if row is None:
        raise NotThereError(REPOSITORY)
    return Repository(*row)


def allow(transaction: Transaction, member: str, repository: str, least: Role) -> None:
    """Check that a member has at least the role ``least`` in a repository.

    Raises NotThereError without any role there, and RoleMissingError for a lower one.
    """
    query = "SELECT role FROM grants WHERE member = ? AND repository = ?"
    row = transaction.row(query, member, repository) if checking.is_id(repository) else None
    if row is None:
        raise NotThereError(REPOSITORY)
    if _ROLES.index(row[0]) < _ROLES.index(least):
        raise RoleMissingError(least)


def stored_answer(transaction: Transaction, request: Request) -> Answer | None:
    """Return the stored answer to a write with this id, or ``None`` for a new id.

    Raises NotThereError, RoleMissingError and EntriesRefusedError.
    """
    session = request.session
    allow(transaction, session.member, request.repository, Role.MEMBER)
    row = transaction.row(
        "SELECT body, answer FROM requests WHERE token = ? AND id = ?", session.token, request.id
    )
    if row is None:
        return None
    digest, answer_text = row
    if digest != request.digest:
        raise EntriesRefusedError((), _ID_REUSED)
    answer: Answer = json.loads(answer_text)
    return answer


def accept(
    transaction: Transaction, request: Request, act: Callable[[OpenWrite], Answer], bounds: Bounds
) -> Answer:
    """Call ``act`` for a new write, store its answer and return it.

    A repeated write gets the stored answer. Raises the errors of ``stored_answer`` and of ``act``.
    """
    repository = repository_row(transaction, request.repository, lock=True)
    answer = stored_answer(transaction, request)
    if answer is None:
        answer = act(OpenWrite(transaction, repository, request.session, request.at, bounds))
        _store_answer(transaction, request, answer)
    return answer


def _store_answer(transaction: Transaction, request: Request, answer: Answer) -> None:
    """Store the answer to a write; of a token's answers the newest ``REQUESTS`` stay."""
    token = request.session.token
    [(newest,)] = transaction.rows("SELECT max(at) FROM requests WHERE token = ?", token)
    at = max(request.at, (newest or 0) + _TICK)  # increasing, also with a clock that was set back
    transaction.run(
        "INSERT INTO requests (token, id, body, answer, at) VALUES (?, ?, ?, ?, ?)",
        *(token, request.id, request.digest, json.dumps(answer), at),
    )
    transaction.run(
        "DELETE FROM requests WHERE token = ? AND at <="
        " (SELECT at FROM requests WHERE token = ? ORDER BY at DESC LIMIT 1 OFFSET ?)",
        *(token, token, REQUESTS),
    )


def put(write: OpenWrite, entries: Sequence[PutEntry], limits: Limits) -> Answer:
    """Store all entries or none; return the new revision and each entry's status.

    An entry whose content is there already is unchanged. Raises EntriesChangedError if a base is
    out of date, EntriesRefusedError and OverLimitError.
    """
    heads = write.heads([entry.key for entry in entries])
    revisions = {key: head.revision for key, head in heads.items()}
    unchanged = {
        entry.key for entry in entries if entry.key in heads and heads[entry.key].hash == entry.hash
    }
    changed = [entry for entry in entries if entry.key not in unchanged]
    outdated = [each.key for each in changed if each.base != revisions.get(each.key)]
    if outdated:
        raise EntriesChangedError([_difference(key, heads.get(key)) for key in outdated])
    revision = write.repository.revision
    if changed:
        contents = {entry.key: entry.content for entry in changed}
        _check_clash(write, [key for key in contents if _put_status(heads.get(key)) == _CREATED])
        _check_room(write.repository, write.room(contents, heads), limits)
        revision = write.store(contents, heads)
    results = []
    for key in (entry.key for entry in entries):
        if key in unchanged:
            result = {"key": key, "revision": revisions[key], "status": "unchanged"}
        else:
            result = {"key": key, "revision": revision, "status": _put_status(heads.get(key))}
        results.append(result)
    return {"revision": revision, "entries": results}


def remove(write: OpenWrite, key: str, revision: int, reason: str) -> Answer:
    """Replace an entry by a tombstone and return the new revision.

    Only its owner and maintainers may. Raises NotThereError, EntriesChangedError for another
    revision, RoleMissingError and TooMuchError.
    """
    heads = write.heads([key])
    if key not in heads:
        raise NotThereError(ENTRY)
    if heads[key].hash == REMOVED or heads[key].revision != revision:
        raise EntriesChangedError([_difference(key, heads[key])])
    owner = write.transaction.row(_SELECT_OWNER, *(write.repository.id, key) * 2)
    if owner != (write.session.member,):  # only maintainers remove the entries of others
        allow(write.transaction, write.session.member, write.repository.id, Role.MAINTAINER)
    _check_pace(write)
    return {"revision": write.store({key: None}, heads, reason)}


def _put_status(before: Version | None) -> str:
    """Return "created" for a key that had no content before, else "updated"."""
    return _CREATED if before is None or before.hash == REMOVED else "updated"


def _difference(key: str, head: Version | None) -> Answer:
    """Return a key's revision and hash: 0 and "" if it is unknown, hash "" if it was removed."""
    revision, digest = (head.revision, head.hash) if head else (0, REMOVED)
    return {"key": key, "revision": revision, "hash": digest}


def _check_clash(write: OpenWrite, new: Sequence[str]) -> None:
    """Check that no new key names the same file as another key on some file systems."""
    if new:
        live = write.transaction.rows(
            "SELECT key FROM versions WHERE repository = ? AND replaced IS NULL AND hash <> ''",
            write.repository.id,
        )
        checking.check_clash(new, [*new, *(key for (key,) in live)])


def _check_room(repository: Repository, room: tuple[int, int], limits: Limits) -> None:
    """Check that a write does not enlarge a repository beyond its limits. Raises OverLimitError.

    ``room`` are the entries and bytes that it would have after the write.
    """
    entries, total_bytes = room
    for name, before, after, limit in (
        ("max_entries", repository.entries, entries, limits.max_entries),
        ("max_bytes", repository.bytes, total_bytes, limits.max_bytes),
    ):
        if after > max(before, limit):  # a repository above a lowered limit may still shrink
            raise OverLimitError(name, limit, after)


def _check_pace(write: OpenWrite) -> None:
    """Check that a member has not removed too many entries in 24 hours. Raises TooMuchError."""
    [(removed,)] = write.transaction.rows(
        "SELECT count(*) FROM versions WHERE hash = '' AND member = ? AND at > ?"
        " AND repository = ?",
        *(write.session.member, write.at - DAY, write.repository.id),
    )
    entries_before = write.repository.entries + removed
    if removed >= max(_REMOVALS_A_DAY, int(_REMOVED_SHARE * entries_before)):
        raise TooMuchError


def _drop_old_texts(transaction: Transaction, repository: str, most: int) -> None:
    """Drop replaced texts above ``most`` bytes: the oldest of the key that has most of them."""
    sizes: dict[str, int] = {
        key: int(size)
        for key, size in transaction.rows(
            f"SELECT key, sum(size) FROM versions WHERE repository = ? AND {_OLD} GROUP BY key",  # noqa: S608 - as above
            repository,
        )
    }
    excess = sum(sizes.values()) - most
    while excess > 0:
        key = max(sizes, key=sizes.__getitem__)
        [(revision, size)] = transaction.rows(
            f"SELECT revision, size FROM versions WHERE repository = ? AND key = ? AND {_OLD}"  # noqa: S608 - as above
            " ORDER BY revision LIMIT 1",
            *(repository, key),
        )
        transaction.run(
            "UPDATE versions SET content = NULL WHERE repository = ? AND key = ? AND revision = ?",
            *(repository, key, revision),
        )
        sizes[key] -= size
        excess -= size


def _drop_old_tombstones(transaction: Transaction, repository: str, most: int) -> None:
    """Drop tombstones above ``most`` with all versions of their keys, the oldest first."""
    tombstones = "FROM versions WHERE repository = ? AND replaced IS NULL AND hash = ''"
    row = transaction.row(
        f"SELECT revision {tombstones} ORDER BY revision DESC LIMIT 1 OFFSET ?",
        *(repository, most),
    )
    if row is not None:
        keys = f"SELECT key {tombstones} AND revision <= ?"
        transaction.run(
            f"DELETE FROM versions WHERE repository = ? AND key IN ({keys})",  # noqa: S608 - as above
            *(repository, repository, *row),
        )
        transaction.run(
            "UPDATE repositories SET oldest = ? WHERE id = ? AND oldest < ?",
            *(*row, repository, *row),
        )
