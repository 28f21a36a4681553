"""Where a dream is, as whoever watches is told it."""

from typing import Any

from memd.dream.telling import Telling


def test_two_runs_are_told_as_one() -> None:
    """The first write begins the updating, and a second run goes on counting."""
    told: list[tuple[str, dict[str, Any]]] = []
    telling = Telling(lambda phase, **facts: told.append((phase, facts)))
    telling("asking", turn=1, tool_calls=0, touched=[], tokens=0)
    telling("tools", turn=1, tool_calls=2, touched=["a.md"], tokens=90, text="I join two.")
    telling.ran(turns=2, calls=3, tokens=100)
    telling.judging()
    telling("asking", turn=1, tool_calls=0, touched=["a.md"], tokens=0)
    assert told == [
        ("starting", {"turn": 1, "tool_calls": 0, "touched": [], "tokens": 0}),
        (
            "updating",
            {
                "turn": 1,
                "tool_calls": 2,
                "touched": ["a.md"],
                "tokens": 90,
                "text": "I join two.",
            },
        ),
        ("judging", {}),
        ("updating", {"turn": 3, "tool_calls": 3, "touched": ["a.md"], "tokens": 100}),
    ]
