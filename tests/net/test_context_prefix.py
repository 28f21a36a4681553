"""What was sent stays as it was sent: decisions are made once, whatever happens later."""

import json
from typing import Any

import pytest

from tests.net.context_talk import (
    Talk,
    applied,
    call,
    check,
    lines,
    ran,
    refusal,
    reply,
    result,
    user,
)
from tests.net.kit import Home, Project
from tests.net.wire import RpcError

LIMITS = "[context.limits]\nGrep = 5000\nBash = 5000\n"


def grown(project: Project, session: str = "s1") -> Talk:
    """Return a conversation with a stored and a kept result that was planned at each request."""
    talk = Talk(project, session).add(user("x"), *ran("t1", "Grep", lines(2_000)))
    talk.plan()
    talk.add(*ran("t2", "Bash", lines(400)))
    talk.plan()
    return talk.add(reply("Found."), user("Go on."))


@pytest.mark.parametrize("change", ["limits", "no reader", "no spilling", "window", "nothing"])
def test_a_sent_prefix_stays(home: Home, project: Project, change: str) -> None:
    """Whatever settings, reader or window a later plan has, earlier messages go out the same."""
    talk = grown(project)
    before = talk.sent()
    every: dict[str, dict[str, Any]] = {"no reader": {"reader": ""}, "window": {"window": 20_000}}
    more = every.get(change, {})
    if change in ("limits", "no spilling"):
        home.configure(LIMITS if change == "limits" else "[context]\nspill = false\n")
    assert talk.sent(**more) == before
    talk.add(reply("Well."), *ran("t3", "Bash", lines(300)))
    assert talk.sent(**more)[: len(before)] == before


@pytest.mark.full
def test_a_sent_prefix_outlives_a_restart(own: Home) -> None:
    """After a restart, under other settings, the same bytes go out."""
    talk = grown(own.start().project())
    before = talk.sent()
    own.stop()
    own.configure(LIMITS)
    own.start()
    assert talk.sent() == before


def test_the_same_arguments_give_the_same_plan(project: Project) -> None:
    """Two plans of one conversation have the same edits, and so has another session's."""
    talk = Talk(project).add(user("x"), *ran("t1", "Grep", lines(2_000)))
    first = talk.plan()
    assert talk.plan()["edits"] == first["edits"]
    other = Talk(project, "s2").add(*talk.messages)
    assert list(other.edited()) == list(talk.edited())


def test_a_longer_conversation_extends_the_plan(project: Project) -> None:
    """At each step of a conversation the plan for its earlier messages is as it was."""
    talk, before = Talk(project).add(user("x")), list[Any]()
    for number in range(6):
        talk.add(*ran(f"t{number}", ("Bash", "Grep", "Foo")[number % 3], lines(400 * number + 1)))
        sent = talk.sent()
        assert sent[: len(before)] == before
        check(sent)
        assert len(json.dumps(sent)) <= len(json.dumps(talk.messages))
        before = sent


def test_what_a_reply_followed_was_sent_whole(project: Project) -> None:
    """A result that is first seen behind a reply to it is never stored."""
    talk = Talk(project).add(user("x"), *ran("t1", "Grep", lines(2_000)))
    talk.add(reply("Found."), user("Go on."))
    assert talk.edited() == {}
    home = project.home
    home.configure(LIMITS)
    assert talk.add(reply("Well."), user("Go on.")).edited() == {}


def test_originals_and_edits_give_the_same(project: Project) -> None:
    """A client may keep its own messages or the edited ones: what goes out is the same."""
    talk = grown(project)
    sent = talk.sent()
    edited = Talk(project).add(*sent)
    edited.decisions = talk.decisions
    assert edited.sent() == sent
    edited.add(reply("Well."), user("Go on."))
    assert edited.sent() == talk.add(reply("Well."), user("Go on.")).sent()


def test_a_history_that_was_cut_goes_on(project: Project) -> None:
    """A client that goes back to an earlier message is sent that prefix as before."""
    talk = grown(project)
    before = talk.sent()
    del talk.messages[3:]
    talk.add(reply("Otherwise."), user("Do it otherwise."))
    assert talk.sent()[:3] == before[:3]


def test_a_subagent_has_the_decisions_of_its_session(project: Project) -> None:
    """A conversation of the same session begins with the same bytes."""
    talk = grown(project)
    before = talk.sent()
    assert talk.sent(conversation="agent-1") == before


def test_decisions_come_from_the_client(project: Project) -> None:
    """A fork, or another daemon, goes on by the decisions that its client brings."""
    talk = grown(project)
    before = talk.sent()
    fork = Talk(project, "fork").add(*talk.messages)
    assert fork.sent(decisions=talk.decisions) == before


def test_the_daemon_keeps_no_decisions(project: Project) -> None:
    """Without decisions from the client results of the past were sent whole."""
    talk = grown(project)
    assert Talk(project).add(*talk.messages).edited() == {}


def test_what_was_sent_without_an_answer_is_kept(project: Project) -> None:
    """A result that a client sent whole, whatever its hash, stays whole."""
    talk = Talk(project).add(user("x"), *ran("t1", "Grep", lines(2_000)))
    kept = {"tool_use_id": "t1", "content_hash": "", "action": "keep"}
    blank = {"content": "", "path": "", "size": 0}
    assert talk.edited(decisions=[{**kept, **blank}]) == {}


def test_a_path_of_a_decision_is_not_opened(project: Project) -> None:
    """What a decision names is sent as the decision says, and its file is not looked at."""
    talk = Talk(project).add(user("x"), *ran("t1", "Grep", lines(2_000)))
    shown = str(talk.edited()["t1"])
    decision = {**talk.decisions[0], "path": "/etc/passwd"}
    assert Talk(project, "s2").add(*talk.messages).edited(decisions=[decision]) == {"t1": shown}


def test_no_text_of_a_conversation_is_kept(project: Project) -> None:
    """Beside stored results nothing that was said is in the daemon's files."""
    talk = Talk(project).add(
        user("axolotl-c-request"), reply("axolotl-c-answer"), user("axolotl-c-more")
    )
    talk.add(*ran("t1", "Bash", "axolotl-c-result " * 300))
    talk.plan(system="axolotl-c-system", tools=[{"name": "axolotl-c-tool", "input_schema": {}}])
    files = [path for path in project.home.state.rglob("*") if path.is_file()]
    assert files
    assert [path.name for path in files if b"axolotl-c" in path.read_bytes()] == []


@pytest.mark.parametrize("support", ["managed", "thread"])
def test_a_history_of_others_gets_storing_only(project: Project, support: str) -> None:
    """Where client or server keep the history, results are stored and nothing else is planned."""
    usage = {"input_tokens": 190_000, "output_tokens": 10}
    talk = Talk(project, supports=[support, "context_management"]).add(user("x"))
    talk.add(reply(call("t1"), id="m1", usage=usage), user([result("t1", lines(2_000))]))
    assert list(talk.edited()) == ["t1"]
    assert talk.answer["compact"]["due"] is False
    assert talk.answer["request"] == {}


CALL, ANSWER = call("t1"), result("t1", "done")
TALK = (user("Run it."), reply(CALL))


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([reply("Hello.")], "messages.0"),
        ([user("")], "messages.0"),
        ([user([])], "messages.0"),
        ([{"role": "tool", "content": "x"}], "messages.0"),
        ([{"role": "user"}], "messages.0"),
        ([{"role": "user", "content": 7}], "messages.0"),
        ([5], "messages.0"),
        ([*TALK, user("Stop."), reply("Yes.")], "messages.1"),
        ([*TALK, user([result("t9", "x")])], "messages.2.content.0"),
        ([*TALK, user([ANSWER, ANSWER])], "messages.2.content.1"),
        ([*TALK, user([ANSWER]), reply("ok", ANSWER)], "messages.3.content.1"),
        ([*TALK, user([ANSWER, {"type": "text", "text": ""}])], "messages.2.content.1"),
        ([*TALK, user([ANSWER, {"text": "x"}])], "messages.2.content.1"),
        ([*TALK, user([ANSWER]), reply(CALL)], "messages.3"),
        ([*TALK, user([{"type": "tool_result", "tool_use_id": 5}])], "messages.2.content.0"),
    ],
)
def test_a_malformed_conversation_is_refused(
    project: Project, messages: list[dict[str, object]], place: str
) -> None:
    """The error names the place and the rule, and nothing is noted of the conversation."""
    given = {"cwd": project.cwd, "session_id": "s1", "reader": "Read"}
    error = refusal(project.home, "context.plan", messages=messages, **given)
    assert error.kind == "invalid_messages"
    assert str(error.data["place"]).startswith(place)
    assert error.data["rule"]
    assert Talk(project).add(user("x"), *ran("t1", "Grep", lines(2_000))).edited().keys() == {"t1"}


def test_messages_of_any_shape_are_no_failure(project: Project) -> None:
    """Blocks of kinds that memd does not know are left as they are."""
    blocks = [
        {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": []},
        {"type": "new_kind", "data": {"x": [1]}},
        {"type": "redacted_thinking", "data": "abc"},
    ]
    talk = Talk(project).add(user("x"), reply(*blocks, "Found."), *ran("t1", "Grep", lines(2_000)))
    talk.messages[2:2] = [user("y")]
    assert talk.sent()[:3] == talk.messages[:3]
    with pytest.raises(RpcError):
        talk.plan(usage=5)


@pytest.mark.full
def test_cache_marks_are_no_change(project: Project) -> None:
    """A mark for the cache that moves is no other message."""
    talk = grown(project)
    before = talk.edited()
    marked = json.loads(json.dumps(talk.messages))
    marked[-1]["content"] = [
        {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}
    ]
    other = Talk(project).add(*marked)
    other.decisions = talk.decisions
    assert other.edited() == before
    assert applied(marked, talk.answer["edits"])[:-1] == talk.sent()[:-1]
