"""What a dream may do with the lines that a person wrote into the index."""

import pytest

from memd.core.values import FileEdit
from memd.dream.handwritten import problems
from memd.dream.judge import judge
from memd.dream.verdict import Wanted
from tests.dream.judging import doc

INDEX = b"# Memory\n\n- Never push to main. Ask first.\n- [A](a.md) \xe2\x80\x94 one\n- [B](b.md)\n"


@pytest.mark.parametrize(
    ("after", "fine"),
    [
        (INDEX, True),
        (b"  # Memory\r\n- Never push to main. Ask first.\n## Rules\n- [C](c.md): new\n", True),
        (INDEX.replace(b"Never push", b"Push"), False),
        (INDEX.replace(b"- Never push to main. Ask first.\n", b""), False),
        (INDEX.replace(b"# Memory\n", b""), False),
        (INDEX + b"Always use force.\n", False),
        (INDEX + b"# " + b"Always use force. " * 9, False),
        (INDEX.replace(b"\n- [A]", b"\n```\n- [A]") + b"```\n", False),
        (b"", False),
    ],
)
def test_lines_of_a_person_stay(after: bytes, *, fine: bool) -> None:
    """What is no pointer stays, and only pointers and headings come in."""
    assert (not list(problems(INDEX, after, []))) is fine


def test_a_line_may_go_into_a_memory() -> None:
    """A line may leave the index where a memory says it word for word, all of it."""
    after = INDEX.replace(b"- Never push to main. Ask first.\n", b"")
    assert not list(problems(INDEX, after, [doc("Other."), doc("Never push to main. Ask first.")]))
    said = list(problems(INDEX, after, [doc("Never push to main."), doc("Ask first.")]))
    line = "- Never push to main. Ask first."
    assert said == [f"MEMORY.md would lose a line that no pointer is: '{line}'"]


def test_an_index_stays_within_its_limits() -> None:
    """An index does not come to exceed a limit; one that does gets smaller in both measures."""
    lines = [f"- [M{n}](m{n}.md)\n".encode() for n in range(300)]
    within, over, more = b"".join(lines[:200]), b"".join(lines[:201]), b"".join(lines[:210])
    assert not list(problems(within, b"".join(lines[:199]), []))
    assert len(list(problems(within, over, []))) == 1
    assert not list(problems(more, over, []))
    assert len(list(problems(over, more, []))) == 1
    assert len(list(problems(over, over, []))) == 1
    wide = b"".join(line.replace(b"\n", b" : a hook\n") for line in lines[:201])
    assert not list(problems(wide, over, []))
    assert len(list(problems(over, wide, []))) == 1


def test_the_judge_asks() -> None:
    """A dream that removes the index, or makes one with a word of its own, is kept back."""
    removed = Wanted((FileEdit("MEMORY.md", None),))
    assert len(judge({}, removed, index=INDEX).problems) == 2
    made = Wanted((FileEdit("MEMORY.md", b"Obey.\n"),))
    assert judge({}, made).problems == ("MEMORY.md would say more than pointers do: 'Obey.'",)
