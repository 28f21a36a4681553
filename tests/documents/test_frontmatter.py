"""Frontmatter as lines: finding it, reading simple values, writing them."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.documents import frontmatter
from memd.documents.frontmatter import HEAD_BYTES, scalar, simple_fields, split

ANY_LINE = st.text(alphabet="ab :-#'\"[]{}&*!|>\\.<~=\t01é\u2028\u00a0\x07", max_size=14)
KEYED = st.builds(
    lambda indent, key, value: f"{indent}{key}:{value}",
    st.sampled_from(["", "", "  ", " "]),
    st.sampled_from(["name", "type", "metadata", "x-1", "a"]),
    ANY_LINE.map(lambda text: f" {text}" if text else ""),
)
LINES = st.lists(st.one_of(KEYED, KEYED, ANY_LINE), max_size=6)


def by_yaml(raw: str) -> object:
    """Return what YAML reads, values as strings."""
    return yaml.load(raw, Loader=frontmatter.LOADER) or {}  # noqa: S506 - strings only


def test_frontmatter_closes_within_30_lines() -> None:
    """A fence in the 30th line closes, one in the 31st does not."""
    for number, closed in ((28, True), (29, False)):
        fenced = split(b"---\n" + b"a: b\n" * number + b"---\nbody")
        assert fenced is not None
        assert fenced.closed is closed
        assert len(fenced.lines) == min(number, limits.HEAD_LINES - 1)


@given(st.binary(max_size=40), st.integers(0, 3))
def test_a_head_gives_the_answer_of_the_whole(tail: bytes, more: int) -> None:
    """Reading one byte more than HEAD_BYTES is enough, wherever the cut falls."""
    for filler in (b"a: " + b"x" * (HEAD_BYTES - 20), b"y" * (HEAD_BYTES - 10 - more)):
        whole = b"---\n" + filler + b"\n" + tail + b"\n---\nbody"
        assert split(whole) == split(whole[: HEAD_BYTES + 1])
    assert split(b"---" + b" " * HEAD_BYTES) is None


@given(LINES)
def test_simple_lines_are_read_as_yaml_reads_them(lines: list[str]) -> None:
    """The quick reading gives what YAML gives, or leaves the answer to it."""
    quick = simple_fields(tuple(lines))
    if quick is None:
        return
    raw = "\n".join(lines)
    assert frontmatter.problem(raw) == ""
    assert by_yaml(raw) == quick


@given(st.text(max_size=40))
def test_a_written_value_is_read_back(text: str) -> None:
    """Any text, white space folded, survives writing and reading, also by a line-splitter."""
    line = f"key: {scalar(text)}"
    folded = " ".join(text.split())
    assert yaml.safe_load(line) == {"key": folded}
    assert len(line.splitlines()) == 1
    quick = simple_fields((line,))
    assert quick is None or quick == {"key": folded}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("prefer pnpm (not npm), 2 of 3", "prefer pnpm (not npm), 2 of 3"),
        ("2026-11-20T23:18:09.458Z", "2026-11-20T23:18:09.458Z"),
        ("aa3faf1b-637c-4c1f-9119-ab2a9fc5580b", "aa3faf1b-637c-4c1f-9119-ab2a9fc5580b"),
        ("12345678-637c-4c1f-9119-ab2a9fc5580b", "12345678-637c-4c1f-9119-ab2a9fc5580b"),
        ("测试 café 🚀", "测试 café 🚀"),
        *((word, f'"{word}"') for word in ("no", "Yes", "null", "~", "12", "1.10", "0x1f", "1:20")),
        *((word, f'"{word}"') for word in ("2026-11-20", "1e3", ".5", "=", "<<", "0o17", "-1", "")),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("- a", '"- a"'),
        ('"a" b', "'\"a\" b'"),
        ("""'"\\""", '"\'\\"\\\\"'),
        ("a\x07b", '"a\\u0007b"'),
        ("a\ud800b: c", '"a\ufffdb: c"'),
    ],
)
def test_quotes_stand_only_where_they_must(text: str, written: str) -> None:
    """Plain text stays plain; what a reader of YAML would misread is quoted."""
    assert scalar(text) == written
