"""What a command says when there is nothing to print."""

from typing import Any

import pytest

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon


@pytest.mark.parametrize(
    ("words", "method", "result", "note"),
    [
        ("log", "memory.history", {"changes": []}, "no changes"),
        ("job list", "job.list", {"jobs": []}, "no jobs"),
        ("job list --parked", "job.list", {"jobs": []}, "no parked jobs"),
        ("dream review", "dream.review", {"proposals": []}, "no open proposals"),
        ("dream review --all", "dream.review", {"proposals": []}, "no proposals"),
        ("load-prompt", "load_prompt", {"prompt": None, "reason": "X"}, "memory is off here: X"),
        ("prefetch hi", "prefetch", {"memories": [], "block": ""}, "no memory fits"),
        (
            "list",
            "memory.list",
            {"memories": [], "memory_dir": "/m", "index": {"cut": None}},
            "no memories in /m",
        ),
    ],
)
def test_nothing_to_print_is_a_note(
    home: Home, words: str, method: str, result: dict[str, Any], note: str
) -> None:
    """Standard output stays empty, standard error says why, and that is no failure."""
    with ScriptedDaemon(home.places.socket, {method: result}):
        ran = memctl(home, *words.split())
    assert (ran.status, ran.out, ran.err) == (0, "", f"{note}\n")
