"""What a project's instruction files say already, so that it becomes no memory. Pure.

Whether a file says a text is answered by a ``Covered``, which the composition gives; here are the
texts that it is asked about.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from memd.core.covered import Covered, CoveredText
from memd.core.text import one_line
from memd.core.values import Message, Suggestion
from memd.documents import secrets
from memd.documents.document import Document
from memd.extract.candidates import Candidates
from memd.extract.sentences import sentences
from memd.text.statements import undated

_SHOWN = 200  # characters of what a result names
_LISTED = 10  # sentences that a model is told of
_MESSAGES = 50  # of the person's, the newest, in which they are looked for


def already_said(text: str, covered: Covered) -> Iterator[CoveredText]:
    """Yield a text with the file that says it; nothing where none does."""
    file = covered(undated(text))
    if file:
        yield shown(text, file)


def shown(text: str, file: str) -> CoveredText:
    """Return what a result names: a text on one line, cut, without credentials."""
    return CoveredText(one_line(secrets.scrub(text), _SHOWN), file)


def without(result: Candidates, covered: Covered) -> Candidates:
    """Return what was looked for without the suggestions that files say, which are named."""
    rest: list[Suggestion] = []
    covered_texts: list[CoveredText] = []
    for suggestion in result.suggestions:
        said = [*already_said(suggestion.text, covered)]
        covered_texts += said
        rest += [] if said else [suggestion]
    return replace(result, suggestions=tuple(rest), already_said=tuple(covered_texts))


def in_messages(messages: Sequence[Message], covered: Covered) -> tuple[CoveredText, ...]:
    """Return the person's newest sentences that files say."""
    own = [message.text for message in messages if message.role == message.origin == "user"]
    said = (
        each
        for text in own[-_MESSAGES:][::-1]
        for sentence in sentences(text)
        for each in already_said(sentence.text, covered)
    )
    return tuple(dict.fromkeys(islice(said, _LISTED)))


def in_memory(old: Document, new: Document, covered: Covered) -> str:
    """Return the file that says all that a memory would newly say, "" where none does.

    A memory that loses something is corrected, which no file can do.
    """
    before, after = (
        dict.fromkeys(f"{each.description}\n\n{each.body}".splitlines()) for each in (old, new)
    )
    if any(line.strip() and line not in after for line in before):
        return ""
    return covered("\n".join(line for line in after if not line or line not in before))
