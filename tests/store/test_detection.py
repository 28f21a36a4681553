"""Detection looks at as little as is known to be enough and misses nothing."""

from pathlib import Path

import pytest

from memd.base.text import sha256
from memd.files.directory import DirectoryUnusableError
from memd.state.records import PlannedChange, Step
from memd.watch.external import Detected
from tests.store.bench import BY, topic
from tests.store.watched import open_watched


def actions(noticed: Detected) -> dict[str, str]:
    """Return what happened to each file."""
    return {step.path: step.action for step in noticed.change.steps} if noticed.change else {}


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
        watched.bench.journal.mark_ended(record, "abandoned")
        away = watched.path.rename(tmp_path / "away")
        watched.path.touch()
        with pytest.raises(DirectoryUnusableError):
            watched.inspect()
        watched.path.unlink()
        away.rename(watched.path)
        assert actions(watched.inspect()) == {"a.md": "updated"}


def test_now_and_then_all_is_in_doubt(tmp_path: Path) -> None:
    """A directory in use is looked at as a whole again, and what differs is told to readers."""
    with open_watched(tmp_path) as watched:
        watched.bench.save("a.md", topic("a"))
        assert watched.reading.files(watched.real)[0] == {"a.md"}
        watched.inspect()
        watched.detection.request_full_checks()
        assert watched.detection.pending() == {watched.real}
        watched.bench.save("a.md", topic("c"))
        watched.inspect()
        assert [header.name for header in watched.reading.listed(watched.real)] == ["c"]
