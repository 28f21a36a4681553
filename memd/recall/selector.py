"""Ask a model which memories help with a prompt: write the request and read the reply. Pure.

Rules of this file
- The list of memories is the first block of the message and depends only on the memories, so that
  the next prompt reads it from the server's cache. The prompt comes after it.
- Texts of memories and prompts are data: they cannot begin a line of the list, open or close the
  tags around it, or hide characters (``text/quoting.py``).
- Only memories that were on the list are accepted. An unusable reply is a problem in words, and the
  local ranker is used instead.
- The reply may have 256 tokens, so the model is asked for little thinking.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from memd.agent.service import LITTLE_THOUGHT, Budget, RunEnd, Task
from memd.agent.step import Reason
from memd.base import limits, prose, text
from memd.base.package_files import read_text
from memd.base.values import Header
from memd.store.index import manifest
from memd.text.excerpt import excerpt
from memd.text.quoting import neutralise

NO_MODEL = "no model is configured; the local ranker answered"
NO_TIME = "there was no time to ask the model; the local ranker answered"
LEFT_ALONE = "the model failed several prompts in a row; the local ranker answers for a while"
LEAST_SECONDS = 0.3  # with less time left a model is not asked, as none answers faster
MOST_TOKENS = 256  # of a reply
MEMBER = "selected_memories"  # of the reply: the list of paths
_SYSTEM = read_text("recall/templates/selector.md").strip()
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {MEMBER: {"type": "array", "items": {"type": "string"}}},
    "required": [MEMBER],
    "additionalProperties": False,
}
_PROBLEMS = {
    Reason.REFUSED: "the model declined to choose",
    Reason.CUT_OFF: "the model's answer was longer than allowed",
    Reason.TIME: "the model did not answer in time",
}
_QUERY_BYTES = 4000  # of a longer prompt only both ends and an excerpt are shown
_MOST_TOOLS = 20
_TOOL_CHARACTERS = 100
_CUT = "\n[...]\n"  # between the parts of a longer prompt
_ATTEMPTS = 20  # possible beginnings of JSON in a reply that are tried
_JSON_START = re.compile(r"[{\[]")


def task(
    headers: Sequence[Header],
    query: str,
    recent_tools: Sequence[str],
    *,
    limit: int,
    model: str,
    seconds: float,
    project: str,
) -> Task:
    """Return the task with the first 200 memories, the prompt and the tools in use."""
    shown_headers = sorted(headers[: limits.MANIFEST_ENTRIES], key=lambda header: header.path)
    list_of_memories = "\n".join(_harmless(line) for line in manifest(shown_headers).split("\n"))
    names = [text.one_line(name, _TOOL_CHARACTERS) for name in recent_tools[:_MOST_TOOLS]]
    tools = ", ".join(_harmless(name) for name in names) or "none"
    blocks = (
        {
            "type": "text",
            "text": f"<notes>\n{list_of_memories}\n</notes>",
            "cache_control": {"type": "ephemeral"},
        },
        {
            "type": "text",
            "text": f"<prompt>\n{_harmless(_shorten(query))}\n</prompt>\n"
            f"<tools_in_use>{tools}</tools_in_use>",
        },
    )
    return Task(
        kind="recall",
        model=model,
        system=_SYSTEM.replace("{{limit}}", str(limit)),
        messages=({"role": "user", "content": blocks},),
        tools=(),
        runs=frozenset(),
        budget=Budget(turns=1, reply_tokens=MOST_TOKENS, output_tokens=MOST_TOKENS),
        seconds=seconds,
        ask_seconds=seconds,
        retries=0,
        schema=_SCHEMA,
        project=project,
        extra=LITTLE_THOUGHT,
    )


def read(
    ended: RunEnd, known_paths: Collection[str], limit: int
) -> tuple[tuple[str, ...] | None, str]:
    """Return the paths that a model selected, or ``None`` and what is wrong with its answer.

    Names that were not on the list and repetitions are dropped; at most ``limit`` come out.
    """
    if ended.error is not None:
        return None, ended.error.sentence
    if ended.reason in _PROBLEMS:
        return None, _PROBLEMS[ended.reason]
    for value in _json_values(ended.text):
        names = value.get(MEMBER) if isinstance(value, dict) else value
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            # A model may repeat a path as it was shown, with some characters replaced.
            path_of = {_harmless(path): path for path in known_paths} | {
                path: path for path in known_paths
            }
            paths = [path_of[name.strip()] for name in names if name.strip() in path_of]
            return tuple(dict.fromkeys(paths))[:limit], ""
    return None, "the model's answer is not the JSON that was asked for"


def with_local(sentence: str) -> str:
    """Return a sentence about a model's failure that also says who selected in its place."""
    return f"{sentence}; the local ranker answered"


def _json_values(answer: str) -> Iterator[Any]:
    """Yield the JSON values in a reply, which may have other text or a code fence around them."""
    decoder = json.JSONDecoder()
    end = 0  # of the last value
    for attempt, match in enumerate(_JSON_START.finditer(answer)):
        if attempt >= _ATTEMPTS:
            return
        if match.start() < end:  # it is within the last value
            continue
        try:
            value, end = decoder.raw_decode(answer, match.start())
        except (ValueError, RecursionError):
            continue
        yield value


def _harmless(content: str) -> str:
    """Return a text in which nothing closes the tags around it or is invisible."""
    return prose.inert(neutralise(content))


def _shorten(query: str) -> str:
    """Return a prompt, or of one above 4,000 bytes both ends and the excerpt that is ranked by."""
    data = query.encode(errors="replace")
    if len(data) <= _QUERY_BYTES:
        return query
    third = _QUERY_BYTES // 3
    tail = data[-third:].decode(errors="ignore")
    return _CUT.join((text.cut_bytes(query, third), text.cut_bytes(excerpt(query), third), tail))
