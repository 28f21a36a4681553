"""Convert requests to plain text, for models without blocks, tools and caches. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from memd.base.package_files import read_text
from memd.model.port import Ask, Block

_SCHEMA_TEMPLATE = read_text("model/templates/json.md").strip()


def turns(ask: Ask, *, in_words: bool = True) -> list[dict[str, str]]:
    """Return a request as dicts of ``role`` and ``content``, the system text first.

    With ``in_words`` a JSON schema is described in a message at the end.
    """
    system = text_of(ask.system)
    result = [{"role": "system", "content": system}] if system else []
    result += [{"role": item["role"], "content": text_of(item["content"])} for item in ask.messages]
    if ask.schema is not None and in_words:
        result.append({"role": "user", "content": described(ask.schema)})
    return result


def described(schema: Mapping[str, Any] | None) -> str:
    """Return a text that asks for JSON of a schema, for servers without JSON schemas."""
    return _SCHEMA_TEMPLATE.replace("{{schema}}", json.dumps(schema, ensure_ascii=False))


def prompt(ask: Ask) -> str:
    """Return a request as one text, with the model's earlier replies in ``<your_answer>`` tags."""
    parts = (
        f"<your_answer>\n{turn['content']}\n</your_answer>"
        if turn["role"] == "assistant"
        else turn["content"]
        for turn in turns(ask)
    )
    return "\n\n".join(parts) + "\n"


def text_of(content: str | tuple[Block, ...] | list[Block]) -> str:
    """Return the text of a message's content; blocks of other types are left out."""
    if isinstance(content, str):
        return content
    return "\n\n".join(block["text"] for block in content if block.get("type") == "text")
