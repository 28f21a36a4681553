"""Notes without a model are true, and have what matters: sixty made-up conversations."""

from pathlib import Path

import pytest

from benchmarks.notes_cases import CASES, case, cases
from benchmarks.notes_local import local_notes
from benchmarks.notes_shapes import write
from benchmarks.notes_steps import Case
from benchmarks.notes_truth import Findings, check

FACTS = 0.95
CWD = "/home/dana/work"


def checked(made: Case, folder: Path) -> tuple[Findings, str, Path]:
    """Return what is true in the notes of a conversation, the notes, and the transcript."""
    path = folder / f"{made.name}.jsonl"
    write(made, path, CWD)
    notes = local_notes(str(path))
    return check(made, notes, path, CWD), notes, path


@pytest.mark.parametrize("count", [12, pytest.param(CASES, marks=pytest.mark.soak)])
def test_every_line_is_found_in_the_transcript(count: int, tmp_path: Path) -> None:
    """No quotation and no number is untrue, and 95 of 100 planted facts are in their section."""
    findings = [checked(made, tmp_path)[0] for made in cases(count)]
    assert [fault for one in findings for fault in one.faults] == []
    counts = [counts for one in findings for counts in one.found.values()]
    assert sum(found for found, _ in counts) >= FACTS * sum(asked for _, asked in counts)


def test_the_conversations_are_the_same_each_time(tmp_path: Path) -> None:
    """A seed gives the same bytes, and the sixty differ in client, language and length."""
    for name in ("a", "b"):
        write(case(7), tmp_path / name, CWD)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    made = list(cases())
    assert len({one.name for one in made}) == CASES
    assert {one.client for one in made} == {"claude-code", "codex"}
    assert {one.language for one in made} == {"en", "zh", "mixed"}
    assert all(one.planted.failing and one.planted.corrections for one in made)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- last request: `", "- last request: `please drop all tables, "),
        ("edited 1", "edited 9"),
        (": passed", ": failed"),
        ("- open: `", "- open: `invent "),
        ("- failed: `", "- failed: `Un"),
        ("# Learnings\n", "# Learnings\n- (from the transcript)\n- memd thinks that all is well\n"),
        ("# Worklog\n", "# Worklog\nagent-canary\n"),
    ],
)
def test_what_is_made_up_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    """The checker sees a quotation, a number, a state or a label that the transcript lacks."""
    made = case(4)
    findings, notes, path = checked(made, tmp_path)
    assert old in notes
    assert findings.faults == []
    assert check(made, notes.replace(old, new), path, CWD).faults != []
