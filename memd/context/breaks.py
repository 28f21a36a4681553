"""Whether a prompt cache was lost, and to what. Pure.

Rules of this file
- A cache is lost where it gives back over 5 % and 2,000 tokens less than for the request before,
  within its life. What memd declares (a clearing, a compaction) begins anew without a baseline.
- What the server says about a miss stands above what memd compares.
- A conversation that was only cut has lost nothing: what it does not send, nobody pays again.
- A server that clears results by itself loses its cache thereby, and nobody else is to blame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memd.context.requests import CacheBreak, ContextRequest
from memd.conversation.history import tokens_of
from memd.core.canonical import content_hash

_LEAST_TOKENS, _LEAST_SHARE = 2_000, 0.05
_LIFE_SECONDS, _LONG_LIFE_SECONDS = 300.0, 3600.0
_SERVER = "server"
_MESSAGES = "messages"
_CAUSES = {
    "model_changed": "model",
    "system_changed": "system",
    "tools_changed": "tools",
    "messages_changed": _MESSAGES,
}


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What a request was made of, as hashes; ``messages`` has one after each of them.

    ``managed`` says that the server edits the messages by itself.
    """

    at: float
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    betas: tuple[str, ...] = ()
    messages: Sequence[bytes] = ()
    managed: bool = False


@dataclass(frozen=True, slots=True)
class CacheBaseline:
    """The last request that was answered, the tokens that its cache gave, and the cache's life."""

    sent: SentRequest
    tokens: int
    seconds: float


def sent_with(
    request: ContextRequest, messages: Sequence[bytes], now: float, *, managed: bool
) -> SentRequest:
    """Return what a request is made of, its messages with these hashes.

    Raises what ``content_hash`` does.
    """
    return SentRequest(
        now,
        request.model,
        "" if request.system is None else content_hash(request.system),
        tuple(content_hash([tool]) for tool in request.tools or ()),
        tuple(sorted(request.betas)),
        messages,
        managed,
    )


def judged(
    before: CacheBaseline | None,
    sent: SentRequest | None,
    usage: Mapping[str, Any],
    diagnostics: Mapping[str, Any] | None,
    now: float,
) -> tuple[CacheBaseline, CacheBreak | None]:
    """Return the baseline after a reply, and the break that its usage shows, if any.

    Without ``sent`` the request is taken to be like the one before.
    """
    if sent is None:
        sent = replace(before.sent, at=now) if before else SentRequest(now)
    tokens = tokens_of(usage.get("cache_read_input_tokens"))
    after = CacheBaseline(sent, tokens, _life(before, usage))
    if before is None or sent.at - before.sent.at > before.seconds:
        return after, None
    reason = (diagnostics or {}).get("cache_miss_reason")
    reason = reason if isinstance(reason, Mapping) else {}
    cause = _CAUSES.get(str(reason.get("type")), "")
    missed = tokens_of(reason.get("cache_missed_input_tokens")) if cause else before.tokens - tokens
    if missed < _LEAST_TOKENS or (not cause and missed <= _LEAST_SHARE * before.tokens):
        return after, None
    if cause in ("", _MESSAGES):
        cause = _difference(before.sent, sent, cause)
    return after, CacheBreak(cause, missed) if cause else None


def _difference(before: SentRequest, after: SentRequest, cause: str) -> str:
    """Return what changed first in the order of a cache, "" where nothing is lost by it."""
    for name in ("model", "tools", "system", "betas"):
        if not cause and getattr(before, name) != getattr(after, name):
            return name
    for place, (old, new) in enumerate(zip(before.messages, after.messages, strict=False)):
        if old != new:
            return f"message {place}"
    if cause:
        return cause
    expected = after.managed or len(after.messages) < len(before.messages)
    return "" if expected else _SERVER


def _life(before: CacheBaseline | None, usage: Mapping[str, Any]) -> float:
    """Return how long a cache lives: as the server wrote it, else as before."""
    created = usage.get("cache_creation")
    created = created if isinstance(created, Mapping) else {}
    if tokens_of(created.get("ephemeral_1h_input_tokens")):
        return _LONG_LIFE_SECONDS
    if before and not tokens_of(usage.get("cache_creation_input_tokens")):
        return before.seconds
    return _LIFE_SECONDS
