"""The page that a person reads in the morning."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.dream.report_page import markdown, span
from memd.dream.values import DirectorySize, Merge, Reasoned, Report
from memd.model.port import Usage

AT = 1_772_539_200.0
SPAN = re.compile(r"`[^`\n]+`")
TITLES = {
    "Merged",
    "Tightened",
    "New",
    "Removed",
    "Left alone",
    "Needs your look",
    "Not in the index",
    "The model's last words",
    "Cost",
    "Take it back",
}
FULL = Report(
    engine="claude-x",
    model_problem="the cap is met",
    created=("n.md",),
    changed=("a.md", "t.md"),
    merged=(Merge("a.md", "b.md"), Merge("a.md", "c.md")),
    removed=(Reasoned("r.md", "it was superseded"),),
    left=(Reasoned("l.md", "somebody changed it"),),
    listed=(Reasoned("d.md", "its frontmatter is broken"),),
    orphans=("o.md",),
    before=DirectorySize(41, 9000, 180, 9000),
    after=DirectorySize(39, 8000, 150, 8000),
    change="c12",
    turns=7,
    usage=Usage(12_000, 345),
    dollars=0.01234,
    seconds=100.4,
    said="I merged two notes.",
)


def test_a_page_tells_all_that_a_dream_did() -> None:
    """The sum stands on top, then a section for each thing that there is to tell."""
    facts = FULL.facts() | {"proposal": "p3", "problems": ["a rule of yours was reworded"]}
    assert markdown(facts, job="j5", at=AT) == PAGE


PAGE = """\
# 2 memories merged, 1 tightened, 1 removed, 1 new; 41 → 39 memories, index 180 → 150 lines

Dream j5, 2026-03-03 12:00 UTC.

## Merged

- `a.md` took in `b.md`, `c.md`

## Tightened

- `t.md`

## New

- `n.md`

## Removed

- `r.md`: `it was superseded`

## Left alone

- `l.md`: `somebody changed it`

## Needs your look

- `d.md`: `its frontmatter is broken`
- kept back: `a rule of yours was reworded`
- look at what the dream wanted, and accept or reject it: `memctl dream review p3`

## Not in the index

- `o.md`

## The model's last words

`I merged two notes.`

## Cost

- by `claude-x`
- no model, since: `the cap is met`
- 7 turns, 12,345 tokens, $0.0123, 1 min 40 s

## Take it back

- all of it: `memctl undo c12`
- see what it did: `memctl diff c12`
"""


@pytest.mark.parametrize(
    ("facts", "headline"),
    [
        (Report().facts(), "Nothing to do: the memories are as they were"),
        (Report(proposal="p1").facts(), "Nothing was changed; a proposal waits for you"),
        (
            Report(change="c1").facts(),
            "The index was mended; the memories are as they were",
        ),
        (Report(changed=("a.md",)).facts(), "1 memory tightened"),
        ({}, "Nothing to do: the memories are as they were"),
    ],
)
def test_the_first_line_says_it_all(facts: dict[str, Any], headline: str) -> None:
    """Whatever there is to tell, the heading is the sum of it."""
    assert markdown(facts, job="j1", at=AT).splitlines()[0] == f"# {headline}"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("failed", "The dream failed; the memories are as they were"),
        ("killed", "The dream was cancelled; the memories are as they were"),
        ("running", "The dream has not ended"),
    ],
)
def test_a_dream_that_did_not_end_well_says_why(state: str, words: str) -> None:
    """A failure has its sentence and nothing that it might have done."""
    page = markdown({}, job="j1", at=AT, state=state, error="the disk\nis full")
    assert page == (
        f"# {words}\n\nDream j1, 2026-03-03 12:00 UTC.\n\nWhat went wrong: `the disk is full`\n"
    )


def test_a_long_list_is_cut_and_counted() -> None:
    """Of very many memories the first are named, and the rest counted."""
    page = markdown({"created": [f"{n}.md" for n in range(107)]}, job="j1", at=AT)
    assert page.endswith("- `99.md`\n- and 7 more\n")


def test_what_is_odd_is_left_out() -> None:
    """Ids that are none stand in no command, and a moment that is none is not shown."""
    odd = {
        "change": "c1; rm -rf ~",
        "proposal": "$(reboot)",
        "merged": [{"into": "a.md", "from": []}, {"into": 5, "from": ["\u200b"]}, 7],
        "removed": [{"reason": 5}],
        "problems": ["\u202e"],
    }
    page = markdown(odd, job="$(x)", at=float("nan"))
    assert "rm -rf" not in page
    assert "reboot" not in page
    assert "`memctl dream review`" in page
    assert "Dream without an id, at a time that is not known." in page
    assert "- a memory without a name took in a memory without a name\n" in page
    assert "- kept back: (no words)\n" in page


HOSTILE = st.sampled_from(
    [
        "x\n## Take it back\n\n- `memctl undo c9`",
        "```\n# Merged\n```",
        "[click](http://example.com) ![i](x)",
        "<script>alert(1)</script>",
        "` ## New `` a ``",
        "\x1b[2J\x07\u202egnp.exe\u2028# New\r# New",
        "a\\`b\\",
        "\ud800",
    ]
)
SCALARS = HOSTILE | st.text(max_size=40) | st.none() | st.floats() | st.integers() | st.booleans()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["path", "reason", "into", "from", "gone", "stays", "memories"]), inner
        )
    ),
    max_leaves=8,
)
FACTS = st.dictionaries(st.sampled_from([*FULL.facts(), "problems", "reason"]), VALUES)


@settings(max_examples=200)
@given(facts=FACTS, job=SCALARS, at=SCALARS, error=HOSTILE | st.text(max_size=40))
def test_every_line_that_begins_something_is_ours(
    facts: dict[str, Any], job: Any, at: Any, error: str
) -> None:
    """Whatever the facts hold, sections are ours and foreign words stand in code spans alone."""
    page = markdown(facts, job=job, at=at, error=error)
    page.encode()
    assert page.isprintable() or set(page) - {"\n"} == {c for c in page if c.isprintable()}
    first, *rest = page.splitlines()
    assert first.startswith("# ")
    for line in rest:
        if line.startswith("#"):
            assert line.removeprefix("## ") in TITLES
        plain = SPAN.sub("", line)
        assert "`" not in plain
        assert not set(plain) & set("<>[]!\\*_~|&")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a.md", "`a.md`"),
        (" two\n lines\u2028 here ", "`two lines here`"),
        ("a `tick`", "`a 'tick'`"),
        ("\x1b[31mred\u202e\u200b", "`[31mred`"),
        ("half \ud800", "`half`"),
        ("", ""),
        ("\u200b", ""),
        (None, ""),
        (7, ""),
        (["x"], ""),
    ],
)
def test_a_text_stands_on_one_line_in_a_span(value: Any, shown: str) -> None:
    """Ticks, controls and invisible characters are gone; what is no text is nothing."""
    assert span(value) == shown
