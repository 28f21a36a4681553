"""JSON read strictly, against JSONTestSuite where it is at hand."""

import gc
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.strict_json import NotJsonError, decode, deeper_than
from tests.corpora import PLACE

SUITE = PLACE / "JSONTestSuite" / "test_parsing"
# Valid by the letter of RFC 8259, which only discourages a key that comes twice; refused here.
STRICTER = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

needs_suite = pytest.mark.skipif(
    not SUITE.is_dir(), reason=f"JSONTestSuite is not at {SUITE}; set MEMD_CORPORA"
)


@needs_suite
def test_the_suites_valid_texts_are_read() -> None:
    """Every y_ file of JSONTestSuite is accepted but those with a key twice."""
    refused = set()
    for file in sorted(SUITE.glob("y_*.json")):
        try:
            decode(file.read_bytes())
        except NotJsonError:
            refused.add(file.name)
    assert refused == STRICTER


@needs_suite
def test_the_suites_invalid_texts_are_refused() -> None:
    """Every n_ file of JSONTestSuite is refused with the one error of the module."""
    files = sorted(SUITE.glob("n_*.json"))
    assert len(files) > 180
    for file in files:
        with pytest.raises(NotJsonError):
            decode(file.read_bytes())


@needs_suite
def test_the_suites_open_cases_are_read_or_refused() -> None:
    """An i_ file of JSONTestSuite gives a value that UTF-8 can carry, or the one error."""
    for file in sorted(SUITE.glob("i_*.json")):
        try:
            value = decode(file.read_bytes())
        except NotJsonError:
            continue
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'{"a":1,"a":1}',
        b'[{"b":{"a":1,"a":2}}]',
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'\xef\xbb\xbf{"a":1}',
        b"NaN",
        b"-Infinity",
        b"1e400",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"1" * 5000,
        b"[" * 100_000,
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        '{"a":1}'.encode("utf-16"),
    ],
)
def test_ambiguous_texts_are_refused(text: bytes) -> None:
    """What two readers could read differently is refused with one error class."""
    with pytest.raises(NotJsonError) as caught:
        decode(text)
    assert len(caught.value.sentence) < 300


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_values)
def test_what_json_writes_is_read_back(value: Any) -> None:
    """Any value written by the standard library comes back equal."""
    assert decode(json.dumps(value).encode()) == value


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    """No bytes make the reader fail in another way."""
    with suppress(NotJsonError):
        decode(data)


@given(json_values, st.integers(0, 6))
def test_depth_is_counted_as_python_counts_it(value: Any, limit: int) -> None:
    """The count over bytes agrees with one over the value."""

    def depth(item: Any) -> int:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        nests = isinstance(item, dict | list)
        return nests + max((depth(each) for each in inner), default=0)

    assert deeper_than(json.dumps(value).encode(), limit) == (depth(value) > limit)


def test_a_large_text_leaves_the_collector_as_it_was() -> None:
    """Reading many objects pauses the cycle collector and gives it back, also after a refusal."""
    large = b"[" + b"{}," * 100_000 + b"{}]"
    assert len(decode(large)) == 100_001
    with pytest.raises(NotJsonError):
        decode(large + b"x")
    assert gc.isenabled()
    gc.disable()
    try:
        decode(large)
        assert not gc.isenabled()
    finally:
        gc.enable()
