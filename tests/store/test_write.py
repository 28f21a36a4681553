"""Writing: all or nothing, nobody's save overwritten, a retry is no second write."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from memd.base import limits
from memd.base.errors import Conflict, Invalid, MemdError, Refused, Secret, TooLarge
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import Draft, Effect, FileEdit, Tree
from memd.extract.cursors import ExtractionCursor, cursor_moved, read_cursor
from memd.state.docs import Docs
from memd.store.past import Filter
from memd.store.store import Store
from memd.store.write import FSYNCS_PER_CHANGE, BeingWrittenError, ChangeRequest
from tests.store.bench import BY, Bench, edits, open_bench, topic
from tests.stores import Sink
from tests.support.faults import Countdown, FaultyDatabase, FaultyDisk

LONG_AGO = 1_500_000_000_123_456_789


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench with two memories."""
    with start(tmp_path / "bench") as opened:
        yield opened


@contextmanager
def start(root: Path) -> Iterator[Bench]:
    """Open a new bench with two memories."""
    root.mkdir()
    with open_bench(root) as bench:
        bench.commit(edits(FileEdit("a.md", topic("a")), FileEdit("b.md", topic("b"))))
        yield bench


def append(path: str, line: bytes) -> Callable[[Tree], Draft]:
    """Return a plan that adds a line to whatever the file is when it runs."""

    def plan(tree: Tree) -> Draft:
        result = tree.read(path)
        return edits(FileEdit(path, (result.content if result else b"") + line))

    return plan


def moved(bench: Bench, position: int) -> Effect:
    """Return the effect that moves a session's cursor."""
    return cursor_moved(bench.directory, ExtractionCursor("s", "t", position, "m"))


def visible(bench: Bench) -> dict[str, bytes]:
    """Return what a reader sees: every file but the hidden ones."""
    return {path: text for path, text in bench.tree().items() if "/." not in f"/{path}"}


def history(bench: Bench) -> list[str]:
    """Return the ids of all changes, newest first."""
    return [change.id for change in bench.past.changes(Filter(bench.directory), limit=1000)]


def test_effects_come_true_with_the_change(bench: Bench) -> None:
    """A cursor moves with the memories it accounts for, and also when there are none."""
    docs = Docs(bench.database)
    bench.write("c.md", topic("c"), moved(bench, 1))
    assert read_cursor(docs, bench.directory, "s") == ExtractionCursor("s", "t", 1, "m")
    bench.commit(Draft(effects=(moved(bench, 2),)))
    assert read_cursor(docs, bench.directory, "s") == ExtractionCursor("s", "t", 2, "m")


@pytest.mark.parametrize(
    ("call", "name"), [("exchange", "a.md"), ("create", ""), ("sync_folder", "")]
)
def test_a_save_in_any_instant_is_seen(bench: Bench, call: str, name: str) -> None:
    """A save of another before, during and after the staging is never overwritten unseen."""
    saved: list[str] = []

    def save(now: str, target: str) -> None:
        if now == call and (not name or target == name) and not saved:
            saved.append(target)
            bench.save("a.md", topic("a", "by hand"))

    bench.using(FaultyDisk(before=save)).commit(append("a.md", b"by plan\n"))
    bench.look(last=True)
    own = b"" if call == "sync_folder" else b"by plan\n"  # saved over what was just written
    assert bench.topics()["a.md"] == topic("a", "by hand") + own
    assert set(bench.tree()) == {"a.md", "b.md", INDEX}


def test_a_file_that_was_saved_is_not_deleted(bench: Bench) -> None:
    """A deletion that was based on an older text gives the file back and asks the plan again."""
    done: list[str] = []

    def save(call: str, name: str) -> None:
        if call == "move" and name.startswith(".memd") and not done:
            done.append(name)
            bench.save("a.md", topic("a", "precious"))

    def plan(tree: Tree) -> Draft:
        result = tree.read("a.md")
        is_old = result is not None and result.content == topic("a")
        return edits(FileEdit("a.md", None)) if is_old else Draft()

    assert bench.using(FaultyDisk(before=save)).commit(plan).change is None
    assert bench.topics() == {"a.md": topic("a", "precious"), "b.md": topic("b")}


def test_ten_saves_in_a_row_are_reported(bench: Bench) -> None:
    """After ten lost races the caller is told; the other's last save is what stays."""
    count = 0

    def save(call: str, name: str) -> None:
        nonlocal count
        if call == "exchange" and name == "a.md":
            count += 1
            bench.save("a.md", f"save {count}\n".encode())

    with pytest.raises(Conflict, match="10 times"):
        bench.using(FaultyDisk(before=save)).commit(append("a.md", b"x"))
    assert bench.topics()["a.md"].startswith(b"save ")
    assert bench.log.open_changes() == ()


def test_a_write_that_only_lists_meets_what_others_saved(bench: Bench) -> None:
    """What a program saved in the file that a write changes becomes a change before the write."""
    bench.look()
    bench.save("a.md", topic("a", "by a person"))
    request = ChangeRequest(bench.directory, append("a.md", b"by plan\n"), BY, listing=True)
    result, others = bench.writer.commit(request)
    assert [step.path for record in others for step in record.steps] == ["a.md"]
    assert [change.id for change in bench.past.changes(Filter(bench.directory), limit=2)] == [
        result.change,
        others[0].id,
    ]
    assert bench.topics()["a.md"] == topic("a", "by a person") + b"by plan\n"


def test_a_file_saved_after_its_exchange_stays(bench: Bench) -> None:
    """Undoing a change that failed leaves alone what somebody saved over it meanwhile."""
    done: list[str] = []

    def save(call: str, name: str) -> None:
        if call == "exchange" and name == "b.md" and not done:
            done.append(name)
            bench.save("a.md", topic("a", "again by hand"))
            bench.save("b.md", topic("b", "by hand"))

    def plan(tree: Tree) -> Draft:
        if done:
            return Draft()
        return edits(*(FileEdit(h.path, b"merged\n") for h in sorted(tree.headers(), key=str)))

    assert bench.using(FaultyDisk(before=save)).commit(plan).change is None
    assert bench.topics() == {"a.md": topic("a", "again by hand"), "b.md": topic("b", "by hand")}


def test_a_change_is_few_waits_for_the_medium(bench: Bench) -> None:
    """One memory and its index line cost a fixed, small number of fsyncs."""
    countdown = Countdown()
    watched = bench.using(FaultyDisk(countdown), FaultyDatabase(bench.database, countdown))
    watched.write("c.md", topic("c"))
    waits = [n for n in countdown.names if n in {"fsync", "sync_folder", "transaction"}]
    assert len(waits) == FSYNCS_PER_CHANGE


def test_a_file_held_open_is_waited_for(bench: Bench) -> None:
    """A change that waits does not replace a file that a program has open for writing."""
    with open(bench.path / "a.md", "r+b"):
        with pytest.raises(BeingWrittenError):
            bench.commit(append("a.md", b"x"), wait=True)
        assert bench.write("b.md", topic("b", "other")).change is not None
    assert bench.commit(append("a.md", b"x"), wait=True).change is not None


def test_a_file_held_open_is_replaced_and_its_save_merged(bench: Bench) -> None:
    """After two seconds the file is replaced; what its program saves later is merged."""
    bench.write("a.md", topic("a", "One.\n\nTwo."))

    async def run() -> None:
        store = Store(bench.database, bench.clock, Sink())
        with open(bench.path / "a.md", "r+b") as editor:
            old = editor.read()
            edit = FileEdit("a.md", topic("a", "One.\n\nTwo, by memd."))
            async with anyio.create_task_group() as group:

                async def commit() -> None:
                    await store.commit(bench.directory, lambda _: edits(edit), BY)

                group.start_soon(commit)
                while b"by memd" not in (bench.path / "a.md").read_bytes():
                    await anyio.wait_all_tasks_blocked()
                    bench.clock.advance(limits.WRITER_POLL_SECONDS)
            editor.seek(0)
            editor.write(old.replace(b"One.", b"One, by an editor."))
            editor.truncate()
        bench.clock.advance(limits.HOLD_SECONDS)

    before = bench.clock.monotonic()
    anyio.run(run)
    bench.look()
    bench.look(last=True)
    assert bench.clock.monotonic() - before >= limits.WRITER_SECONDS
    assert bench.topics() == {
        "a.md": topic("a", "One, by an editor.\n\nTwo, by memd."),
        "b.md": topic("b"),
    }
    assert set(bench.tree()) == {"a.md", "b.md", INDEX}


def test_an_edit_of_an_older_text_is_merged(bench: Bench) -> None:
    """Edits of other lines are united and told; the caller need not read again."""
    base = topic("a", "One.\n\nTwo.")
    bench.write("a.md", base)
    bench.save("a.md", base.replace(b"Two", b"2"))
    edit = FileEdit("a.md", base.replace(b"One", b"1"), sha256(base))
    assert bench.commit(edits(edit)).merged == ("a.md",)
    assert bench.topics()["a.md"] == topic("a", "1.\n\n2.")


def test_a_conflict_keeps_the_refused_text(bench: Bench) -> None:
    """Two texts for one line: the live one stays, and the refused one can be restored."""
    wanted = topic("a", "by client")
    bench.save("a.md", topic("a", "by hand"))
    with pytest.raises(Conflict) as caught:
        bench.commit(edits(FileEdit("a.md", wanted, sha256(topic("a")))))
    assert bench.topics()["a.md"] == topic("a", "by hand")
    change = str(caught.value.facts["change"])
    assert change in caught.value.sentence
    assert change not in history(bench)
    bench.commit(bench.past.restore(bench.directory, "a.md", change))
    assert bench.topics()["a.md"] == wanted


def test_an_edit_of_a_deleted_file_is_a_conflict(bench: Bench) -> None:
    """What somebody removed does not come back by an edit, and the text is kept."""
    (bench.path / "a.md").unlink()
    with pytest.raises(Conflict) as caught:
        bench.commit(edits(FileEdit("a.md", topic("a", "x"), sha256(topic("a")))))
    assert "a.md" not in bench.topics()
    assert caught.value.facts["change"]


def test_a_secret_that_is_refused_is_not_kept(bench: Bench) -> None:
    """A conflict keeps no text that a change may not have."""
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    bench.save("a.md", topic("a", "by hand"))
    with pytest.raises(MemdError):
        bench.commit(edits(FileEdit("a.md", topic("a", token), sha256(topic("a")))))
    assert token.encode() not in (bench.root / "state.db").read_bytes()
    assert bench.log.bodies(lambda text: token.encode() in text) == frozenset()


def test_a_request_is_made_once(bench: Bench) -> None:
    """The same request id of the same client gets the earlier answer; another's is another."""
    first = bench.commit(append("a.md", b"x\n"), "r1")
    again = bench.commit(append("a.md", b"x\n"), "r1")
    assert (again.change, again.repeated) == (first.change, True)
    assert bench.commit(Draft(), "r2").change is None
    assert bench.commit(append("a.md", b"x\n"), "r2").repeated
    assert bench.topics()["a.md"] == topic("a") + b"x\n"


@pytest.mark.parametrize(
    ("path", "content", "error"),
    [
        ("../a.md", b"x", Refused),
        ("/etc/a.md", b"x", Refused),
        ("logs/x.md", b"x", Refused),
        ("c.txt", b"x", Refused),
        ("A.md", topic("a"), Refused),
        (INDEX, b"x", Refused),
        ("c.md", b"x" * (limits.MEMORY_BYTES + 1), TooLarge),
        ("c.md", topic("c", "AK" + "IA" + "QWERTZ3IO4PLKJ5M"), Secret),
        ("team/c.md", topic("c"), Invalid),
        ("team/c.md", b"no type", Invalid),
    ],
)
def test_what_no_change_may_have(
    bench: Bench, path: str, content: bytes, error: type[MemdError]
) -> None:
    """Names, sizes, secrets and types are checked before anything is written."""
    before, known = bench.tree(), history(bench)
    with pytest.raises(error):
        bench.commit(edits(FileEdit("d.md", topic("d")), FileEdit(path, content)))
    assert bench.tree() == before
    assert history(bench) == known


def test_a_change_has_a_limited_number_of_files(bench: Bench) -> None:
    """Above 500 files, or with one file twice, nothing is written."""
    many = [FileEdit(f"n{number}.md", b"x") for number in range(limits.CHANGE_FILES + 1)]
    with pytest.raises(TooLarge):
        bench.commit(edits(*many))
    with pytest.raises(Refused):
        bench.commit(edits(FileEdit("n.md", b"x"), FileEdit("n.md", b"y")))
    assert bench.topics().keys() == {"a.md", "b.md"}


def test_modes_and_times_stay(bench: Bench) -> None:
    """An existing mode is kept, new files are 0600, and a dream's rewrite keeps its time."""
    os.chmod(bench.path / "a.md", 0o640)
    time_of_b = (bench.path / "b.md").stat().st_mtime_ns
    bench.commit(
        edits(
            FileEdit("a.md", topic("a", "new"), mtime_ns=LONG_AGO),
            FileEdit("s/c.md", topic("c"), mtime_ns=LONG_AGO + 1),
        )
    )
    a, b, c = ((bench.path / path).stat() for path in ("a.md", "b.md", "s/c.md"))
    assert (a.st_mode & 0o777, a.st_mtime_ns) == (0o640, LONG_AGO)
    assert b.st_mtime_ns == time_of_b
    assert (c.st_mode & 0o777, c.st_mtime_ns) == (0o600, LONG_AGO + 1)
    assert (bench.path / "s").stat().st_mode & 0o777 == 0o700
