"""Whose words a memory of a model's carries, where others' words stood beside (spec 8.4). Pure.

Rules of this file
- Output of tools, of the web and of other servers is nobody's word. A memory about how the person
  wants to be worked with, or about who they are, may come of it only where the person's own words
  in the same stretch say so too.
- "Say so too" is counted: enough of the words that carry the memory's first statement stand in what
  the person said. That is strict on purpose: what is dropped here can still be said again, what is
  kept steers every later conversation.
"""

from memd.agent.proposal import Proposal, Proposed
from memd.core.values import MemoryType
from memd.state.words import is_common, words
from memd.store import document
from memd.store.names import INDEX

_GUARDED = (MemoryType.FEEDBACK, MemoryType.USER)
_LEAST = 2  # words that both have
_SHARE = 0.5  # of the words of the memory's description
USER, ASSISTANT, OUTSIDE = "user", "assistant", "outside"


def vouched(proposal: Proposal, own: str, *, output: bool) -> tuple[Proposal, tuple[str, ...]]:
    """Return what of a proposal may stand, and the paths of what may not.

    ``own`` is what the person said, ``output`` whether others' words stood beside.
    """
    if not output:
        return proposal, ()
    known = set(words(own))
    dropped = {file.path for file in proposal.files if _guarded(file) and not _carried(file, known)}
    if not dropped:
        return proposal, ()
    kept = tuple(file for file in proposal.files if file.path not in dropped | {INDEX})
    return Proposal(kept), tuple(sorted(dropped))


def origin(proposal: Proposal, own: str, *, output: bool) -> str:
    """Return whose words a change carries at the least: what is least to be trusted counts."""
    known = set(words(own))
    files = [file for file in proposal.files if file.content is not None and file.path != INDEX]
    if all(_carried(file, known) for file in files):
        return USER
    return OUTSIDE if output else ASSISTANT


def _guarded(file: Proposed) -> bool:
    if file.content is None or file.path == INDEX:
        return False
    return document.parse(file.content, file.path).type in _GUARDED


def _carried(file: Proposed, known: set[str]) -> bool:
    read = document.parse(file.content or b"", file.path)
    said = {word for word in words(read.description) if not is_common(word)}
    shared = len(said & known)
    return shared >= max(1, min(_LEAST, len(said))) and shared >= _SHARE * len(said)
