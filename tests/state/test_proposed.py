"""What a proposal says, as values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.core.text import sha256
from memd.state.proposed import ProposedEdit, is_plain, read_edits, state_of

BYTES = st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode())
WORDS = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), max_size=12)
EDITS = st.builds(
    ProposedEdit,
    WORDS.map(lambda text: f"{text}.md"),
    st.none() | BYTES,
    st.sampled_from(["", "0" * 64]),
    st.none() | BYTES,
    WORDS,
    WORDS,
    st.sampled_from(["open", "accepted", "rejected"]),
    st.none() | st.integers(0, 2**63 - 1),
)


@given(st.lists(EDITS, max_size=4, unique_by=lambda edit: edit.path))
def test_edits_survive_their_json(edits: list[ProposedEdit]) -> None:
    """Whatever the bytes of a text, what was proposed is what is read."""
    assert read_edits({"edits": [edit.facts() for edit in edits]}) == tuple(edits)


GOOD: dict[str, Any] = {"path": "a.md", "content": "x", "base": "", "before": None}
WRONG: list[dict[str, Any]] = [
    {"path": ""},
    {"path": None},
    {"path": "a" * 1001},
    {"path": "\udc80.md"},
    {"content": 1},
    {"content": "\ud800"},
    {"before": []},
    {"base": 7},
    {"reason": {}},
    {"merged_into": None},
    {"state": "done"},
    {"state": []},
]


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"edits": None},
        {"edits": {"path": "a.md"}},
        {"edits": ["a.md"]},
        {"edits": [GOOD, GOOD]},
        {"edits": [GOOD] * 2001},
        *({"edits": [GOOD | wrong]} for wrong in WRONG),
    ],
)
def test_what_makes_no_sense_has_no_edits(content: dict[str, Any]) -> None:
    """A row that memd did not write so is one that cannot be read."""
    assert read_edits(content) is None


def test_an_older_proposal_is_read() -> None:
    """What an older memd kept has no state and may not say what it had read."""
    old = {"path": "a.md", "content": None, "base": None}
    assert read_edits({"edits": [old]}) == (ProposedEdit("a.md", None),)
    (known,) = read_edits({"edits": [old | {"before": "x", "mtime_ns": True}]}) or ()
    assert (known.base, known.mtime_ns) == (sha256(b"x"), None)


def test_a_wish_is_told_in_a_line() -> None:
    """Each kind of edit is told with its reason, on one line."""
    told = [
        ProposedEdit("a.md", None, "0", merged_into="b.md", reason="same").wanted,
        ProposedEdit("a.md", None, "0", reason="out of\ndate").wanted,
        ProposedEdit("a.md", b"x", "0").wanted,
        ProposedEdit("a.md", b"x").wanted,
    ]
    assert told == [
        "merge a.md into b.md",
        "remove a.md: out of date",
        "change a.md",
        "create a.md",
    ]


def test_a_proposal_is_open_as_long_as_an_edit_is() -> None:
    """All accepted is accepted, all rejected is rejected, some of each is partly."""
    edits = {name: ProposedEdit("a.md", b"", state=name) for name in ("open", "accepted")}
    rejected = ProposedEdit("b.md", b"", state="rejected")
    assert state_of(()) == "open"
    assert state_of([edits["accepted"], edits["open"]]) == "open"
    assert state_of([edits["accepted"]] * 2) == "accepted"
    assert state_of([rejected]) == "rejected"
    assert state_of([edits["accepted"], rejected]) == "partly"


def test_plain_text_is_short_and_can_be_sent() -> None:
    """What is no text, too long or no Unicode is not plain."""
    assert is_plain("naïve", 5)
    assert not any(is_plain(value, 5) for value in (5, None, "longer", "\udc80"))
