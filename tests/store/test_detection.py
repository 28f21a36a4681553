"""Detection looks at as little as is known to be enough and misses nothing."""

import os
from pathlib import Path

import pytest

from memd.core.errors import MemdError
from memd.core.text import sha256
from memd.files.directory import DirectoryUnusableError
from memd.state.journal import PlannedChange, Step
from memd.watch.external import Detected
from tests.changes import history
from tests.store.bench import BY, topic
from tests.store.watched import open_watched


def actions(noticed: Detected) -> dict[str, str]:
    """Return what happened to each file."""
    return {step.path: step.action for step in noticed.change.steps} if noticed.change else {}


def test_a_look_sees_what_was_saved_a_moment_ago(tmp_path: Path) -> None:
    """Under a watch only what was named is read, and nothing that was done before is missed."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        assert actions(watched.inspect()) == {}
        for number in range(20):
            watched.bench.save("a.md", topic("a", str(number)))
            watched.bench.save(f"sub/{number}.md", topic("b"))
            results = actions(watched.inspect())
            assert results == {"a.md": "updated", f"sub/{number}.md": "created"}
        (watched.path / "a.md").unlink()
        assert actions(watched.inspect()) == {"a.md": "deleted"}
        assert actions(watched.inspect()) == {}


def test_half_of_a_save_is_looked_at_again(tmp_path: Path) -> None:
    """What a patient look left is in doubt for the next one."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        watched.inspect()
        (watched.path / "a.md").write_bytes(b"")
        assert watched.inspect(patient=True).unsettled == {"a.md"}
        assert watched.detection.pending() == {watched.real}
        assert actions(watched.inspect()) == {"a.md": "updated"}


def test_a_look_that_fails_or_waits_forgets_nothing(tmp_path: Path) -> None:
    """What was named before a look that could not be made is looked at by the next."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        watched.inspect()
        watched.bench.save("a.md", topic("a", "new"))
        step = Step("c.md", None, sha256(b"x"))
        record = watched.bench.journal.record(
            PlannedChange(watched.real, 1.0, BY, "", "00000000", (step,), {sha256(b"x"): b"x"})
        )
        assert not watched.inspect().looked
        watched.bench.journal.ended(record, "abandoned")
        away = watched.path.rename(tmp_path / "away")
        watched.path.touch()
        with pytest.raises(DirectoryUnusableError):
            watched.inspect()
        watched.path.unlink()
        away.rename(watched.path)
        assert actions(watched.inspect()) == {"a.md": "updated"}


def test_without_a_watch_everything_is_looked_at(tmp_path: Path) -> None:
    """Where nobody tells, each look finds what differs by itself."""
    with open_watched(tmp_path) as watched:
        watched.inspect()
        watched.detection.use(None)
        watched.bench.save("sub/a.md", topic("a"))
        assert actions(watched.inspect()) == {"sub/a.md": "created"}


def test_now_and_then_all_is_in_doubt(tmp_path: Path) -> None:
    """A directory in use is looked at as a whole again, and what differs is told to readers."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        assert watched.reading.files(watched.real)[0] == {"a.md"}
        watched.inspect()
        watched.detection.doubt()
        assert watched.detection.pending() == {watched.real}
        watched.bench.save("a.md", topic("c"))
        watched.inspect()
        assert [header.name for header in watched.reading.listed(watched.real)] == ["c"]


def test_what_a_directory_holds_is_asked_at_each_time(tmp_path: Path) -> None:
    """A plan's list is the catalogue when it asks, also of a file that was saved just now."""
    with open_watched(tmp_path) as watched:
        listed = watched.detection.listed(watched.real)
        assert (listed.headers(), listed.files()) == ((), (frozenset(), False))
        watched.bench.save("a.md", topic("a"))
        assert listed.files() == (frozenset({"a.md"}), False)
        assert [header.path for header in listed.headers()] == ["a.md"]
        os.unlink(watched.path / "a.md")
        assert listed.files() == (frozenset(), False)


def test_a_commit_sees_and_names_its_files(tmp_path: Path) -> None:
    """A commit has others' work in the history before it, and its own in the catalogue after."""
    with open_watched(tmp_path) as watched:
        watched.write("a.md", topic("a"))
        watched.bench.save("b.md", topic("b"))
        watched.write("a.md", topic("a", "new"))
        who = [record.by.actor.value for record in history(watched.bench.journal, watched.real)]
        assert who == ["client", "external", "client"]
        assert watched.reading.headers(watched.real).keys() <= {"a.md", "b.md"}
        assert {h.path for h in watched.reading.listed(watched.real)} == {"a.md", "b.md"}
        index = (watched.path / "MEMORY.md").read_text()
        assert "(b.md)" in index
        with pytest.raises(MemdError):
            watched.write("../x.md", topic("x"))
