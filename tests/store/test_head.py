"""The head of a memory as lines: where it is, what it says, and the guard before YAML."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.store.head import HEAD_BYTES, mapping, parts, plain_fields, scalar, split

ANY_LINE = st.text(alphabet="ab :-#'\"[]{}&*!|>\\.<~=\t01é\u2028\u00a0\x07", max_size=14)
KEYED = st.builds(
    lambda indent, key, value: f"{indent}{key}:{value}",
    st.sampled_from(["", "", "  ", " "]),
    st.sampled_from(["name", "type", "metadata", "x-1", "a"]),
    ANY_LINE.map(lambda text: f" {text}" if text else ""),
)
LINES = st.lists(st.one_of(KEYED, KEYED, ANY_LINE), max_size=6)


def test_a_head_closes_within_30_lines() -> None:
    """A fence in the 30th line closes, one in the 31st does not."""
    for number, closed in ((28, True), (29, False)):
        span = split(b"---\n" + b"a: b\n" * number + b"---\nbody")
        assert span is not None
        assert span.closed is closed
        assert span.text.count("\n") == min(number, limits.HEAD_LINES - 1)


@given(st.binary(max_size=40), st.integers(0, 3))
def test_a_head_gives_the_answer_of_the_whole(tail: bytes, more: int) -> None:
    """Reading one byte more than HEAD_BYTES is enough, wherever the cut falls."""
    for filler in (b"a: " + b"x" * (HEAD_BYTES - 20), b"y" * (HEAD_BYTES - 10 - more)):
        whole = b"---\n" + filler + b"\n" + tail + b"\n---\nbody"
        assert split(whole) == split(whole[: HEAD_BYTES + 1])
    assert split(b"---" + b" " * HEAD_BYTES) is None


@given(LINES)
def test_simple_lines_are_read_as_yaml_reads_them(lines: list[str]) -> None:
    """The quick reading gives what YAML gives, but for words behind a sign for a comment."""
    raw = "".join(f"{line}\n" for line in lines)
    quick = plain_fields(raw)
    if quick is None or " #" in raw:
        return
    assert mapping(raw)[1] == ""
    loaded = dict(mapping(raw)[0] or {})
    if isinstance(loaded.get("metadata"), dict):
        loaded |= {f"metadata.{key}": text for key, text in loaded.pop("metadata").items()}
    elif "metadata" not in quick:
        assert loaded.pop("metadata", "") == ""
    assert loaded == quick


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_the_parts_of_a_head_are_the_head(lines: list[str], line_end: str) -> None:
    """Each line of a head belongs to one field or to none, in its order."""
    raw = "".join(f"{line}{line_end}" for line in lines).encode()
    assert b"".join(line for part in parts(raw) for line in part.lines) == raw


@given(st.text(max_size=40))
def test_a_written_value_is_read_back(text: str) -> None:
    """Any text, white space folded, survives writing and reading, also by a line-splitter."""
    line = f"key: {scalar(text)}"
    folded = " ".join(text.split())
    assert yaml.safe_load(line) == {"key": folded}
    assert len(line.splitlines()) == 1
    quick = plain_fields(f"{line}\n")
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
        ('"a" b', r'"\"a\" b"'),
        ("a\x07b", '"a\\u0007b"'),
        ("a\ud800b: c", '"a\ufffdb: c"'),
    ],
)
def test_quotes_stand_only_where_they_must(text: str, written: str) -> None:
    """Plain text stays plain; what a reader of YAML would misread is quoted."""
    assert scalar(text) == written


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
    answer = mapping(raw)[1]
    assert answer
    assert words in answer


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@` \n\t#,<~\\", max_size=60))
def test_nothing_makes_the_guard_raise(raw: str) -> None:
    """Any text is answered with words."""
    assert isinstance(mapping(raw)[1], str)
