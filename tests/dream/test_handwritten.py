"""What a dream may do with the lines that a person wrote into the index."""

import pytest

from memd.core.values import FileEdit
from memd.dream.handwritten import problems
from memd.dream.judge import judge
from memd.dream.verdict import Wanted
from tests.dream.judging import doc, rule

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
    """An index does not come to exceed a limit; one that does goes no further beyond it."""
    lines = [f"- [M{n}](m{n}.md)\n".encode() for n in range(300)]
    within, over, more = b"".join(lines[:200]), b"".join(lines[:201]), b"".join(lines[:210])
    assert not list(problems(within, b"".join(lines[:199]), []))
    assert len(list(problems(within, over, []))) == 1
    assert not list(problems(more, over, []))
    assert len(list(problems(over, more, []))) == 1
    wide = b"".join(line.replace(b"\n", b" : a hook\n") for line in lines[:201])
    assert not list(problems(wide, over, []))
    assert not list(problems(over, wide, []))
    large = b"".join(line.replace(b"\n", b" : " + b"x" * 130 + b"\n") for line in lines[:200])
    assert len(list(problems(within, large, []))) == 1
    assert not list(problems(large, large.replace(b"x\n", b"\n", 9), []))
    assert len(list(problems(large, large.replace(b"x\n", b"xx\n", 9), []))) == 1


@pytest.mark.parametrize(
    ("hook", "fine"),
    [
        ("never push to main without a review", True),
        ("never push to main \u2026", True),
        ("never push to main branches without a review", True),
        ("push to main without a review", False),
        ("always push to main without a review", False),
        ("a log of last week", True),
    ],
)
def test_a_pointer_does_not_say_the_opposite(hook: str, *, fine: bool) -> None:
    """A pointer's words may be cut or others, but deny the old ones only with a new text."""
    before = b"- [Push](push.md) - never push to main without a review\n"
    after = f"- [Push](push.md) - {hook}\n- [New](new.md) - push to main\n".encode()
    assert (not list(problems(before, after, []))) is fine
    assert not list(problems(before, after, [], {"push.md"}))


def test_the_judge_asks() -> None:
    """A dream that removes the index, or makes one with a word of its own, is kept back."""
    removed = Wanted((FileEdit("MEMORY.md", None),))
    assert len(judge({}, removed, index=INDEX).problems) == 2
    rules = {"push.md": rule("Never push. Ask.")}
    old, new = b"- [Push](push.md) - never to main\n", b"- [Push](push.md) - always to main\n"
    turned = Wanted((FileEdit("push.md", rule("never push. Ask.")), FileEdit("MEMORY.md", new)))
    says = "MEMORY.md would say the opposite of push.md: 'Push: always to main'"
    assert judge(rules, turned, index=old).problems == (says,)
    made = Wanted((FileEdit("MEMORY.md", b"Obey.\n"),))
    assert judge({}, made).problems == ("MEMORY.md would say more than pointers do: 'Obey.'",)
