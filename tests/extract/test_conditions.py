"""What a cue needs beside its words."""

import pytest

from memd.extract import cues
from memd.extract.conditions import has_address, meets, without_addresses
from memd.extract.sentences import Sentence, mask


@pytest.mark.parametrize(
    ("needs", "text", "holds"),
    [
        ("", "anything", True),
        ("habit", "don't ever mock the database", True),
        ("habit", "don't mock the database because we got burned", True),
        ("habit", "don't push because CI is broken", False),
        ("habit", "don't push because it costs money", False),
        ("habit", "don't mock the database", False),
        ("no article", "stop adding comments", True),
        ("no article", "stop running the server", False),
        ("no article", "stop running the server every time", True),
        ("confirmed", "perfect, keep doing small PRs", True),
        ("confirmed", "keep doing small PRs", False),
        ("confirmed", "keep running the server", False),
        ("target", "we're moving to Postgres", True),
        ("target", "we're moving to the next step", False),
        ("date and us", "we freeze on Thursday", True),
        ("date and us", "the freeze is 2026-03-05 for our team", True),
        ("date and us", "it freezes on Thursday", False),
        ("date and us", "we freeze", False),
        ("place", "look at the dashboard", True),
        ("place", "look at it in Sentry", True),
        ("place", "look at https://a.b/c", False),
        ("system", "look at https://a.b/c", True),
        ("system", "bugs are in Linear", True),
        ("system", "bugs are in the log", False),
        ("address", "ask in #billing-help", True),
        ("address", "ask in Slack", False),
        ("instruction", "提交信息都用英文", True),
        ("instruction", "天气晴朗", False),
    ],
)
def test_conditions(needs: str, text: str, holds: object) -> None:
    """Each condition holds where it should and nowhere else."""
    sentence = Sentence(text, mask(text))
    assert meets(needs, sentence, sentence, cues.of(text)) == holds


def test_addresses_are_urls_and_channels() -> None:
    """URLs with or without scheme and channels are addresses; paths and numbers are none."""
    assert has_address("at grafana.internal/d/latency")
    assert has_address("https://a.b")
    assert not has_address("and/or #12 a.b me@a.bc/d")
    assert without_addresses("see https://a.b/c and #dev-ops ok").split() == ["see", "and", "ok"]
