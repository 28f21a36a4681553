"""Disks and state files that fail when they are told to."""

import errno
from pathlib import Path

import pytest

from memd.state import docs
from memd.state.database import StateUnusableError, open_database
from tests.support.faults import Countdown, FaultyDatabase


@pytest.mark.parametrize(
    ("countdown", "expected"),
    [
        (Countdown(), ""),
        (Countdown(2), "2"),
        (Countdown(2, ever=True), "234"),
        (Countdown(2, ever=True, only=("d",)), "4"),
        (Countdown(9), ""),
    ],
)
def test_the_chosen_calls_fail(countdown: Countdown, expected: str) -> None:
    """Exactly the n-th call fails, or all from there, or those of some names."""
    failed = ""
    for number, name in enumerate("abcd", 1):
        try:
            countdown.step(name)
        except OSError:
            failed += str(number)
    assert failed == expected
    assert countdown.reached == (0 < countdown.fail_at <= 4)
    assert countdown.names == list("abcd")


def test_a_failed_transaction_changed_nothing(tmp_path: Path) -> None:
    """A transaction that fails is rolled back and reported as the real one would be."""
    database = open_database(str(tmp_path / "state.db"), [docs.SCHEMA])
    faulty = FaultyDatabase(database, Countdown(1, errno.ENOSPC))
    insert = "INSERT INTO docs VALUES (1, 'd', 's', 't', 'm')"
    with pytest.raises(StateUnusableError), faulty.transaction() as cursor:
        cursor.execute(insert)
    with faulty.transaction() as cursor:
        cursor.execute(insert)
    assert len(database.read("SELECT * FROM docs")) == 1
    database.close()
