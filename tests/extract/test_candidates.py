"""What the local extractor finds, and above all what it leaves alone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.values import MemoryType, Message
from memd.extract.candidates import Candidate, Candidates, find
from tests.extract.labelled import NOT_KEPT, ROWS_KEPT

# A Tuesday.
AT = datetime(2026, 3, 3, 15, tzinfo=UTC).timestamp()


def said(text: str, origin: str = "user", at: float | None = AT) -> Message:
    """Return a message of the person's."""
    return Message("1", "user", text, origin, at)


def one(text: str) -> Candidate:
    """Return the only candidate in a text."""
    (candidate,) = find([said(text)], AT).candidates
    return candidate


@pytest.mark.parametrize(("text", "kind"), ROWS_KEPT)
def test_what_is_worth_keeping_is_found(text: str, kind: str) -> None:
    """Each labelled sentence gives one candidate of its type."""
    assert [item.type.value for item in find([said(text)], AT).candidates] == [kind]


@pytest.mark.parametrize("text", NOT_KEPT)
def test_what_is_not_worth_keeping_is_left_alone(text: str) -> None:
    """Nothing is taken from a labelled negative: precision is 1.0."""
    assert find([said(text)], AT).candidates == ()


def test_dates_become_absolute_and_reasons_are_told_apart() -> None:
    """A freeze carries its date, and its reason stands by itself."""
    results = one("We're freezing merges after Thursday because the mobile team cuts a release.")
    assert results == Candidate(
        MemoryType.PROJECT,
        "We're freezing merges after Thursday (2026-03-05)",
        "the mobile team cuts a release",
        "after Thursday",
        "en",
        AT,
    )


def test_a_reason_may_be_a_sentence_of_its_own() -> None:
    """The sentence after a rule that gives its reason is its why."""
    assert one("Never force-push to main. Because we lost a week once.").why == (
        "we lost a week once"
    )
    assert one("Never force-push to main. We lost a release last month.").why.startswith("We lost")
    assert one("Never force-push to main. The sun shines.").why == ""


def test_a_message_without_a_time_is_of_now() -> None:
    """Where a message has no time, the present stands in."""
    (results,) = find([said("We decided to freeze merges tomorrow.", at=None)], AT).candidates
    assert "2026-03-04" in results.content


@pytest.mark.parametrize("origin", ["tool", "assistant"])
def test_only_the_persons_words_count(origin: str) -> None:
    """What a tool or the assistant says is never taken."""
    words = "Remember that we use pnpm, not npm."
    assert find([said(words, origin)], AT) == Candidates(())
    assert find([Message("1", "assistant", words, "user", AT)], AT) == Candidates(())


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("先说下背景，我是后端开发，主要写 Go", "我是后端开发，主要写 Go"),
        ("We moved to ruff, use ruff instead of black from now on", "use ruff instead of black"),
        (
            "Bugs are tracked in Linear, check it before you fix one",
            "Bugs are tracked in Linear",
        ),
        (
            "Remember that exports use semicolons, accounting insists on it",
            "exports use semicolons, accounting insists on it",
        ),
        ("I'm a linguist. Draft a note: always use tabs.", "I'm a linguist."),
    ],
)
def test_a_candidate_is_the_clause_that_counts(text: str, content: str) -> None:
    """A later clause may hold the cue, and what is no part of the memory is cut off."""
    assert [item.content for item in find([said(text)], AT).candidates] == [content]


@pytest.mark.parametrize(
    "text",
    [
        "这个有点慢，他说以后都不用缓存了",
        "If tests fail, always roll back",
        "The list is long, never show more than five",
        "see https://github.com/a/b/issues/88 for #tracker-bugs, we track them there",
    ],
)
def test_a_later_clause_is_not_believed_against_the_sentence(text: str) -> None:
    """What forbids the sentence forbids its clauses; a single ticket is no place."""
    assert find([said(text)], AT).candidates == ()


def test_a_confirmation_points_to_the_sentence_before() -> None:
    """Saying "keep doing that" keeps what was said before, and nothing when it was asked."""
    assert one("Splitting it was right. Exactly, keep doing that.").content == (
        "Splitting it was right."
    )
    assert find([said("Was it right? Exactly, keep doing that.")], AT).candidates == ()


def test_a_request_is_no_part_of_who_somebody_is() -> None:
    """The task in the same breath is cut off."""
    assert one("I'm new to React, explain hooks to me").content == "I'm new to React"


def test_a_joke_spoils_the_whole_message() -> None:
    """Nothing is taken from a message that was meant in fun."""
    text = "From now on, write all commit messages in verse. Just kidding."
    assert find([said(text)], AT).candidates == ()


def test_a_credential_is_refused_by_its_rule() -> None:
    """A candidate that holds a credential is gone, and only the rule is told."""
    token = "gh" + "p_" + "a7Qx9ZtLx7Rk2Wm8Vb3Nc6Yp1Ds5Gh4Jk2Lm"
    for text in (f"Remember my token: {token}", f"Remember that my token is:\n\n{token}"):
        results = find([said(text)], AT)
        assert results.candidates == ()
        assert results.refused == ("github-token",)


def test_quoted_and_pasted_words_do_not_count() -> None:
    """Fences, quotations and quoted lines are somebody else's."""
    rule = "Always run the linter before committing."
    for text in (f"> {rule}", f"```\n{rule}\n```", f'It printed "{rule}"', f"`{rule}`"):
        assert find([said(text)], AT).candidates == ()


@given(
    st.lists(st.sampled_from([*(text for text, _ in ROWS_KEPT), *NOT_KEPT, "\n", "```", '"', ">"]))
)
def test_the_same_words_give_the_same_candidates(parts: list[str]) -> None:
    """Whatever is said in whatever order, it neither crashes nor depends on chance."""
    text = "\n".join(parts)
    assert find([said(text)], AT) == find([said(text)], AT)


@given(st.text(max_size=400))
def test_any_text_passes_through(text: str) -> None:
    """No text crashes the extractor."""
    find([said(text), said("always " + text), said("记住" + text)], AT)
