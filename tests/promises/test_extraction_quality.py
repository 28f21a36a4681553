"""The local extractor on the conversations written for it: the floor of its figures."""

import pytest

from benchmarks.extraction_quality import Report, load, measure

PRECISION, RECALL = 0.95, 0.6
LEAST_CONVERSATIONS = 200


@pytest.fixture(scope="module")
def report() -> Report:
    """Measure once."""
    return measure(load())


@pytest.mark.parametrize("part", ["tuned", "held out"])
def test_what_is_kept_is_right_and_most_that_is_claimed_is_kept(report: Report, part: str) -> None:
    """Precision and recall hold on conversations that cues were tuned on and on others."""
    figures = report.parts[part]
    assert figures.precision >= PRECISION, report.wrong
    assert figures.recall >= RECALL, report.wrong
    assert figures.twice == 0, report.wrong


def test_nothing_comes_of_words_that_are_not_the_users(report: Report) -> None:
    """Pasted, quoted, fetched and printed text gives no memory, whatever it says."""
    assert sum(figures.untrusted for figures in report.parts.values()) == 0, report.wrong
    assert sum(report.parts[part].conversations for part in ("tuned", "held out")) >= (
        LEAST_CONVERSATIONS
    )
