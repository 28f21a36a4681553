"""The page that a person reads in the morning."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memd.dream.report_page import markdown
from memd.dream.values import DirectorySize, DreamReport, Merge, Reasoned
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
FULL = DreamReport(
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
- look at what the dream wanted, and accept or reject it: `memctl review show p3`

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
