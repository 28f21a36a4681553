"""Which projects may include files from outside."""

from pathlib import Path

from memd.state.approvals import Approvals
from memd.state.database import Database, open_database
from memd.state.purge import Purge
from memd.state.tables import SCHEMAS


def test_a_decision_is_of_one_project_and_outlives_a_restart(tmp_path: Path) -> None:
    """The last decision counts; no other project, above or below, has it too."""
    for allowed in (True, False, True):
        opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
        Approvals(opened).decide("/a", allowed=allowed)
        opened.close()
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    approvals = Approvals(opened)
    assert [approvals.of(root) for root in ("/a", "/a/b", "/", "/A")] == [True, None, None, None]
    opened.close()


def test_a_purge_leaves_decisions(database: Database) -> None:
    """A path that is there is no text: who purges its name takes no decision back."""
    approvals = Approvals(database)
    approvals.decide("/home/p/heron", allowed=False)
    Purge(database).remove((), lambda text: text.replace("heron", "x"))
    assert approvals.of("/home/p/heron") is False
