"""Links between memories."""

import pytest

from memd.documents import document
from memd.dream.links import Linked, LinkMoves, leads_to, led_on, targets

GONE, HOME = Linked("gone.md", "gone-name"), Linked("notes/home.md", "home-name")
OTHER = Linked("other.md", "other")
MOVES = LinkMoves([(GONE, HOME)], [HOME, OTHER])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("See [it](gone.md).", "See [it](notes/home.md)."),
        ("See [it](./gone.md#part 'title').", "See [it](notes/home.md#part 'title')."),
        ("See [it]( <gone.md> ).", "See [it]( <notes/home.md> )."),
        ("[it]: gone.md", "[it]: notes/home.md"),
        ("See [[gone]] and [[ gone.md|it]].", "See [[home]] and [[ home.md|it]]."),
        ("See [[gone-name#part]].", "See [[home-name#part]]."),
        ("See [it](other.md), [[other]], [x](https://gone.md).", ""),
        ("Run `cat [it](gone.md)` or ``[[ `gone` ]]``.", ""),
        ("```\n[it](gone.md)\n```\n[it](gone.md)", "```\n[it](gone.md)\n```\n[it](notes/home.md)"),
        ("nothing", ""),
    ],
)
def test_links_follow_what_was_merged(before: str, after: str) -> None:
    """Only the target of a link to what is gone changes, and none in code."""
    assert MOVES.repointed(before, "a.md") == (after or before)


def test_links_are_relative_to_their_file() -> None:
    """From a folder a link leads on from that folder; one from the root stays one."""
    assert MOVES.repointed("[it](../gone.md)", "notes/a.md") == "[it](home.md)"
    assert MOVES.repointed("[it](gone.md)", "notes/a.md") == "[it](notes/home.md)"


def test_a_name_that_is_not_the_only_one_becomes_a_path() -> None:
    """A name that something else still has leads there; a new one must be the only one."""
    twins = LinkMoves([(GONE, HOME)], [HOME, Linked("team/home.md", "home-name")])
    assert twins.repointed("[[gone]] [[gone-name]]", "a.md") == "[[notes/home]] [[notes/home]]"
    kept = LinkMoves([(GONE, HOME)], [HOME, Linked("b.md", "gone")])
    assert kept.repointed("[[gone]] [it](gone.md)", "a.md") == "[[gone]] [it](notes/home.md)"


def test_targets_are_all_that_a_link_may_mean() -> None:
    """A link may be meant from its folder or from the root; a name is one of the memory's."""
    results = targets("[it](gone.md) [[home-name|that]] `[[code]]` [d]: x", "notes/a.md")
    assert results == {"gone.md", "notes/gone.md", "home-name"}
    assert leads_to(results, GONE)
    assert leads_to(results, HOME)
    assert not leads_to(results, OTHER)


def test_texts_are_led_on_but_for_rules() -> None:
    """Before they are compared, links of all but a person's rules lead to where memories went."""

    def text(kind: str, body: str) -> document.Document:
        return document.parse(f"---\ntype: {kind}\n---\n\n{body}".encode(), "")

    texts = {
        "gone.md": text("project", "itself: [x](gone.md)"),
        "home.md": text("project", "no link"),
        "rule.md": text("user", "[x](gone.md)"),
    }
    led = led_on(texts, {"gone.md": "home.md", "other.md": "home.md"})
    assert led == texts | {"gone.md": text("project", "itself: [x](home.md)")}
    assert led_on(texts, {"other.md": "home.md"}) == texts
