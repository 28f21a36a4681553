"""Taking changes back."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memd.base.names import INDEX
from memd.base.text import sha256
from memd.base.values import Draft, FileEdit, Pointer, Tree
from memd.store import index
from tests.changes import history
from tests.store.bench import Bench, edits, open_bench, topic

LONG_AGO = 1_500_000_000_123_456_789
MESSY = b"# Mine\r\n\r\n- [A](a.md) - by hand\r\n* [Gone](gone.md)\r\nno end"


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
    """Return a draft that merges two memories into one and changes another's line."""
    return edits(
        FileEdit("a.md", topic("a", "merged"), mtime_ns=LONG_AGO + 1),
        FileEdit("b.md", None),
        FileEdit("c.md", None),
        FileEdit("sub/new.md", topic("new")),
    )


def state(bench: Bench) -> object:
    """Return all that an undo must bring back."""
    modes = {path: os.stat(bench.path / path).st_mode & 0o777 for path in bench.topics()}
    return bench.tree(), bench.times(), modes


def test_an_undo_restores_every_byte_time_and_mode(bench: Bench) -> None:
    """After an undo the directory is as before, also where it was in disorder before."""
    before = state(bench)
    change = bench.commit(dream).change
    assert state(bench) != before
    undone = bench.undo(change)
    assert undone.conflicts == ()
    assert state(bench) == before


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
    lines = bench.tree()[INDEX]
    assert b"[Bee](b.md) \xe2\x80\x94 buzz" in lines
    renamed = index.with_pointer(lines, "a.md", Pointer("Other", "line"))

    def change(tree: Tree) -> Draft:
        results = tree.read("a.md")
        assert results is not None
        base = history(bench.journal, bench.directory)[0].files[-1].after
        return edits(
            FileEdit("a.md", results.content + b"x"),
            FileEdit("b.md", None),
            FileEdit(INDEX, renamed, base),
        )

    done = bench.commit(change).change
    bench.write("later.md", topic("later"))
    assert bench.undo(done).conflicts == ()
    text = bench.tree()[INDEX].decode()
    assert "[A](a.md)" in text
    assert "by hand" in text
    assert "[Bee](b.md) — buzz" in text
    assert "(later.md)" in text


def test_old_lines_come_back_where_an_index_cannot_be_merged(bench: Bench) -> None:
    """Where words of the index contradict each other, restored memories still get their lines."""
    bench.write("b.md", topic("b", "x"))

    def change(tree: Tree) -> Draft:
        old = tree.index() or b""
        new = index.with_pointer(old, "b.md", Pointer("Bee", "buzz"))
        new = new.replace(b"# Mine", b"# Ours")
        return edits(FileEdit("b.md", topic("b", "y")), FileEdit(INDEX, new, sha256(old)))

    done = bench.commit(change).change
    bench.save(INDEX, bench.tree()[INDEX].replace(b"# Ours", b"# Theirs"))
    undone = bench.undo(done)
    assert (undone.conflicts, undone.merged) == ((), ())
    text = bench.tree()[INDEX].decode()
    assert text.startswith("# Theirs\r\n")
    assert "- [b](b.md) — about b\r\n" in text


def test_an_edit_of_the_index_alone(bench: Bench) -> None:
    """A change of nothing but the index is undone to the byte, or merged with newer lines."""
    bench.write("z.md", topic("z"))
    old = bench.tree()[INDEX]
    base = history(bench.journal, bench.directory)[0].files[-1].after
    change = bench.commit(edits(FileEdit(INDEX, b"# Title\n\n" + old, base))).change
    assert bench.undo(change).conflicts == ()
    assert bench.tree()[INDEX] == old
    assert bench.undo(change).conflicts == ()
    again = bench.commit(edits(FileEdit(INDEX, b"# Title\n\n" + old, base))).change
    bench.write("y.md", topic("y"))
    undone = bench.undo(again)
    assert (undone.conflicts, undone.merged) == ((), (INDEX,))
    assert bench.tree()[INDEX] == old + "- [y](y.md) — about y\r\n".encode()
    bench.save(INDEX, old)
    third = bench.commit(edits(FileEdit(INDEX, b"# Title\n\n" + old, sha256(old)))).change
    bench.save(INDEX, b"# Another\n\n" + old)
    assert bench.undo(third).conflicts == ()
    assert bench.tree()[INDEX].startswith(b"# Another\n")


def test_an_index_that_somebody_removed_is_made_again(bench: Bench) -> None:
    """Where the index is gone by then, restored memories still get their lines."""
    change = bench.commit(dream).change
    (bench.path / INDEX).unlink()
    assert bench.undo(change).conflicts == ()
    listed = [entry.path for entry in index.entries(bench.tree()[INDEX])]
    assert sorted(listed) == ["a.md", "b.md", "c.md"]


def test_a_forgotten_text_is_a_conflict(bench: Bench) -> None:
    """What the journal does not hold any more cannot be restored, and is named."""
    change = bench.commit(dream).change
    with bench.database.transaction() as cursor:
        cursor.execute("DELETE FROM blobs")
    assert set(bench.undo(change).conflicts) == {"a.md", "b.md", "c.md"}
    assert "sub/new.md" not in bench.topics()


def test_files_that_a_change_left_alone_are_no_business_of_its_undo(bench: Bench) -> None:
    """An undo takes back only what its change had really done."""
    change = bench.commit(dream).change
    with bench.database.transaction() as cursor:
        cursor.execute("UPDATE change_files SET conflict = 1 WHERE path IN ('b.md', 'MEMORY.md')")
    assert bench.undo(change).conflicts == ()
    assert sorted(bench.topics()) == ["a.md", "c.md"]


OPERATION = st.tuples(
    st.sampled_from(["write", "delete", "save", "undo"]),
    st.sampled_from(["a.md", "b.md", "s/c.md"]),
    st.integers(0, 5),
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(OPERATION, max_size=12))
def test_any_history_agrees_with_a_model(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, str, int]]
) -> None:
    """Commits, foreign saves and undos in any order end where a simple model says."""
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
        listed = [entry.path for entry in index.entries(bench.tree()[INDEX])]
        assert sorted(listed) == sorted(bench.topics())


def _put(model: dict[str, bytes], path: str, text: bytes | None) -> None:
    if text is None:
        model.pop(path, None)
    else:
        model[path] = text
