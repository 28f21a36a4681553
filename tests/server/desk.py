"""A storage with a repository, and what tests say to it in few words."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from memd.base.team import Limits
from memd.base.text import sha256
from memd.server.storage import Storage, open_storage
from memd.server.values import Answer, PutEntry, Repository, Role, Session

REMOTE = "github.com/acme/app"


def memory(text: str = "text", kind: str = "project") -> bytes:
    """Return a memory as a client sends it."""
    head = f"---\nname: a-name\ndescription: what it says\nmetadata:\n  type: {kind}\n---\n"
    return f"{head}\n{text}\n".encode()


def entry(key: str, text: str | bytes = "text", base: int | None = None) -> PutEntry:
    """Return an entry with a memory of this text, or with these bytes."""
    content = text if isinstance(text, bytes) else memory(text)
    return PutEntry(key, content, sha256(content), base)


def new_id() -> str:
    """Return the id of a new request."""
    return str(uuid.uuid4())


@dataclass
class Desk:
    """An open storage, its one repository, and the time, in seconds."""

    storage: Storage
    repository: Repository
    now: float = 1_000_000.0
    sessions: dict[str, Session] = field(default_factory=dict)

    def join(self, name: str, role: Role = Role.MEMBER, device: str = "laptop") -> Session:
        """Let a member join with a device and a role."""
        code = self.storage.invite(name, {self.repository.id: role}, now=self.now)
        token, _ = self.storage.join(code, device, now=self.now)
        session = self.storage.session(token, now=self.now)
        assert session is not None
        self.sessions[name] = session
        return session

    def put(self, name: str, *entries: PutEntry, number: str = "") -> Answer:
        """Write entries as a member."""
        said = repr(entries)
        return self.storage.put(
            self.sessions[name],
            self.repository.id,
            entries,
            id=number or new_id(),
            body_hash=sha256(said.encode()),
            now=self.now,
        )

    def remove(self, name: str, key: str, revision: int, number: str = "") -> Answer:
        """Remove an entry as a member."""
        return self.storage.remove(
            self.sessions[name],
            self.repository.id,
            key,
            revision,
            "it is wrong",
            id=number or new_id(),
            now=self.now,
        )

    def live(self, since: str = "") -> dict[str, bytes | None]:
        """Return all live entries, page by page."""
        entries: dict[str, bytes | None] = {}
        cursor: str | None = ""
        while cursor is not None:
            page = self.storage.page(self.repository.id, since, cursor)
            entries |= {version.key: version.content for version in page.entries}
            cursor = page.next
        return entries

    def damage(self) -> list[str]:
        """Return what is wrong with the stored rows: contents, hashes and counts."""
        wrong = []
        with self.storage.driver.reading() as transaction:
            rows = transaction.rows(
                "SELECT repository, key, revision, hash, size, replaced, content FROM versions"
            )
            counts = transaction.rows("SELECT id, revision, entries, bytes FROM repositories")
        for _, key, revision, digest, size, replaced, content in rows:
            if content is None:
                wrong += [key] if digest and replaced is None else []
            elif (sha256(content), len(content)) != (digest, size):
                wrong.append(f"{key} {revision}")
        for number, revision, entries, total in counts:
            live = [r for r in rows if r[0] == number and r[3] and r[5] is None]
            highest = max((r[2] for r in rows if r[0] == number), default=0)
            if (len(live), sum(r[4] for r in live)) != (entries, total) or highest > revision:
                wrong.append(number)
        return wrong

    def fresh(self) -> Repository:
        """Return the repository as it is now."""
        every = {each.id: each for each in self.storage.all_repositories()}
        return every[self.repository.id]

    def revision(self) -> int:
        """Return the repository's revision."""
        return self.fresh().revision


@contextmanager
def open_desk(address: str, limits: Limits | None = None) -> Iterator[Desk]:
    """Open a storage with a repository and no members."""
    with closing(open_storage(address, limits or Limits())) as storage:
        yield Desk(storage, storage.add_repository(REMOTE))
