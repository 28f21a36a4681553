"""No prompt is blocked, whatever goes missing and whenever.

Each round is an installation with a daemon that answers and a client that sends one prompt after
another; at a random time some of what the hook needs goes missing, in a random combination.
"""

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import pytest

from tests.promises.installed_hook import (
    BREAKAGES,
    SHORTAGES,
    Installed,
    break_quietly,
    installed,
)
from tests.soak.figures import FIGURE
from tests.soak.rounds import delay, each
from tests.support.scripted_daemon import ScriptedDaemon

SEED = 20261123
ANSWER = {"hookSpecificOutput": {"additionalContext": "found"}}


@pytest.mark.parametrize("count", [1, pytest.param(200, marks=pytest.mark.soak)])
def test_no_prompt_is_blocked(count: int, record_property: Callable[[str, object], None]) -> None:
    """Every run ends with 0 and prints the daemon's whole answer or nothing."""
    counts = each(count, SEED, partial(one_round, count))
    blocked, prompts, answered = (sum(column) for column in zip(*counts, strict=True))
    reported = f"{prompts} prompts, {answered} answered, {blocked} blocked or disturbed"
    record_property(FIGURE, f"10.11 a hook that loses what it needs: {count} rounds, {reported}")
    assert blocked == 0
    assert answered >= count


def one_round(count: int, chance: random.Random) -> tuple[int, int, int]:
    """Return how many prompts were blocked or disturbed, were sent, and had an answer."""
    broken = threading.Event()
    with installed() as what, ExitStack() as daemon:
        daemon.enter_context(ScriptedDaemon(what.home.places.socket, {"hook": ANSWER}))

        def prompts() -> None:
            while not broken.is_set():
                outcomes.append(prompt(what, ""))
                broken.wait(0.1)

        outcomes = [prompt(what, "")]  # while all is well
        typing = threading.Thread(target=prompts)
        typing.start()
        broken.wait(delay(chance, count))
        for breakage in chance.sample(BREAKAGES, chance.randint(1, 3)):
            break_quietly(what, breakage)
        if chance.random() < 0.5:
            daemon.close()
        broken.set()
        typing.join()
        outcomes.append(prompt(what, chance.choice(SHORTAGES)))
    bad, answered = zip(*outcomes, strict=True)
    return sum(bad), len(outcomes), sum(answered)


def prompt(what: Installed, before: str) -> tuple[bool, bool]:
    """Send one prompt; return whether its user was disturbed, and whether there was an answer."""
    done = what.run(before=before)
    answered = done.stdout.startswith(b"{") and done.stdout.endswith(b"}")
    disturbed = done.returncode != 0 or done.stderr != b"" or (done.stdout != b"" and not answered)
    return disturbed, answered
