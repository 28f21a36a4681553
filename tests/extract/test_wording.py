"""How a candidate becomes a memory's text."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.core.names import check_name
from memd.core.values import MemoryType
from memd.documents import document
from memd.documents.index import pointer_line
from memd.extract import cues
from memd.extract.candidates import Candidate
from memd.extract.wording import compose, in_third_person, word

AT = datetime(2026, 3, 3, 15, tzinfo=UTC).timestamp()


def candidate(
    content: str,
    kind: MemoryType = MemoryType.FEEDBACK,
    why: str = "",
    when: str = "",
    language: str = "en",
) -> Candidate:
    """Return a candidate of some words."""
    return Candidate(kind, content, why, when, language, AT)


def test_what_was_not_given_is_said_plainly() -> None:
    """Without a reason the body says who said so and when; a dated fact asks for a check."""
    body = word(candidate("never force-push")).body
    assert "**Why:** stated by the user on 2026-03-03." in body
    assert "**How to apply:** In every session" in body
    fact = word(candidate("we freeze on Friday (2026-03-06)", MemoryType.PROJECT)).body
    assert "afterwards check" in fact
    assert "in line with it" in word(candidate("we use Postgres", MemoryType.PROJECT)).body


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("I'm new and I've used Go", "the user is new and has used Go"),
        ("I'm a dev, but I'm new", "the user is a dev, but is new"),
        ("I prefer tabs", "the user prefers tabs"),
        ("I mostly write Go", "the user mostly writes Go"),
        ("I don't like my old setup", "the user does not like the user's old setup"),
        (
            "call me Kim, I'd say I'll come",
            "call the user Kim, the user would say the user will come",
        ),
        ("keep `I am` as it is", "keep `I am` as it is"),
        ("Imagine the API", "Imagine the API"),
    ],
)
def test_words_are_told_about_the_person(said: str, reported: str) -> None:
    """First person becomes third; code and other words stay."""
    assert in_third_person(said, cues.language("en")) == reported


def test_a_chinese_memory_has_a_proper_name() -> None:
    """Names are ASCII whatever the language; the title keeps the words."""
    worded = word(candidate("提交信息都用英文写", language="zh"))
    assert worded.path.startswith("feedback_note-")
    assert worded.pointer.title == "提交信息都用英文写"
    assert "**Why:** 用户于 2026-03-03 说明。" in worded.body


def test_a_taken_path_is_not_used_again() -> None:
    """Another memory of the same name gets a name of its own."""
    first = word(candidate("never force-push main"))
    other = word(candidate("never force-push main"), {first.path.casefold()})
    assert other.path != first.path
    assert other.path.startswith(first.path.removesuffix(".md"))


def test_an_address_in_front_keeps_its_letters() -> None:
    """A URL at the start is not capitalised; an endless word ends a name."""
    url = word(candidate("https://a.b/c is our wiki", MemoryType.REFERENCE))
    assert url.statement.startswith("https://")
    assert word(candidate(f"always deploy {'x' * 60} now")).name == "always-deploy"


@pytest.mark.parametrize(
    ("said", "kind", "path", "title"),
    [
        (
            "our on-call latency dashboard is https://g.test/d/x, that's what pages people",
            "reference",
            "reference_on-call-latency-dashboard.md",
            "On-call latency dashboard",
        ),
        (
            "small PRs that change one thing get reviewed the same day",
            "feedback",
            "feedback_small-prs-that-change-one-thing.md",
            "Small PRs that change one thing get reviewed",
        ),
        (
            "we're freezing all merges after Thursday (2026-03-05)",
            "project",
            "project_freezing-all-merges-after-thursday.md",
            "Freezing all merges after Thursday",
        ),
        (
            "I'm a backend engineer, I've written Go for ten years",
            "user",
            "user_backend-engineer.md",
            "Backend engineer",
        ),
        (
            "the staging database is on port 5432",
            "project",
            "project_staging-database-is-on-port-5432.md",
            "Staging database is on port 5432",
        ),
        ("always ask before the", "feedback", "feedback_always-ask.md", "Always ask"),
    ],
)
def test_names_and_titles_are_phrases(said: str, kind: str, path: str, title: str) -> None:
    """Both begin where something is said, keep the words' order and end with one that counts."""
    worded = word(candidate(said, MemoryType(kind)))
    assert (worded.path, worded.pointer.title) == (path, title)


def test_an_older_reason_stands_in() -> None:
    """Where nobody gave a new reason, the older one is kept."""
    assert "**Why:** it broke once." in compose(candidate("x"), "X.", "it broke once.")


@given(
    st.text(min_size=1, max_size=300).filter(str.strip),
    st.sampled_from(list(MemoryType)),
    st.sampled_from(["en", "zh"]),
)
def test_every_memory_may_be_written(content: str, kind: MemoryType, language: str) -> None:
    """Whatever the words are: the name rule, the format and the index line hold."""
    worded = word(candidate(content, kind, language=language))
    assert check_name(worded.path) == worded.path
    made = document.new(
        worded.name, worded.description or "x", kind, worded.body, session="s", modified="m"
    )
    assert document.validate(made, worded.path).name == worded.name
    assert "\n" not in pointer_line(worded.path, worded.pointer)
    assert len(worded.description) <= limits.INDEX_LINE_CHARACTERS
