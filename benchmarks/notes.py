"""``make bench-notes``: whether the notes of a session are true, and what they cost.

Sixty made-up conversations (``notes_cases``) are written as the clients write them and given to a
daemon without a model. Of the notes that it keeps, every quotation and every number is looked up
in the transcript (``notes_truth``), and the planted facts are counted; both have a bar, and the run
fails below it. Then comes what notes cost (``notes_speed``): PARTS='truth speed' chooses.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks import notes_speed
from benchmarks.measures import Line, table
from benchmarks.notes_cases import CASES, cases, unseen
from benchmarks.notes_shapes import write
from benchmarks.notes_steps import Case
from benchmarks.notes_truth import Findings, check
from memd.extract.candidates import statements
from memd.projects.project import slug
from tests.support.daemon import Home, daemon_process, throw_away_home

PARTS = ("truth", "speed")
FACTS = 0.95  # of those planted; of the lines, all must be true


def main() -> int:
    """Measure and print; 0 when both bars are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}: all of them")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--show", action="store_true", help="each fact that is not in the notes")
    options = parser.parse_args()
    parts = options.part or PARTS
    good = True
    if "truth" in parts:
        findings = measure(cases(options.cases))
        good = report(findings)
        if options.show:
            print("\n".join(missed for each in findings for missed in each.missed))
    if "speed" in parts:
        notes_speed.run()
    return 0 if good else 1


def measure(chosen: Iterable[Case]) -> list[Findings]:
    """Let a daemon keep notes of conversations, and return what is true in them."""
    with throw_away_home() as home, daemon_process(home), Line(home.places.socket) as line:
        return [_checked(home, line, case) for case in chosen]


def _checked(home: Home, line: Line, case: Case) -> Findings:
    cwd = home.project(case.name)
    path = transcript_path(home, case, cwd)
    write(case, path, cwd)
    session = {"cwd": cwd, "session_id": case.name}
    asked = session | {"transcript_path": path, "force": True, "wait": True}
    line.call("notes.update", asked)
    notes = Path(line.call("notes.read", session)["path"]).read_text("utf-8")
    return check(case, notes, path, cwd)


def transcript_path(home: Home, case: Case, cwd: str) -> str:
    """Return where the client of a conversation keeps its transcript."""
    if case.client == "codex":
        return f"{home.path}/.codex/sessions/2026/09/14/rollout-{case.name}.jsonl"
    return f"{home.path}/.claude/projects/{slug(cwd)}/{case.name}.jsonl"


def report(findings: list[Findings]) -> bool:
    """Print what was found; return whether both bars are met."""
    found: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for each in findings:
        found.update({kind: counts[0] for kind, counts in each.found.items()})
        asked.update({kind: counts[1] for kind, counts in each.found.items()})
    share = found.total() / asked.total()
    faults = [fault for each in findings for fault in each.faults]
    lines = sum(each.lines for each in findings)
    quotations = sum(each.quotations for each in findings)
    print(f"{len(findings)} conversations, {lines:,} lines with {quotations:,} quotations;")
    print(f"not in the transcript or not as it says: {len(faults)} (bar: 0)")
    print("\n".join(f"   {fault}" for fault in faults[:20]))
    rows = [(kind, f"{found[kind]} of {asked[kind]}") for kind in asked]
    rows.append(("all planted facts", f"{share:.1%} (bar: {FACTS:.0%})"))
    print(table([("planted", "in the notes, where it belongs"), *rows]))
    sentences = sum(each.others for each in findings)
    print(f"sentences called corrections that were none: {sentences}")
    told, wrong = (
        [text for text in unseen(others=others) if statements(text, "Done.")[1]]
        for others in (False, True)
    )
    print(
        f"in words that nobody tuned on: {len(told)} of {len(unseen())} corrections found, "
        f"{len(wrong)} of {len(unseen(others=True))} other sentences taken for one"
    )
    ours, theirs = (
        sum(getattr(each, name) for each in findings) for name in ("size", "transcript")
    )
    print(
        f"notes {ours / len(findings) / 1000:.1f} KB, transcripts "
        f"{theirs / len(findings) / 1000:.0f} KB on average: {ours / theirs:.1%}"
    )
    return not faults and share >= FACTS


if __name__ == "__main__":
    sys.exit(main())
