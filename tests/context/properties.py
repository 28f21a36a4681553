"""What holds of each request that went out by a plan, whatever happened before it.

Each property is a function that gets one step of a client; what it asserts says its name first.
Nothing here knows how a plan is made: what is expected is computed from the messages alone.
"""

from collections.abc import Callable, Mapping
from typing import Any

from memd.context.requests import MANAGED, THREAD
from memd.context.values import CLEAR, DROP, KEEP, SPILL
from memd.conversation.history import count, estimate, tool_kind
from memd.core.canonical import LEAST_CHARACTERS, START, chained
from tests.context.clients import BOUND_MODEL, Result, Step, applied, results
from tests.support.api_rules import broken

_LIMITS = {"shell": 30_000, "search": 20_000}
_OTHER, _SERVER = 50_000, 100_000
_MESSAGE = 200_000
_CLEARED = ("read", "shell", "search", "web_search", "web", "edit", "write")
_HOUR, _NEWEST = 3_600, 5


def accepted(step: Step) -> None:
    """Check that the API takes what went out, as it takes what the client had."""
    # Thinking is signed under what was sent, so the client's own messages are for another model.
    for model, messages in (("m", step.originals), (BOUND_MODEL, step.sent)):
        unsent = ("id", "usage")
        listed = [{k: v for k, v in m.items() if k not in unsent} for m in messages]
        fault = broken({"model": model, "messages": listed})
        assert not fault, f"accepted: {fault}"


def shaped(step: Step) -> None:
    """Check that only contents of results change and thinking goes; nothing moves."""
    assert len(step.sent) == len(step.originals), "shaped: a message is missing"
    for place, (old, new) in enumerate(zip(step.originals, step.sent, strict=True)):
        edits = step.applied.get(place, {})
        assert new == applied(old, edits), f"shaped: message {place}"
        assert not edits or old["role"] in ("user", "assistant"), "shaped: a system message"
        assert new["content"] or not old["content"], f"shaped: message {place} is empty"
        for number, content in edits.items():
            kind = old["content"][number]["type"]
            right = kind == "tool_result" if content is not None else "thinking" in kind
            assert right, f"shaped: {kind} was replaced by {content!r:.40}"


def same_prefix(step: Step) -> None:
    """Check that what was sent before is sent again, byte for byte, but for a declared break."""
    changed = changes(step)
    if changed:
        assert step.request.place <= changed[0] or step.answer.edits, "same_prefix: by nobody"
        assert step.request.settings.context.clear, f"same_prefix: message {changed[0]} changed"


def changes(step: Step) -> list[int]:
    """Return the messages that were sent before and are not the same now."""
    pairs = zip(step.before, step.lines, strict=False)
    return [place for place, (old, new) in enumerate(pairs) if old != new]


def cleared(step: Step) -> None:
    """Check that a break is declared only where one may be, and clears what may be cleared."""
    changed = changes(step)
    fresh = {
        key for key, decision in step.known_now.items()
        if decision.action == CLEAR and step.known.get(key) != decision
    }  # fmt: skip
    if not changed and not fresh:
        return
    request, last = step.request, step.originals[-1]
    assert request.settings.context.clear, "cleared: though it is off"
    assert request.reader, "cleared: without a reader"
    assert not request.supports & {MANAGED, THREAD}, "cleared: the client does that itself"
    assert step.planner.clock.now() - step.last_reply >= _HOUR, "cleared: while the cache was alive"
    spoken = [m for m in step.originals if m["role"] != "system"]
    assert spoken[-1]["role"] == "user", f"cleared: at {last}"
    assert not results(spoken[-1]), "cleared: in the middle of a turn"
    clearable = [r for r in step.results if tool_kind(r.tool) in _CLEARED]
    newest = {r.key for r in clearable[-_NEWEST:]}
    assert not fresh & newest, "cleared: one of the newest"
    names = {r.key: r.tool for r in step.results}
    wrong = [names[key] for key in fresh if key in names and tool_kind(names[key]) not in _CLEARED]
    assert not wrong, f"cleared: results of {wrong}"


def thinking_stays_whole(step: Step) -> None:
    """Check that thinking of a message is whole or absent; its signatures show where it stood."""
    for place, (old, new) in enumerate(zip(step.originals, step.sent, strict=True)):
        had, has = _thinking(old), _thinking(new)
        assert has in ([], had), f"thinking: a part of it in message {place}"
        assert has == had or _may_drop(step), f"thinking: message {place} lost it"


def _thinking(message: Mapping[str, Any]) -> list[Any]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block for block in content if "thinking" in block["type"]]


def _may_drop(step: Step) -> bool:
    """Tell whether thinking may have gone, now or in a request before."""
    dropped = (decision.action == DROP for decision in step.known_now.values())
    return step.request.may_drop_thinking or any(dropped)


def nothing_lost(step: Step) -> None:
    """Check that what went is in a file that the replacement names, byte for byte."""
    for result in step.results:
        if result.whole:
            continue
        decision = step.known_now.get(result.key)
        assert decision is not None, f"nothing_lost: {result.key} without a decision"
        assert decision.content == result.edit, f"nothing_lost: {result.key} is another text"
        assert decision.action in (SPILL, CLEAR), f"nothing_lost: {decision.action} was replaced"
        assert decision.path in decision.content, "nothing_lost: the path is not named"
        text = step.planner.stored(decision.path)
        assert text == result.text, f"nothing_lost: {decision.path}"
        assert decision.size == len((text or "").encode()), "nothing_lost: its size"


def obeyed(step: Step) -> None:
    """Check that each result goes out as it was decided, and whole where nothing was."""
    if step.missed:
        return
    for result in step.results:
        decision = step.known_now.get(result.key)
        whole = decision is None or decision.action == KEEP
        assert result.whole == whole, f"obeyed: {result.key} is not as {decision} says"


def read_by_somebody(step: Step) -> None:
    """Check that without a reader nothing new is replaced."""
    fresh = [d for k, d in step.known_now.items() if k not in step.known and d.action != KEEP]
    assert step.request.reader or not fresh, f"read: {fresh[:1]} without a reader"


def frozen(step: Step) -> None:
    """Check that a decision stays; only a declared break clears, and for good."""
    for key, old in step.known.items():
        new = step.known_now[key]
        broken = CLEAR if key.tool_use_id else DROP
        same = new == old or (new.action == broken and old.action in (KEEP, SPILL))
        assert same, f"frozen: {old.action} became {new.action}"


def decided(step: Step) -> None:
    """Check that each result that is long enough is decided when it is first seen."""
    if step.missed:
        return
    for result in step.results:
        long = result.text is not None and len(result.text) >= LEAST_CHARACTERS
        if long and result.message >= step.request.place:
            assert result.key in step.known_now, f"decided: not {result.key}"


def within_limits(step: Step) -> None:
    """Check that at first sight what is above a limit is stored, and nothing else."""
    if step.missed:
        return
    for message in range(step.request.place, len(step.originals)):
        new = [r for r in step.results if r.message == message and r.key not in step.known]
        if message < len(step.before):  # it was sent before memd saw it
            assert all(r.whole for r in new), f"limits: message {message} was sent whole"
        elif new:
            _limits_of(step, message, new)


def _limits_of(step: Step, message: int, new: list[Result]) -> None:
    able = bool(step.request.reader) and step.request.settings.context.spill
    may = [r for r in new if able and exempt(step, r) is False]
    blocked = _whole_tokens(step) >= step.answer.thresholds.block
    of_message = [r for r in step.results if r.message == message]
    total = sum(len(r.edit) if r.edit else r.characters for r in of_message)
    # How long what stands for a new one will be is not known before it is stored.
    bound = total + sum(LEAST_CHARACTERS - len(r.edit) for r in new if r.edit)
    failed = step.planner.unstored
    for result in new:
        over = result in may and len(result.text or "") > limit(step, result.tool)
        if over and result.key.tool_use_id not in failed:
            assert not result.whole, f"limits: {result.tool} of {len(result.text or '')} stays"
        if result not in may:
            assert result.whole, f"limits: {result.tool} went, which is exempt"
        elif not over and not blocked and not result.whole:
            room = bound + result.characters
            assert room > _MESSAGE, f"limits: {result.tool} of {len(result.text or '')} went"
    stay = [r for r in may if r.whole and r.key.tool_use_id not in failed]
    went = [r for r in may if not r.whole and r.characters <= limit(step, r.tool)]
    if stay and went:
        least, most = (f([r.characters for r in rs]) for f, rs in ((min, went), (max, stay)))
        assert least >= most, f"limits: {least} characters went, {most} stayed"
    if total > _MESSAGE and not failed.intersection(r.key.tool_use_id for r in new):
        assert not stay, f"limits: message {message} has {total} characters"


def _whole_tokens(step: Step) -> int:
    """Return the size of the context, had all that went now stayed."""
    place = step.request.place
    went = (r for r in step.results if r.message >= place and r.edit is not None)
    return step.answer.count.tokens + sum(estimate(r.text) - estimate(r.edit) for r in went)


def exempt(step: Step, result: Result) -> bool:
    """Tell whether a result never goes."""
    if result.text is None or len(result.text) < LEAST_CHARACTERS:
        return True
    return result.failed or result.tool == step.request.reader


def limit(step: Step, tool: str) -> int:
    """Return how many characters a result of a tool may have."""
    listed: Mapping[str, Any] = dict(step.request.settings.context.limits)
    if tool in listed:
        return int(listed[tool])
    if tool.startswith("mcp__"):
        return _SERVER
    return _LIMITS.get(tool_kind(tool), _OTHER)


def smaller(step: Step) -> None:
    """Check that no replacement is larger than what it replaces, in tokens and in bytes."""
    for result in step.results:
        if result.edit is not None:
            old, new = result.text or "", result.edit
            assert len(new.encode()) < len(old.encode()), f"smaller: {len(old)} became {len(new)}"
            assert estimate(new) <= estimate(old), "smaller: more tokens"


def agreed(step: Step) -> None:
    """Check that client and memd agree on what the conversation is."""
    value = START
    for message in step.originals:
        value = chained(value, message)
    assert step.answer.have == len(step.originals), "agreed: how many messages"
    assert step.answer.hash == value.hex(), "agreed: the hash"


def counted(step: Step) -> None:
    """Check that the size is that of what goes out, until something in its middle was changed."""
    changed = any(d.action in (CLEAR, DROP) for d in step.known_now.values())
    if changed or step.missed:
        return
    tokens = count(step.sent).tokens
    # The texts of a result are estimated one by one, or joined.
    edited = [(_content(step, each), each.text) for each in step.results if not each.whole]
    rounding = 2 + sum(abs(estimate(content) - estimate(text)) for content, text in edited)
    assert abs(step.answer.count.tokens - tokens) <= rounding, f"counted: {tokens}"


def _content(step: Step, result: Result) -> Any:
    return step.originals[result.message]["content"][result.block]["content"]


def same_members(step: Step) -> None:
    """Check that members of the request, once they are in a conversation, stay."""
    assert step.members in (None, step.answer.request), "same_members: others than before"


def left_alone(step: Step) -> None:
    """Check that a client that manages its context, or is a sub-agent, is not compacted."""
    request, answer = step.request, step.answer
    if request.supports & {MANAGED, THREAD}:
        assert not answer.compact.due, "left_alone: compaction of a managed conversation"
        assert not answer.request, "left_alone: members for a managed request"
    if request.conversation:
        assert not answer.compact.due, "left_alone: compaction of a sub-agent"


PROPERTIES: tuple[Callable[[Step], None], ...] = (
    accepted,
    shaped,
    same_prefix,
    cleared,
    thinking_stays_whole,
    nothing_lost,
    obeyed,
    read_by_somebody,
    frozen,
    decided,
    within_limits,
    smaller,
    agreed,
    counted,
    same_members,
    left_alone,
)


def check(step: Step) -> None:
    """Raise AssertionError for the first property that does not hold."""
    for holds in PROPERTIES:
        holds(step)
