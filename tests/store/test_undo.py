"""Taking changes back: what was there is there again, and newer work stays."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.base.errors import Invalid, NotFound
from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import Actor, Draft, FileEdit, Pointer, Provenance, Tree
from memd.store import index
from memd.store.past import Filter, Range
from tests.store.bench import Bench, edits, open_bench, topic

LONG_AGO = 1_500_000_000_123_456_789
MESSY = b"# Mine\r\n\r\n- [A](a.md) - by hand\r\n* [Gone](gone.md)\r\nno end"
UNDO = Provenance(Actor.UNDO, client="test")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Open a bench whose files a person made: an untrue index, old times, a readable mode."""
    with open_bench(tmp_path) as opened:
        for name in ("a", "b", "c"):
            opened.save(f"{name}.md", topic(name, f"by hand {name}"))
            os.utime(opened.path / f"{name}.md", ns=(LONG_AGO, LONG_AGO))
            os.chmod(opened.path / f"{name}.md", 0o644)
        opened.save(INDEX, MESSY)
        yield opened


def dream(_: Tree) -> Draft:
    """Return a draft that merges three memories into two and makes a new one."""
    return edits(
        FileEdit("a.md", topic("a", "merged"), mtime_ns=LONG_AGO + 1),
        FileEdit("b.md", None),
        FileEdit("c.md", None),
        FileEdit("sub/new.md", topic("new")),
    )


def state(bench: Bench) -> tuple[dict[str, bytes], dict[str, tuple[int, int]]]:
    """Return all that an undo must bring back: texts, times and modes."""
    bench.look(last=True)
    topics = {path: os.stat(bench.path / path) for path in bench.topics()}
    return bench.tree(), {p: (s.st_mtime_ns, s.st_mode & 0o777) for p, s in topics.items()}


def lines(bench: Bench) -> list[str]:
    """Return the paths that the index names, sorted."""
    return sorted(entry.path for entry in index.entries(bench.tree()[INDEX]))


def test_an_undo_restores_every_byte_time_and_mode(bench: Bench) -> None:
    """After an undo the directory is as before, also where it was in disorder before."""
    before = state(bench)
    change = bench.commit(dream).change
    assert state(bench) != before
    assert bench.undo(change).conflicts == ()
    assert state(bench) == before


@pytest.mark.parametrize(
    ("path", "content"), [("deep/er/n.md", topic("n")), ("a.md", topic("a", "new")), ("a.md", None)]
)
def test_each_kind_of_change_is_undone(bench: Bench, path: str, content: bytes | None) -> None:
    """A creation, an update and a deletion are undone, and their undo is undone."""
    before = state(bench)
    change = bench.write(path, content).change
    after = state(bench)
    undone = bench.undo(change)
    assert state(bench) == before
    bench.undo(undone.change)
    assert state(bench)[0] == after[0]


def test_a_change_is_taken_out_of_newer_work(tmp_path: Path) -> None:
    """Where others have worked on other lines since, only the change goes, and that is told."""
    with open_bench(tmp_path) as bench:
        one, two = topic("a", "One.\n\nTwo."), topic("a", "1.\n\nTwo.")
        bench.write("a.md", one)
        change = bench.write("a.md", two).change
        bench.save("a.md", two + b"\nThree.\n")
        undone = bench.undo(change, "r1")
        assert (undone.conflicts, undone.merged) == ((), ("a.md",))
        assert bench.topics() == {"a.md": one + b"\nThree.\n"}
        assert bench.undo(change, "r1").merged == ("a.md",)
        assert bench.undo(change).change is None
        bench.undo(undone.change)
        assert bench.topics() == {"a.md": two + b"\nThree.\n"}


def test_newer_work_on_the_same_line_is_a_conflict(bench: Bench) -> None:
    """An edit of what the change wrote is left alone and named, and the rest is undone."""
    change = bench.commit(dream).change
    bench.save("a.md", topic("a", "merged, then edited"))
    assert bench.undo(change).conflicts == ("a.md",)
    assert bench.topics() == {
        "a.md": topic("a", "merged, then edited"),
        "b.md": topic("b", "by hand b"),
        "c.md": topic("c", "by hand c"),
    }


@pytest.mark.parametrize("later", ["p.md", "n.md"])
def test_a_file_left_alone_keeps_its_words(bench: Bench, later: str) -> None:
    """A title that the change gave stays with the text that stays."""
    bench.write("n.md", topic("n", "old"))

    def rename(tree: Tree) -> Draft:
        old = tree.index() or b""
        new = index.with_pointer(old, "n.md", Pointer("Enn", "new"))
        return edits(FileEdit("n.md", topic("n", "new")), FileEdit(INDEX, new, sha256(old)))

    change = bench.commit(rename).change
    bench.save("n.md", topic("n", "newest"))
    bench.write(later, topic(later[0], "newest"))
    assert bench.undo(change).conflicts == ("n.md",)
    assert "- [Enn](n.md) — new\r\n" in bench.tree()[INDEX].decode()


def test_lines_of_the_index_come_back_into_a_newer_index(bench: Bench) -> None:
    """A restored memory gets its old line, also where the index has changed since."""
    bench.commit(
        edits(FileEdit("b.md", topic("b", "x")), pointers={"b.md": Pointer("Bee", "buzz")})
    )
    before = bench.tree()[INDEX]
    assert "[Bee](b.md) — buzz".encode() in before
    renamed = index.with_pointer(before, "a.md", Pointer("Other", "line"))
    draft = edits(
        FileEdit("a.md", topic("a", "y")),
        FileEdit("b.md", None),
        FileEdit(INDEX, renamed, sha256(before)),
    )
    done = bench.commit(draft).change
    bench.write("later.md", topic("later"))
    assert bench.undo(done).conflicts == ()
    text = bench.tree()[INDEX].decode()
    assert all(each in text for each in ("[A](a.md)", "by hand", "[Bee](b.md) — buzz", "(later.md"))


def test_an_index_that_cannot_be_merged_gets_old_lines(bench: Bench) -> None:
    """Where words of the index contradict each other, restored memories still get their lines."""
    bench.write("b.md", topic("b", "x"))

    def change(tree: Tree) -> Draft:
        old = tree.index() or b""
        new = index.with_pointer(old, "b.md", Pointer("Bee", "buzz"))
        new = new.replace(b"# Mine", b"# Ours")
        return edits(FileEdit("b.md", topic("b", "y")), FileEdit(INDEX, new, sha256(old)))

    done = bench.commit(change).change
    bench.save(INDEX, bench.tree()[INDEX].replace(b"# Ours", b"# Theirs"))
    assert bench.undo(done).conflicts == ()
    text = bench.tree()[INDEX].decode()
    assert "# Theirs\r\n" in text
    assert "- [b](b.md) — about b\r\n" in text


def test_an_edit_of_the_index_alone(bench: Bench) -> None:
    """A change of nothing but the index is undone to the byte, or merged with newer lines."""
    bench.write("z.md", topic("z"))
    old = bench.tree()[INDEX]
    titled = edits(FileEdit(INDEX, b"# Title\n\n" + old, sha256(old)))
    change = bench.commit(titled).change
    assert bench.undo(change).conflicts == ()
    assert bench.tree()[INDEX] == old
    again = bench.commit(titled).change
    bench.write("y.md", topic("y"))
    undone = bench.undo(again)
    assert (undone.conflicts, undone.merged) == ((), (INDEX,))
    assert bench.tree()[INDEX] == old + "- [y](y.md) — about y\r\n".encode()


def test_an_index_that_somebody_removed_is_made_again(bench: Bench) -> None:
    """Where the index is gone by then, restored memories still get their lines."""
    change = bench.commit(dream).change
    (bench.path / INDEX).unlink()
    assert bench.undo(change).conflicts == ()
    assert lines(bench) == ["a.md", "b.md", "c.md"]


def test_a_text_that_is_lost_is_a_conflict(bench: Bench) -> None:
    """What the log does not have any more cannot be restored, and is named."""
    change = bench.commit(dream).change
    bench.look(last=True)  # the replaced files have the texts, too
    bench.database.write("DELETE FROM body")
    conflicts = bench.undo(change).conflicts
    assert set(conflicts) == {"a.md", "b.md", "c.md", "sub/new.md"}
    assert bench.topics().keys() == {"a.md", "sub/new.md"}


def test_a_text_that_is_lost_is_not_a_file_that_was_not_there(bench: Bench) -> None:
    """Where only the text before a change is lost, its undo removes no memory."""
    change = bench.write("a.md", topic("a", "new")).change
    bench.look(last=True)
    step = bench.past.record(bench.directory, change or "").steps[0]
    bench.database.write("DELETE FROM body WHERE hash = ?", (bytes.fromhex(step.before or ""),))
    assert bench.undo(change).conflicts == ("a.md",)
    assert bench.topics()["a.md"] == topic("a", "new")


def test_a_text_that_was_purged_is_told(bench: Bench) -> None:
    """An undo that needs a purged text changes nothing and says that it was purged."""
    change = bench.commit(dream).change
    with bench.database.transaction() as cursor:
        bench.log.empty_bodies(cursor, bench.log.bodies(lambda text: b"by hand b" in text))
    before = bench.topics()
    with pytest.raises(NotFound, match="purged"):
        bench.undo(change)
    assert bench.topics() == before


def test_bare_undo_passes_what_is_undone(bench: Bench) -> None:
    """Each bare undo goes one change further back, never forth, and an undo is undone by its id."""
    states = [bench.topics()]
    for number in range(3):
        bench.write("n.md", topic("n", str(number)))
        states.append(bench.topics())
    undone = []
    for earlier in reversed(states[:-1]):
        undone.append(bench.undo(None).change)
        assert bench.topics() == earlier
    bench.undo(undone[-1])
    assert bench.topics() == states[1]
    bench.undo(None)
    assert bench.topics() == states[0]


def test_nothing_is_left_to_undo(tmp_path: Path) -> None:
    """Where no change is left, a bare undo says so."""
    with open_bench(tmp_path) as bench:
        with pytest.raises(NotFound, match="nothing is left"):
            bench.undo(None)
        bench.write("a.md", topic("a"))
        bench.undo(None)
        with pytest.raises(NotFound, match="nothing is left"):
            bench.undo(None)


def test_a_span_and_all_after_a_time_are_undone(bench: Bench) -> None:
    """Several changes are undone at once, by their ids or to a time; what is between stays."""
    bench.look()
    start, began = state(bench), bench.clock.now()
    ids = [bench.write("a.md", topic("a", str(number))).change for number in range(3)]
    bench.write("n.md", topic("n"))
    after = bench.topics()
    with pytest.raises(Invalid):
        bench.past.undo(bench.directory, Range(ids[2] or "", ids[0] or ""))
    done = bench.commit(
        bench.past.undo(bench.directory, Range(ids[0] or "", ids[2] or "")), by=UNDO
    )
    assert bench.topics() == after | {"a.md": topic("a", "by hand a")}
    bench.undo(done.change)
    assert bench.topics() == after
    bench.commit(bench.past.undo(bench.directory, began), by=UNDO)
    assert state(bench)[1] == start[1]


def test_a_span_passes_what_others_changed_in_between(bench: Bench) -> None:
    """A file that another program changed between two changes of a span is undone with its edit."""
    first = bench.write("a.md", topic("a", "1")).change
    bench.save("a.md", topic("a", "theirs"))
    last = bench.write("a.md", topic("a", "2")).change
    bench.commit(bench.past.undo(bench.directory, Range(first or "", last or "")), by=UNDO)
    assert bench.topics()["a.md"] == topic("a", "by hand a")


def test_a_version_is_restored(bench: Bench) -> None:
    """A file comes back as it was after a change, before its deletion, or one version earlier."""
    ids = [bench.write("n.md", topic("n", str(number))).change for number in range(3)]
    bench.commit(bench.past.restore(bench.directory, "n.md", ids[0] or ""))
    assert bench.topics()["n.md"] == topic("n", "0")
    bench.commit(bench.past.restore(bench.directory, "n.md"))
    assert bench.topics()["n.md"] == topic("n", "2")
    bench.write("n.md", None)
    bench.commit(bench.past.restore(bench.directory, "n.md"))
    assert bench.topics()["n.md"] == topic("n", "2")
    assert "n.md" in lines(bench)
    with pytest.raises(NotFound):
        bench.past.restore(bench.directory, "never.md")


STEP = st.tuples(
    st.sampled_from(["write", "delete", "save", "remove", "index"]),
    st.sampled_from(["a.md", "b.md", "s/c.md"]),
    st.integers(0, 5),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(STEP, max_size=10))
def test_undoing_all_in_reverse_gives_every_earlier_state(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[str, str, int]]
) -> None:
    """After any writes and edits of others, undoing them in reverse order passes each state."""
    with open_bench(tmp_path_factory.mktemp("back")) as bench:
        bench.write("a.md", topic("a", "start"))
        bench.look()
        for action, path, number in wanted:
            _do(bench, action, path, topic("t", str(number)))
            bench.look()
        for change in bench.past.changes(Filter(bench.directory), limit=100):
            steps = bench.past.record(bench.directory, change.id).steps
            steps = tuple(step for step in steps if step.path != INDEX)
            undone = bench.undo(change.id)
            assert undone.conflicts == ()
            tree = bench.tree()
            assert [tree.get(s.path) for s in steps] == [bench.log.body(s.before) for s in steps]
            for step in steps:
                if step.before is not None:
                    status = (bench.path / step.path).stat()
                    assert status.st_mtime_ns == step.before_mtime_ns


def _do(bench: Bench, action: str, path: str, text: bytes) -> None:
    """Do one thing as a client or as another program."""
    if action in ("write", "delete"):
        bench.write(path, text if action == "write" else None)
    elif action == "save":
        bench.save(path, text)
    elif action == "remove":
        (bench.path / path).unlink(missing_ok=True)
    else:
        bench.save(INDEX, b"# By hand " + text[-3:] + b"\n")


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["write", "delete", "save", "undo"]),
            st.sampled_from(["a.md", "b.md", "s/c.md"]),
            st.integers(0, 5),
        ),
        max_size=12,
    )
)
def test_any_history_agrees_with_a_model(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str, int]]
) -> None:
    """Commits, saves of others and undos in any order end where a simple model says."""
    with open_bench(tmp_path_factory.mktemp("model")) as bench:
        model: dict[str, bytes] = {}
        log: list[tuple[str | None, str, bytes | None, bytes | None]] = []
        for action, path, number in operations:
            text = topic("t", str(number))
            if action == "save":
                bench.save(path, text)
                model[path] = text
            elif action == "undo" and log:
                change, where, old, new = log[number % len(log)]
                undone = bench.undo(change)
                live = model.get(where)
                assert undone.conflicts == (() if live in (new, old) else (where,))
                if live == new:
                    _put(model, where, old)
            elif action in {"write", "delete"}:
                wanted = text if action == "write" else None
                old = model.get(path)
                change = bench.write(path, wanted).change
                assert (change is None) == (old == wanted)
                _put(model, path, wanted)
                log += [(change, path, old, wanted)] if change else []
            assert bench.topics() == model
        bench.write("last.md", topic("last"))
        assert lines(bench) == sorted(bench.topics())


def _put(model: dict[str, bytes], path: str, text: bytes | None) -> None:
    if text is None:
        model.pop(path, None)
    else:
        model[path] = text
