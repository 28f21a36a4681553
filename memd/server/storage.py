"""The storage of memd-team: pages, history, writes and the operator's acts, for both databases.

Rules of this file
- Every method blocks: call it from a worker thread. Times are seconds since 1970. Every method may
  raise StorageBusyError and StorageUnavailableError, besides the errors in its docstring.
- A write is checked in three steps: its id and its own content without a lock, then bases, names
  and limits with the repository's row locked (``accepting``). A refused write has no effect.
"""

import os
import secrets
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from memd.base.names import printable
from memd.base.team import REMOVED, Limits
from memd.base.text import sha256
from memd.server import accepting, checking
from memd.server.accepting import OPERATOR, VERSION, Bounds, OpenWrite, Request, repository_row
from memd.server.access import Access
from memd.server.driver import Driver, Row
from memd.server.errors import (
    ENTRY,
    MalformedRequestError,
    MarkGoneError,
    NotThereError,
    OverLimitError,
    RequestPart,
    StorageFormatError,
)
from memd.server.schema import prepare
from memd.server.sqlite import SQLite
from memd.server.values import Answer, EntryPage, PutEntry, Repository, Session, Version

PAGE_ENTRIES = 500
# JSON may make six bytes of one: a page of such texts still stays below what a client reads.
PAGE_BYTES = 2 * 1024 * 1024
_UNKNOWN_REVISIONS = 1_000_000  # more than there are between a copy and its return
_LIMITS = Limits()
_PUT_ENTRIES = "put_entries"
_NO_STORAGE = "there is none at {path}; memd-team serve or repo add makes one"
ABOVE_ALL = 2**62  # above every revision
_AFTER_ALL = "\x7f"  # behind every key
_NEWEST_VERSIONS = (
    "FROM versions WHERE repository = ? AND replaced IS NULL AND (revision, key) > (?, ?)"
)
_VERSIONS_OF_KEY = "FROM versions WHERE repository = ? AND key = ?"


class Storage(Access):
    """The server's entries and their history; writes must stay within ``limits``."""

    def __init__(self, driver: Driver, limits: Limits = _LIMITS) -> None:
        super().__init__(driver)
        self.limits = limits
        self.bounds = Bounds()

    def page(
        self,
        repository: str,
        since: str = "",
        cursor: str = "",
        limit: int = PAGE_ENTRIES,
        *,
        hashes: bool = False,
    ) -> EntryPage:
        """Return a page of the entries and tombstones that changed after the mark ``since``.

        ``since`` is the text of an ETag; ``cursor`` is that of the page before. Entries that change
        while pages are read are on a page in their old or new version. With ``hashes`` there are no
        contents. Raises NotThereError, MalformedRequestError and MarkGoneError.
        """
        with self.driver.reading() as transaction:
            row = repository_row(transaction, repository)
            # The revision and key after which the page begins.
            after = _parse_cursor(cursor) if cursor else (_parse_revision(since, row), _AFTER_ALL)
            rows = transaction.rows(
                f"SELECT {VERSION} {_NEWEST_VERSIONS} ORDER BY revision, key LIMIT ?",
                *(repository, *after, limit + 1),  # one more shows whether there is a next page
            )
            page_rows = rows[:limit]
            contents: dict[str, bytes | None] = {}
            if page_rows and not hashes:
                page_rows = _first_page(page_rows)
                key, revision = page_rows[-1][:2]
                contents = dict(
                    transaction.rows(
                        f"SELECT key, content {_NEWEST_VERSIONS} AND (revision, key) <= (?, ?)",
                        *(repository, *after, revision, key),
                    )
                )
        versions = [replace(Version(*each), content=contents.get(each[0])) for each in page_rows]
        has_next = len(page_rows) < len(rows)
        return EntryPage(
            row.epoch,
            row.revision,
            tuple(each for each in versions if each.hash != REMOVED),
            tuple(each for each in versions if each.hash == REMOVED),
            f"{versions[-1].revision}.{versions[-1].key}" if has_next else None,
        )

    def put(
        self,
        session: Session,
        repository: str,
        entries: Sequence[PutEntry],
        *,
        id: str,  # noqa: A002 - what the header calls it
        body_hash: str,
        now: float,
    ) -> Answer:
        """Store all entries or none; return the revision and the status of each entry.

        Raises MalformedRequestError, NotThereError, RoleMissingError, OverLimitError,
        EntriesRefusedError and EntriesChangedError.
        """
        limits = self.limits

        def check() -> None:
            if not entries:
                raise MalformedRequestError(RequestPart.BODY)
            if len(entries) > limits.put_entries:
                raise OverLimitError(_PUT_ENTRIES, limits.put_entries, len(entries))
            checking.check_entries(entries, limits.entry_bytes)

        request = _write_request(session, repository, id, now, "put", body_hash)
        return self._carry_out(request, check, lambda write: accepting.put(write, entries, limits))

    def remove(
        self,
        session: Session,
        repository: str,
        key: str,
        revision: int,
        reason: str,
        *,
        id: str,  # noqa: A002 - what the header calls it
        now: float,
    ) -> Answer:
        """Replace an entry by a tombstone if it has this revision; return the new revision.

        Raises MalformedRequestError, NotThereError, RoleMissingError, EntriesRefusedError,
        EntriesChangedError and TooMuchError.
        """

        def check() -> None:
            checking.reason(reason)
            if not checking.is_key(key):
                raise NotThereError(ENTRY)

        request = _write_request(session, repository, id, now, "remove", key, str(revision), reason)
        return self._carry_out(
            request, check, lambda write: accepting.remove(write, key, revision, reason)
        )

    def history(
        self,
        repository: str,
        key: str,
        *,
        before: int = ABOVE_ALL,
        limit: int = PAGE_ENTRIES,
        maintainer: bool = False,
    ) -> tuple[Version, ...]:
        """Return the versions of a key below a revision, the newest first.

        Versions from before a removal have contents only for a maintainer.
        """
        if not checking.is_key(key):
            return ()
        with self.driver.reading() as transaction:
            repository_row(transaction, repository)
            rows = transaction.rows(
                f"SELECT {VERSION} {_VERSIONS_OF_KEY} AND revision < ?"
                " ORDER BY revision DESC LIMIT ?",
                *(repository, key, min(before, ABOVE_ALL), limit),
            )
            rows = _first_page(rows)
            least_revision = rows[-1][1] if rows else ABOVE_ALL
            contents: dict[int, bytes | None] = dict(
                transaction.rows(
                    f"SELECT revision, content {_VERSIONS_OF_KEY} AND revision < ?"
                    " AND revision >= ? AND (? = 1 OR revision >"
                    f" (SELECT coalesce(max(revision), 0) {_VERSIONS_OF_KEY} AND hash = ''))",
                    *(repository, key, min(before, ABOVE_ALL), least_revision),
                    *(int(maintainer), repository, key),
                )
            )
        return tuple(replace(Version(*row), content=contents.get(row[1])) for row in rows)

    def purge(self, repository: str, key: str, *, now: float) -> None:
        """Erase every version of a key and leave a tombstone. Raises NotThereError."""
        with self.driver.writing() as transaction:
            row = repository_row(transaction, repository, lock=True)
            write = OpenWrite(transaction, row, OPERATOR, now, self.bounds)
            heads = write.heads([key]) if checking.is_key(key) else {}
            if not heads:
                raise NotThereError(ENTRY)
            write.store({key: None}, heads, "purged")
            transaction.run(f"DELETE {_VERSIONS_OF_KEY} AND replaced IS NOT NULL", repository, key)
        self.driver.compact()

    def renew(self) -> None:
        """Give each repository a new epoch, after a copy of the database was put back.

        The copy lacks writes that members have seen. Revisions grow by more than those, so that no
        base of a member matches a different text by chance. Codes that were used since would be
        valid again, so all are removed.
        """
        with self.driver.writing() as transaction:
            transaction.run("DELETE FROM invitations")
            for (repository,) in transaction.rows("SELECT id FROM repositories"):
                transaction.run(
                    "UPDATE repositories SET epoch = ?, revision = revision + ? WHERE id = ?",
                    *(secrets.token_hex(8), _UNKNOWN_REVISIONS, repository),
                )

    def ready(self) -> None:
        """Return if the storage answers. Raises StorageUnavailableError."""
        with self.driver.reading() as transaction:
            transaction.row("SELECT version FROM format")

    def close(self) -> None:
        """Close the connections; the next use opens new ones."""
        self.driver.close()

    def _carry_out(
        self, request: Request, check: Callable[[], None], act: Callable[[OpenWrite], Answer]
    ) -> Answer:
        """Check and carry out a write, unless that was done before; return its answer."""
        with self.driver.reading() as transaction:
            answer = accepting.stored_answer(transaction, request)
        if answer is not None:
            return answer
        check()
        with self.driver.writing() as transaction:
            return accepting.accept(transaction, request, act, self.bounds)


def open_storage(database: str, limits: Limits = _LIMITS, *, create: bool = True) -> Storage:
    """Open or create a storage: ``postgresql://…``, ``sqlite:///path`` or the path of a file.

    Without ``create`` a file has to be there.

    Raises StorageUnavailableError and StorageFormatError.
    """
    driver: Driver
    if database.startswith(("postgresql://", "postgres://")):
        from memd.server.postgres import Postgres  # noqa: PLC0415 - an extra of its own

        driver = Postgres(database)
    else:
        path = database.removeprefix("sqlite://")
        if not create and not (os.path.isfile(path) and os.path.getsize(path)):
            raise StorageFormatError(_NO_STORAGE.format(path=printable(path)))
        driver = SQLite(path)
    try:
        prepare(driver)
    except BaseException:
        driver.close()
        raise
    return Storage(driver, limits)


def _write_request(session: Session, repository: str, id_: str, now: float, *parts: str) -> Request:
    """Return a write request with the digest of its ``parts``. Raises MalformedRequestError."""
    digest = sha256("\0".join((repository, *parts)).encode(errors="surrogatepass"))
    return Request(session, repository, checking.request_id(id_), digest, now)


def _first_page(rows: list[Row]) -> list[Row]:
    """Return the first rows of versions whose contents fit into one page, at least one row."""
    total = 0
    for index, row in enumerate(rows):
        total += Version(*row).size
        if index and total > PAGE_BYTES:
            return rows[:index]
    return rows


def _parse_cursor(text: str) -> tuple[int, str]:
    """Return the revision and key after which a page begins. Raises MalformedRequestError."""
    revision, _, key = text.partition(".")
    if not checking.is_revision(revision) or not checking.is_key(key):
        raise MalformedRequestError(RequestPart.CURSOR)
    return int(revision), key


def _parse_revision(since: str, repository: Repository) -> int:
    """Return the revision of a mark, 0 for none. Raises MalformedRequestError, MarkGoneError."""
    if not since:
        return 0
    epoch, _, revision = since.partition(".")
    if not checking.is_id(epoch) or not checking.is_revision(revision):
        raise MalformedRequestError(RequestPart.SINCE)
    if epoch != repository.epoch or int(revision) < repository.oldest:
        raise MarkGoneError
    return int(revision)
