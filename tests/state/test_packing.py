"""How bodies are packed for the journal."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from memd.core import limits
from memd.state.packing import packed

_LARGE = b"".join(b"- [%d](%d.md)\n" % (n, n * n) for n in range(8000))


def test_a_body_comes_out_as_it_went_in() -> None:
    """Small bodies are packed as small as they get, large ones quickly."""
    assert zlib.decompress(packed(b"text\n" * 1000)) == b"text\n" * 1000
    assert len(_LARGE) > limits.MEMORY_BYTES
    assert zlib.decompress(packed(_LARGE)) == _LARGE
    assert len(packed(_LARGE)) < len(_LARGE) / 2


@given(st.lists(st.tuples(st.integers(0, len(_LARGE)), st.binary(max_size=20)), max_size=4))
def test_what_was_packed_before_is_in_no_other_body(edits: list[tuple[int, bytes]]) -> None:
    """Every version of a large body comes out as it is, appended to, cut or changed."""
    body = _LARGE
    for at, more in edits:
        body = body + more if at % 2 else body[:at] + more + body[at + 1 :]
        assert zlib.decompress(packed(body)) == body
        assert zlib.decompress(packed(body)) == body
