"""Whose words a memory of a model's carries, where others' words stood beside. Pure.

Rules of this file
- Output of tools, of the web and of other servers, and what the person pasted, is nobody's word.
  A memory about how the person wants to be worked with, or about who they are, may come of it only
  where the person's own words in the same stretch say so too.
- "Say so too" is counted: enough of the words that carry the memory's first new statement stand in
  what the person said, and nothing that is new in it repeats others' words which the person did
  not use. That is strict on purpose: what is dropped here can still be said again, what is kept
  steers every later conversation.
- What the run itself looked at, the list of memories among it, may come from others as well: a
  memory of these two types, or an index, that repeats it in words that are not the person's does
  not stand either.
- The index reaches every session whole. Beside others' words a model does not write it: the store
  adds the line of a new memory by itself.
"""

from memd.agent.proposal import Proposed, RunProposal
from memd.core.names import INDEX
from memd.core.text import decode
from memd.core.values import PERSONAL
from memd.documents import document
from memd.text.words import is_common, words

_LEAST = 2  # words that both have
_SHARE = 0.5  # of the words of the memory's description
_RUN = 4  # words in a row that two texts hardly share by chance
USER, ASSISTANT, OUTSIDE = "user", "assistant", "outside"


class Voices:
    """What a person said, what others said beside, and what the run looked at; plain texts.

    ``alone`` says that nobody else spoke. Counting words takes a moment and is done at the first
    comparison.
    """

    def __init__(self, own: str, others: str, seen: str = "") -> None:
        self.alone = not others.strip()
        self._own = frozenset(words(own))
        self._spoken = _row(own)
        self._others = f"{others}\n{seen}"
        self._heard = ""

    def carry(self, file: Proposed) -> bool:
        """Return whether the person's words say what a memory says first that is new."""
        said = {word for word in words(_statement(file)) if not is_common(word)}
        shared = len(said & self._own)
        return shared >= max(1, min(_LEAST, len(said))) and shared >= _SHARE * len(said)

    def echo(self, file: Proposed) -> bool:
        """Return whether what is new in a file has words in a row that only others said."""
        self._heard = self._heard or _row(self._others)
        before = _row(decode(file.base or b""))
        result = words("\n".join(_added(file)))
        length = min(_RUN, len(result))
        for start in range(len(result) - length + 1):
            run = result[start : start + length]
            foreign = sum(word not in self._own for word in run)
            row = f" {' '.join(run)} "
            known = row in self._spoken or row in before
            if 2 * foreign >= length and row in self._heard and not known:
                return True
        return False


def vouched(proposal: RunProposal, voices: Voices) -> tuple[RunProposal, tuple[str, ...]]:
    """Return what of a proposal may stand, and the paths of the memories that may not."""
    dropped = {file.path for file in proposal.files if not _stands(file, voices)}
    retained = tuple(file for file in proposal.files if file.path not in dropped)
    return RunProposal(retained), tuple(sorted(dropped - {INDEX}))


def origin(proposal: RunProposal, voices: Voices) -> str:
    """Return whose words a change carries at the least: what is least to be trusted counts."""
    files = [file for file in proposal.files if file.content is not None and file.path != INDEX]
    if any(voices.echo(file) for file in files):
        return OUTSIDE
    if all(voices.carry(file) for file in files):
        return USER
    return ASSISTANT if voices.alone else OUTSIDE


def _stands(file: Proposed, voices: Voices) -> bool:
    if file.path == INDEX:
        return voices.alone and not voices.echo(file)
    if not _guarded(file):
        return True
    return (voices.alone or voices.carry(file)) and not voices.echo(file)


def _guarded(file: Proposed) -> bool:
    """Return whether a memory is, or was before the run, one that only the person can ask for."""
    if file.content is None:
        return False
    versions = (file.content, file.base or b"")
    return any(document.parse(version, file.path).type in PERSONAL for version in versions)


def _statement(file: Proposed) -> str:
    """Return what a memory says first that is new: its description, else its first new line."""
    now = document.parse(file.content or b"", file.path).description
    if file.base is None or now != document.parse(file.base, file.path).description:
        return now
    return next((line for line in _added(file) if line.strip()), "")


def _added(file: Proposed) -> list[str]:
    """Return the lines of a memory that were not in it before."""
    before = set(decode(file.base or b"").splitlines())
    return [line for line in decode(file.content or b"").splitlines() if line not in before]


def _row(text: str) -> str:
    return f" {' '.join(words(text))} "
