"""Leave out texts that a project's instruction files (such as CLAUDE.md) say already. Pure.

``Covered`` is a function from the daemon that returns the file that says a text, "" for none.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from memd.core.covered import Covered, CoveredText
from memd.core.text import one_line
from memd.core.values import Message, Suggestion
from memd.documents import secrets
from memd.documents.document import Document
from memd.extract.candidates import Candidates
from memd.extract.sentences import sentences
from memd.state.tables import OpenSuggestion
from memd.text.statements import undated

_SHOWN = 200  # characters of what a result names
_LISTED = 10  # covered sentences that a model is shown
_MESSAGES = 50  # newest messages of the person that are searched for them


def already_said(text: str, covered: Covered) -> Iterator[CoveredText]:
    """Yield a text with the instruction file that says it; yield nothing if none does."""
    file = covered(undated(text))
    if file:
        yield shown(text, file)


def shown(text: str, file: str) -> CoveredText:
    """Return a text for a result, on one line, cut and without credentials, with its file."""
    return CoveredText(one_line(secrets.scrub(text), _SHOWN), file)


def without(result: Candidates, covered: Covered) -> Candidates:
    """Return a result whose suggestions that files say are moved to ``already_said``."""
    remaining: list[Suggestion] = []
    covered_texts: list[CoveredText] = []
    for suggestion in result.suggestions:
        matches = [*already_said(suggestion.text, covered)]
        covered_texts += matches
        if not matches:
            remaining.append(suggestion)
    return replace(result, suggestions=tuple(remaining), already_said=tuple(covered_texts))


def in_messages(messages: Sequence[Message], covered: Covered) -> tuple[CoveredText, ...]:
    """Return the person's newest sentences that instruction files say, 10 at most."""
    texts = [message.text for message in messages if message.role == message.origin == "user"]
    covered_texts = (
        covered_text
        for text in texts[-_MESSAGES:][::-1]
        for sentence in sentences(text)
        for covered_text in already_said(sentence.text, covered)
    )
    return tuple(dict.fromkeys(islice(covered_texts, _LISTED)))


def split(
    suggestions: Sequence[OpenSuggestion], messages: Sequence[Message], covered: Covered
) -> tuple[Sequence[OpenSuggestion], Sequence[CoveredText]]:
    """Return the suggestions that no file says, and the sentences of messages that files say."""
    rest = [suggestion for suggestion in suggestions if not covered(suggestion.text)]
    return rest, in_messages(messages, covered)


def in_memory(old: Document, new: Document, covered: Covered) -> str:
    """Return the instruction file that says all new lines of a memory, "" if none does.

    The result is also "" for a memory that loses a line, since that is a correction.
    """
    before, after = _lines(old), _lines(new)
    if any(line.strip() and line not in after for line in before):
        return ""
    return covered("\n".join(line for line in after if not line or line not in before))


def _lines(memory: Document) -> dict[str, None]:
    """Return the lines of a memory's description and body, each once, as keys in their order."""
    return dict.fromkeys(f"{memory.description}\n\n{memory.body}".splitlines())
