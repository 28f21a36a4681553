"""Index lines that get shorter without a loss."""

import pytest

from memd.core import limits
from memd.documents import index
from memd.dream.shorten import WordRuns, shortened, with_hooks
from memd.dream.similarity import Prose

LONG = (
    "deploys go out on Tuesday after the weekly review and the on-call engineer watches the "
    "dashboards for an hour before anybody else merges to the main branch again"
)


def _always(_path: str, _hook: str) -> bool:
    return True


def test_a_hook_changes_in_its_place() -> None:
    """Bullet, link, separator, line end and every other line stay byte for byte."""
    content = b"# Head\n\n* [A](a.md): old  \r\n- [B](b.md)\nwritten by hand\n"
    assert with_hooks(content, {2: "new", 3: "more", 4: "x"}) == content.replace(b"old", b"new")
    odd = b"- [A](a.md) - \xffold\n"
    assert with_hooks(odd, {0: "new"}) == odd


def test_a_long_line_is_cut_where_its_memory_says_the_rest() -> None:
    """A line above the limit ends at a word with an ellipsis; within the limit it stays."""
    content = f"- [Deploys](a.md) — {LONG}\n- [B](b.md) — short\n".encode()
    after = shortened(content, {"a.md": WordRuns(Prose(LONG))}, _always)
    line = after.decode().splitlines()[0]
    assert len(line) <= limits.INDEX_LINE_CHARACTERS
    assert line.endswith("…")
    (long, short) = index.entries(after)
    assert LONG.startswith(long.hook.removesuffix("…"))
    assert LONG[len(long.hook) - 1] == " "
    assert short.hook == "short"
    assert shortened(after, {"a.md": WordRuns(Prose(LONG))}, _always) == after


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (LONG, "Something else."),
        (LONG + " at port 5432", LONG),
        (LONG, "main branch merges again " + LONG[:-20]),
        ("x" * 200, "x" * 200),
        (LONG[:40] + " `a command" + " that is long" * 9 + "` there", ""),
    ],
)
def test_what_stands_nowhere_else_is_not_cut(hook: str, said: str) -> None:
    """What would be cut off and is not said in the same words, or has no place to cut, stays."""
    content = f"- [A](a.md) — {hook}\n".encode()
    known = {"a.md": WordRuns(Prose(said or hook))}
    assert shortened(content, known, _always) == content


def test_a_cut_is_only_made_where_it_is_stable() -> None:
    """Where something else would change the shorter hook, an earlier place is taken or none."""
    content = f"- [A](a.md) — {LONG}\n".encode()
    known = {"a.md": WordRuns(Prose(LONG))}
    assert shortened(content, known, lambda *_: False) == content
    after = shortened(content, known, lambda _, hook: "before" not in hook)
    assert index.entries(after)[0].hook.endswith("for an hour…")


def test_chinese_is_cut_between_characters() -> None:
    """Where no spaces are, a cut falls between two characters."""
    hook = "部署在周二评审之后进行值班工程师看一小时面板" * 8
    after = shortened(f"- [A](a.md) — {hook}\n".encode(), {"a.md": WordRuns(Prose(hook))}, _always)
    assert len(after.decode().rstrip()) == limits.INDEX_LINE_CHARACTERS


def test_an_index_that_is_too_large_gets_shorter_lines() -> None:
    """Lines are cut further, the longest first, until a prompt loads the index whole."""
    lines = [f"- [Memory {number}](m{number}.md) — {number} {LONG}" for number in range(199)]
    lines += ["written by hand " * 12]
    content = "\n".join(lines).encode()
    known = {f"m{number}.md": WordRuns(Prose(f"{number} {LONG}")) for number in range(199)}
    assert index.load(content).cut == "bytes"
    after = shortened(content, known, _always)
    assert index.load(after).cut == ""
    assert after.endswith(b"written by hand " * 12)
    assert len({len(line) for line in after.decode().splitlines()}) > 2
    assert shortened(after, known, _always) == after


def test_lines_that_no_prompt_loads_are_not_cut_further() -> None:
    """Of an index of very many lines those count that a prompt loads."""
    lines = [f"- [Memory {number}](m{number}.md) — {LONG[:110]}" for number in range(300)]
    content = "\n".join(lines).encode()
    known = {f"m{number}.md": WordRuns(Prose(LONG)) for number in range(300)}
    after = shortened(content, known, _always).splitlines()
    assert after[200:] == content.splitlines()[200:]
    assert sum(map(len, after[:200])) < limits.INDEX_BYTES


def test_what_cannot_be_shortened_stays_too_large() -> None:
    """An index whose lines all say what nothing else says stays as it is, whatever its size."""
    lines = [f"- [Memory {number}](m{number}.md) — {number} {LONG}" for number in range(199)]
    content = "\n".join(lines).encode()
    known = {f"m{number}.md": WordRuns(Prose("else")) for number in range(199)}
    assert shortened(content, known, _always) == content
