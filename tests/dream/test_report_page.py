"""The page that a person reads in the morning."""

import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memd.base.values import Reasoned
from memd.dream.report_page import markdown
from memd.dream.results import Dreamed, Merged
from memd.dream.values import DirectorySize, DreamReport, Merge
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
    "The model's last words",
    "Cost",
    "Take it back",
}
FULL = DreamReport(
    engine="claude-x",
    model_problem="the cap is met",
    created=("n.md",),
    changed=("a.md", "t.md"),
    merged=(Merge("a.md", "b.md"), Merge("a.md", "c.md")),
    removed=(Reasoned("r.md", "it was superseded"),),
    left=(Reasoned("l.md", "somebody changed it"),),
    listed=(Reasoned("d.md", "its frontmatter is broken"),),
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
    dreamed = msgspec.convert({"status": "completed", "job": "j5"} | facts, Dreamed)
    assert markdown(dreamed, AT) == PAGE


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
- look at what the dream wanted, and accept or reject it: `memctl review show p3`

## The model's last words

`I merged two notes.`

## Cost

- by `claude-x`
- no model, since: `the cap is met`
- 7 turns, 12,345 tokens, $0.0123, 1 min 40 s

## Take it back

- all of it: `memctl undo c12`
- see what it did: `memctl show c12`
"""


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
WORDS = HOSTILE | st.text(max_size=40)
LISTS = st.lists(WORDS, max_size=4)
FILES = st.lists(st.builds(Reasoned, WORDS, WORDS), max_size=4)
DREAMED = st.builds(
    Dreamed,
    status=st.sampled_from(["completed", "failed", "killed", "skipped", "queued"]),
    reason=WORDS,
    job=st.just("j5"),
    engine=WORDS,
    model_problem=WORDS,
    created=LISTS,
    changed=LISTS,
    merged=st.lists(st.builds(Merged, into=WORDS, sources=LISTS), max_size=4),
    removed=FILES,
    left=FILES,
    listed=FILES,
    problems=LISTS,
    proposal=st.sampled_from([None, "p3"]),
    change=st.sampled_from([None, "c12"]),
    said=WORDS,
)


@given(DREAMED)
def test_every_line_that_begins_something_is_ours(dreamed: Dreamed) -> None:
    """Whatever the words are, sections are ours and foreign words stand in code spans alone."""
    page = markdown(dreamed, AT)
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
