"""Hash messages and blocks of a conversation in the way that memd and its clients agree on. Pure.

Canonical is JSON in UTF-8 with its members sorted by name and no white space. A message's ``id``,
``uuid`` and ``usage`` are left out, since they are not sent to a model, and so are the marks of the
prompt cache (``cache_control``) in messages, blocks and blocks of results.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

THINKING = ("thinking", "redacted_thinking")  # blocks that are valid only after the same messages
LEAST_CHARACTERS = 4_000  # a shorter result is never replaced, so nothing is decided about it
_UNSENT = frozenset(("id", "uuid", "usage", "cache_control"))  # members of messages
_CACHE_MARK = frozenset(("cache_control",))  # a member of blocks
_JSON = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=dict
)


def canonical(message: Mapping[str, Any]) -> bytes:
    """Return a message as canonical JSON.

    Raises ValueError for NaN and lone surrogates, TypeError for values that JSON does not have, and
    RecursionError.
    """
    return _JSON.encode(_without(message, _UNSENT)).encode()


def content_hash(content: Any) -> str:
    """Return the hash, as hex, of a block's content: a text, or a list of blocks.

    Raises what ``canonical`` does.
    """
    text = content if isinstance(content, str) else _JSON.encode(_without_cache_marks(content))
    return sha256(text.encode()).hexdigest()


def text_of(content: Any) -> str | None:
    """Return the text of a tool result's content, ``None`` where it has more than plain text."""
    if isinstance(content, str):
        return content
    blocks = content or ()
    if any(block["type"] != "text" or block.get("citations") for block in blocks):
        return None
    return "\n".join(block["text"] for block in blocks)


def _without(value: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return the members of a message or block without these names and without cache marks."""
    result = {name: item for name, item in value.items() if name not in names}
    if "content" in result:
        result["content"] = _without_cache_marks(result["content"])
    return result


def _without_cache_marks(content: Any) -> Any:
    """Return a message's content without the cache marks of its blocks."""
    if not isinstance(content, list | tuple):
        return content
    return [
        _without(block, _CACHE_MARK) if isinstance(block, Mapping) else block for block in content
    ]
