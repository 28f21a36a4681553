"""Purging the state file."""

from pathlib import Path

from memd.base.text import sha256
from memd.base.values import Actor, Provenance
from memd.state.baseline import Baseline, BaselineChange, FileState
from memd.state.database import Database
from memd.state.journal import Journal
from memd.state.purge import Purge
from memd.state.records import ChangeRecord, PlannedChange, Step
from tests.changes import history
from tests.traces import traces

SECRET = "sesame-open-4711"  # noqa: S105 - made up
BODY = f"the word is {SECRET}\n".encode()
KEY = sha256(BODY)
BY = Provenance(Actor.CLIENT, client=f"client {SECRET}", reason="said so")


def test_a_purged_body_is_gone_and_marked(tmp_path: Path, database: Database) -> None:
    """A body and the words of any row are gone from the raw files; the change says it is purged."""
    journal, purge = Journal(database), Purge(database)
    record = recorded(journal, "d")
    journal.mark_applied(record, 2.0)
    assert traces(tmp_path, SECRET) != []
    (body,) = purge.removable_texts(purge.hashes_of_bodies(lambda text: SECRET.encode() in text))
    assert (body.hash, body.paths, body.changes) == (KEY, ("a.md",), ("c1",))
    assert purge.removable_texts(purge.hashes_of_change(1)) == purge.removable_texts(
        purge.hashes_of_path("d", "a.md")
    )
    assert purge.rows_to_clean(cleaned) == {"changes": 1, "requests": 1}
    purge.remove([body.hash], cleaned)
    assert traces(tmp_path, SECRET) == []
    (change,) = history(journal, "d")
    assert (change.files[0].purged, change.by.client) == (True, "client [x]")
    assert (journal.blob(KEY), journal.has_body(KEY)) == (None, False)
    assert purge.removable_texts({KEY}) == ()


def test_what_a_crash_would_need_stays(database: Database) -> None:
    """The bodies of a set that has not ended are not removed."""
    recorded(Journal(database), "d")
    assert Purge(database).removable_texts({KEY}) == ()


def test_the_same_text_is_kept_anew(database: Database) -> None:
    """What is written again after a purge has a body again, by a change and by a look."""
    journal, purge = Journal(database), Purge(database)
    journal.mark_applied(recorded(journal, "d"), 2.0)
    for save in (lambda: recorded(journal, "e"), lambda: looked(journal)):
        purge.remove([KEY])
        assert journal.blob(KEY) is None
        save()
        assert journal.blob(KEY) == BODY


def test_live_files_keep_their_names(database: Database) -> None:
    """The names of files that are there stay as they are, and are told with their hashes."""
    path = f"{SECRET}.md"
    Baseline(database).move("d", BaselineChange({path: FileState(KEY)}))
    purge = Purge(database)
    purge.remove([], cleaned)
    (file,) = purge.files()
    assert (file.directory, file.path, file.hash, file.stored) == ("d", path, KEY, False)
    assert purge.running_jobs() == 0


def recorded(journal: Journal, directory: str) -> ChangeRecord:
    """Record a set that makes one file."""
    steps = (Step("a.md", None, KEY),)
    return journal.record(
        PlannedChange(directory, 1.0, BY, f"id {SECRET}", "t", steps, {KEY: BODY})
    )


def looked(journal: Journal) -> None:
    """Have a look find the file."""
    intent = PlannedChange("d", 3.0, BY, "", "t", (Step("b.md", None, KEY),), {KEY: BODY})
    journal.record_external(intent, BaselineChange({"b.md": FileState(KEY)}))


def cleaned(text: str) -> str:
    """Return a text without the secret."""
    return text.replace(SECRET, "[x]")
