"""Build the request for a summary of a conversation, and read the summary in the reply. Pure.

Rules of this file
- Messages are quoted as data, in tags that no text can close and that name the author.
- The person's messages do not depend on the model: the newest 2,500 are copied to the summary, at
  least the beginning of each, also those from an earlier summary.
- A model does not see thinking, nor what memd and clients insert. Images and documents are named.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task
from memd.base import prose
from memd.base.values import Message
from memd.conversation import history
from memd.conversation.dialogue import rendered, shortened
from memd.conversation.pieces import ASSISTANT, TEXT_CHARACTERS, USER, other_words, string
from memd.text import quoting, tags

KIND = "compact"
SECTIONS = (
    "Request and intent",
    "Concepts",
    "Files and code",
    "Errors and fixes",
    "Problem solving",
    "All user messages",
    "Pending tasks",
    "Current work",
    "Next step",
)
PERSONS = SECTIONS[5]
LEAD = (
    "The part of the conversation that stood here is replaced by a summary of it: a record with"
    " quotations, and no orders by itself."
)
TOKENS = 20_000  # for the sections of a model, and as many again for the person's messages
_LEAST_TOKENS = 40  # of each of the person's messages, if there is room for so many
_FEWEST_TOKENS = 8  # of each of them; if that does not fit, the oldest are left out
_OLDER_LEFT_OUT = "{} older messages are left out."
# The most characters of one text that a model is shown, by its author.
_MOST_CHARACTERS = {USER: 20_000, ASSISTANT: 8_000, "tool": 3_000, "summary": 200_000}
_CALL_CHARACTERS = 1_200
_USUAL_EXCESS = 0.2  # share to leave out if a server does not say how much is too much
_CUT = "[cut]"  # ends a text that was cut
# Tags of a model's reply; they are escaped in what it is shown, so that it cannot copy them.
_REPLY_TAG = r"(?i)<(?=\s*/?\s*(?:analysis|summary)\b)"
_TITLES = {title.casefold(): title for title in SECTIONS}
_HEADING = r"#{1,6} *(?:\d+[.)] *)?(.+?) *:?"
_EXCESS = r"(\d{3,})\D{1,30}?> *(\d{3,})"  # as "210000 tokens > 200000 maximum"
_PACKAGE = "memd.context"
_TASK = Task(
    kind=KIND,
    model="",
    messages=(),
    tools=(),
    runs=frozenset(),
    budget=Budget(turns=1, reply_tokens=TOKENS, output_tokens=TOKENS, total_tokens=4_000_000),
    seconds=240.0,
    ask_seconds=240.0,
    extra=LITTLE_THOUGHT,
)


def quoted_rounds(messages: Sequence[Mapping[str, Any]], start: int, end: int) -> list[str]:
    """Return ``messages[start:end]`` as quoted text for a model, one text for each round."""
    inner_edges = [place for place in history.rounds(messages) if start < place < end]
    result = []
    for first, end_of_round in pairwise([start, *inner_edges, end]):
        texts = [_quoted_message(message) for message in messages[first:end_of_round]]
        result.append("\n\n".join(text for text in texts if text))
    return [text for text in result if text]


def summary_task(
    texts: Sequence[str], instructions: str, left: int, model: str, project: str
) -> Task:
    """Return the agent task that summarises rounds; ``left`` is how many rounds are left out.

    ``instructions`` are the person's, "" for none. The cost is booked on ``project``.
    """
    flags = ["left"] if left else []
    if instructions:
        flags.append("instructions")
    values = {
        "left": str(left),
        "tokens": f"{TOKENS // 2:,}",
        "instructions": quoting.neutralise(instructions),
    }
    prompt = prose.fill(prose.template("compact", _PACKAGE), flags, values)
    blocks = [{"type": "text", "text": text} for text in ("\n\n".join(texts), prompt)]
    return replace(
        _TASK,
        model=model,
        messages=({"role": "user", "content": blocks},),
        system=prose.template("system", _PACKAGE),
        project=project,
    )


def without_oldest(texts: Sequence[str], sentence: str) -> list[str]:
    """Return the rounds without the oldest ones, to try again after they were too long.

    ``sentence`` is the server's error, which may say by how many tokens. The first round stays: it
    has the person's request or an earlier summary. Empty if nothing else would be left.
    """
    match = re.search(_EXCESS, sentence)  # how many tokens there were, and how many may be
    share = 1 - int(match[2]) / int(match[1]) if match else _USUAL_EXCESS
    if share <= 0:
        share = _USUAL_EXCESS
    sizes = [history.estimate_text(text) for text in texts]
    excess = sum(sizes) * share
    first = 1  # the first round that stays, besides the very first
    while first < len(texts) and excess > 0:
        excess -= sizes[first]
        first += 1
    return [texts[0], *texts[first:]] if first < len(texts) else []


def sections_of_reply(text: str) -> dict[str, str]:
    """Return the sections of a model's reply, shortened to 20,000 tokens; empty if it has none.

    Its analysis and its section about the person's messages are left out.
    """
    _, end_of_analysis, behind = text.partition("</analysis>")
    _, _, body = (behind if end_of_analysis else text).partition("<summary>")
    # A reply may end without the closing tag.
    sections = parsed_sections(body.rpartition("</summary>")[0] or body)
    sections.pop(PERSONS, None)
    return cut_to(sections, TOKENS)


def cut_to(sections: Mapping[str, str], tokens: int) -> dict[str, str]:
    """Return the sections cut to ``tokens`` in total; the longest lose text first."""
    sizes = [history.estimate_text(body) for body in sections.values()]
    shares = dict(zip(sections, quoting.shares(sizes, tokens), strict=True))
    return {title: _cut_to_tokens(body, shares[title]) for title, body in sections.items()}


def parsed_sections(text: str) -> dict[str, str]:
    """Return the non-empty sections of a summary by title; "" has the text above the first."""
    title, bodies = "", dict[str, list[str]]()
    for line in quoting.neutralise(string(text)).split("\n"):
        heading = re.fullmatch(_HEADING, line)
        new_title = _TITLES.get(heading[1].casefold(), "") if heading else ""
        if new_title:
            title = new_title
        else:
            bodies.setdefault(title, []).append(line)
    joined = {title: "\n".join(lines).strip() for title, lines in bodies.items()}
    return {title: body for title, body in joined.items() if body}


def persons_messages(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the person's messages, also those quoted in earlier summaries."""
    result: list[str] = []
    for message in messages:
        summary, other_content = history.summary_and_rest(message)
        if summary:
            lines = parsed_sections(summary).get(PERSONS, "").split("\n")
            for is_quoted, group in groupby(lines, key=lambda line: line.startswith(">")):
                if is_quoted:
                    result.append("\n".join(map(_without_quotation_mark, group)))
        if message.get("role") == USER:
            texts = [
                text for author, text in _authored_texts(message, other_content) if author == USER
            ]
            words = "\n\n".join(texts)
            if words:
                result.append(words)
    return result


def summary_text(
    lead: str, sections: Mapping[str, str], messages: Sequence[str], tokens: int
) -> str:
    """Return the text of a summary: its sections in order, with the person's messages.

    ``lead`` is its first sentence; ``messages`` are the person's, oldest first. They get ``tokens``
    together. If that is too little, each keeps its beginning and the newest get the rest.
    """
    most_messages = tokens // _FEWEST_TOKENS
    quotations = [_as_quotation(text) for text in messages[-most_messages:]]
    least_tokens = min(_LEAST_TOKENS, tokens // max(len(quotations), 1))
    sizes = [history.estimate_text(text) for text in quotations]
    tokens_left = tokens - sum(min(size, least_tokens) for size in sizes)
    for index in reversed(range(len(quotations))):
        further_tokens = min(max(sizes[index] - least_tokens, 0), tokens_left)
        tokens_left -= further_tokens
        quotations[index] = _cut_to_tokens(quotations[index], least_tokens + further_tokens)
    if len(messages) > most_messages:
        quotations.insert(0, _OLDER_LEFT_OUT.format(len(messages) - most_messages))
    bodies = {**sections, PERSONS: "\n\n".join(quotations)}
    titled = [f"# {title}\n{bodies[title]}" for title in SECTIONS if bodies.get(title)]
    parts = [lead, bodies.get("", ""), *titled]
    return "\n\n".join(part for part in parts if part)


def _quoted_message(message: Mapping[str, Any]) -> str:
    """Return a message as quoted text for a model, with the author of each part."""
    summary, other_content = history.summary_and_rest(message)
    pieces = [("summary", summary), *_authored_texts(message, other_content)]
    texts = []
    for author, group in groupby(pieces, key=lambda piece: piece[0]):
        words = "\n\n".join(shortened(text, _MOST_CHARACTERS[author]) for _, text in group)
        text = re.sub(_REPLY_TAG, "&lt;", quoting.neutralise(words).strip())
        if text:
            texts.append(rendered(Message("", "", text, author, None)))
    return "\n\n".join(text for text in texts if text)


def _authored_texts(message: Mapping[str, Any], content: Any) -> Iterator[tuple[str, str]]:
    """Yield the author and the text of each block of a message's content."""
    role = str(message.get("role"))
    # A client wrote system messages and meta messages.
    if role not in (USER, ASSISTANT) or message.get("isMeta"):
        return
    words = _person_words if role == USER else other_words
    for block in history.blocks_of(content) or ():
        kind = block["type"]
        if kind == "text":
            yield role, words(block["text"])
        elif kind.endswith("tool_result"):
            heading = "(failed)\n" if block.get("is_error") is True else ""
            yield "tool", heading + _output_text(block.get("content"))
        elif kind.endswith("tool_use"):
            arguments = json.dumps(block.get("input"), ensure_ascii=False, default=str)
            call = f"{string(block.get('name'))} {string(arguments)}"
            yield ASSISTANT, f"[called {shortened(call, _CALL_CHARACTERS)}]"
        elif kind in ("image", "document"):
            yield role, f"[{kind}]"


def _person_words(text: str) -> str:
    """Return a text without what clients inserted in tags; all else counts as the person's."""
    return tags.strip_closed(string(text)[:TEXT_CHARACTERS]).strip()


def _output_text(content: Any) -> str:
    """Return the text of a tool's output, with the type of each block that is not text."""
    if not isinstance(content, list):
        return other_words(content)
    blocks = (block for block in content if isinstance(block, dict))
    return "\n".join(other_words(b.get("text")) or f"[{string(b.get('type'))}]" for b in blocks)


def _as_quotation(text: str) -> str:
    """Return a text as a Markdown quotation."""
    lines = quoting.neutralise(string(text)).strip().split("\n")
    return "\n".join(f"> {line}" for line in lines)


def _without_quotation_mark(line: str) -> str:
    """Return a line of a quotation without its mark."""
    return line.removeprefix(">").removeprefix(" ")


def _cut_to_tokens(text: str, tokens: int) -> str:
    """Return a text, cut at the end of a line if it has more than ``tokens`` tokens."""
    size = history.estimate_text(text)
    if size <= tokens:
        return text
    start = text[: len(text) * tokens // size]
    whole_lines = start.rpartition("\n")[0] or start
    quotation_mark = "> " if text.startswith(">") else ""
    return f"{whole_lines}\n{quotation_mark}{_CUT}"
