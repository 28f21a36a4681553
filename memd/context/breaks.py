"""Detect that a provider's prompt cache was lost, and name the cause. Pure.

Rules of this file
- A cache is lost if, within its life, a request reads over 5 % and at least 2,000 tokens less from
  it than the request before. After a clearing or a compaction by memd there is no baseline.
- The server's own reason for a miss is preferred to what memd finds by comparing requests.
- A conversation that only became shorter lost nothing: tokens that are not sent are not paid again.
- A server that clears results by itself changes its own cache; that is not reported as a break.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from memd.context.requests import CacheBreak, ContextRequest
from memd.conversation.history import tokens_of
from memd.core.canonical import content_hash

_LEAST_TOKENS = 2_000  # a smaller loss is no break
_LEAST_SHARE = 0.05  # of the tokens read before; a smaller loss is no break unless it has a cause
_LIFE_SECONDS, _LONG_LIFE_SECONDS = 300.0, 3600.0
_SERVER = "server"  # the cause of a break that no part of the request explains
_MESSAGES = "messages"
_CAUSES = {  # by the server's reason for a miss
    "model_changed": "model",
    "system_changed": "system",
    "tools_changed": "tools",
    "messages_changed": _MESSAGES,
}


class SentRequest(Struct, frozen=True):
    """The parts of a sent request as hashes; ``messages`` has the running hash at each message.

    ``at`` is in seconds since 1970. ``managed`` says that the server edits the messages itself.
    """

    at: float
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    betas: tuple[str, ...] = ()
    messages: Sequence[bytes] = ()
    managed: bool = False


class CacheBaseline(Struct, frozen=True):
    """The last request with a reply, with which the next reply is compared."""

    sent: SentRequest
    tokens: int  # that its reply read from the cache
    seconds: float  # how long the cache lives after it


def sent_request(
    request: ContextRequest, messages: Sequence[bytes], now: float, *, managed: bool
) -> SentRequest:
    """Return the hashes of a request's parts; ``messages`` are the hashes of its messages.

    Raises the errors of ``content_hash`` for a system prompt or tools that are not JSON.
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


def cache_break_of(
    baseline: CacheBaseline | None,
    sent: SentRequest,
    usage: Mapping[str, Any],
    diagnostics: Mapping[str, Any] | None,
) -> tuple[CacheBaseline, CacheBreak | None]:
    """Return the new baseline after a reply, and the cache break if the reply shows one.

    ``baseline`` is the baseline of the reply before, ``sent`` the request of this one.
    ``diagnostics`` may hold the server's own ``cache_miss_reason``.
    """
    tokens = tokens_of(usage.get("cache_read_input_tokens"))
    new_baseline = CacheBaseline(sent, tokens, _lifetime(baseline, usage))
    if baseline is None or sent.at - baseline.sent.at > baseline.seconds:
        return new_baseline, None  # there was no cache, or it was too old
    reason = (diagnostics or {}).get("cache_miss_reason")
    if not isinstance(reason, Mapping):
        reason = {}
    cause = _CAUSES.get(str(reason.get("type")), "")
    if cause:
        missed = tokens_of(reason.get("cache_missed_input_tokens"))
    else:
        missed = baseline.tokens - tokens
        if missed <= _LEAST_SHARE * baseline.tokens:
            return new_baseline, None
    if missed < _LEAST_TOKENS:
        return new_baseline, None
    if cause in ("", _MESSAGES):
        cause = _first_difference(baseline.sent, sent, cause)
    return new_baseline, CacheBreak(cause, missed) if cause else None


def _first_difference(before: SentRequest, after: SentRequest, cause: str) -> str:
    """Return the first part that differs between two requests, in the order of a cache.

    With ``cause`` (the server blames the messages) only messages are compared, and ``cause`` is
    returned if they are equal. Without it, equal requests give ``server``, or "" where the server
    edits messages itself or there are fewer of them.
    """
    for name in ("model", "tools", "system", "betas"):
        if not cause and getattr(before, name) != getattr(after, name):
            return name
    for index, (old, new) in enumerate(zip(before.messages, after.messages, strict=False)):
        if old != new:
            return f"message {index}"
    if cause:
        return cause
    is_expected = after.managed or len(after.messages) < len(before.messages)
    return "" if is_expected else _SERVER


def _lifetime(baseline: CacheBaseline | None, usage: Mapping[str, Any]) -> float:
    """Return how many seconds a cache lives after a reply.

    It is an hour if the reply wrote an hour's cache, five minutes if it wrote another one or there
    is no baseline, and otherwise as long as before.
    """
    created = usage.get("cache_creation")
    if not isinstance(created, Mapping):
        created = {}
    if tokens_of(created.get("ephemeral_1h_input_tokens")):
        return _LONG_LIFE_SECONDS
    if baseline and not tokens_of(usage.get("cache_creation_input_tokens")):
        return baseline.seconds
    return _LIFE_SECONDS
