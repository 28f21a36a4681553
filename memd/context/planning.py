"""Plan which blocks of a conversation are sent, stored, cleared or dropped. Pure.

Rules of this file
- Equal requests have equal plans, without clock, disk or earlier calls.
- A decision about a block holds, whatever the settings and the request say later.
- A result is decided when it is first seen (``spilling``), behind the newest reply. Later it
  changes only if it is cleared (``clearing``), where losing the prompt cache is accepted.
- A result that cannot be stored, or whose replacement is not smaller, is sent as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memd.base.names import printable
from memd.context import clearing, sizing
from memd.context.breaks import cache_break_of, new_baseline, part_hashes
from memd.context.errors import messages_refused
from memd.context.facts import checked_facts, last_index, message_hash, message_hashes
from memd.context.preview import cleared_text
from memd.context.requests import (
    COMPACTION,
    MANAGED,
    THREAD,
    ContextEdit,
    ContextRequest,
    DueCompaction,
    PlannedContext,
)
from memd.context.spilling import PlacedResult, large_results, result_text
from memd.context.values import (
    CLEAR,
    DROP,
    KEEP,
    SPILL,
    Action,
    BlockKey,
    Decision,
    MessageFacts,
    ResultFacts,
    StoredResult,
    decision_on,
)
from memd.conversation import history
from memd.conversation.history import estimate_text
from memd.conversation.pieces import ASSISTANT

_REQUEST = "system or tools"  # where an error is, in what a client sends


class ToStore(Struct, frozen=True):
    """A result to store, with its text, and the ``action`` that holds once it is stored.

    ``message`` is the index of its message in the conversation, ``block`` that of its block there.
    """

    message: int
    block: int
    tool_use_id: str
    content_hash: str
    action: Action
    text: str

    @property
    def key(self) -> BlockKey:
        """The key of the decision about this result."""
        return BlockKey(self.tool_use_id, self.content_hash)


class BlockChange(NamedTuple):
    """A decision about a block of a message, and how many tokens it saves.

    ``message`` and ``block`` are indexes, as in ``ToStore``.
    """

    message: int
    block: int
    decision: Decision
    tokens: int = 0


class Plan(Struct, frozen=True):
    """A plan before its results are stored; ``store`` lists the results to store.

    ``changes`` are the decisions that need no storing. ``thinking`` lists blocks that are dropped
    if they stand behind a result that is cleared. ``members`` are added to the client's requests.
    ``hashes`` are those of the messages, ``parts`` those of the request's other parts.
    """

    request: ContextRequest
    facts: Sequence[MessageFacts]
    changes: Sequence[BlockChange]
    store: Sequence[ToStore]
    thinking: Sequence[tuple[int, int, str]]
    members: Mapping[str, Any]
    hashes: Sequence[str]
    parts: tuple[str, str, str, str]


def plan(request: ContextRequest) -> Plan:
    """Return the plan for a conversation. Raises Invalid."""
    hashes = message_hashes(request.messages)
    facts = checked_facts(request.messages)
    _count_last_reply(facts, request)
    old = clearing.old_results(facts, request)
    changes, undecided = _known_changes(facts, request)
    facts = _with_saved_tokens(facts, changes)
    spilled = large_results(facts, undecided, request)
    spilled_set = set(spilled)
    for message, result in undecided:
        if (message, result) not in spilled_set:
            decision = Decision(result.tool_use_id, result.content_hash, KEEP)
            changes.append(BlockChange(message, result.block, decision))
    members = clearing.request_members(request, sizing.window_of(request))
    try:
        parts = part_hashes(request)
    except (ValueError, TypeError, RecursionError) as error:
        raise messages_refused(_REQUEST, str(error)) from error
    store = [_to_store(request, *each, SPILL) for each in spilled]
    store += [_to_store(request, *each, CLEAR) for each in old.results]
    return Plan(request, facts, changes, store, old.thinking, members, hashes, parts)


def settled_plan(plan: Plan, stored: Mapping[BlockKey, StoredResult | str]) -> PlannedContext:
    """Return how to send a conversation once its results were stored.

    ``stored`` has each stored result, or the sentence of the error why it was not stored.
    """
    problems: list[str] = []
    new: list[BlockChange] = []
    for item in plan.store:
        result = stored[item.key]
        if isinstance(result, str):
            problems.append(f"{printable(item.tool_use_id)}: {result}")
        change = _stored_change(item, result)
        if change is not None:
            new.append(change)
    clearings = [change for change in new if change.decision.action == CLEAR]
    first_cleared = min((change.message for change in clearings), default=len(plan.facts))
    # Thinking is signed together with what stands before it, so it cannot stay behind a clearing.
    new += [
        BlockChange(message, block, Decision("", digest, DROP))
        for message, block, digest in plan.thinking
        if message > first_cleared
    ]
    facts = _with_reduced_count(_with_saved_tokens(plan.facts, new), clearings)
    count, limits = sizing.count(facts), sizing.thresholds(sizing.window_of(plan.request))
    level = sizing.level(count.tokens, limits)
    # A new decision about a block takes the place of an earlier one.
    changes = {(change.message, change.block): change for change in (*plan.changes, *new)}
    ordered = [changes[place] for place in sorted(changes)]
    edits = tuple(_edit(change) for change in ordered if _is_edit(change.decision))
    earlier = plan.request.decisions
    decisions = [change.decision for change in ordered]
    baseline = new_baseline(
        plan.request,
        plan.parts,
        _sent_hashes(plan, edits),
        managed=bool(plan.members) or MANAGED in plan.request.supports,
        boundary=last_index(plan.facts, lambda fact: fact.boundary),
    )
    return PlannedContext(
        edits=edits,
        decisions=tuple(each for each in decisions if earlier.get(each.key) != each),
        count=count,
        thresholds=limits,
        level=level,
        request=plan.members,
        compact=_due_compaction(plan.request, level),
        cache_break=cache_break_of(plan.request),
        # A clearing is no lost cache.
        baseline=replace(baseline, tokens=0) if clearings else baseline,
        problems=tuple(problems),
    )


def _sent_hashes(plan: Plan, edits: Iterable[ContextEdit]) -> list[str]:
    """Return the hashes of a plan's messages as they are sent with the edits."""
    contents: dict[int, dict[int, str | None]] = {}
    for edit in edits:
        contents.setdefault(edit.message, {})[edit.block] = edit.content
    hashes = list(plan.hashes)
    for place, content_of in contents.items():
        message = plan.request.messages[place]
        blocks = [
            {**block, "content": content_of[number]} if number in content_of else block
            for number, block in enumerate(message["content"])
            if content_of.get(number, "") is not None
        ]
        hashes[place] = message_hash({**message, "content": blocks})
    return hashes


def _count_last_reply(facts: list[MessageFacts], request: ContextRequest) -> None:
    """Set the last reply's context size to the server's count, if the request has one."""
    last = last_index(facts, lambda fact: fact.role == ASSISTANT)
    context = history.counted(request.usage)
    if last >= 0 and context and not facts[last].boundary:
        facts[last] = replace(facts[last], context=context)


def _known_changes(
    facts: Sequence[MessageFacts], request: ContextRequest
) -> tuple[list[BlockChange], list[PlacedResult]]:
    """Return the earlier decisions about blocks, and the results without a decision.

    A message's thinking is not dropped where the message has nothing else.
    """
    changes, undecided = [], []
    for message, fact in enumerate(facts):
        for result in fact.results:
            decision = decision_on(result, request.decisions)
            if decision is not None:
                text = result_text(request, message, result.block)
                saved = _tokens_saved(text, decision.content) if _is_edit(decision) else 0
                changes.append(BlockChange(message, result.block, decision, saved))
            elif result.content_hash:
                undecided.append((message, result))
        for block, digest in fact.thinking:
            decision = request.decisions.get(BlockKey("", digest))
            if decision is not None and len(fact.thinking) < len(fact.kinds):
                changes.append(BlockChange(message, block, decision))
    return changes, undecided


def _to_store(
    request: ContextRequest, message: int, result: ResultFacts, action: Action
) -> ToStore:
    """Return a tool result with its text, to be stored with an action."""
    text = result_text(request, message, result.block)
    call, digest = result.tool_use_id, result.content_hash
    return ToStore(message, result.block, call, digest, action, text)


def replacement_decision(item: ToStore, stored: StoredResult) -> Decision | None:
    """Return the decision to replace a stored result; ``None`` if that would save nothing."""
    content = stored.content if item.action == SPILL else cleared_text(stored.path)
    if _tokens_saved(item.text, content) <= 0 or len(content) >= len(item.text):
        return None
    return Decision(
        item.tool_use_id, item.content_hash, item.action, content, stored.path, stored.size
    )


def _stored_change(item: ToStore, result: StoredResult | str) -> BlockChange | None:
    """Return the decision about a result after storing it was tried.

    The result stays if storing it failed or saves nothing. Then there is no new decision (``None``)
    about a result to clear, which was decided to stay before.
    """
    decision = replacement_decision(item, result) if isinstance(result, StoredResult) else None
    if decision is not None:
        saved = _tokens_saved(item.text, decision.content)
        return BlockChange(item.message, item.block, decision, saved)
    if item.action == CLEAR:
        return None
    return BlockChange(
        item.message, item.block, Decision(item.tool_use_id, item.content_hash, KEEP)
    )


def _tokens_saved(text: str, content: str) -> int:
    """Return the estimated tokens that sending a content in the place of a text saves."""
    return estimate_text(text) - estimate_text(content)


def _with_saved_tokens(
    facts: Sequence[MessageFacts], changes: Iterable[BlockChange]
) -> list[MessageFacts]:
    """Return the facts with each message's tokens reduced by what its changes save."""
    result = list(facts)
    for change in changes:
        fact = result[change.message]
        result[change.message] = replace(fact, tokens=max(fact.tokens - change.tokens, 0))
    return result


def _with_reduced_count(
    facts: list[MessageFacts], clearings: Sequence[BlockChange]
) -> list[MessageFacts]:
    """Return the facts with the server's last count reduced by what is cleared before it."""
    last = last_index(facts, lambda fact: fact.context)
    saved = sum(change.tokens for change in clearings if change.message < last)
    if saved:  # 1 at least, as 0 would mean that there is no count
        facts[last] = replace(facts[last], context=max(facts[last].context - saved, 1))
    return facts


def _is_edit(decision: Decision) -> bool:
    """Return whether a decision changes its block. Only thinking is dropped, never a result."""
    if decision.action == DROP:
        return not decision.tool_use_id
    return decision.action in (SPILL, CLEAR) and bool(decision.content)


def _edit(change: BlockChange) -> ContextEdit:
    """Return a change as the edit that a client applies."""
    decision = change.decision
    content = None if decision.action == DROP else decision.content
    return ContextEdit(change.message, change.block, decision.tool_use_id, content)


def _due_compaction(request: ContextRequest, level: str) -> DueCompaction:
    """Return whether to compact now, and the strategy to try first.

    Only at level ``auto`` or ``block``, if compacting is on and the server does not hold the
    history; never for a sub-agent or a fork.
    """
    settings = request.settings
    if level not in ("auto", "block") or not settings.context.compact:
        return DueCompaction(due=False)
    if request.conversation or request.supports & {MANAGED, THREAD}:
        return DueCompaction(due=False)
    if settings.notes.enabled:
        return DueCompaction(due=True, strategy="notes")
    api_compacts = COMPACTION in request.supports
    return DueCompaction(due=True, strategy="api" if api_compacts else "model")
