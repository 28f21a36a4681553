"""Requests as plain text, for whoever takes no blocks, tools or caches. Pure."""

import json
from importlib.resources import files

from memd.model.port import Ask, Block

_IN_WORDS = files("memd.model").joinpath("templates", "json.md").read_text("utf-8").strip()


def turns(ask: Ask, *, in_words: bool = True) -> list[dict[str, str]]:
    """Return a request as pairs of ``role`` and ``content``, the system text first.

    ``in_words``: what shape of JSON is wanted is said behind the last message.
    """
    system = text_of(ask.system)
    said = [{"role": "system", "content": system}] if system else []
    said += [{"role": item["role"], "content": text_of(item["content"])} for item in ask.messages]
    if ask.schema is not None and in_words:
        schema = json.dumps(ask.schema, ensure_ascii=False)
        said.append({"role": "user", "content": _IN_WORDS.replace("{{schema}}", schema)})
    return said


def prompt(ask: Ask) -> str:
    """Return a request as one text; what was answered before stands between tags."""
    parts = (
        f"<your_answer>\n{turn['content']}\n</your_answer>"
        if turn["role"] == "assistant"
        else turn["content"]
        for turn in turns(ask)
    )
    return "\n\n".join(parts) + "\n"


def text_of(content: str | tuple[Block, ...] | list[Block]) -> str:
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    return "\n\n".join(block["text"] for block in content if block.get("type") == "text")
