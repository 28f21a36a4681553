"""Old results are cleared after an hour without a request, or by the API; caches that are lost."""

import json
from typing import Any

import pytest

from tests.net.context_talk import Talk, call, check, lines, ran, reply, result, user
from tests.net.kit import Home, Project

TOOLS = ("Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write")
HOURS = 7_200
CLEARED = "[Old tool result content cleared]\n"
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
DECLARED = [{"name": n, "input_schema": {"type": "object"}} for n in ("Read", "mcp__db__q")]


def rested(project: Project, count: int = 12, tools: tuple[str, ...] = TOOLS) -> Talk:
    """Return a conversation with results in a home where clearing is on."""
    project.home.configure("[context]\nclear = true\n")
    return filled(Talk(project), count, tools)


def filled(talk: Talk, count: int, tools: tuple[str, ...] = TOOLS) -> Talk:
    """Add so many results and a last reply to a conversation and plan it."""
    talk.messages = [user("Begin.")]
    for number in range(count):
        tool = tools[number % len(tools)]
        talk.add(*ran(f"c{number}", tool, f"result {number} " + "d" * 5_000))
    talk.plan()
    talk.add(reply("Done."))
    return talk


def test_an_hour_clears_all_but_five(project: Project) -> None:
    """Once the person speaks after an hour all but the newest five are stored and one line."""
    talk = rested(project)
    talk.add(user("Go on."))
    assert talk.edited(idle_seconds=3_500) == {}
    edits = talk.edited(idle_seconds=3_700)
    assert sorted(edits) == sorted(f"c{number}" for number in range(7))
    for identity, shown in edits.items():
        whole = talk.stored(identity)
        assert shown == f"{CLEARED}{talk.project.folder}/s1/tool-results/{identity}.txt"
        assert whole.startswith(f"result {identity[1:]} ")
    assert {d["action"] for d in talk.decisions if d["tool_use_id"] in edits} == {"clear"}
    sent = talk.sent()
    check(sent)
    assert talk.add(reply("Well."), user("More.")).sent()[: len(sent)] == sent


@pytest.mark.full
def test_what_is_never_cleared(project: Project) -> None:
    """After an hour MCP results, texts, an open turn and a sub-agent's results are as they were."""
    talk = rested(project, tools=("mcp__db__q",))
    others = filled(Talk(talk.project, "s2"), 12)
    talk.add(user("Go on."))
    assert talk.edited(idle_seconds=HOURS) == {}
    del others.messages[-1]
    assert others.edited(idle_seconds=HOURS) == {}
    others.add(reply("Done."), user("Go on."))
    assert others.edited(conversation="agent-1", idle_seconds=HOURS) == {}


@pytest.mark.full
@pytest.mark.parametrize("may_drop", [False, True])
def test_thinking_stands_against_clearing(project: Project, *, may_drop: bool) -> None:
    """Behind a cleared result no thinking stays: it goes, or nothing is cleared."""
    talk = rested(project)
    talk.messages[-1] = reply(THOUGHT, "Done.")
    talk.add(user("Go on."))
    talk.plan(may_drop_thinking=may_drop)
    talk.add(reply(THOUGHT, "Well."), user("Once more."))
    sent = talk.sent(may_drop_thinking=may_drop, idle_seconds=HOURS)
    assert (CLEARED[:20] in json.dumps(sent)) == may_drop
    assert ("thinking" in json.dumps(sent)) != may_drop
    check(sent)


@pytest.mark.full
def test_clearing_is_off_by_default(project: Project) -> None:
    """Unless context.clear is on nothing is cleared, however long a conversation rested."""
    talk = filled(Talk(project), 12)
    assert talk.add(user("Go on.")).edited(idle_seconds=24 * HOURS) == {}


def test_the_client_says_how_long_it_rested(home: Home, project: Project) -> None:
    """The time since the last reply comes with the plan, without any clock."""
    home.configure("[context]\nclear = true\n")
    talk = filled(Talk(project), 12)
    talk.add(user("Go on."))
    assert talk.edited(idle_seconds=3_599) == {}
    assert len(talk.edited(idle_seconds=3_600)) == 7


@pytest.mark.parametrize(
    ("settings", "may_drop", "thinking", "trigger", "least"),
    [
        ("", False, "all", 147_000, 107_000),
        ("", True, {"type": "thinking_turns", "value": 1}, 147_000, 107_000),
        ("[context]\ncompact = false\n", False, "all", 180_000, 140_000),
    ],
)
def test_the_api_clears_by_itself(
    home: Home,
    project: Project,
    *,
    settings: str,
    may_drop: bool,
    thinking: object,
    trigger: int,
    least: int,
) -> None:
    """Where the model clears by itself the request says how, and the history is untouched."""
    home.configure(settings)
    more: dict[str, Any] = {"supports": ["context_management", "thinking"], "tools": DECLARED}
    talk = Talk(project, model="claude-sonnet-5-5", **more).add(user("Begin."))
    request = talk.plan(may_drop_thinking=may_drop)["request"]
    assert request["betas"] == ["context-management-2025-06-27"]
    edits = {edit["type"]: edit for edit in request["context_management"]["edits"]}
    assert edits["clear_thinking_20251015"]["keep"] == thinking
    uses = edits["clear_tool_uses_20250919"]
    assert uses["trigger"] == {"type": "input_tokens", "value": trigger}
    assert uses["clear_at_least"] == {"type": "input_tokens", "value": least}
    assert uses["keep"] == {"type": "tool_uses", "value": 5}
    assert "mcp__db__q" in uses["exclude_tools"]
    assert talk.answer["edits"] == []
    later = talk.add(reply("Yes."), user("Go on.")).plan(may_drop_thinking=may_drop)
    assert later["request"] == request


def test_an_api_that_cannot_clear_is_not_asked(project: Project) -> None:
    """Without context_management a plan adds nothing to the request."""
    assert Talk(project).add(user("Begin.")).plan()["request"] == {}


class Cached(Talk):
    """A conversation of three requests whose replies read from a cache."""

    def lost(self, *, read: int, **changed: Any) -> Any:
        """Return the lost cache after a second reply that read so many tokens."""
        base: dict[str, Any] = {"model": "claude-sonnet-5-5", "system": "You code."}
        base["tools"] = DECLARED[:1]
        self.messages = [user("a" * 400)]
        answer = self.plan(**base)
        self.add(reply("b"), user("c"))
        more = {**base, **changed}
        given = [self._baseline(answer), self._usage(40_000, 0)]
        answer = self.plan(**more, **given[0], usage=given[1])
        self.add(reply("d"), user("e"))
        usage = self._usage(read, 40_000 - read if read < 40_000 else 0)
        return self.plan(**more, **self._baseline(answer), usage=usage)["cache_break"]

    @staticmethod
    def _baseline(answer: dict[str, Any]) -> dict[str, Any]:
        """Return what a plan is given of the last one's answer: its baseline, if it has one."""
        return {"baseline": answer["baseline"]} if "baseline" in answer else {}

    @staticmethod
    def _usage(read: int, created: int) -> dict[str, int]:
        cache = {"cache_read_input_tokens": read, "cache_creation_input_tokens": created}
        return {"input_tokens": 100, "output_tokens": 50, **cache}


@pytest.mark.parametrize("read", [40_100, 39_000, 38_100])
def test_a_small_fall_is_no_lost_cache(project: Project, read: int) -> None:
    """Reads that fall by less than 5 % or 2,000 tokens are no lost cache."""
    assert Cached(project).lost(read=read) is None


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({}, "server"),
        ({"model": "claude-haiku-4-5"}, "model"),
        ({"system": "You write."}, "system"),
        ({"tools": [{"name": "Other", "input_schema": {"type": "object"}}]}, "tools"),
        ({"betas": ["x-2026-01-01"]}, "betas"),
    ],
)
def test_a_lost_cache_has_a_cause(project: Project, changed: dict[str, Any], cause: str) -> None:
    """Reads that fall by more are a lost cache: what the client changed, else the server."""
    found = Cached(project).lost(read=500, **changed)
    assert found["cause"] == cause
    assert found["tokens"] >= 39_000


def test_a_baseline_has_no_text(project: Project) -> None:
    """What a client brings back for the next comparison has hashes and numbers only."""
    talk = Talk(project).add(user("quetzal-request"))
    answer = talk.plan(system="quetzal-system", model="claude-sonnet-5-5")
    assert answer.get("baseline")
    assert "quetzal" not in json.dumps(answer["baseline"])


@pytest.mark.full
def test_a_declared_break_is_no_lost_cache(project: Project) -> None:
    """After a compaction reads may fall, and no lost cache is reported."""
    base: dict[str, Any] = {"system": "You code.", "tools": DECLARED[:1]}
    talk = Talk(project, **base)
    for number in range(40):
        talk.add(user(f"q{number} " + "z" * 4_000), reply(f"a{number} " + "z" * 4_000))
    talk.plan(usage=Cached._usage(0, 80_000))
    talk.add(user("Next."))
    talk.plan(usage=Cached._usage(80_000, 0))
    given = {"session_id": "s1", "messages": talk.messages, "wait": True}
    answer = project.call("context.compact", **given)
    assert answer["strategy"] == "local"
    talk.messages = [*answer["messages"], *talk.messages[answer["keep_from"] :]]
    talk.plan()
    talk.add(reply("d"), user("e"))
    assert talk.plan(usage=Cached._usage(12_000, 20_000))["cache_break"] is None


@pytest.mark.full
def test_what_is_cleared_stays_readable(project: Project) -> None:
    """Each result that is not sent whole is in a file that its line names."""
    talk = rested(project, 20)
    talk.add(user("Go on."))
    originals = {f"c{n}": f"result {n} " + "d" * 5_000 for n in range(20)}
    edits = talk.edited(idle_seconds=HOURS)
    assert len(edits) == 15
    for identity, shown in edits.items():
        assert str(talk.project.folder) in str(shown)
        assert talk.stored(identity) == originals[identity]
    talk.add(reply(call("big")), user([result("big", lines(4_000))]))
    assert "persisted-output" in str(talk.edited()["big"])
