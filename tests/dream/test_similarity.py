"""When two texts say the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.dream.similarity import Prose, alike, contradict, key, missing

LONG = (
    "Deploys go out on Tuesday after the weekly review, and the on-call engineer of that week "
    "watches the dashboards for an hour before anybody else merges to the main branch again, "
    "and writes down whatever looked odd."
)


def _alike(first: str, second: str) -> bool:
    one, two = Prose(first), Prose(second)
    return alike(one, two, len(one.shingles & two.shingles))


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Use **tabs**.", "use  tabs", True),
        ("Run `make test`", "Run make test.", True),
        ("使用制表符。", "使用制表符", True),
        ("We use C++", "We use C#", False),
        ("Never use tabs", "use tabs", False),
        ("Use *tabs*, always", "_Use_ tabs always!", True),
        ("Lint *.py and *.md", "Lint .py and .md", False),
        ("Use tabs?", "Use tabs.", False),
        ("One — two", "one two", True),
        ("RUN `Make`", "run `Make`", True),
        ("run `Make`", "run `make`", False),
        ("a stray ` mark", "A stray mark", True),
        ("```\nX = 1\n```", "```\nx = 1\n```", False),
    ],
)
def test_sentences_are_the_same_when_only_their_dress_differs(
    first: str, second: str, *, same: bool
) -> None:
    """Case, spaces, emphasis and clause marks do not count in prose; symbols and code do."""
    assert (key(first) == key(second)) is same


def test_alike_is_nearly_the_same_or_within() -> None:
    """Texts that share most runs of words are alike, and so is a text that lies in another."""
    assert _alike(LONG, LONG)
    assert _alike(LONG, LONG.replace("anybody", "anyone"))
    assert _alike(LONG, f"{LONG} {'Something else entirely stands behind it. ' * 9}")
    assert not _alike(LONG, "Something else entirely stands here.")
    assert not _alike("use tabs here", f"{LONG} use tabs here")
    assert not _alike("", "")
    assert _alike("部署在周二评审之后进行每周一次", "部署在周二评审之后进行每周一次。")


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("The port is 5432 on staging.", "The port is 5433 on staging.", True),
        ("We test with Postgres on staging.", "We test with MySQL on staging.", True),
        ("We release on Friday each week.", "We release on Monday each week.", True),
        ("Use `tabs` in this repo.", "Use `spaces` in this repo.", True),
        ("Mock the database in tests.", "Never mock the database in tests.", True),
        ("测试不要连接数据库。", "测试要连接数据库。", True),
        ("The port is 5432 on staging.", "The port is 5432 on staging since May.", False),
        ("Coffee is at nine.", "The port is 5432 on staging.", False),
        ("He likes long reviews.", "He loves long reviews.", True),
        ("He likes long reviews.", "He liked a long review.", False),
        ("Use tabs.", "Use spaces.", True),
        ("Port 80 is open.", "Ports 81 are open.", True),
        ("# Do\n\n- mock it", "# Avoid\n\n- mock it", True),
        ("Do:\n- mock it", "- mock it", True),
        ("**Never** mock the database.", "Mock the database.", True),
        ("Same.", "Same.", False),
    ],
)
def test_a_contradiction_is_no_duplicate(first: str, second: str, *, apart: bool) -> None:
    """Sentences that differ by a number, a name, a day, a "not" or a heading keep texts apart."""
    assert contradict(Prose(first), Prose(second)) is apart
    assert contradict(Prose(second), Prose(first)) is apart


def test_what_is_missing_keeps_its_place_and_shape() -> None:
    """Whole units come as they are; of a unit known in part the new sentences and its lead."""
    text = Prose(
        "A known one. A new one.\n\n"
        "- **Why:** Known here. New\n  over two lines.\n"
        "- all new\n"
        "1. known here\n\n"
        "| a | row |\n> quoted\n"
        "```sh\nmake  all\n\nmake test\n```\n"
        "**Why:** it broke.\n"
    )
    known = {key("A known one"), key("Known here"), key("all known")}
    assert missing(text, known) == (
        "A new one.\n\n"
        "- **Why:** New\n  over two lines.\n\n"
        "- all new\n\n"
        "| a | row |\n\n> quoted\n\n"
        "```sh\nmake  all\n\nmake test\n```\n\n"
        "**Why:** it broke."
    )
    assert missing(Prose("- \n\n ... \n"), set()) == ""
    assert missing(text, text.sentences) == ""


def test_a_label_is_a_part_of_what_is_said() -> None:
    """The same sentence under another label is another one, save under the format's own."""
    staging, production = (
        "**Staging:** It has TLS. Ask Ana.",
        "**Production**: It has TLS. Ask Ana.",
    )
    assert missing(Prose(production), Prose(staging).sentences) == production
    assert Prose("**Staging**: it has TLS").sentences.keys() == {"staging: it has tls"}
    assert Prose("**Why:** it broke").sentences.keys() == Prose("It broke.").sentences.keys()
    assert Prose("**How to apply:** ask").sentences.keys() == {"ask"}


def test_sentences_in_another_order_are_alike() -> None:
    """Nearly all of the same sentences make a near-duplicate; a few short ones do not."""
    said = ["Deploys go out on Tuesday.", "Ana watches the board.", "Bob writes the notes."]
    assert _alike(" ".join(said), " ".join(reversed(said)))
    assert _alike(" ".join(said), "- " + "\n- ".join([*reversed(said), "It takes a while."]))
    assert not _alike(" ".join(said), " ".join([*said[:1], "All else is new here, every word."]))
    assert _alike("Ana leads. Bob helps out.", "Bob helps out. Ana leads.")
    assert not _alike("Ana leads it. Bob helps.", "Bob helps. Cy cooks. Ana leads it.")
    assert Prose("One two.").weights == {"one two": 2}


def test_an_open_code_block_reaches_to_the_end() -> None:
    """Code whose end is missing is one unit, whatever stands in it."""
    text = Prose("Before\n~~~\n- item\n```\n\nend")
    assert [unit.raw for unit in text.units] == ["Before", "~~~\n- item\n```\n\nend"]


_LINES = st.sampled_from(
    [
        "Use tabs.",
        "Use spaces. Never mix.",
        "- item one",
        "- **Why:** because. It broke.",
        "```",
        "~~~",
        "# Head",
        "",
        "用中文写。还有一句！",
        "wrapped line",
        "> quote",
        "1. first",
    ]
)
_TEXTS = st.lists(_LINES, max_size=8).map("\n".join)


@settings(max_examples=200, deadline=None)
@given(_TEXTS, _TEXTS)
def test_nothing_is_lost_by_appending_what_is_missing(first: str, second: str) -> None:
    """A text with what it missed of another has every sentence of both, unless code is open."""
    one, two = Prose(first), Prose(second)
    joined = Prose(f"{first}\n\n{missing(two, one.sentences)}")
    open_code = sum(mark in first.split("\n") for mark in ("```", "~~~"))
    if not open_code:
        assert {*one.sentences, *two.sentences} <= joined.sentences.keys()
        assert missing(two, joined.sentences) == ""
