"""A person's sentences, word for word, each with what gives it its meaning."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.dream.verbatim import Known, Stand, Verbatim, foreign, key, missing, parted, torn, turned
from tests.dream.judging import doc

RULES = "Never push to main. Ask first.\n\n- use pnpm, not npm\n- use tabs"


def _said(body: str, description: str = "") -> Verbatim:
    return Verbatim(doc(body, description=description))


def _stands(body: str) -> list[tuple[str, ...]]:
    return [(*said.stand.under, said.stand.key) for said in _said(body).sentences]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Use **tabs**.", "use  `tabs`", True),
        ("Use `tabs", "use tabs", True),
        ("Run `X`.", "Run `x`", False),
        ("No, mock it", "No mock it", False),
        ("Never mock", "Never m\u200bock", False),
        ("Use 10\u00b2", "Use 102", False),
        ("```\nX\n```", "```\nx\n```", False),
        ("Really?", "Really", False),
    ],
)
def test_only_dress_is_left_out(first: str, second: str, *, same: bool) -> None:
    """Case, white space, emphasis and the full stop do not count; every other mark does."""
    assert (key(first) == key(second)) is same


def test_headings_are_over_what_follows() -> None:
    """A sentence stands under all headings above it, of whatever form."""
    assert _stands("# A\nx\n## B\ny\n# C\nz\n\nD\n---\n\nw\n\nE\n===\n\nv") == [
        ("# a",),
        ("# a", "x"),
        ("# a", "## b"),
        ("# a", "## b", "y"),
        ("# c",),
        ("# c", "z"),
        ("# c", "d ---"),
        ("# c", "d ---", "w"),
        ("e ===",),
        ("e ===", "v"),
    ]


def test_lines_that_lead_on_are_over_what_they_lead_to() -> None:
    """A line with a colon is over the list or the one paragraph behind it, an item over its own."""
    assert _stands("Not:\n- a\n- b\n\nfree\n\nOld:\n\none\n\nfree\n- Do:\n  - x\n- y") == [
        ("not:",),
        ("not:", "a"),
        ("not:", "b"),
        ("free",),
        ("old:",),
        ("old:", "one"),
        ("free",),
        ("do:",),
        ("do:", "x"),
        ("y",),
    ]
    assert _stands("**Outdated**\n\none\n\ntwo") == [("outdated",), ("outdated", "one"), ("two",)]


def test_what_is_shown_otherwise_is_another_sentence() -> None:
    """Quotes, rows, code, comments and labels are part of how a sentence stands."""
    assert _stands("> one. two\n\n| a |\n\n    code\n\n- item\n    more") == [
        (">", "> one"),
        (">", "two"),
        ("|", "| a |"),
        (" ", "code"),
        ("item more",),
    ]
    table = "| Do | Not |\n|---|:-:|\n| x | y |"
    assert _stands(f"{table}\n\nfree\n\n| z |") == [
        ("|", "| do | not |"),
        ("|", "| do | not |", "|---|:-:|"),
        ("|", "| do | not |", "| x | y |"),
        ("free",),
        ("|", "| z |"),
    ]
    assert _stands("<!--\n\nhid\n\n-->\n\nfree") == [
        ("<!--",),
        ("<!--", "hid"),
        ("<!--", "-->"),
        ("free",),
    ]
    assert _stands("- **Avoid:** tabs. Really.\n\n**Why:** so") == [
        ("avoid:", "tabs"),
        ("avoid:", "really"),
        ("why:", "so"),
    ]
    assert _stands("**Never** mock\n\n```\nNot:\n```\n\nx") == [
        ("never mock",),
        ("```\nNot:\n```",),
        ("x",),
    ]
    assert _stands("...\n\nx") == [("x",)]


def test_each_sentence_stands_somewhere_as_it_did() -> None:
    """The first sentence is named that stands in no target, or under something else."""
    source = _said(RULES, "About it")
    assert missing(source, [source]) == ""
    assert missing(source, []) == "About it"
    assert missing(source, [_said(RULES), _said("About it.")]) == ""
    assert missing(source, [_said(f"Old:\n\n{RULES}", "About it")]) == "Never push to main."
    dated = _said("Due Friday.")
    assert missing(dated, [_said("Due Friday (2026-03-06).")]) == ""
    assert missing(_said("Due Friday (2026-03-06)."), [dated]) == "Due Friday (2026-03-06)."


def test_no_sentence_comes_from_elsewhere() -> None:
    """The first sentence is named that no rule had, or that none had under this."""
    known = Known([_said(RULES, "About it"), _said("# Old\n\nUse vim. Due Friday.")])
    assert foreign(_said("Ask first.\n\n- use tabs"), known) == ""
    assert foreign(_said("# Old\n\nDue Friday (2026-03-06)."), known) == ""
    assert foreign(_said("Use vim."), known) == "Use vim."
    assert foreign(_said("Unless asked otherwise."), known) == "Unless asked otherwise."
    assert foreign(_said("# Old\n\n- use tabs"), known) == "use tabs"


def test_a_sentence_keeps_the_one_before_it() -> None:
    """In a paragraph sentences follow each other as they did, or whole paragraphs do."""
    known = Known(
        [_said("Friday deploys broke us. Ana saw it. Never do this."), _said("Use tabs.")]
    )
    assert torn(_said("Friday deploys broke us. Never do this. Use tabs."), known) == ""
    assert (
        torn(_said("Use tabs.\nFriday deploys broke us. Ana saw it. Never do this."), known) == ""
    )
    assert torn(_said("Friday deploys broke us. Use tabs. Never do this."), known) == "Use tabs."
    assert torn(_said("Never do this. Ana saw it."), known) == "Ana saw it."
    twice = _said("So. No. So.")
    assert torn(twice, Known([twice])) == ""
    dated = Known([_said("Due Friday. Or not.")])
    assert torn(_said("Due Friday (2026-03-06). Or not."), dated) == ""


def test_a_memory_keeps_its_order() -> None:
    """The first of a memory's own sentences that changed its place is named."""
    before = _said("One.\n\nTwo.\n\nOne.", "Three.")
    assert turned(before, _said("Zero.\n\nOne.\n\nNew.\n\nTwo.", "Other.")) == ""
    assert turned(before, _said("Two.\n\nOne.")) == "Two."
    assert turned(_said("Due Friday."), _said("Due Friday (2026-03-06).")) == ""


def test_paragraphs_stay_together() -> None:
    """The first paragraph is named that something else comes before; list items may be mixed."""
    before = _said("One.\n\nTwo.\n\n- three\n- four\n\nfive")
    assert parted(before, before) == ""
    assert parted(before, _said("Zero.\n\nOne.\n\nTwo.\n\n- new\n- three\n- four\n\nfive")) == ""
    assert parted(before, _said("One.\n\nNew.\n\nTwo.")) == "Two."
    assert parted(before, _said("One.\n\nTwo.\n\n- four\n- new\n\nfive")) == "five"
    assert parted(before, _said("One.\n\nTwo.\n\nNew.\n\nTwo.")) == ""
    assert parted(before, _said("One.\n\nNew.\n\nTwo."), {Stand("two")}) == ""
    dated = _said("One Friday.\n\nTwo.")
    assert parted(dated, _said("One Friday (2026-03-06).\n\nTwo.")) == ""


_TEXTS = st.lists(
    st.sampled_from(
        ["One. Two.", "- item: x", "Not:", "# Head", "> q. r", "  - in", "<!-- c", "-->"]
    ),
    max_size=7,
).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_a_text_is_what_it_was(text: str) -> None:
    """A text that did not change lacks nothing, and has nothing new, torn or turned."""
    said = _said(text, "About it")
    known = Known([said])
    assert (missing(said, [said]), foreign(said, known), torn(said, known)) == ("",) * 3
    assert (turned(said, said), parted(said, said)) == ("", "")


def test_a_stand_is_a_value() -> None:
    """Two sentences are the same when their words and what is over them are."""
    assert Stand("x") == Stand("x", ())
    assert Stand("x") != Stand("x", ("# a",))
