"""The guard before PyYAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.documents import document
from memd.documents.frontmatter import problem, quick_fields


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        *((f"a: {'[' * n}", "brackets") for n in (1000, 10_000, 30_000 // 2)),
        (f"a: {'[' * 100_000}", "larger"),
        (f"a: {'[' * 500}{']' * 500}", "brackets"),
        (f"a: {'[' * 30}{']' * 30}", "nested"),
        ("a: &a [x]\nb: [*a, *a]", "anchor"),
        ("a: [x]\nb: *a", "alias"),
        ("a: &a [*a]", "anchor"),
        ("x: {<<: {b: c}}", "merge"),
        ("a: !!python/object/apply:os.system [id]", "tag"),
        *((f"a: !!{tag} x", "tag") for tag in ("binary", "set", "omap", "timestamp", "int")),
        ("a: ! x", "tag"),
        ("- a", "not a mapping"),
        ("just text", "not a mapping"),
        ("a: b\n--- \nc: d", "more than one document"),
        ("\n".join(f"k{n}: v" for n in range(300)), "too many"),
        ("k" * 20_000 + ": v", "larger"),
        ("a: b: c", "line 2"),
        ("a: b\nc: @d", "line 3"),
        ("a: \x07", "not valid"),
        ("a: \x00", "not valid"),
        ("a: \ufffe", "not valid"),
        ("a: \ud800", ""),
    ],
)
def test_bombs_and_surprises_are_refused(raw: str, words: str) -> None:
    """Whatever could cost time, memory or the process is refused with the reason."""
    answer = problem(raw)
    assert answer
    assert words in answer


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@` \n\t#,<~\\", max_size=60))
def test_nothing_makes_the_guard_raise(raw: str) -> None:
    """Any text is answered with words."""
    assert isinstance(problem(raw), str)


NESTED = (
    b"---\nname: a-b\ndescription: What it says.\nmetadata:\n  node_type: memory\n"
    b"  type: feedback\n  originSessionId: 1-2\n  modified: 2026-11-20T23:18:09.458Z\n---\n\nBody\n"
)


MARKED = NESTED.replace(b"  type: feedback\n", b"  type: feedback\n  origin: outside\n")
FLAT = b"---\nname: a\ndescription: 'b: c'\ntype: user\n---\ntext"


values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["user", "'x'", '"y: z"', "a: b", "- x", "a  b", " pad ", "null", "12", "a #b"]
    ),
)


lines = st.sampled_from(
    [
        "name: {}", "description: {}", "type: {}", "metadata:", "metadata: {}", "  type: {}",
        "  type: user", "  node_type: {}", "  node_type: memory", "  originSessionId: {}",
        "  modified: {}", "  modified: 2026-11-20T23:18:09.458Z", "---", "{}",
    ]
)  # fmt: skip


@pytest.mark.parametrize(
    "head",
    [
        b"",
        NESTED.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + NESTED,
        NESTED.replace(b"feedback", b"opinion"),
        NESTED.replace(b"says", b"\xff"),
        NESTED.replace(b"a-b", b"- a"),
        FLAT.replace(b"'b: c'", b"b: c"),
        FLAT.replace(b"'b: c'", b"x" * limits.FRONTMATTER_BYTES),
        NESTED[:60],
    ],
)
def test_anything_else_is_left_to_the_parser(head: bytes) -> None:
    """What is not exactly as usual is not guessed at."""
    assert quick_fields(head) is None


@given(
    st.lists(st.tuples(lines, values), max_size=8),
    st.sampled_from([NESTED, MARKED, FLAT, b""]),
    st.integers(0, 200),
)
def test_what_is_read_is_what_the_parser_reads(
    picked: list[tuple[str, str]], whole: bytes, at: int
) -> None:
    """Whatever the head, the answer is none or that of the parser, and never a damaged one."""
    text = "".join(line.format(value) + "\n" for line, value in picked).encode()
    for head in (b"---\n" + text + b"---\n", whole[:at] + text + whole[at:]):
        results, parsed = quick_fields(head), document.parse(head, "p.md")
        if results is not None:
            assert results == (parsed.name, parsed.description, parsed.type, parsed.origin)
            assert not parsed.damaged


@given(values, values)
def test_any_value_in_its_place(name: str, description: str) -> None:
    """A value means in the quick reading what it means to the parser."""
    head = f"---\nname: {name}\ndescription: {description}\ntype: user\n---\n".encode()
    results, parsed = quick_fields(head), document.parse(head, "p.md")
    if results is not None:
        assert results == (parsed.name, parsed.description, parsed.type, parsed.origin)
        assert not parsed.damaged
