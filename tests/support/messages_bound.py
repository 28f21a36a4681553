"""Sign thinking, which is bound to all that stands before it, and compaction blocks. Pure.

Rules of this file
- Thinking is bound to ``tools``, ``system`` and every block before it as they were sent. Marks of
  the cache, members that are null and the edges between messages of one role are no part of that.
- A compaction block stands for the messages that it was made of: thinking in messages that followed
  these directly stays valid, unless the first of them continues the role of the last one replaced.
- A signature holds all that is needed to verify it, so that any server can.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from tests.support.messages_cache import blocks
from tests.support.messages_steps import Block, Failure

Body = Mapping[str, Any]
THINKING = {"thinking": "signature", "redacted_thinking": "data"}
COMPACTION = "compaction"
_BINDING_MODELS = re.compile("(opus|sonnet|haiku)-5-5|(fable|mythos)-5-[12]")
_MISMATCH = (
    "{}: Invalid `signature` in `{}` block: it is bound to a different conversation"
    " (prefix_binding_mismatch); remove it, or set"
    ' thinking.block_binding.prefix_mismatch_behavior to "drop_block"'
)
_WRONG_BLOCK = {
    "misplaced": "a compaction block must be the first block of the conversation",
    "ambiguous": "there may be one compaction block with content",
    "signature": "the compaction block's signature does not verify",
    "content": "the compaction block's content is not what was signed",
}
_CODES = {
    "misplaced": "compaction_block_misplaced",
    "ambiguous": "compaction_block_ambiguous",
    "signature": "compaction_signature_invalid",
    "content": "compaction_content_mismatch",
}


def bound(model: str) -> bool:
    """Return whether a model refuses thinking behind a changed prefix."""
    return bool(_BINDING_MODELS.search(model))


def mismatched(body: Body) -> list[tuple[int, int]]:
    """Return message and block of all thinking that is not bound to what stands before it."""
    if not bound(str(body.get("model"))):
        return []
    head = _head(body)
    result: list[tuple[int, int]] = []
    for place, number, block, state in _walk(body):
        member = THINKING.get(block.get("type", ""))  # the block's member with the signature
        if member and block.get(member) != _signature(head, state, block):
            result.append((place, number))
    return result


def mismatch(body: Body) -> Failure | None:
    """Return the failure for thinking that is not bound to what stands before it."""
    for place, number in mismatched(body):
        kind = blocks(body["messages"][place]["content"])[number]["type"]
        return Failure(400, _MISMATCH.format(f"messages.{place}.content.{number}", kind))
    return None


def wrong_compaction(messages: Sequence[Mapping[str, Any]]) -> Failure | None:
    """Return the failure for a compaction block that stands wrong or was changed."""
    spoken = [message for message in messages if message["role"] != "system"]
    all_blocks = [block for message in messages for block in blocks(message["content"])]
    compactions = [block for block in all_blocks if _summarizes(block)]
    if not compactions:
        return None
    first = blocks(spoken[0]["content"])[:1] if spoken else []
    fault = ""
    if len(compactions) > 1:
        fault = "ambiguous"
    elif first != compactions:
        fault = "misplaced"
    else:
        _, _, content, _, genuine = _parts(compactions[0])
        if not genuine:
            fault = "signature"
        elif content != _digest(compactions[0]["content"]):
            fault = "content"
    return Failure(400, _WRONG_BLOCK[fault], code=_CODES[fault]) if fault else None


def signed(body: Body, reply: Sequence[Block]) -> list[dict[str, Any]]:
    """Return the blocks of a reply, with signatures where the script gives none."""
    head, state = _head(body), _last_state(body)
    result = []
    for block in reply:
        signed_block = dict(block)
        member = THINKING.get(signed_block.get("type", ""))
        if member and member not in signed_block:
            signed_block[member] = _signature(head, state, signed_block)
        state = _digest(state, "assistant", signed_block)
        result.append(signed_block)
    return result


def compaction(body: Body, summary: str) -> dict[str, Any]:
    """Return the signed block that stands for all messages of a request.

    The signature has its parts in plain text, so that later checks go on from them without the
    messages that it replaces.
    """
    state = _last_state(body)
    role = body["messages"][-1]["role"]
    summary_digest = _digest(summary)
    seal = _digest("compaction", state, role, summary_digest)
    signature = f"{state}.{role}.{summary_digest}.{seal}"
    return {"type": COMPACTION, "content": summary, "signature": signature}


def _summarizes(block: Block) -> bool:
    """Return whether a block is a compaction with a summary."""
    return bool(block.get("type") == COMPACTION and block.get("content"))


def _parts(block: Block) -> tuple[str, str, str, str, bool]:
    """Return what a compaction block's signature holds, and whether it is genuine."""
    parts = str(block.get("signature")).split(".")
    if len(parts) != 4:
        return "", "", "", "", False
    state, role, content, seal = parts
    return state, role, content, seal, seal == _digest("compaction", state, role, content)


def _walk(body: Body) -> Iterator[tuple[int, int, Block, str]]:
    """Yield each block behind its message's and its own index, and the hash of all before it."""
    state, replaced_role = "", ""  # the role of the last message that a compaction replaced
    for place, message in enumerate(body["messages"]):
        for number, block in enumerate(blocks(message["content"])):
            if replaced_role and replaced_role == message["role"]:
                state = _digest(state, "continued")
            replaced_role = ""
            yield place, number, block, state
            if _summarizes(block):
                state, replaced_role, *_ = _parts(block)
            else:
                state = _digest(state, message["role"], block)


def _last_state(body: Body) -> str:
    """Return the hash of all that stands before the end of a conversation."""
    end = {"role": "", "content": "the end"}
    *_, (_, _, _, state) = _walk({"messages": [*body["messages"], end]})
    return state


def _head(body: Body) -> str:
    """Return the hash of the tools and the system prompt."""
    return _digest(body.get("tools") or [], blocks(body.get("system")))


def _signature(head: str, state: str, block: Block) -> str:
    """Return the signature of a thinking block at its place."""
    return _digest("thinking", head, state, block.get("thinking", ""))


def _digest(*values: Any) -> str:
    """Return the SHA-256 of values without their cache marks."""
    plain = json.dumps(_plain(values), sort_keys=True, separators=(",", ":"), default=dict)
    return sha256(plain.encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value without null members and cache marks, at any depth."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None and k != "cache_control"}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
