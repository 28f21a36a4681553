"""Detect that a provider's prompt cache was lost, and name the cause. Pure.

Rules of this file
- A cache is lost if, within its life, a request reads over 5 % and at least 2,000 tokens less from
  it than the request before. After a clearing or a compaction nothing is compared.
- The server's own reason for a miss is preferred to what memd finds by comparing requests.
- A conversation that only became shorter lost nothing: tokens that are not sent are not paid again.
- A server that clears results by itself changes its own cache; that is not reported as a break.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from memd.base.canonical import content_hash
from memd.context.requests import CacheBaseline, CacheBreak, ContextRequest
from memd.conversation.history import tokens_of

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


def part_hashes(request: ContextRequest) -> tuple[str, str, str, str]:
    """Return the hashes of a request's model, tools, system prompt and betas.

    Raises the errors of ``content_hash`` for a system prompt or tools that are not JSON.
    """
    return (
        content_hash(request.model),
        content_hash(list(request.tools or ())),
        "" if request.system is None else content_hash(request.system),
        content_hash(sorted(request.betas)),
    )


def new_baseline(
    request: ContextRequest,
    parts: tuple[str, str, str, str],
    hashes: Sequence[str],
    *,
    managed: bool,
    boundary: int,
) -> CacheBaseline:
    """Return the baseline of a request; ``hashes`` are those of its messages as they are sent.

    ``parts`` comes from ``part_hashes``. ``managed`` says that the server or the client edits the
    messages itself, ``boundary`` is the index of the last boundary of a compaction, -1 without one.
    """
    before = request.baseline
    baseline = CacheBaseline(*parts, tuple(hashes))
    if before is None or not request.usage:
        tokens = tokens_of((request.usage or {}).get("cache_read_input_tokens"))
        return replace(baseline, tokens=tokens, seconds=_lifetime(None, request.usage or {}))
    seconds = _lifetime(before, request.usage)
    is_compacted = boundary >= 0 and before.messages[boundary : boundary + 1] != (hashes[boundary],)
    is_comparable = request.idle_seconds <= seconds and not is_compacted
    cause, message = _difference(before, baseline, managed=managed)
    return replace(
        baseline,
        tokens=tokens_of(request.usage.get("cache_read_input_tokens")) if is_comparable else 0,
        seconds=seconds,
        cause=cause,
        message=message,
    )


def cache_break_of(request: ContextRequest) -> CacheBreak | None:
    """Return the cache break that the usage of the last reply shows, if any.

    ``diagnostics`` of the request may hold the server's own ``cache_miss_reason``.
    """
    before, usage = request.baseline, request.usage
    if before is None or not before.tokens or not usage:
        return None
    reason = (request.diagnostics or {}).get("cache_miss_reason")
    if not isinstance(reason, Mapping):
        reason = {}
    cause = _CAUSES.get(str(reason.get("type")), "")
    if cause:
        missed = tokens_of(reason.get("cache_missed_input_tokens"))
    else:
        missed = before.tokens - tokens_of(usage.get("cache_read_input_tokens"))
        if missed <= _LEAST_SHARE * before.tokens:
            return None
    if missed < _LEAST_TOKENS:
        return None
    if cause == _MESSAGES:
        cause = before.message or cause
    cause = cause or before.cause
    return CacheBreak(cause, missed) if cause else None


def _difference(before: CacheBaseline, after: CacheBaseline, *, managed: bool) -> tuple[str, str]:
    """Return the first part, and the first message, that differ between two requests.

    The part is ``server`` for equal requests, and "" where the messages are edited elsewhere or
    there are fewer of them.
    """
    pairs = enumerate(zip(before.messages, after.messages, strict=False))
    message = next((f"message {index}" for index, (old, new) in pairs if old != new), "")
    for name in ("model", "tools", "system", "betas"):
        if getattr(before, name) != getattr(after, name):
            return name, message
    is_expected = managed or len(after.messages) < len(before.messages)
    return message or ("" if is_expected else _SERVER), message


def _lifetime(before: CacheBaseline | None, usage: Mapping[str, Any]) -> float:
    """Return how many seconds a cache lives after a reply.

    It is an hour if the reply wrote an hour's cache, five minutes if it wrote another one or there
    is no baseline, and otherwise as long as before.
    """
    created = usage.get("cache_creation")
    if not isinstance(created, Mapping):
        created = {}
    if tokens_of(created.get("ephemeral_1h_input_tokens")):
        return _LONG_LIFE_SECONDS
    if before and not tokens_of(usage.get("cache_creation_input_tokens")):
        return before.seconds
    return _LIFE_SECONDS
