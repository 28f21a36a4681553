"""Which lines of an index are pointers; large ones are read by what differs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.documents.entries import EntryLine, read

_MANY = b"".join(
    b"- [m%d](m%d.md) \xe2\x80\x94 %s\n" % (n, n, b"about it " * 11) for n in range(700)
)
_PIECES = st.sampled_from(
    [
        "- [a](a.md)",
        "- [b](sub/b.md) - hook",
        "- [m1](m1.md)",
        "- [odd](a%20b.md)",
        "# head",
        "```",
        "",
        "text\r",
    ]
)


@settings(max_examples=30)
@given(st.lists(_PIECES, max_size=5), st.lists(_PIECES, max_size=5), st.integers(0, 700))
def test_what_was_read_before_changes_no_answer(one: list[str], other: list[str], at: int) -> None:
    """A version reads the same, whatever version of it was read just before."""
    lines = _MANY.splitlines(keepends=True)
    for pieces, end in ((one, at), (other, min(at + 2, 700))):
        middle = "".join(f"{piece}\n" for piece in pieces).encode()
        content = b"".join((*lines[:at], middle, *lines[end:]))
        results = read(content)
        numbered = [
            EntryLine(number, read(raw).lines[0].paths)
            for number, raw in enumerate(content.splitlines(keepends=True))
            if read(raw).lines
        ]
        fences = [n for n, raw in enumerate(content.splitlines()) if raw == b"```"]
        shown = [line for line in numbered if not _within(line.number, fences)]
        assert list(results.lines) == shown
        assert results.named == {path for line in shown for path in line.paths}
        firsts = [line.paths[0] for line in shown]
        assert {line.paths[0] for line in results.lines} == set(firsts)


def _within(number: int, fences: list[int]) -> bool:
    closed = zip(fences[::2], fences[1::2], strict=False)
    return any(opened <= number <= end for opened, end in closed)
