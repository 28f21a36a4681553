"""Names of agents and addresses."""

import gzip
import time
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.base.agents import RESERVED_NAMES
from memd.base.errors import Invalid, MemdError, Refused
from memd.messages import names
from memd.messages.names import AgentAddress
from tests.corpora import folder

HOSTILE = ("", ".", "..", "a/b", "-x", "a b", "é", "CON", "nul.txt", "a\nb", "a\0b", "%2e%2e", "A")


@pytest.mark.parametrize("name", [*HOSTILE, *RESERVED_NAMES, "x" * 65, "a" * 100_000])
def test_a_hostile_name_is_no_agent_s(name: str) -> None:
    """A name is one plain component in lower case of at most 64 characters, and not reserved."""
    with pytest.raises(Refused) as caught:
        names.check_agent_name(name)
    assert "agents' names" in caught.value.hint  # not the rule for the names of memories


def test_names_of_the_corpus_lead_nowhere() -> None:
    """Whatever names others collected as hostile: each is refused, or is one plain component."""
    count = 0
    packed = folder("paths") / "all_traversals.txt.gz"
    with gzip.open(packed, "rt", encoding="utf-8", errors="replace") as lines:
        for name in islice(map(str.rstrip, lines), 0, None, 20):
            count += 1
            try:
                accepted = names.check_agent_name(name)
            except MemdError:
                continue
            assert accepted == name
            assert "/" not in name
            assert ".." not in name
            assert name.isascii()
    assert count > 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann", AgentAddress("ann")),
        ("ann/kid", AgentAddress("kid", "ann")),
        ("ann@-home-p", AgentAddress("ann", "", "-home-p")),
        ("ann/kid@-home-p", AgentAddress("kid", "ann", "-home-p")),
    ],
)
def test_an_address_says_whom_it_means(text: str, expected: object) -> None:
    """Each form of an address is read as what it stands for."""
    assert names.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "a/b/c", "ann@", "ann@../x", "uds:", "uds:/s", "uds:/s#ann", "x" * 5_000,
    ],
)  # fmt: skip
def test_what_is_no_address_is_an_error(text: str) -> None:
    """A text that names nobody is refused with a sentence."""
    with pytest.raises((Invalid, Refused)):
        names.parse(text)


@given(st.text(max_size=200), st.text(max_size=80))
def test_a_name_is_made_of_any_title(title: str, otherwise: str) -> None:
    """Whatever a session is called, the name made of it is one that an agent may have."""
    name = names.name_from(title, otherwise)
    assert names.check_agent_name(name) == name


@given(st.sets(st.from_regex(r"[a-z][a-z0-9-]{0,63}", fullmatch=True), max_size=20), st.data())
def test_a_free_name_is_free(taken: set[str], data: st.DataObject) -> None:
    """The name that is proposed in the place of a taken one is allowed and nobody's."""
    wanted = data.draw(st.sampled_from(sorted(taken))) if taken else "ann"
    free = names.free_name(wanted, taken)
    assert free not in taken
    assert names.check_agent_name(free) == free


def test_no_names_make_a_wrong_one_slow() -> None:
    """What is like an address costs little time, however the names in use were chosen."""
    known = [
        f"{'ab' * 30}{number:04d}/{'ba' * 30}{number:04d}@-{'ab' * 30}" for number in range(500)
    ]
    began = time.process_time()
    assert names.nearest(f"{'ab' * 32}/{'ba' * 32}@-{'ab' * 30}", known)
    assert time.process_time() - began < 1
