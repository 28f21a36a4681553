"""The index: loading it for a prompt, and keeping it true."""

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.base.names import in_catalogue
from memd.base.text import one_line
from memd.base.values import Pointer
from memd.store.index import Index, derive, entries, load, pointer_line

PATHS = st.text(
    alphabet="ab/ ()[]<>%20#?:~.é\\\n\u2028-", min_size=1, max_size=12
).map(lambda text: f"{text}.md").filter(in_catalogue)  # fmt: skip
TEXTS = st.text(max_size=40)
LINES = st.one_of(
    st.sampled_from(
        [
            b"# Memories",
            b"",
            b"- [A](a.md) \xe2\x80\x94 hook",
            b"* [A again](./a.md): x",
            b"- [B](b.md)",
            b"1. [C](<c d.md>) - x",
            b"- [C](c%20d.md#part)",
            b"- [Gone](gone.md) \xe2\x80\x94 x",
            b"- [Web](https://example.org/x.md)",
            b"- [Team](team/x.md)",
            b"- [A](a.md), [B](b.md)",
            b"```",
            b"text \xff\xfe",
        ]
    ),
    st.binary(max_size=12).filter(lambda line: not line.startswith(b"\xef\xbb\xbf")),
)
BOM = b"\xef\xbb\xbf"
INDEXES = st.one_of(
    st.none(),
    st.builds(
        lambda bom, lines, eol, end: bom + eol.join(lines) + end,
        st.sampled_from([b"", b"\xef\xbb\xbf"]),
        st.lists(LINES, max_size=8),
        st.sampled_from([b"\n", b"\r\n"]),
        st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]),
    ),
)
FILES = st.lists(st.one_of(st.sampled_from(["a.md", "b.md", "c d.md"]), PATHS), max_size=5)


def test_the_index_is_cut_at_200_lines() -> None:
    """The first 200 lines are loaded; the warning names the limit, the size and what to do."""
    content = b"".join(b"- [%d](%d.md)\n" % (n, n) for n in range(300))
    loaded = load(content)
    part, _, warning = loaded.text.rpartition("\n\n")
    assert part.encode() == b"\n".join(content.split(b"\n")[:200])
    assert (loaded.lines, loaded.bytes, loaded.cut) == (300, len(content) - 1, "lines")
    assert "300 lines (limit 200)" in warning
    assert "bytes" not in warning
    assert "topic files" in warning
    assert "\n" not in warning


def test_the_index_is_cut_at_25000_bytes() -> None:
    """The cut falls at the last line end that keeps within the bytes, not the characters."""
    line = "é" * 99
    loaded = load("\n".join([line] * 150).encode())
    part, _, warning = loaded.text.rpartition("\n\n")
    assert part == "\n".join([line] * (25_000 // 199))
    assert (loaded.lines, loaded.cut) == (150, "bytes")
    assert f"{150 * 199 - 1} bytes (limit 25000)" in warning
    assert load(b"x" * 24_999 + b"\ny").text.startswith("x" * 24_999 + "\n\n>")
    assert load(b"x" * 25_000 + b"\ny").text.startswith("x" * 25_000 + "\n\n>")


@given(st.lists(st.integers(0, 400), max_size=260), st.sampled_from(["x", "é", "字"]))
def test_the_loaded_part_keeps_both_limits(lengths: list[int], character: str) -> None:
    """Whatever the index is, the part before the warning is a start of it within the limits."""
    text = "\n".join(character * length for length in lengths)
    loaded = load(text.encode())
    part = loaded.text.rpartition("\n\n> WARNING")[0] if loaded.cut else loaded.text
    assert text.strip().startswith(part)
    assert part.count("\n") < limits.INDEX_LINES
    assert len(part.encode()) <= limits.INDEX_BYTES
    assert bool(loaded.cut) == (
        loaded.lines > limits.INDEX_LINES or loaded.bytes > limits.INDEX_BYTES
    )


def test_an_example_in_a_code_block_is_no_pointer() -> None:
    """Closed code blocks show and do not point; one that never closes hides nothing."""
    shown = b"~~~\n- [Title](file.md)\n```\n~~~\n"
    assert reconcile(shown, [], {}) == shown
    assert reconcile(b"```\n- [Gone](gone.md)\n", [], {}) == b"```\n"


def reconcile(
    content: bytes | None, files: Collection[str], wanted: Mapping[str, Pointer]
) -> bytes:
    """Return the index with one entry for each of these files."""
    parsed = Index(content)
    parsed.reconcile(files, wanted)
    return b"".join(parsed.lines)


def _others(content: bytes | None) -> list[bytes]:
    """Return the lines without a link; a BOM is none of them."""
    lines = (content or b"").removeprefix(b"\xef\xbb\xbf").splitlines()
    return [line for line in lines if b"](" not in line]


@given(INDEXES, FILES, TEXTS, TEXTS)
def test_a_reconciled_index_is_true_and_stays(
    content: bytes | None, files: list[str], title: str, hook: str
) -> None:
    """After one pass each file has one entry and nothing dangles; a second changes nothing."""
    wanted = {path: Pointer(title, hook) for path in files[::2]}
    once = reconcile(content, files, wanted)
    assert reconcile(once, files, wanted) == once
    assert reconcile(once, frozenset(files), {}) == once
    listed = [entry.path for entry in entries(once or b"") if not entry.path.startswith("team/")]
    ours = {path for path in files if not path.startswith("team/")}
    assert len(listed) == len(ours)
    assert _others(once) == _others(content)


@given(st.lists(LINES, max_size=8), st.lists(LINES, max_size=8), st.integers())
def test_an_index_says_the_same_whatever_was_read_before(
    lines: list[bytes], more: list[bytes], number: int
) -> None:
    """What begins like an index that was just read has the same lines and entries as it alone."""
    start = b"\n".join(lines)
    whole = start + b"\n".join(more)
    Index(start)
    first_line = b"# %d\n" % number  # no index that was read before begins with it
    parsed, alone = Index(whole), Index(first_line + whole)
    assert parsed.lines == alone.lines[1:]
    assert list(parsed.entries.values()) == list(alone.entries.values())
    assert [n + 1 for n in parsed.entries] == list(alone.entries)


@given(INDEXES, FILES, TEXTS, TEXTS)
def test_a_derived_index_lists_what_is_there(
    content: bytes | None, files: list[str], title: str, hook: str
) -> None:
    """Its entries are the memories and no others, in their order; other lines stay behind them."""
    wanted = {path: Pointer(title, hook) for path in files}
    once = derive(content, wanted)
    assert derive(once, wanted) == once
    assert [entry.path for entry in entries(once or b"")] == list(wanted)
    assert _others(derive(once, {})) == _others(once) == _others(content)


@given(PATHS, TEXTS, TEXTS)
def test_a_written_line_is_read_back(path: str, title: str, hook: str) -> None:
    """Any path survives its line, which stays on one line and short."""
    line = pointer_line(path, Pointer(title, hook))
    (entry,) = entries(line.encode())
    assert entry.path == path
    assert len(line.splitlines()) == 1
    assert len(line) <= limits.INDEX_LINE_CHARACTERS or " — " not in line
    if title.isprintable() and title.strip():
        assert entry.title == one_line(title, 80)


@pytest.mark.parametrize("part", ["- [", "- [x](", "- [x](a.md) ", "- [x](" + " ", "(", "[", "\\"])
def test_a_line_of_40_kb_costs_no_time(part: str) -> None:
    """Hostile lines are read in linear time and end in some answer."""
    for filler in (" ", "[", "(", "\\", '"', "a", "- "):
        content = (part + filler * 40_000).encode()
        assert len(entries(content)) <= 1
        assert reconcile(content, [], {}) in (content, b"")
