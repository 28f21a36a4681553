"""A question before, behind or between pasted text finds its memory (chapter 3.2)."""

from collections.abc import Callable

import pytest

from tests.net.kit import Project

QUESTION = "may I mock the database in the tests?"
RULE = "Integration tests must hit a real database."
OTHERS = (
    ("deploys", "Deployments never run on a Friday."),
    ("queue", "The queue of orders has one consumer for each region."),
    ("timeouts", "A timeout of the payment service is retried three times."),
    ("python", "The worker runs on Python 3.11, the handlers on 3.12."),
    ("logs", "Logs of the shop are kept in the bucket shop-logs for ninety days."),
    ("pool", "The connection pool has at most forty connections per worker."),
)
PLACES: dict[str, Callable[[str], str]] = {
    "before": lambda paste: f"{QUESTION}\n\n{paste}",
    "behind": lambda paste: f"{paste}\n\n{QUESTION}",
    "between": lambda paste: f"{paste[: len(paste) // 2]}\n{QUESTION}\n{paste[len(paste) // 2 :]}",
}


def log_lines(length: int) -> str:
    """Return lines of a log with so many characters, no two alike."""
    line = (
        "2026-11-20T23:18:{0:02d}.{1:03d}Z ERROR worker-{0} [req={1:016x}] timeout of the"
        " connection pool in /srv/shop/handlers/order_service.py:{1} (queue orders, retry {0})\n"
    )
    count = length // len(line) + 1
    return "".join(line.format(at % 60, at * 7919) for at in range(count))[:length]


@pytest.fixture
def taught(project: Project) -> Project:
    """Return a project with a rule and memories that the log speaks of."""
    description = "integration tests must hit a real database"
    project.write("tests.md", RULE, type="feedback", description=description)
    for name, body in OTHERS:
        project.write(f"{name}.md", body)
    return project


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("length", [2_000, 50_000, 1_000_000])
def test_the_rule_comes_with_a_prompt(taught: Project, place: str, length: int) -> None:
    """The rule is among the five memories of a prompt."""
    query = PLACES[place](log_lines(length))
    found = taught.call("prefetch", session_id=f"s{length}", query=query)
    assert found["skipped"] is None
    assert "tests" in [memory["name"] for memory in found["memories"]]


@pytest.mark.parametrize("place", PLACES)
def test_a_search_finds_it_too(taught: Project, place: str) -> None:
    """A query with pasted text finds what the question alone finds."""
    found = taught.call("memory.search", query=PLACES[place](log_lines(50_000)), limit=5)
    assert "tests.md" in [hit["path"] for hit in found["hits"]]


@pytest.mark.full
@pytest.mark.parametrize("length", [2_000, 1_000_000])
def test_the_hook_prints_it(taught: Project, length: int) -> None:
    """The hook's answer has the rule, behind a megabyte too."""
    prompt = PLACES["behind"](log_lines(length))
    payload = {"session_id": f"h{length}", "cwd": taught.cwd, "prompt": prompt}
    assert RULE in taught.home.hook("UserPromptSubmit", payload, cwd=taught.cwd)


def test_a_prompt_without_a_paste_is_searched_for_whole(taught: Project) -> None:
    """Of a prompt of under a thousand characters no word is left out."""
    prompt = "Then look at the shop again, please. " * 24 + "How long are the logs kept?"
    found = taught.call("prefetch", session_id="short", query=prompt)
    assert "logs" in [memory["name"] for memory in found["memories"]]
