"""A summary of a conversation: what a model is shown, and what its answer becomes. Pure.

Rules of this file
- What was said is data. It stands in tags that no text can close, with whose words it holds.
- The person's messages are not for a model to tell: all of them (the newest 2,500) are in the
  summary, each by its beginning at least, also those that an earlier summary holds.
- Thinking, and what memd and clients put into messages, is not shown. Images and documents are
  named.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

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
TOKENS = 20_000  # of what a model writes, and of the person's messages beside it
_LEAST_TOKENS = 40  # of each of the person's messages, where all have so many
_FEWEST_TOKENS = 8  # of each; where that is too much the oldest go
_LEFT_OUT = "{} older messages are left out."
# Characters of one text that a model is shown, by whose it is.
_CHARACTERS = {USER: 20_000, ASSISTANT: 8_000, "tool": 3_000, "summary": 200_000}
_CALL_CHARACTERS = 1_200
_FIFTH = 0.2  # of the rounds, where a server does not say how many are too many
_CUT = "[cut]"
# Marks of a model's answer, which nothing that it is shown may bring into one.
_ANSWER = re.compile(r"<(?=\s*/?\s*(?:analysis|summary)\b)", re.IGNORECASE)
_TITLES = {title.casefold(): title for title in SECTIONS}
_HEADING = re.compile(r"#{1,6} *(?:\d+[.)] *)?(.+?) *:?")
_GAP = re.compile(r"(\d{3,})\D{1,30}?> *(\d{3,})")  # so many tokens > so many that may be
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
    """A bench with nothing on it: a run that calls tools comes to nothing."""

    touched: tuple[str, ...] = ()

    def call(
        self, _name: str, _given: Mapping[str, Any], _now: float, _over: Callable[[], bool]
    ) -> ToolResult:
        """Refuse a call."""
        return ToolResult("There are no tools.", "denied")


def shown(messages: Sequence[Mapping[str, Any]], start: int, end: int) -> list[str]:
    """Return ``messages[start:end]`` as a model reads them, a text for each round."""
    edges = [start, *(place for place in history.rounds(messages) if start < place < end), end]
    texts = ("\n\n".join(filter(None, map(_shown, messages[a:b]))) for a, b in pairwise(edges))
    return [text for text in texts if text]


def task(texts: Sequence[str], instructions: str, left: int, model: str, project: str) -> Task:
    """Return the run that summarises rounds; ``left`` of the conversation's are not shown."""
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
    """Return rounds without the oldest, after a server said in a sentence that they are too long.

    The first stays: it has the person's request, or what stands for an earlier part. Empty where
    nothing else is left.
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
    """Return the sections of a model's summary within their size, none where there is no summary.

    What it thought before goes, and what it says of the person's messages.
    """
    head, thought, behind = text.partition("</analysis>")
    _, _, body = (behind if thought else head).partition("<summary>")
    sections = parsed(body.rpartition("</summary>")[0] or body)
    sections.pop(PERSONS, None)
    return fitted(sections, TOKENS)


def fitted(sections: Mapping[str, str], tokens: int) -> dict[str, str]:
    """Return sections that have so many tokens together; the longest are cut."""
    sizes = [history.estimate_text(body) for body in sections.values()]
    parts = zip(sections.items(), quoting.shares(sizes, tokens), strict=True)
    return {title: _within(body, share) for (title, body), share in parts}


def parsed(text: str) -> dict[str, str]:
    """Return a summary's sections that say something, by title; "" is what stands above them."""
    title, bodies = "", dict[str, list[str]]()
    for line in quoting.neutralise(string(text)).split("\n"):
        heading = _HEADING.fullmatch(line)
        known = _TITLES.get(heading[1].casefold(), "") if heading else ""
        title = known or title
        if not known:
            bodies.setdefault(title, []).append(line)
    joined = {title: "\n".join(lines).strip() for title, lines in bodies.items()}
    return {title: body for title, body in joined.items() if body}


def persons(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the person's messages, and those that summaries among the messages hold."""
    result: list[str] = []
    for message in messages:
        summary, rest = history.summary_and_rest(message)
        if summary:
            lines = parsed(summary).get(PERSONS, "").split("\n")
            groups = groupby(lines, key=lambda line: line.startswith(">"))
            result += ["\n".join(map(_unquoted, group)) for quoted, group in groups if quoted]
        if message.get("role") == USER:
            words = "\n\n".join(t for o, t in _pieces(message, rest) if o == USER)
            result += filter(None, [words])
    return result


def written(lead: str, sections: Mapping[str, str], said: Sequence[str], room: int) -> str:
    """Return the text of a summary: sections in their order, the person's messages among them.

    The messages have so many tokens; where that is too little, the newest are whole first.
    """
    most = room // _FEWEST_TOKENS
    quoted = [_quoted(text) for text in said[-most:]]
    least = min(_LEAST_TOKENS, room // max(len(quoted), 1))
    sizes = [history.estimate_text(text) for text in quoted]
    left = room - sum(min(size, least) for size in sizes)
    for place in reversed(range(len(quoted))):
        more = min(max(sizes[place] - least, 0), left)
        left -= more
        quoted[place] = _within(quoted[place], least + more)
    older = [_LEFT_OUT.format(len(said) - most)] if len(said) > most else []
    bodies = {**sections, PERSONS: "\n\n".join((*older, *quoted))}
    parts = (f"# {title}\n{bodies[title]}" for title in SECTIONS if bodies.get(title))
    return "\n\n".join(filter(None, (lead, bodies.get(""), *parts)))


def _shown(message: Mapping[str, Any]) -> str:
    """Return a message as a model reads it, whoever's words are in it."""
    summary, rest = history.summary_and_rest(message)
    pieces = [("summary", summary), *_pieces(message, rest)]
    texts = []
    for origin, group in groupby(pieces, key=lambda piece: piece[0]):
        words = (shortened(text, _CHARACTERS[origin]) for _, text in group)
        text = _ANSWER.sub("&lt;", quoting.neutralise("\n\n".join(words)).strip())
        texts.append(rendered(Message("", "", text, origin, None)) if text else "")
    return "\n\n".join(filter(None, texts))


def _pieces(message: Mapping[str, Any], content: Any) -> Iterator[tuple[str, str]]:
    """Yield what content of a message says, each with whose words they are.

    A system message is a client's.
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
            yield "tool", failed + _text(block.get("content"))
        elif kind.endswith("tool_use"):
            given = json.dumps(block.get("input"), ensure_ascii=False, default=str)
            call = f"{string(block.get('name'))} {string(given)}"
            yield ASSISTANT, f"[called {shortened(call, _CALL_CHARACTERS)}]"
        elif kind in ("image", "document"):
            yield role, f"[{kind}]"


def _person_words(text: str) -> str:
    """Return all that the person may have said: in doubt it is theirs."""
    return tags.strip_closed(string(text)[:TEXT_CHARACTERS]).strip()


def _text(content: Any) -> str:
    """Return the text of a tool's output; what else it holds is named."""
    if not isinstance(content, list):
        return other_words(content)
    blocks = (block for block in content if isinstance(block, dict))
    return "\n".join(other_words(b.get("text")) or f"[{string(b.get('type'))}]" for b in blocks)


def _quoted(text: str) -> str:
    lines = quoting.neutralise(string(text)).strip().split("\n")
    return "\n".join(f"> {line}" for line in lines)


def _unquoted(line: str) -> str:
    return line.removeprefix(">").removeprefix(" ")


def _within(text: str, tokens: int) -> str:
    """Return a text, or as many of its lines as have so many tokens."""
    size = history.estimate_text(text)
    if size <= tokens:
        return text
    start = text[: len(text) * tokens // size]
    whole = start.rpartition("\n")[0] or start
    return f"{whole}\n{'> ' if text.startswith('>') else ''}{_CUT}"
