"""Nothing is learnt from what other agents wrote."""

from memd.agent.proposal import Proposed
from memd.base.values import AGENT, ASSISTANT, OUTSIDE
from memd.extract.evidence import Talk, Utterance
from memd.extract.review import OTHERS_WORDS, review

_PERSON = (Utterance("Please look at why the nightly build of the parser is slow."),)
_MESSAGE = "The nightly build runs on the host amber7 and takes 94 minutes because of the fuzz step"


def fact(*lines: str) -> Proposed:
    """Return a new memory that states something of the project."""
    body = "\n".join(lines)
    head = "---\nname: nightly\ndescription: Nightly build\ntype: project\n---\n\n"
    return Proposed("nightly.md", None, f"{head}{body}\n".encode())


def test_a_message_alone_bears_out_nothing() -> None:
    """A fact whose particulars or words stand in a message alone is refused."""
    talk = Talk(_PERSON, agents=_MESSAGE)
    assert review(fact(_MESSAGE), talk).fault == OTHERS_WORDS
    assert review(fact("The build runs on amber7."), talk).fault == OTHERS_WORDS


def test_a_fact_with_more_grounds_carries_the_agent_s_mark() -> None:
    """What the conversation bears out and a message says too is marked as an agent's words."""
    talk = Talk(_PERSON, assistant="amber7 takes 94 minutes", agents=_MESSAGE)
    own = "The parser is slow at night."
    assert review(fact(own, _MESSAGE), talk).origin == AGENT
    assert review(fact(own), talk).origin == ASSISTANT
    page = Talk(_PERSON, outside=_MESSAGE, agents=_MESSAGE)
    assert review(fact(own, _MESSAGE), page).origin == OUTSIDE
