"""Bytes to frames and back."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base import limits
from memd.rpc.framing import FrameReader, Framing, encode


def fed(*chunks: bytes) -> tuple[FrameReader, list[bytes]]:
    """Return a reader that was given these chunks, and the frames it gave."""
    reader, frames = FrameReader(), []
    for chunk in chunks:
        reader.feed(chunk)
        while (frame := reader.next_frame()) is not None:
            frames.append(frame)
    return reader, frames


@pytest.mark.parametrize(
    ("data", "framing", "frames"),
    [
        (b'{"a":1}\n', Framing.LINES, [b'{"a":1}']),
        (b' \r\n\t{"a":1}\r\n\n\r\n[2]\n', Framing.LINES, [b'{"a":1}', b"[2]"]),
        (b"[1]\nnot json\n", Framing.LINES, [b"[1]", b"not json"]),
        (b"Content-Length: 2\r\n\r\n{}", Framing.HEADERS, [b"{}"]),
        (b"content-LENGTH:2\n\n{}", Framing.HEADERS, [b"{}"]),
        (
            b"Content-Type: x; y=z\r\nContent-Length: 2\r\n\r\n[]\r\nContent-Length: 1\r\n\r\n1",
            Framing.HEADERS,
            [b"[]", b"1"],
        ),
        (b"Content-Length: 0\r\n\r\nContent-Length: 2\r\n\r\n{}", Framing.HEADERS, [b" ", b"{}"]),
        (b"", Framing.UNKNOWN, []),
        (b" \r\n ", Framing.UNKNOWN, []),
    ],
)
def test_each_framing_is_told_from_its_first_byte(
    data: bytes, framing: Framing, frames: list[bytes]
) -> None:
    """The same frames come out whether bytes come at once or one by one."""
    whole, at_once = fed(data)
    slow, one_by_one = fed(*[data[i : i + 1] for i in range(len(data))])
    assert (whole.framing, at_once) == (framing, frames)
    assert (slow.framing, one_by_one) == (framing, frames)
    assert not whole.pending
    assert whole.failure is None


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not_json"),
        (b"CONNECT x HTTP/1.1\r\n\r\n", "not_json"),
        (b"Cookie: x\r\n\r\n", "not_json"),
        (b"\x16\x03\x01\x02\x00", "not_json"),
        (b"\x1f\x8b\x08", "not_json"),
        (b"\xef\xbb\xbf{}\n", "not_json"),
        (b"\xff\xfe{\0", "not_json"),
        (b"\0" * 100, "not_json"),
        (b"Content-Length: x\r\n\r\n", "not_json"),
        (b"Content-Length: -1\r\n\r\n", "not_json"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "not_json"),
        (b"Content-Length: 4194305\r\n\r\n", "too_large"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n", "too_large"),
        (b"C" * 8193, "too_large"),
        (b"Content-Length: 2\r\n" + b"X: y\r\n" * 2000, "too_large"),
        (b"{" + b" " * limits.FRAME_BYTES, "too_large"),
        (b"{" + b" " * limits.FRAME_BYTES + b"\n", "too_large"),
    ],
)
def test_what_cannot_be_framed_is_fatal_once(data: bytes, kind: str) -> None:
    """The reader says why, then takes nothing more and holds nothing."""
    once, _ = fed(data)
    assert len(once._buffer) == 0
    reader, frames = fed(data, b"{}\n", b'{"a":1}\n')
    assert frames == []
    assert reader.failure is not None
    assert reader.failure.kind == kind
    assert not reader.pending
    assert reader.end() is None


def test_a_last_line_counts_without_its_newline() -> None:
    """The end of the bytes ends a line, as ``printf … | nc -N`` sends it."""
    reader, frames = fed(b'{"a":1}\n{"b":', b"2} ")
    assert frames == [b'{"a":1}']
    assert reader.pending
    assert reader.end() == b'{"b":2}'
    assert not reader.pending


@pytest.mark.parametrize(
    "data", [b"", b"Content-Length: 5\r\n\r\n{}", b"Content-Length: 5\r\n", b"{}\n\r"]
)
def test_an_end_in_the_middle_is_nothing(data: bytes) -> None:
    """A frame that its sender did not finish is dropped."""
    reader, _ = fed(data)
    assert reader.end() is None
    assert not reader.pending


@pytest.mark.parametrize("data", [b"{", b"Content", b"Content-Length: 3\r\n", b"C: 1\r\n\r"])
def test_a_begun_frame_is_pending(data: bytes) -> None:
    """The server can see that a frame has begun, to bound its time."""
    assert fed(data)[0].pending


def test_a_flood_without_newline_costs_linear_time() -> None:
    """Four MiB in small pieces are searched once, so the whole flood takes well under a second."""
    started = time.process_time()
    for filler in (b"x", b" ", b"["):
        reader = FrameReader()
        reader.feed(b"{")
        assert reader.next_frame() is None
        for _ in range(limits.FRAME_BYTES // 256):
            reader.feed(filler * 256)
            assert reader.next_frame() is None
    assert time.process_time() - started < 2
    assert fed(b" \n" * 1_000_000)[1] == []


frames = st.lists(
    st.binary(min_size=1, max_size=30)
    .map(lambda body: b"{" + body.replace(b"\n", b"").strip() + b"}")
    .filter(lambda body: body == body.strip()),
    max_size=5,
)


@given(frames, st.sampled_from([Framing.LINES, Framing.HEADERS]), st.integers(1, 20))
def test_what_is_encoded_is_read_back(bodies: list[bytes], framing: Framing, size: int) -> None:
    """Frames survive either framing, cut into chunks anywhere."""
    data = b"".join(encode(framing, body) for body in bodies)
    reader, got = fed(*[data[i : i + size] for i in range(0, len(data), size)])
    assert got == bodies
    assert not reader.pending
