"""Many writers at once: threads on both databases, and processes on one."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from memd.base.text import sha256
from memd.server.errors import (
    EntriesChangedError,
    StorageUnavailableError,
    TooMuchError,
    UnauthorisedError,
)
from memd.server.storage import open_storage
from tests.server.conftest import POSTGRES
from tests.server.desk import Desk, entry, memory, new_id, open_desk

WRITERS = 4
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-B", "-m", "tests.server.writing")


def together(work: Callable[[int], object], count: int = WRITERS) -> list[object]:
    """Do the same in several threads at once."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def append(desk: Desk, writer: int, times: int) -> None:
    """Add lines to one entry, as a client does: what differs is read, and the line added again."""
    for number in range(times):
        line = f"{writer}.{number}"
        while True:
            page = desk.storage.page(desk.repository.id)
            head = page.entries[0] if page.entries else None
            assert head is None or sha256(head.content or b"") == head.hash
            text = (head.content or b"") if head else memory("lines:")
            new = entry("a.md", text + line.encode() + b"\n", head.revision if head else None)
            try:
                desk.put("anna", new)
            except EntriesChangedError:
                continue
            break


def test_no_writer_overwrites_another(desk: Desk) -> None:
    """Of writers of one entry each gets its line in, one revision after the other."""
    desk.join("anna")
    together(lambda writer: append(desk, writer, 5))
    content = desk.live()["a.md"] or b""
    lines = content.decode().splitlines()[content.decode().splitlines().index("lines:") + 1 :]
    assert sorted(lines) == sorted(f"{w}.{n}" for w in range(WRITERS) for n in range(5))
    history = desk.storage.history(desk.repository.id, "a.md")
    assert [version.revision for version in history] == list(range(len(lines), 0, -1))
    assert desk.damage() == []


def test_one_request_that_comes_twice_at_once(desk: Desk) -> None:
    """The same request several times at once has one effect, and one answer for all."""
    desk.join("anna")
    for turn in range(5):
        number, sent = new_id(), entry(f"{turn}.md")
        answers = together(lambda _: desk.put("anna", sent, number=number))  # noqa: B023 - run now
        assert all(answer == answers[0] for answer in answers)
        assert desk.revision() == turn + 1


def test_a_reader_misses_nothing(desk: Desk) -> None:
    """Whoever goes on from mark to mark while others write sees every entry's last version."""
    desk.join("anna")

    def write(writer: int) -> None:
        for number in range(10):
            desk.put("anna", entry(f"{writer}/{number}.md"))

    seen: Counter[str] = Counter()

    def read(mark: str) -> str:
        cursor: str | None = ""
        while cursor is not None:
            page = desk.storage.page(desk.repository.id, mark, cursor, limit=3)
            seen.update(version.key for version in page.entries)
            cursor = page.next
        return f"{page.epoch}.{page.revision}"

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, writer) for writer in range(WRITERS)]
        mark = ""
        while not all(writer.done() for writer in writers):
            mark = read(mark)
        for writer in writers:
            writer.result()
    read(mark)
    assert len(seen) == WRITERS * 10
    assert max(seen.values()) == 1


def test_limits_hold_under_pressure(desk: Desk) -> None:
    """Removals that come at once are counted one by one, and a code lets one of many in."""
    desk.join("anna")
    desk.put("anna", *(entry(f"{number}.md") for number in range(10)))

    def remove(number: int) -> bool:
        try:
            desk.remove("anna", f"{number}.md", 1)
        except TooMuchError:
            return False
        return True

    assert together(remove, 8).count(True) == 5
    code = desk.storage.invite("ben", {}, now=desk.now)

    def join(number: int) -> bool:
        try:
            desk.storage.join(code, f"device {number}", now=desk.now)
        except UnauthorisedError:
            return False
        return True

    assert together(join, 6).count(True) == 1
    assert len(desk.storage.tokens()) == 2


def test_processes_share_a_storage(address: str) -> None:
    """Processes that write the same entry through one database lose no line and no revision."""
    with open_desk(address) as desk:
        desk.join("anna")
        programs = [
            subprocess.Popen([*PROGRAM, address, str(number), "8"], cwd=ROOT) for number in range(2)
        ]
        assert [program.wait() for program in programs] == [0, 0]
        content = (desk.live()["a.md"] or b"").decode().splitlines()
        assert sorted(content[-16:]) == sorted(f"{w}.{n}" for w in range(2) for n in range(8))
        assert desk.revision() == 16
        assert desk.damage() == []


def test_a_process_that_dies_leaves_no_lock(address: str) -> None:
    """After a kill -9 of a busy writer what it wrote is whole, and others write at once."""
    with open_desk(address) as desk:
        desk.join("anna")
        with subprocess.Popen([*PROGRAM, address, "0", "100000"], cwd=ROOT) as program:
            while desk.revision() < 3:
                assert program.poll() is None
            program.kill()
        written = desk.revision()
        append(desk, 1, 1)
        assert desk.revision() == written + 1
        assert desk.damage() == []


def test_processes_open_an_empty_database_at_once(address: str) -> None:
    """Of processes that begin together each finds or makes the same tables and repository."""

    def begin(_: int) -> str:
        storage = open_storage(address)
        try:
            return storage.add_repository("github.com/acme/app").id
        finally:
            storage.close()

    assert len(set(together(begin, 6))) == 1


def test_a_read_waits_for_no_writer(desk: Desk) -> None:
    """A page, a session and the readiness are answered while a write is open, without it."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    with desk.storage.driver.writing() as transaction:
        transaction.run("UPDATE versions SET hash = 'x' WHERE key = 'a.md'")
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(desk.live).result() == {"a.md": memory()}
            pool.submit(desk.storage.ready).result()
            [version] = pool.submit(desk.storage.page, desk.repository.id).result().entries
    assert version.hash == sha256(memory())


@pytest.mark.parametrize("address", [POSTGRES], indirect=True)
def test_texts_are_compared_byte_by_byte(desk: Desk) -> None:
    """Whatever the language of a database is, keys have the order of their bytes in it."""
    with desk.storage.driver.reading() as transaction:
        rows = transaction.rows(
            "SELECT DISTINCT collation_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND data_type = 'text'"
        )
    assert rows == [("C",)]


@pytest.mark.parametrize("address", [POSTGRES], indirect=True)
def test_lost_connections_are_replaced(desk: Desk, address: str) -> None:
    """After PostgreSQL ended its connections one request fails at most, and the next is served."""
    desk.join("anna")
    desk.put("anna", entry("a.md"))
    with desk.storage.driver.reading() as transaction:
        row = transaction.row("SELECT pg_backend_pid()")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", row)
    with pytest.raises(StorageUnavailableError) as error:
        desk.put("anna", entry("b.md"))
    assert error.value.retryable
    assert "host" not in error.value.sentence
    desk.put("anna", entry("b.md"))
    assert set(desk.live()) == {"a.md", "b.md"}


def test_who_opens_a_new_file_waits_for_its_creator(tmp_path: Path) -> None:
    """A command beside a server that is just creating the file waits until that is done."""
    path = str(tmp_path / "team.db")
    creator = sqlite3.connect(path, isolation_level=None)
    creator.execute("CREATE TABLE others (number INTEGER)")
    creator.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        opened = pool.submit(open_storage, path)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.2)
        creator.execute("COMMIT")
        creator.close()
        opened.result().close()


def test_another_connection_drops_no_lock(tmp_path: Path) -> None:
    """A new connection leaves the locks of the others: no other process believes to be alone."""
    storage = open_storage(str(tmp_path / "team.db"))
    with storage.driver.connection(), storage.driver.connection():
        text = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1], timeout=0)"
        text += ".execute('PRAGMA journal_mode=DELETE').fetchone())"
        command = [sys.executable, "-c", text, str(tmp_path / "team.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr
    storage.close()
