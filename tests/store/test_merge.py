"""Merging what two writers made of one text."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.store import index
from memd.store.memory import parse, with_fields
from memd.store.merge import _matches, merge_index, merge_memory
from tests.store.bench import topic

BODY = "One.\n\nTwo.\n\nThree."
BASE = topic("a", BODY)
INDEX = b"# Mine\n\n- [A](a.md) - of a\n- [B](b.md) - of b\n\n## More\n- [C](c.md)\n"


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return versions of a memory merged."""
    return merge_memory(base, ours, theirs, "a.md")


def lines_of(text: bytes) -> list[bytes]:
    """Return a text's lines without their ends."""
    return [line.rstrip(b"\r\n") for line in text.splitlines()]


@st.composite
def edited(draw: st.DrawFn, base: list[str], who: str) -> list[str]:
    """Return lines with some of them deleted or replaced, and new ones of this writer between."""
    lines: list[str] = []
    for number, line in enumerate([*base, ""]):
        act = draw(st.sampled_from(["keep"] * 6 + ["drop", "change", "add"]))
        lines += [f"{who} adds at {number}"] if act == "add" else []
        if number < len(base) and act != "drop":
            lines.append(f"{who} changes {number}" if act == "change" else line)
    return lines


@st.composite
def versions(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Return a text and what two writers made of it."""
    base = draw(st.lists(st.sampled_from(["", "x", *(f"line {n}" for n in range(9))]), max_size=12))
    texts = [base, draw(edited(base, "a")), draw(edited(base, "b"))]
    if draw(st.booleans()):
        texts[2] = texts[1] + texts[2][len(texts[1]) :]
    ends = [draw(st.sampled_from(["\n", "\n", ""])) for _ in texts]
    joined = ["\n".join(text) + end for text, end in zip(texts, ends, strict=True)]
    base_text, ours, theirs = (text.encode() for text in joined)
    return base_text, ours, theirs


@given(versions())
def test_one_writer_needs_no_merge(texts: tuple[bytes, bytes, bytes]) -> None:
    """Where only one side changed anything, or both alike, that is the result to the byte."""
    base, ours, _ = texts
    for merge in (merge_text, merge_index):
        assert merge(base, base, ours) == merge(base, ours, base) == merge(base, ours, ours) == ours


@given(versions())
def test_nothing_that_anyone_wants_is_lost(texts: tuple[bytes, bytes, bytes]) -> None:
    """A merged text has what either side added, and every line that neither deleted."""
    base, ours, theirs = texts
    merged = merge_text(base, ours, theirs)
    if merged is None:
        return
    b, o, t = (Counter(lines_of(text)) for text in texts)
    left_alone = {line for line in b if o[line] >= b[line] <= t[line]}
    result = Counter(lines_of(merged))
    assert left_alone | set(o - b) | set(t - b) <= set(result)
    assert all(result[line] >= b[line] for line in left_alone)
    assert set(result) <= set(o | t)


@given(versions())
def test_a_merge_merged_again_stays(texts: tuple[bytes, bytes, bytes]) -> None:
    """A writer who repeats what has been merged in changes nothing, or has a conflict."""
    base, ours, theirs = texts
    merged = merge_text(base, ours, theirs)
    if merged is None:
        return
    assert merge_text(base, merged, merged) == merged
    assert merge_text(merged, merged, theirs) == theirs
    repeated = len(set(lines_of(base))) < len(lines_of(base))
    assert repeated or merge_text(base, ours, merged) in (merged, None)


def test_both_may_append() -> None:
    """What two writers append is kept from both, the live text first, and once if it is equal."""
    ours, theirs = BASE + b"\nours\n", BASE + b"\ntheirs\n"
    merged = merge_text(BASE, ours, theirs)
    assert merged == theirs + b"\nours\n"
    assert merge_text(BASE, ours, merged) == merged
    assert merge_text(BASE, merged, theirs) == merged
    assert merge_text(BASE.rstrip(), BASE + b"a\n", BASE + b"b") == BASE + b"b\na\n"


@pytest.mark.parametrize("last", [b"", b"3.\n"])
def test_an_append_stays_behind_an_edit(last: bytes) -> None:
    """What one side appended stays when the other changed or deleted the line before it."""
    longer, other = BASE + b"more\n", BASE.replace(b"Three.\n", last)
    assert merge_text(BASE, longer, other) == other + b"more\n"
    assert merge_text(BASE, other, longer) == other + b"more\n"


def test_the_same_edit_with_more_behind_it() -> None:
    """Where both made the same edit, what one of them added behind it stays."""
    ours = BASE.replace(b"Two.", b"2.")
    theirs = BASE.replace(b"Two.", b"2.\nnew")
    assert merge_text(BASE, ours, theirs) == theirs
    assert merge_text(BASE, theirs, ours) == theirs
    less = b"a\nc\nz\n"
    assert merge_text(b"a\nb\nd\nz\n", less, b"a\nc\nd\nz\n") is None


@pytest.mark.parametrize(
    ("ours", "theirs"), [(b"Two.", b"2."), (b"\nTwo.", b"\nDeux."), (b"Two.\n", b"zwei\n\n")]
)
def test_one_line_has_one_text(ours: bytes, theirs: bytes) -> None:
    """Two texts for one line, or for lines that touch, are a conflict."""
    one = BASE.replace(ours, b"mine")
    assert merge_text(BASE, one, BASE.replace(b"Two.", theirs)) is None


def test_a_merged_memory_is_valid() -> None:
    """A merge that breaks the format is a conflict, unless neither side was a memory anyway."""
    assert merge_memory(BASE, BASE + b"x\n", BASE + b"y\n", "a.md") == BASE + b"y\nx\n"
    half = b"x" * (limits.MEMORY_BYTES // 2) + b"\n"
    assert merge_memory(BASE, BASE + half, BASE + half[1:], "a.md") is None
    assert merge_memory(b"a\n", b"a\nb\n", b"c\na\n", "a.md") == b"c\na\nb\n"
    broken = BASE.replace(b"  type: user", b"  type: [")
    assert merge_memory(BASE, BASE + b"x\n", broken, "a.md") is None
    assert (
        merge_memory(BASE, BASE.replace(b"about a", b"A"), BASE.replace(b"about a", b"B"), "a.md")
        is None
    )


def test_heads_may_lack_an_end() -> None:
    """A head whose last line is not ended gets an end when a body comes behind it."""
    base = BASE[: BASE.index(b"---\n\n") + 3]
    ours, theirs = base + b"\n\ntext\n", base.replace(b"about a", b"new")
    assert merge_text(base, ours, theirs) == ours.replace(b"about a", b"new")
    marked = b"\xef\xbb\xbf" + base
    assert merge_text(base, marked + b"\n", base + b"\r\n") is None


@st.composite
def indexes(draw: st.DrawFn) -> tuple[bytes, bytes, bytes]:
    """Return an index and what two writers made of its entries: added, removed, moved."""
    base = draw(st.lists(st.integers(0, 9), unique=True, max_size=8))
    texts = [base]
    for who in (10, 20):
        gone = draw(st.sets(st.integers(0, 9)))
        texts.append([n for n in base if n not in gone])
        new = draw(st.sets(st.integers(who, who + 3))) | draw(st.sets(st.integers(30, 31)))
        for number in sorted(new):
            texts[-1].insert(draw(st.integers(0, len(texts[-1]))), number)
        if draw(st.booleans()):
            texts[-1] = draw(st.permutations(texts[-1]))
    top = draw(st.sampled_from([b"", b"# Title\n\n"]))
    rows = [top + b"".join(b"- [T](%d.md)\n" % n for n in text) for text in texts]
    return rows[0], rows[1], rows[2]


@given(indexes())
def test_entries_are_united(texts: tuple[bytes, bytes, bytes]) -> None:
    """Additions of both sides are in a merged index once, and what one side removed is not."""
    merged = merge_index(*texts)
    assert merged is not None
    base, ours, theirs = ({entry.path for entry in index.entries(text)} for text in texts)
    listed = [entry.path for entry in index.entries(merged)]
    kept = (base & ours & theirs) | (ours - base) | (theirs - base)
    assert sorted(listed) == sorted(kept)
    still = [entry.path for entry in index.entries(merge_index(texts[0], texts[1], merged) or b"")]
    assert set(still) == set(listed)


def test_an_entry_has_one_text() -> None:
    """Two writers may change two entries, but not both the same one."""
    ours, theirs = INDEX.replace(b"[B]", b"[Bee]"), INDEX.replace(b"of b", b"buzz")
    assert merge_index(INDEX, ours, INDEX.replace(b"[A]", b"[Ah]")) == ours.replace(b"[A]", b"[Ah]")
    assert merge_index(INDEX, ours, theirs) is None
    removed = INDEX.replace(b"- [B](b.md) - of b\n", b"")
    assert merge_index(INDEX, ours, removed) == merge_index(INDEX, removed, ours) == removed


def test_an_entry_that_one_moved_and_the_other_changed() -> None:
    """A moved entry takes the other side's new words along."""
    ours = INDEX.replace(b"- [A](a.md) - of a\n", b"") + b"- [A](a.md) - of a\n"
    theirs = INDEX.replace(b"of a", b"new")
    assert merge_index(INDEX, ours, theirs) == ours.replace(b"of a", b"new")


def test_lines_by_hand_are_merged_as_lines() -> None:
    """Headings of both sides stay with what is below them, also two texts for one."""
    ours = INDEX.replace(b"## More", b"## Others")
    theirs = INDEX.replace(b"## More\n", b"## More\n- [N](n.md)\n")
    assert merge_index(INDEX, ours, theirs) == theirs.replace(b"## More", b"## Others")
    tail, other = INDEX + b"## X\n- [D](d.md)\n", INDEX + b"## Y\n- [E](e.md)\n"
    assert merge_index(INDEX, tail, other) == INDEX + b"## Y\n- [E](e.md)\n## X\n- [D](d.md)\n"
    assert merge_index(INDEX, tail, INDEX + b"- [E](e.md)") == INDEX + (
        b"- [E](e.md)\n## X\n- [D](d.md)\n"
    )
    rest = INDEX.replace(b"## More", b"## Rest")
    assert merge_index(INDEX, ours, rest) == INDEX.replace(b"## More", b"## Rest\n## Others")
    assert merge_index(b"", b"# One\n- [A](a.md)\n", b"- [B](b.md)\n") == (
        b"- [B](b.md)\n# One\n- [A](a.md)\n"
    )


LINES = st.lists(st.sampled_from([b"\n", b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=30)


@given(LINES, LINES)
def test_matches_are_equal_lines_in_order(a: list[bytes], b: list[bytes]) -> None:
    """Every pair names the same line on both sides, and both numbers rise."""
    pairs = sorted(_matches(a, b).items())
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


def test_much_that_repeats_itself_costs_little() -> None:
    """Two large texts without any line of their own are not compared pair by pair."""
    a = [b"a\n", b"b\n"] * 20_000
    b = [b"x\n", *a[2:300], b"y\n", *a[1:-1], b"z\n"]
    assert _matches(a, b) == {}


def test_how_a_text_ends_is_merged_too() -> None:
    """A missing last line end is kept, and given by whoever added one; a mark is the live one's."""
    assert merge_text(b"a", b"x\na", b"a\nb") == b"x\na\nb"
    assert merge_text(b"a", b"x\na\n", b"a\nb") == b"x\na\nb\n"
    marked = b"\xef\xbb\xbf- [A](a.md)\n"
    assert merge_index(b"", b"- [B](b.md)\n", marked) == marked + b"- [B](b.md)\n"


KEYS = ("name", "description", "metadata.type", "metadata.x", "metadata.y", "metadata.modified")


@given(st.data())
def test_heads_are_merged_by_key(data: st.DataObject) -> None:
    """Each key has the value of who changed it; two values for one are a conflict."""
    changes = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["user", "project"]))
    base = with_fields(BASE, {"metadata.modified": "2026-01-01", "metadata.x": "x"})
    before = facts(base)
    ours, theirs = (
        {key: text for key, text in data.draw(changes).items() if text != before.get(key)}
        for _ in range(2)
    )
    merged = merge_text(base, with_fields(base, ours), with_fields(base, theirs))
    clashes = {
        key
        for key in (ours.keys() & theirs.keys()) - {"metadata.modified"}
        if ours[key] != theirs[key]
    }
    if clashes:
        assert merged is None
        return
    assert merged is not None
    expected = before | ours | theirs
    times = [facts(with_fields(base, each))["metadata.modified"] for each in (ours, theirs)]
    assert facts(merged) == expected | {"metadata.modified": max(times)}


def facts(content: bytes) -> dict[str, str]:
    """Return the fields of a memory by key."""
    parsed = parse(content, "")
    fields = {f"metadata.{key}": value for key, value in parsed.metadata.items()}
    return fields | {"name": parsed.name, "description": parsed.description}
