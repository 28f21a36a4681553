"""What memd last knew of each file."""

from contextlib import suppress

from memd.state.baseline import Baseline, BaselineChange, FileState, update_for_commit
from memd.state.database import Database
from tests.stores import files_of

HERE = "/memories"


def test_a_directory_has_no_shadow_before_it_was_seen(database: Database) -> None:
    """Rows alone make no baseline: a first sight that was cut short starts anew."""
    baseline = Baseline(database)
    baseline.move(HERE, BaselineChange({"a.md": FileState("1")}))
    assert files_of(baseline, HERE) is None
    baseline.mark_scanned(HERE, 1.0)
    baseline.mark_scanned("/other", 1.0)
    assert files_of(baseline, HERE) == {"a.md": FileState("1")}
    assert files_of(baseline, "/other") == {}
    assert baseline.directories() == (HERE, "/other")


def test_a_move_keeps_what_was_known_of_a_file(database: Database) -> None:
    """Status and hash come back as they were given, within what the state file can hold."""
    baseline = Baseline(database)
    baseline.mark_scanned(HERE, 1.0)
    baseline.move(
        HERE, BaselineChange({"a.md": FileState("1", "5:6", 2**70, 0o640), "b.md": FileState("2")})
    )
    baseline.move(HERE, BaselineChange({"b.md": None, "none.md": None}))
    assert files_of(baseline, HERE) == {"a.md": FileState("1", "5:6", 2**63 - 1, 0o640)}


def test_a_commit_moves_the_shadow_in_its_own_transaction(database: Database) -> None:
    """What is rolled back leaves the baseline where it was; what is not leaves no old status."""
    baseline = Baseline(database)
    baseline.mark_scanned(HERE, 1.0)
    before = {"a.md": FileState("1", "5:6", 7, 0o600), "b.md": FileState("2", "8:9", 7, 0o600)}
    baseline.move(HERE, BaselineChange(before))
    files = (("a.md", "3", 0o640), ("b.md", None, None), ("c.md", "4", None))
    with suppress(ZeroDivisionError), database.transaction() as cursor:
        update_for_commit(cursor, HERE, files)
        raise ZeroDivisionError
    assert files_of(baseline, HERE) == before
    with database.transaction() as cursor:
        update_for_commit(cursor, HERE, files)
    assert files_of(baseline, HERE) == {"a.md": FileState("3", mode=0o640), "c.md": FileState("4")}


def test_many_files_come_in_pages_and_some_by_name(database: Database) -> None:
    """Every fingerprint comes, from however many pages; named files are found among many."""
    baseline = Baseline(database)
    baseline.mark_scanned(HERE, 1.0)
    files = {f"{number:05}.md": FileState(str(number), f"{number}:1") for number in range(4500)}
    baseline.move(HERE, BaselineChange(files))
    marks = {path: state.fingerprint for path, state in files.items()}
    assert (baseline.fingerprints(HERE), baseline.fingerprints("/other")) == (marks, {})
    assert files_of(baseline, HERE) == files
    assert baseline.states(HERE, [*files, "none.md"]) == files
    assert (baseline.states("/other", files), baseline.states(HERE, ())) == ({}, {})
    assert (baseline.is_scanned(HERE), baseline.is_scanned("/other")) == (True, False)


def test_rows_that_memd_did_not_write_do_no_harm(database: Database) -> None:
    """A row of other types is a file whose bytes are looked at anew."""
    baseline = Baseline(database)
    baseline.mark_scanned(HERE, 1.0)
    with database.transaction() as cursor:
        cursor.execute("INSERT INTO shadows VALUES (?, 'a.md', x'00ff', 5, 'noon', 'rw')", (HERE,))
    assert files_of(baseline, HERE) == {"a.md": FileState("")}
