"""Where Gemini CLI sees a path in a text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.instructions.imports import code_spans, imports

_CLIENT = re.compile(r"(`+)([\s\S]*?)\1")  # the client's own expression, which is not linear


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@a.md", ["a.md"]),
        ("@./a.md and @/b.md\tand\n@../c", ["./a.md", "/b.md", "../c"]),
        ("x @a.md, y @b.md.\r\n", ["a.md,", "b.md."]),
        ("(@a) @@b @_c @1d @ünï @~/e me@f.org", []),
        ("behind\u00a0@no-break", []),
        ("<!-- @a.md --> <b>@c</b>", ["a.md"]),
        ("`@a` @b `@c`", ["b"]),
        ("```\n@a\n``` @b", ["b"]),
        ("`` @a ` @b `` @c", ["c"]),
        ("one ` alone @a", ["a"]),
        ("~~~\n@a\n~~~\n    @b", ["a", "b"]),
        ("", []),
    ],
)
def test_where_a_path_counts(text: str, paths: list[str]) -> None:
    """Paths stand behind white space and outside of code; all else is text."""
    assert [found[1] for found in imports(text)] == paths


@given(st.text(alphabet="``` a\n", max_size=40))
def test_code_is_where_the_client_sees_it(text: str) -> None:
    """The spans are those of the client's expression."""
    assert list(code_spans(text)) == [found.span() for found in _CLIENT.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "@a " * 100_000,
        "`" * 1_000_000,
        "`" * 1000 + "x" * 1_000_000 + "@a",
        "`x" * 100_000 + "@a",
        "".join("`" * (n % 700) + " @a " for n in range(3000)),
        "@" * 1_000_000,
    ],
    ids=range(6),
)
def test_work_is_linear(text: str) -> None:
    """A megabyte that is made to be searched again and again is read at once."""
    begun = time.process_time()
    assert sum(1 for _ in imports(text)) <= 100_000
    assert time.process_time() - begun < 2
