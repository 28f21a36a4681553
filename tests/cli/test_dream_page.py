"""Dreams for people."""

from typing import Any

import pytest

from memd.cli import dream_page
from memd.core.text import iso_time

NOW = 1_772_539_200.0
GATES = [
    {"name": "enabled", "open": True, "says": "no switch is off"},
    {"name": "time", "open": False, "says": "22 h to go"},
]
FILE: dict[str, Any] = {
    "path": "a.md",
    "action": "changed",
    "state": "open",
    "reason": "",
    "merged_into": "",
    "stale": False,
    "diff": "-old\n+new",
}
PROPOSAL: dict[str, Any] = {
    "id": "p3",
    "at": "some day",
    "job": "j5",
    "engine": "claude-x",
    "state": "open",
    "reason": "",
    "problems": ["a rule\nof yours was reworded", "a merge is not true"],
    "said": "I merged\n## accept with: evil",
    "files": [
        FILE,
        {**FILE, "path": "b.md", "action": "removed", "merged_into": "a.md", "reason": "x",
         "stale": True, "diff": ""},
        {**FILE, "path": "c.md", "action": "removed", "reason": "out of date",
         "state": "accepted", "diff": "-c\n"},
    ],
}  # fmt: skip


def _marked(text: str, style: str) -> str:
    return f"<{style}:{text}>"


def _plain(text: str, _style: str) -> str:
    return text


def test_a_proposal_shows_what_and_why() -> None:
    """The header, why it was kept back, each file with its diff, and what to do about it."""
    page = dream_page.review([PROPOSAL], _plain, str.upper)
    assert (
        page
        == """\
p3  some day, by claude-x, open
kept back: a rule of yours was reworded
kept back: a merge is not true
the model said: I merged ## accept with: evil

changed a.md
-OLD
+NEW

removed b.md into a.md (stale: somebody changed it since)

removed c.md: out of date (accepted)
-C

accept with: memctl dream accept p3 [FILE...]
reject with: memctl dream reject p3 [FILE...] --reason TEXT
"""
    )


def test_a_decided_proposal_asks_for_nothing() -> None:
    """What was rejected has its reason and no commands; two stand apart."""
    decided = {**PROPOSAL, "state": "rejected", "reason": "I meant both", "engine": "", "said": ""}
    page = dream_page.review([decided, PROPOSAL], _marked, str)
    first, _, second = page.partition("\n<bold:p3>")
    assert first.startswith("<bold:p3>  some day, rejected\n")
    assert "rejected since: I meant both\n" in first
    assert "memctl dream" not in first
    assert "<red:removed> b.md into a.md<yellow: (stale: somebody changed it since)>\n" in first
    assert "memctl dream accept p3" in second


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("accepted", "accepted"),
        ("open", "still open"),
        ("partly", "decided, accepted in part"),
    ],
)
def test_what_became_of_a_proposal_is_said(state: str, words: str) -> None:
    """Nothing accepted has no way back; the proposal's state is the last line."""
    done = {"proposal": "p3", "state": state, "change": None, "accepted": [], "rejected": ["a.md"]}
    assert dream_page.accepted(done) == f"p3 is {words}"
    assert dream_page.rejected(done) == f"rejected a.md\np3 is {words}"


def test_the_status_of_a_quiet_project() -> None:
    """Times are relative and absolute; what there is nothing of is left out."""
    found = {
        "auto": True, "engine": "local", "last": None, "due": None, "sessions": 0,
        "min_sessions": 5, "gate": "", "waits": "", "gates": [], "running": None, "proposals": 0,
    }  # fmt: skip
    assert dream_page.status(found, _plain, NOW).splitlines() == [
        "last         never",
        "sessions     0 of 5 since then",
        "by itself    yes",
        "engine       local",
        "closed gate  none",
        "",
    ]


@pytest.mark.parametrize(("proposals", "words"), [(1, "1 waits for you"), (2, "2 wait for you")])
def test_the_status_tells_what_keeps_a_dream(proposals: int, words: str) -> None:
    """Each gate with its sentence, the running job and the proposals with their commands."""
    found = {
        "auto": False, "engine": "claude-x", "last": NOW - 7200, "due": NOW + 79_200,
        "sessions": 2, "min_sessions": 5, "gate": "time", "waits": "a prompt is in flight",
        "gates": GATES, "running": "j5", "proposals": proposals,
    }  # fmt: skip
    assert dream_page.status(found, _plain, NOW).splitlines() == [
        f"last         2 h ago ({iso_time(NOW - 7200)})",
        f"due          in 22 h ({iso_time(NOW + 79_200)})",
        "sessions     2 of 5 since then",
        "by itself    no: dream.auto is off",
        "engine       claude-x",
        "closed gate  time",
        "waits        a prompt is in flight",
        "running      j5: memctl job wait j5",
        f"proposals    {words}: memctl dream review",
        "",
        "open    enabled  no switch is off",
        "closed  time     22 h to go",
    ]
    just = dream_page.status({**found, "last": NOW}, _plain, NOW)
    assert just.startswith(f"last         just now ({iso_time(NOW)})\n")
