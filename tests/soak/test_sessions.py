"""Sessions that end, go on, branch and lose their context: no memory comes twice into one."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.soak.claude_code import ClaudeCode
from tests.soak.figures import FIGURE
from tests.support.daemon import Home, client, daemon_process, throw_away_home

STEPS = 16
_AT_ONCE = 24  # most of them wait
_TOPICS = {
    "may I mock the database in this integration test?": "Integration tests hit a real database",
    "which package manager installs the dependencies?": "The package manager is pnpm, never npm",
    "when does the merge freeze for the release begin?": "Merge freeze of the release is Thursday",
    "how are the invoices rounded for Swiss customers?": "Invoices for Switzerland round to 0.05",
}


@pytest.mark.parametrize(
    ("rounds", "delay"), [(1, 0.01), pytest.param(200, 3.0, marks=pytest.mark.soak)]
)
def test_nothing_comes_twice_into_a_context(
    rounds: int, delay: float, record_property: Callable[[str, object], None]
) -> None:
    """However sessions are resumed, forked, compacted and cleared, what stands there comes not."""
    with throw_away_home() as home, daemon_process(home), ThreadPoolExecutor(_AT_ONCE) as pool:
        reported = list(pool.map(lambda seed: one_round(home, seed, delay), range(rounds)))
    twice = sum(len(person.twice) for person in reported)
    missing = sum(len(person.missing) for person in reported)
    given = sum(person.given for person in reported)
    record_property(
        FIGURE,
        f"sessions: {rounds} rounds of {STEPS} steps, {given} memories given, {twice} twice,"
        f" {missing} held back without a reason",
    )
    assert (twice, missing) == (0, 0)
    assert given >= rounds


def one_round(home: Home, seed: int, delay: float) -> ClaudeCode:
    """Let one person work for a while; return what came of it."""
    dice = random.Random(seed)  # noqa: S311 - a seed that repeats
    cwd = home.project(f"p{seed}")
    topics = dict(remembered(home, cwd))
    person = ClaudeCode(home, cwd, topics, dice)
    pause = threading.Event()  # never set: it waits
    person.prompt(person.start())
    for _ in range(STEPS):
        pause.wait(dice.uniform(0, delay))
        session = dice.choice(person.sessions)
        answered = session if session.answered else person.latest()
        steps: list[tuple[int, Callable[[], object]]] = [
            (8, partial(person.prompt, session)),
            (2, partial(person.prompt, session, full=True)),
            (2, partial(person.compact, session, fails=dice.random() < 1 / 2)),
            (1, partial(person.resume, answered)),
            (1, partial(person.resume, person.latest())),
            (3, partial(person.fork, answered)),
            (1, partial(person.clear, session)),
            (2, partial(person.end, session)),
            (1, person.start),
        ]
        dice.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()
    return person


def remembered(home: Home, cwd: str) -> Iterator[tuple[str, str]]:
    """Save a memory for each topic; yield what asks for it and its path."""
    with client(home) as memd:
        for number, (words, fact) in enumerate(_TOPICS.items()):
            parts = {"name": f"fact-{number}", "description": fact, "type": "project"}
            # More than the index says: what stands there does not come a second time.
            body = f"{fact} Whoever doubts that finds the reason in the minutes of the last review."
            path = f"project_{number}.md"
            memd.call("memory.write", {"cwd": cwd, "path": path, "body": body, **parts})
            folder = memd.call("memory.list", {"cwd": cwd})["memory_dir"]
            yield words, f"{folder}/{path}"
