"""Build the request for a summary of a conversation, and read the summary in the reply. Pure.

Rules of this file
- Messages are quoted as data, in tags that no text can close and that name the author.
- The person's messages do not depend on the model: the newest 2,500 are copied to the summary, at
  least the beginning of each, also those from an earlier summary.
- A model does not see thinking, nor what memd and clients insert. Images and documents are named.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from msgspec.structs import replace

from memd.agent.service import LITTLE_THOUGHT, Budget, Task, ToolResult
from memd.conversation import history
from memd.conversation.dialogue import rendered, shortened
from memd.conversation.pieces import ASSISTANT, TEXT_CHARACTERS, USER, other_words, string
from memd.core import prose
from memd.core.values import Message
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
_LEFT_OUT = "{} older messages are left out."
# The most characters of one text that a model is shown, by its author.
_CHARACTERS = {USER: 20_000, ASSISTANT: 8_000, "tool": 3_000, "summary": 200_000}
_CALL_CHARACTERS = 1_200
_FIFTH = 0.2  # share to leave out if a server does not say how much is too much
_CUT = "[cut]"
# Tags of a model's reply; they are escaped in what it is shown, so that it cannot copy them.
_ANSWER = re.compile(r"<(?=\s*/?\s*(?:analysis|summary)\b)", re.IGNORECASE)
_TITLES = {title.casefold(): title for title in SECTIONS}
_HEADING = re.compile(r"#{1,6} *(?:\d+[.)] *)?(.+?) *:?")
_GAP = re.compile(r"(\d{3,})\D{1,30}?> *(\d{3,})")  # as "210000 tokens > 200000 maximum"
_PACKAGE = "memd.context"
_RUN = Task(
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


class NoTools:
    """The tools of a run that has none; every call is refused."""

    touched: tuple[str, ...] = ()

    def call(
        self, _name: str, _given: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Refuse every call."""
        return ToolResult("There are no tools.", "denied")


def shown(messages: Sequence[Mapping[str, Any]], start: int, end: int) -> list[str]:
    """Return ``messages[start:end]`` as quoted text for a model, one text for each round."""
    edges = [start, *(place for place in history.rounds(messages) if start < place < end), end]
    texts = ("\n\n".join(filter(None, map(_shown, messages[a:b]))) for a, b in pairwise(edges))
    return [text for text in texts if text]


def task(texts: Sequence[str], instructions: str, left: int, model: str, project: str) -> Task:
    """Return the agent task that summarises rounds; ``left`` is how many rounds are left out.

    ``instructions`` are the person's, "" for none. The cost is booked on ``project``.
    """
    flags = [name for name, given in (("left", left), ("instructions", instructions)) if given]
    values = {
        "left": str(left),
        "tokens": f"{TOKENS // 2:,}",
        "instructions": quoting.neutralise(instructions),
    }
    prompt = prose.fill(prose.template("compact", _PACKAGE), flags, values)
    blocks = [{"type": "text", "text": text} for text in ("\n\n".join(texts), prompt)]
    return replace(
        _RUN,
        model=model,
        messages=({"role": "user", "content": blocks},),
        system=prose.template("system", _PACKAGE),
        project=project,
    )


def shorter(texts: Sequence[str], sentence: str) -> list[str]:
    """Return the rounds without the oldest ones, to try again after they were too long.

    ``sentence`` is the server's error, which may say by how many tokens. The first round stays: it
    has the person's request or an earlier summary. Empty if nothing else would be left.
    """
    gap = _GAP.search(sentence)
    share = 1 - int(gap[2]) / int(gap[1]) if gap else _FIFTH
    sizes = [history.estimate_text(text) for text in texts]
    first, excess = 1, sum(sizes) * (share if share > 0 else _FIFTH)
    while first < len(texts) and excess > 0:
        excess -= sizes[first]
        first += 1
    return [texts[0], *texts[first:]] if first < len(texts) else []


def answered(text: str) -> dict[str, str]:
    """Return the sections of a model's reply, shortened to 20,000 tokens; empty if it has none.

    Its analysis and its section about the person's messages are left out.
    """
    head, thought, behind = text.partition("</analysis>")
    _, _, body = (behind if thought else head).partition("<summary>")
    sections = parsed(body.rpartition("</summary>")[0] or body)
    sections.pop(PERSONS, None)
    return fitted(sections, TOKENS)


def fitted(sections: Mapping[str, str], tokens: int) -> dict[str, str]:
    """Return the sections cut to ``tokens`` in total; the longest lose text first."""
    sizes = [history.estimate_text(body) for body in sections.values()]
    parts = zip(sections.items(), quoting.shares(sizes, tokens), strict=True)
    return {title: _within(body, share) for (title, body), share in parts}


def parsed(text: str) -> dict[str, str]:
    """Return the non-empty sections of a summary by title; "" has the text above the first."""
    title, bodies = "", dict[str, list[str]]()
    for line in quoting.neutralise(string(text)).split("\n"):
        heading = _HEADING.fullmatch(line)
        new_title = _TITLES.get(heading[1].casefold(), "") if heading else ""
        if new_title:
            title = new_title
        else:
            bodies.setdefault(title, []).append(line)
    joined = {title: "\n".join(lines).strip() for title, lines in bodies.items()}
    return {title: body for title, body in joined.items() if body}


def persons(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of the person's messages, also those quoted in earlier summaries."""
    result: list[str] = []
    for message in messages:
        summary, rest = history.summary_and_rest(message)
        if summary:
            lines = parsed(summary).get(PERSONS, "").split("\n")
            groups = groupby(lines, key=lambda line: line.startswith(">"))
            result += ["\n".join(map(_unquoted, group)) for quoted, group in groups if quoted]
        if message.get("role") == USER:
            words = "\n\n".join(text for author, text in _pieces(message, rest) if author == USER)
            result += filter(None, [words])
    return result


def written(lead: str, sections: Mapping[str, str], messages: Sequence[str], tokens: int) -> str:
    """Return the text of a summary: its sections in order, with the person's messages.

    The messages get ``tokens`` together. If that is too little, each keeps its beginning and the
    newest get the rest.
    """
    most = tokens // _FEWEST_TOKENS
    quoted = [_quoted(text) for text in messages[-most:]]
    least = min(_LEAST_TOKENS, tokens // max(len(quoted), 1))
    sizes = [history.estimate_text(text) for text in quoted]
    left = tokens - sum(min(size, least) for size in sizes)
    for index in reversed(range(len(quoted))):
        more = min(max(sizes[index] - least, 0), left)
        left -= more
        quoted[index] = _within(quoted[index], least + more)
    older = [_LEFT_OUT.format(len(messages) - most)] if len(messages) > most else []
    bodies = {**sections, PERSONS: "\n\n".join((*older, *quoted))}
    parts = (f"# {title}\n{bodies[title]}" for title in SECTIONS if bodies.get(title))
    return "\n\n".join(filter(None, (lead, bodies.get(""), *parts)))


def _shown(message: Mapping[str, Any]) -> str:
    """Return a message as quoted text for a model, with the author of each part."""
    summary, rest = history.summary_and_rest(message)
    pieces = [("summary", summary), *_pieces(message, rest)]
    texts = []
    for author, group in groupby(pieces, key=lambda piece: piece[0]):
        words = (shortened(text, _CHARACTERS[author]) for _, text in group)
        text = _ANSWER.sub("&lt;", quoting.neutralise("\n\n".join(words)).strip())
        texts.append(rendered(Message("", "", text, author, None)) if text else "")
    return "\n\n".join(filter(None, texts))


def _pieces(message: Mapping[str, Any], content: Any) -> Iterator[tuple[str, str]]:
    """Yield the author and the text of each block of a message's content.

    Nothing for a system or meta message, which a client wrote.
    """
    role = str(message.get("role"))
    if role not in (USER, ASSISTANT) or message.get("isMeta"):
        return
    words = _person_words if role == USER else other_words
    for block in history.blocks_of(content) or ():
        kind = block["type"]
        if kind == "text":
            yield role, words(block["text"])
        elif kind.endswith("tool_result"):
            failed = "(failed)\n" if block.get("is_error") is True else ""
            yield "tool", failed + _output_text(block.get("content"))
        elif kind.endswith("tool_use"):
            given = json.dumps(block.get("input"), ensure_ascii=False, default=str)
            call = f"{string(block.get('name'))} {string(given)}"
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


def _quoted(text: str) -> str:
    """Return a text as a Markdown quotation."""
    lines = quoting.neutralise(string(text)).strip().split("\n")
    return "\n".join(f"> {line}" for line in lines)


def _unquoted(line: str) -> str:
    """Return a line of a quotation without its mark."""
    return line.removeprefix(">").removeprefix(" ")


def _within(text: str, tokens: int) -> str:
    """Return a text, cut at the end of a line if it has more than ``tokens`` tokens."""
    size = history.estimate_text(text)
    if size <= tokens:
        return text
    start = text[: len(text) * tokens // size]
    whole = start.rpartition("\n")[0] or start
    return f"{whole}\n{'> ' if text.startswith('>') else ''}{_CUT}"
