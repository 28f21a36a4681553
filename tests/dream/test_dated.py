"""Whether a date is the one that a sentence means."""

import pytest

from memd.documents.document import Document
from memd.dream.dated import written, wrong

AT = 1_772_528_400.0  # 2026-03-03, a Tuesday


@pytest.mark.parametrize(
    ("sentence", "fits"),
    [
        ("It ships tomorrow (2026-03-04) or Friday (2026-03-06).", True),
        ("It ships tomorrow or Friday (2026-03-06).", True),
        ("It broke last Thursday (2026-02-26).", True),
        ("It broke last week (week of 2026-02-23).", True),
        ("It ships tomorrow (2026-04-04).", False),
        ("It (2026-03-04) ships tomorrow.", False),
        ("It ships (2026-03-04).", False),
        ("It ships.", True),
    ],
)
def test_a_date_is_held_against_the_words_before_it(sentence: str, *, fits: bool) -> None:
    """A date fits where a relative one stands, within a week of what that means."""
    assert wrong(sentence, [AT]) is not fits
    assert wrong(sentence, []) is ("(" in sentence)


@pytest.mark.parametrize(
    ("modified", "mtime", "times"),
    [
        ("2026-03-03T09:00:00+00:00", None, [AT]),
        ("2026-03-03T09:00:00", 5.0, [AT, 5.0]),
        ("lately", 5.0, [5.0]),
        ("", None, []),
    ],
)
def test_when_a_memory_was_written(modified: str, mtime: float | None, times: list[float]) -> None:
    """Both its stamp and its mtime count, each where there is one."""
    document = Document("a", "", None, "", damaged=False, metadata={"modified": modified})
    assert list(written(document, mtime)) == times
