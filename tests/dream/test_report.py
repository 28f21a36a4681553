"""What a dream did, as data."""

from memd.dream.report import Report
from memd.dream.values import Contradiction, DirectorySize, Left, Merge, Removal


def test_memories_that_went_into_one_stand_together() -> None:
    """A report names each memory that took others in once, with all that it took in."""
    report = Report(
        merged=(Merge("a.md", "b.md"), Merge("c.md", "d.md"), Merge("a.md", "e.md")),
        removed=(Removal("f.md", "it was superseded"),),
        changed=("a.md", "c.md"),
        change="c1",
    )
    assert report.facts() == {
        "engine": "local",
        "merged": [
            {"into": "a.md", "from": ["b.md", "e.md"]},
            {"into": "c.md", "from": ["d.md"]},
        ],
        "removed": [{"path": "f.md", "reason": "it was superseded"}],
        "changed": ["a.md", "c.md"],
        "change": "c1",
        "proposal": None,
    }


def test_all_that_a_dream_did_is_in_its_facts() -> None:
    """Each member of a report is a JSON member; the problems are its reason too."""
    report = Report(
        engine="claude",
        model_problem="the cap is met",
        created=("n.md",),
        left=(Left("l.md", "somebody changed it"),),
        listed=(Left("d.md", "it is damaged"),),
        contradictions=(Contradiction("a.md", "It is on.", "It is off."),),
        orphans=("o.md",),
        before=DirectorySize(4, 400, 40, 4000),
        after=DirectorySize(3, 300, 30, 3000),
        proposal="p1",
        problems=("one", "two"),
        turns=3,
        usage={"input": 5},
        dollars=0.25,
        seconds=9.5,
        said="Done.",
    )
    assert report.facts() == {
        "engine": "claude",
        "model_problem": "the cap is met",
        "created": ["n.md"],
        "changed": [],
        "merged": [],
        "removed": [],
        "left": [{"path": "l.md", "reason": "somebody changed it"}],
        "listed": [{"path": "d.md", "reason": "it is damaged"}],
        "contradictions": [{"path": "a.md", "gone": "It is on.", "stays": "It is off."}],
        "orphans": ["o.md"],
        "before": {"memories": 4, "memory_bytes": 400, "index_lines": 40, "index_bytes": 4000},
        "after": {"memories": 3, "memory_bytes": 300, "index_lines": 30, "index_bytes": 3000},
        "change": None,
        "proposal": "p1",
        "reason": "one; two",
        "problems": ["one", "two"],
        "turns": 3,
        "usage": {"input": 5},
        "dollars": 0.25,
        "seconds": 9.5,
        "said": "Done.",
    }


def test_a_closed_gate_is_all_there_is_to_say() -> None:
    """A dream that did not begin names its gate and nothing else."""
    assert Report(gate="lock").facts() == {"status": "skipped", "gate": "lock"}
