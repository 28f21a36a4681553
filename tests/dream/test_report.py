"""What a dream did, as data."""

from memd.dream.report import Report
from memd.dream.verdict import Merge, Removal


def test_memories_that_went_into_one_stand_together() -> None:
    """A report names each memory that took others in once, with all that it took in."""
    report = Report(
        merged=(Merge("a.md", "b.md"), Merge("c.md", "d.md"), Merge("a.md", "e.md")),
        removed=(Removal("f.md", "it was superseded"),),
        changed=("a.md", "c.md"),
        change="c1",
    )
    assert report.facts() == {
        "merged": [
            {"into": "a.md", "from": ["b.md", "e.md"]},
            {"into": "c.md", "from": ["d.md"]},
        ],
        "removed": [{"path": "f.md", "reason": "it was superseded"}],
        "changed": ["a.md", "c.md"],
        "change": "c1",
        "proposal": None,
    }


def test_a_closed_gate_is_all_there_is_to_say() -> None:
    """A dream that did not begin names its gate and nothing else."""
    assert Report(gate="lock").facts() == {"status": "skipped", "gate": "lock"}
