"""Whether what one memory said is said by others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.core.values import MemoryType
from memd.dream.carried import Denials, Facts, facts, holds, lacks, reason_lost, statement
from tests.dream.judging import FEEDBACK, PROJECT, doc


def _lacks(source: str, *targets: str) -> str:
    said = [Facts(doc(target, PROJECT, "")) for target in targets]
    return lacks(Facts(doc(source, PROJECT, "")), said)


@pytest.mark.parametrize(
    ("body", "description", "held"),
    [
        ("Known one. Known two.", "About it", True),
        ("Known two", "Known one.", True),
        ("Known one. Unheard.", "About it", False),
        ("Known one.", "About something else", False),
        ("Known one.", "one about two", True),
        ("Due Friday", "About it", True),
        ("Due Friday (2026-03-06)", "About it", True),
        ("Due Friday (2026-03-13)", "About it", False),
    ],
)
def test_word_for_word(body: str, description: str, *, held: bool) -> None:
    """A memory holds another when each sentence is there and every word of the description is."""
    target = doc("Known one.\n\n- known two\n\nDue Friday (2026-03-06).")
    assert holds(target, doc(body, description=description)) is held


def test_a_rule_is_held_by_rules_only() -> None:
    """A person's rule is held word for word, by another rule, under the same heading."""
    rule = doc("Use tabs.", FEEDBACK)
    assert holds(doc("Use vim.\n\nUse tabs.", FEEDBACK), rule)
    assert not holds(doc("Use vim.\n\nUse tabs."), rule)
    assert not holds(doc("Old:\n\nUse tabs.", FEEDBACK), rule)
    assert not holds(doc("Use tabs, always.", FEEDBACK), rule)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Ana watches the dashboards for an hour after deploys.",
         "After deploying Ana is watching dashboards, an hour each time."),
        ("The port is 5432 on staging.", "Staging listens on port 5432."),
        ("Dates live in `core/dates.py`.", "See `core/dates.py`, where dates live."),
        ("# Deploy Notes\n\nGo slowly.", "On deploys: go slowly."),
        ("部署在周二评审之后进行。", "部署在周二评审之后进行，每周一次。"),
        ("The lead is Ana's friend Bo.", "Lead: Bo, friend of Ana."),
        ("Policies, tests and caches are old.", "The policy is old; test and cache as well."),
        ("Release day is Friday.", "The day of a release is a Friday (2026-03-06)."),
        ("...", "Something else."),
    ],
)  # fmt: skip
def test_other_words_may_say_it(source: str, target: str) -> None:
    """A sentence with its facts and most of its words is said in other words too."""
    assert _lacks(source, target) == ""


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("The port is 5432 on staging.", "The port is 5433 on staging."),
        ("Ana watches the dashboards.", "Somebody watches the dashboards."),
        ("GitHub hosts the code.", "A forge hosts the code."),
        ("See `core/dates.py` for dates.", "See the core for dates."),
        ('He calls it "the big oven" there.', "He calls it the oven there."),
        ("Release day is Friday.", "Release day is Monday."),
        ("Ann approves the deploys.", "Bob approves the deploys."),
        ("The retry queue is small.", "The retry queue is large."),
        ("Never mock the database.", "Mock the database."),
        ("**Never** mock the database.", "Mock the database."),
        ("Mock the database in tests.", "Do not mock the database in tests."),
        ("Use pnpm, not npm.", "Use npm, not pnpm."),
        ("Use pnpm and not npm for installs.", "Use npm, not pnpm, for all installs."),
        ("Prefer tabs over spaces here.", "Prefer spaces over tabs here."),
        ("Migrate before the deploy starts.", "Migrate after the deploy starts."),
        ("Staging is 5432; production is 5433.", "Staging is 5433; production is 5432."),
        ("The cache is always enabled on staging.", "The cache is always disabled on staging."),
        ("Tests sleep while the oven is hot.", "The oven is hot."),
        ("# Avoid\n\n- mocks", "Prefer:\n\n- mocks"),
        ("```\nmake  all\n```", "```\nmake all\n```"),
        ("测试不要连接数据库。", "测试要连接数据库。"),
    ],
)  # fmt: skip
def test_what_is_left_out_or_denied_is_named(source: str, target: str) -> None:
    """A lost fact, a turned sentence, a lost half or changed code is named."""
    assert _lacks(source, target)
    assert _lacks(source, target) in source


def test_most_words_of_the_whole_must_be_there() -> None:
    """Where each sentence is half there and no more, the one that lost most is named."""
    source = "Alpha beta gamma delta. Epsilon zeta eta theta iota."
    assert _lacks(source, "alpha beta; epsilon zeta theta") == "Alpha beta gamma delta."
    assert _lacks(source, "alpha beta gamma; epsilon zeta theta eta") == ""


def test_several_may_say_it_together() -> None:
    """What one target does not say another one may."""
    assert _lacks("One fact. Two facts.", "One fact.", "Two facts.") == ""
    assert _lacks("One fact. Two facts.", "One fact.") == "Two facts."
    assert _lacks("Any.", *()) == "Any."


WHY = "Deploy slowly.\n\n**Why:** speed broke the release.\nTwice.\n\n**How to apply:**\n\n- wait"


@pytest.mark.parametrize(
    ("target", "lost"),
    [
        (WHY, ""),
        ("Why: speed broke the release twice.\nHow to apply: wait", ""),
        ("- **Why**: the release broke twice from speed\n# How\n- **How to apply:** wait", ""),
        ("Speed broke the release twice: wait.", "why: speed broke the release. Twice."),
        (WHY.replace("speed broke the release", "it is nicer"),
         "why: speed broke the release. Twice."),
        (WHY.replace("**How to apply:**", "And"), "how to apply: - wait"),
    ],
)  # fmt: skip
def test_the_why_goes_with_it(target: str, lost: str) -> None:
    """A why and how to apply are there under their names, with most of what they say."""
    assert reason_lost(Facts(doc(WHY)), [Facts(doc(target))]) == lost
    assert bool(_lacks(WHY, f"Deploy slowly.\n\n{target}")) is bool(lost)


def test_a_why_ends() -> None:
    """A why reaches to the empty line behind it, to a heading, or to the next one."""
    said = Facts(doc("Why: a\n\nmore\n\nWhy: b\n# Head\nrest\n**Why:** c"))
    assert [(name, text.strip()) for name, text in said.reasons] == [
        ("why", "a"),
        ("why", "b"),
        ("why", "c"),
    ]


def test_words_and_facts() -> None:
    """Telling words are short forms without the little ones; facts are what names something."""
    assert statement("The merging of Ana's caches was tested") == {"merg", "ana", "cach", "test"}
    assert statement("用制表符 so 二 x") == {"用制", "制表", "表符", "x"}
    assert facts('Ana met Bo at PR 12 on friday, see `x` and "big oven"') == (
        {"bo", "pr", "12", "friday", "x", "big", "oven"}
    )
    assert facts("GitHub is it.") == {"github"}
    assert facts("") == frozenset()


def test_denials_are_found_within_bounds() -> None:
    """What denies a sentence is found; where the work is too much, that is known."""
    sentences = ["Coffee is at nine.", "The port is 5433 on staging.", "```\nThe port is 1\n```"]
    denials = Denials(sentences)
    assert denials.of("The port is 5432 on staging.") == sentences[1]
    assert denials.of("Tea is at four in the small kitchen.") == ""
    assert denials.of("```\nThe port is 2\n```") == ""
    assert denials.of("") == ""
    assert not denials.spent
    small = Denials([f"The port is {n} on staging." for n in range(50)], work=20)
    assert small.of("The port is on staging.") == ""
    assert small.spent
    assert small.of("The port is 9999 on staging.") == ""


def test_too_much_to_compare_proves_nothing() -> None:
    """A target made of thousands of sentences alike carries nothing that is not in it as it is."""
    target = " ".join(f"Port {n} is for staging use." for n in range(3000))
    assert _lacks("Port 7 is for staging use.", target) == ""
    assert _lacks(" ".join(f"Port {n} for staging use." for n in range(999)), target)


_TEXTS = st.lists(
    st.sampled_from(["Use tabs.", "Never 5432.", "- item", "# Head", "Why: so", "```\nx\n```", ""]),
    max_size=6,
).map("\n\n".join)


@settings(max_examples=100, deadline=None)
@given(_TEXTS, _TEXTS, st.sampled_from([PROJECT, FEEDBACK]))
def test_what_is_appended_to_is_held(first: str, second: str, kind: MemoryType) -> None:
    """A text holds itself, and with another behind it still what it said."""
    assert holds(doc(f"{first}\n\n{second}", kind), doc(first, kind))
