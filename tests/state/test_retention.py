"""What the journal forgets, and what it never does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memd.base.text import sha256
from memd.base.values import Actor, Provenance
from memd.state import baseline, cursors, job_rows, journal
from memd.state.database import Database, open_database
from memd.state.journal import Journal
from memd.state.records import PlannedChange, Step
from memd.state.retention import Pruned, Retention

BY = Provenance(Actor.CLIENT, "editor")
SCHEMAS = (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA)
MUCH = 2**40


def fill(
    database: Database, sets: int, files: int = 1, *, size: int = 0, end: str = "applied"
) -> None:
    """Journal sets at the seconds 1, 2, 3 …, each with files and bodies of its own."""
    book = Journal(database)
    for at in range(1, sets + 1):
        noise = os.urandom(size)
        bodies = [b"%d %d " % (at, number) + noise for number in range(files)]
        steps = tuple(Step(f"{n}.md", None, sha256(body)) for n, body in enumerate(bodies))
        kept = {sha256(body): body for body in bodies}
        request = PlannedChange("/m", float(at), BY, f"r{at}", "0123abcd", steps, kept)
        record = book.record(request)
        if end == "applied":
            book.mark_applied(record, float(at))
        elif end:
            book.mark_ended(record, end)
    with database.transaction() as cursor:
        cursor.execute("DELETE FROM shadows")  # the files of all these sets are gone


def prune(database: Database, most: int = MUCH) -> Pruned:
    """Prune until there is no more to do."""
    retention, total = Retention(database, most), Pruned(more=True)
    while total.more:
        total += retention.batch()
    return total


def numbers(database: Database) -> list[int]:
    """Return the numbers of the sets that are left."""
    return [row["id"] for row in database.read("SELECT id FROM changes ORDER BY id")]


def count(database: Database, table: str) -> int:
    """Return the number of rows of a table."""
    return int(database.read(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608 - a test's own words


def whole(database: Database) -> bool:
    """Return whether every set has its file and every file its body, and nothing is left over."""
    book = Journal(database)
    records = [book.load(number) for number in numbers(database)]
    keys = [step.after or "" for record in records if record for step in record.steps]
    rows, bodies = count(database, "change_files"), count(database, "blobs")
    return all(book.blob(key) for key in keys) and len(keys) == rows == bodies


def test_what_is_too_much_goes_oldest_first(database: Database) -> None:
    """As long as the file holds more than the bound the oldest sets go, a batch at a time."""
    fill(database, 200, size=20_000)
    prune(database, most=2_000_000)
    left = numbers(database)
    assert left == list(range(201 - len(left), 201))
    assert 40 <= len(left) <= 110
    assert whole(database)
    assert count(database, "requests") == 200


def test_a_pruned_change_was_still_done(database: Database) -> None:
    """A request whose change is forgotten is answered all the same, and not carried out again."""
    fill(database, 1)
    prune(database, most=0)
    answer = Journal(database).earlier_result("/m", "editor", "r1")
    assert answer is not None
    assert (answer.change, answer.repeated) == (None, True)


def test_a_body_that_somebody_names_stays(database: Database) -> None:
    """A body lives as long as one set or one shadow needs it, and goes with the last."""
    book, body = Journal(database), b"shared"
    key = sha256(body)
    record = book.record(
        PlannedChange("/m", 1.0, BY, "", "0123abcd", (Step("a.md", None, key),), {key: body})
    )
    book.mark_applied(record, 1.0)
    assert prune(database, most=0) == Pruned(1, 0)
    assert (book.blob(key), numbers(database)) == (body, [])
    with database.transaction() as cursor:
        baseline.update_for_commit(cursor, "/m", [("a.md", None, None)])
    assert prune(database).bodies == 1
    assert book.blob(key) is None


def test_the_newest_answers_stay(database: Database) -> None:
    """Of answers to requests the newest 10,000 are kept, whatever the clock said."""
    with database.transaction() as cursor:
        cursor.executemany(
            "INSERT INTO requests VALUES ('/m', 'c', ?, ?, ?, '[]')",
            [(f"r{number}", -float(number), number) for number in range(10_003)],
        )
    prune(database)
    oldest = database.read("SELECT min(change), count(*) FROM requests")[0]
    assert tuple(oldest) == (3, 10_000)


def test_bodies_that_nobody_names_are_found(database: Database) -> None:
    """Bodies that lost their last name otherwise are swept away, however many there are."""
    fill(database, 2, 400)
    with database.transaction() as cursor:
        cursor.execute("DELETE FROM change_files WHERE change = 1")
        cursor.execute("DELETE FROM changes WHERE id = 1")
    assert prune(database).bodies == 400
    assert whole(database)


def test_a_batch_is_small(database: Database) -> None:
    """One transaction prunes 50 sets, or as few as one where a set has many files."""
    fill(database, 60)
    assert Retention(database, 0).batch() == Pruned(50, 50, more=True)
    fill(database, 3, 400)
    sizes = [Retention(database, 0).batch().changes for _ in range(4)]
    assert sizes == [11, 1, 1, 0]


KILLED = """
import sys
from memd.state import cursors, job_rows, journal
from memd.state.database import open_database
from memd.state.retention import Retention
database = open_database(sys.argv[1], (journal.SCHEMA, cursors.SCHEMA, job_rows.SCHEMA))
retention = Retention(database, 0)
while retention.batch().more:
    print("batch", flush=True)
"""


@pytest.mark.parametrize("batches", [1, 3])
def test_a_kill_in_the_middle_leaves_whole_sets(
    database: Database, tmp_path: Path, batches: int
) -> None:
    """Whatever a killed daemon had pruned, the rest is whole and goes the next time."""
    fill(database, 60, 20)
    database.close()
    path = str(tmp_path / "state.db")
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(batches):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.stdout.close()
    process.wait(60)
    after = open_database(path, SCHEMAS)
    assert after.file.notes == []
    assert whole(after)
    prune(after, most=0)
    assert (numbers(after), count(after, "blobs")) == ([], 0)
    after.close()


@pytest.mark.soak
def test_pruning_a_great_journal_holds_nobody_up(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """The longest batch of 5,000 sets of 40,000 files is short: a writer waits for one at most."""
    fill(database, 5000, 8, size=500)
    retention, times, more = Retention(database, 0), [], True
    while more:
        begin = time.perf_counter()
        more = retention.batch().more
        times.append(time.perf_counter() - begin)
    times.sort()
    with capsys.disabled():
        p99 = times[int(len(times) * 0.99)] * 1000
        print(  # noqa: T201 - the proof tells its figures
            f"\nbatches {len(times)}, p99 {p99:.1f} ms, longest {times[-1] * 1000:.1f} ms"
        )
    assert times[-1] < 0.5
