"""The rows say what the files say, and what others did is one change with the texts before."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base import limits
from memd.base.errors import MemdError
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import Actor, FileEdit
from memd.store.log import DONE, UNDONE, ChangeRecord, Step
from memd.store.past import Filter
from memd.store.read import MemoryReader
from memd.store.stamp import stamp_of
from memd.store.sync import FileRow, Rows
from memd.store.watch import Watch
from tests.store.bench import BY, Bench, edits, open_bench, topic
from tests.support.clock import FakeClock

A, B = topic("a", "first"), topic("b", "second")
LATER = 20_000_000_000.0  # no file of this test is so young that its stamp proves nothing
Way = Callable[[Bench, bytes], None]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with two memories and an index, which memd has looked at once."""
    with open_bench(tmp_path) as opened:
        opened.save("a.md", A)
        opened.save("b.md", B)
        opened.save(INDEX, b"- [a](a.md)\n- [b](b.md)\n")
        opened.look()
        yield opened


def actions(records: list[ChangeRecord]) -> dict[str, str]:
    """Return what happened to each file in the one change of others, {} if there is none."""
    assert len(records) <= 1
    assert all(record.by.actor is Actor.EXTERNAL for record in records)
    return {step.path: step.file_change().action for record in records for step in record.steps}


def changes(bench: Bench) -> int:
    """Return how many changes the history has."""
    return len(bench.past.changes(Filter(bench.directory), limit=1000))


def settle(bench: Bench) -> None:
    """Look at a time at which each stamp proves that the bytes are the same."""
    bench.clock.jump(LATER - bench.clock.now())
    bench.look()


def rename(bench: Bench, text: bytes) -> None:
    """Save as an editor does: a new file that takes the name."""
    bench.save("a.md", text)


def in_place(bench: Bench, text: bytes) -> None:
    """Save into the file that is there."""
    (bench.path / "a.md").write_bytes(text)


def same_stamp(bench: Bench, text: bytes) -> None:
    """Save into the file and give it back its size and mtime."""
    status = (bench.path / "a.md").stat()
    (bench.path / "a.md").write_bytes(text.ljust(status.st_size)[: status.st_size])
    os.utime(bench.path / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))


def mapped(bench: Bench, text: bytes) -> None:
    """Empty the file and write into it through a descriptor that was open before."""
    with open(bench.path / "a.md", "r+b") as file:
        file.truncate(0)
        file.write(text)


def hard_link(bench: Bench, text: bytes) -> None:
    """Write through a second name of the file."""
    os.link(bench.path / "a.md", bench.root / "second")
    (bench.root / "second").write_bytes(text)


@pytest.mark.parametrize("way", [rename, in_place, same_stamp, mapped, hard_link])
def test_an_edit_by_any_way_is_one_change(bench: Bench, way: Way) -> None:
    """However a program saves, the next look has one change with the text before and after."""
    settle(bench)
    way(bench, topic("a", "FIRST"))
    (record,) = bench.look()
    (step,) = record.steps
    assert (step.path, step.before) == ("a.md", sha256(A))
    assert bench.log.body(step.before) == A
    assert bench.log.body(step.after) == (bench.path / "a.md").read_bytes() != A
    assert bench.look() == []


def test_an_edit_of_the_same_size_and_mtime_is_seen_by_the_next_process(tmp_path: Path) -> None:
    """Size and mtime prove nothing, also for what was done while memd did not run."""
    with open_bench(tmp_path) as bench:
        bench.save("a.md", A)
        bench.look()
        settle(bench)
        bench.rows.write_stamps(bench.directory, bench.rows.of(bench.directory))
    same_stamp(bench, topic("a", "FIRST"))
    with open_bench(tmp_path) as again:
        again.clock.jump(LATER - again.clock.now())
        (record,) = again.look()
        assert again.log.body(record.steps[0].before) == A
        assert again.log.body(record.steps[0].after) == topic("a", "FIRST")


def test_two_saves_in_one_tick_of_the_clock_are_both_seen(bench: Bench) -> None:
    """A file that has just changed is read at each look until its times prove something."""
    bench.clock.jump(time.time() - bench.clock.now())
    for body in (b"second", b"third!", b"fourth"):
        (bench.path / "a.md").write_bytes(body)
        os.utime(bench.path / "a.md", ns=(1, 1))
        assert actions(bench.look()) == {"a.md": "updated"}


def test_a_stamp_is_trusted_sooner_where_the_clock_is_fine(tmp_path: Path) -> None:
    """Where times have fractions of a second a tenth is enough, with whole seconds it takes two."""
    file = tmp_path / "a.md"
    file.write_text("x")
    os.utime(file, ns=(1_000_000_000, 1_000_000_001))
    status = file.stat()
    assert stamp_of(status, status.st_ctime + 0.05) == ()
    assert stamp_of(status, status.st_ctime + 0.2) != ()
    whole = os.stat_result((*status[:10], *(1.0, 1.0, 1.0), *(10**9, 10**9, 10**9)))
    assert stamp_of(whole, 2.5) == ()
    assert stamp_of(whole, 3.5) != ()


def test_a_first_look_records_nothing(tmp_path: Path) -> None:
    """What lies in a directory that memd has not seen is no change, and its texts are kept."""
    with open_bench(tmp_path) as bench:
        (bench.path / INDEX).symlink_to("x")
        bench.save("a.md", A)
        assert bench.look() == []
        assert changes(bench) == 0
        assert set(bench.rows.of(bench.directory).rows or {}) == {"a.md"}
        bench.save("a.md", B)
        (record,) = bench.look()
        assert bench.log.body(record.steps[0].before) == A


def test_a_directory_that_memd_wrote_into_first_has_only_news(tmp_path: Path) -> None:
    """Where nothing was when memd first wrote, every later file of another is a change."""
    with open_bench(tmp_path) as bench:
        bench.path.rmdir()
        bench.writer.scan(bench.directory, claim=True)
        bench.path.mkdir()
        bench.save("a.md", A)
        assert actions(bench.look()) == {"a.md": "created"}


def test_half_of_a_save_waits_for_the_next_look(bench: Bench) -> None:
    """An emptied or missing file is no change to a patient look; one that stays so is."""
    (bench.path / "a.md").write_bytes(b"")
    (bench.path / "b.md").unlink()
    bench.save("c.md", A)
    assert actions(bench.look(patient=True)) == {"c.md": "created"}
    rows = bench.rows.of(bench.directory).rows or {}
    assert {"a.md", "b.md"} <= rows.keys()
    (bench.path / "a.md").write_bytes(B)
    assert actions(bench.look()) == {"a.md": "updated", "b.md": "deleted"}


def test_a_file_that_a_program_fills_keeps_its_row(bench: Bench) -> None:
    """A file that is empty while it is open for writing still says what it said."""
    with open(bench.path / "a.md", "wb") as file:
        assert bench.look() == []
        assert bench.reader.headers(bench.directory)[0].size > 0
        file.write(B)
    assert actions(bench.look()) == {"a.md": "updated"}


def test_what_takes_the_place_of_a_file(bench: Bench) -> None:
    """A link or a folder in a file's place means that the memory is gone, and nothing follows."""
    (bench.root / "outside.md").write_bytes(topic("outside"))
    for path in ("a.md", "b.md", INDEX):
        (bench.path / path).unlink()
    (bench.path / "a.md").symlink_to(bench.root / "outside.md")
    (bench.path / "b.md").mkdir()
    (bench.path / INDEX).symlink_to("b.md")
    assert actions(bench.look()) == {"a.md": "deleted", "b.md": "deleted", INDEX: "deleted"}
    assert bench.reader.headers(bench.directory) == ()
    assert bench.look() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_no_change(bench: Bench) -> None:
    """Another user's file, new or in a memory's place, is neither a memory nor a deletion."""
    for name in ("a.md", "new.md"):
        bench.save(name, topic("foreign"))
        os.chown(bench.path / name, 12345, -1)
    assert bench.look() == []
    snapshot = bench.reader.snapshot(bench.directory)
    assert [header.path for header in snapshot.headers] == ["b.md"]
    assert "another user" in " ".join(snapshot.problems)


def test_a_large_file_is_listed_and_has_only_a_hash(bench: Bench) -> None:
    """A file above 4 MiB is a memory in the list; the history names it and keeps no text."""
    large = topic("large", "x" * limits.READ_BYTES)
    bench.save("a.md", large)
    (record,) = bench.look()
    (step,) = record.steps
    assert (bench.log.body(step.before), step.after) == (A, sha256(large))
    assert bench.log.body(step.after) is None
    assert "too large" in record.by.reason
    header = next(h for h in bench.reader.headers(bench.directory) if h.path == "a.md")
    assert (header.name, header.size) == ("large", len(large))
    assert bench.look() == []


def test_a_name_that_is_no_text_is_a_problem(bench: Bench) -> None:
    """A name that is not UTF-8 hides no other memory and is told."""
    with open(os.fsencode(bench.path) + b"/\xff.md", "wb") as file:
        file.write(A)
    bench.save("c.md", A)
    assert actions(bench.look()) == {"c.md": "created"}
    snapshot = bench.reader.snapshot(bench.directory)
    assert len(snapshot.headers) == 3
    assert "not UTF-8" in " ".join(snapshot.problems)


def test_a_directory_that_is_gone_comes_back(bench: Bench) -> None:
    """Files of a removed directory are deleted in one change, and undo brings them back."""
    before = bench.tree()
    bench.path.rename(bench.root / "away")
    assert actions(bench.look()) == {"a.md": "deleted", "b.md": "deleted", INDEX: "deleted"}
    assert bench.reader.headers(bench.directory) == ()
    bench.undo(None)
    assert bench.tree() == before
    bench.path.rename(bench.root / "again")
    bench.path.mkdir()
    assert set(actions(bench.look())) == {"a.md", "b.md", INDEX}


def test_a_directory_replaced_by_a_link_is_another_directory(bench: Bench) -> None:
    """A link in the directory's place leads to what lies at its end, which is seen as it is."""
    bench.path.rename(bench.root / "elsewhere")
    bench.path.symlink_to("elsewhere")
    bench.save("c.md", A)
    paths = {header.path for header in bench.reader.headers(str(bench.path))}
    assert paths == {"a.md", "b.md", "c.md"}
    result = bench.write("d.md", topic("d"))
    assert result.change is not None
    assert (bench.root / "elsewhere" / "d.md").read_bytes() == topic("d")


def test_a_change_that_is_open_is_not_taken_for_anothers(bench: Bench) -> None:
    """There is no change of others between what memd has put in place and its mark."""
    steps = (Step("a.md", sha256(A), sha256(B)),)
    record = ChangeRecord(0, bench.directory, "open", 1.0, BY, steps)
    with bench.database.transaction() as cursor:
        added = bench.log.add(cursor, record, {sha256(A): A, sha256(B): B}, token="0" * 8)
    bench.rows.drop(bench.directory)
    bench.save("a.md", B)
    assert bench.look() == []
    with bench.database.transaction() as cursor:
        bench.log.mark(cursor, added, UNDONE)
    assert actions(bench.look()) == {"a.md": "updated"}


def test_a_reader_waits_for_no_writer(bench: Bench) -> None:
    """Whoever reads while a change is being made sees the files as they are and keeps nothing."""
    seen: list[tuple[str, ...]] = []
    bench.save("c.md", A)

    def plan(_: object) -> object:
        seen.append(tuple(sorted(h.path for h in bench.reader.headers(bench.directory))))
        return edits(FileEdit("d.md", topic("d")))

    bench.commit(plan)  # type: ignore[arg-type]
    assert seen[0] == ("a.md", "b.md", "c.md")


def test_a_large_directory_is_looked_at_within_two_seconds(tmp_path: Path) -> None:
    """Above 500 files, without a watch, a change is seen two seconds after the last look."""
    with open_bench(tmp_path) as bench:
        for number in range(501):
            (bench.path / f"n{number}.md").write_bytes(b"text")
        assert len(bench.reader.headers(bench.directory)) == 501
        bench.save("new.md", A)
        bench.clock.advance(2.0)
        assert len(bench.reader.headers(bench.directory)) == 502


def test_many_stamps_are_written_at_last(bench: Bench) -> None:
    """What was learned of many files outlives the process, so that they are not read again."""
    for number in range(80):
        bench.save(f"n{number}.md", topic(f"n{number}"))
    bench.look()
    settle(bench)
    stored = bench.database.read("SELECT stamp FROM file")
    assert len(stored) == 83
    assert all(row["stamp"] for row in stored)
    assert changes(bench) == 1


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["save", "delete", "write", "move", "look", "restart", "settle"]),
        st.sampled_from(["a.md", "b.md", "s/c.md", INDEX]),
        st.binary(max_size=40) | st.sampled_from([topic("x"), topic("y"), b"", b"---\n\xff"]),
    ),
    max_size=14,
)


@settings(max_examples=30, deadline=None)
@given(EDITS)
def test_rows_say_what_the_files_say(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[str, str, bytes]]
) -> None:
    """After any edits the rows in memory, in the state file and of a first look are equal."""
    root = tmp_path_factory.mktemp("rows")
    with open_bench(root) as bench:
        for action, path, text in wanted:
            _edit(bench, action, path, text)
        bench.look()
        known = bench.rows.of(bench.directory)
        bench.rows.write_stamps(bench.directory, known)  # as at the end of the process
        kept = known.rows or {}
        fresh = Rows(bench.log, FakeClock(), Watch())
        stored = fresh._loaded(bench.directory, fresh.of(bench.directory))
        seen = fresh.scan(bench.directory, {}).rows
        assert _facts(kept) == _facts(seen) == _facts(stored)
        reader = MemoryReader(fresh)
        assert reader.headers(bench.directory) == bench.reader.headers(bench.directory)


def _edit(bench: Bench, action: str, path: str, text: bytes) -> None:
    """Do one thing to the directory."""
    if action == "save":
        bench.save(path, text)
    elif action == "delete":
        (bench.path / path).unlink(missing_ok=True)
    elif action == "move" and (bench.path / path).exists():
        (bench.path / path).rename(bench.path / "moved.md")
    elif action == "write" and path != INDEX:
        try:
            bench.write(path, text)
        except MemdError:
            return
    elif action == "look":
        bench.look(patient=len(text) % 2 == 0)
    elif action == "restart":
        bench.rows.forget()
    elif action == "settle":
        settle(bench)


def _facts(rows: dict[str, FileRow]) -> dict[str, object]:
    """Return what rows say of the files, without what only the time decides."""
    return {path: (row.header, row.mode) for path, row in rows.items()}


def test_the_state_of_a_change_of_others_is_done(bench: Bench) -> None:
    """What others did is in the history at once, with the time at which it was seen."""
    bench.save("a.md", B)
    (record,) = bench.look()
    assert record.state == DONE
    assert record.at == bench.clock.now()
    assert record.by.reason == "edited outside memd"
