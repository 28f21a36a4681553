"""The middleware as the whole memory: what it asks memd, and what goes out of its answers."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic import Anthropic, Middleware, beta_tool

from memd.client.context import Keeper
from tests.client.agents import LARGE, WAYS, blocking, body, history, sent_by
from tests.net.kit import until
from tests.support.messages import MessagesServer, messages_server, text
from tests.support.messages import tools as calling
from tests.support.scripted_daemon import HangUp, ScriptedDaemon, ScriptedRefusal, Silence
from tests.support.steps import Failure

SECTION, BLOCK = "# Memory\n\nThe section.", "<memd-context>\nPort 9911.\n</memd-context>"
PLAN = {"decisions": [], "request": {}, "compact": {"due": False}}
ANSWERS = {
    "load_prompt": {"prompt": SECTION},
    "prefetch": {"block": BLOCK},
    "context.plan": PLAN,
    "extract": {"status": "accepted"},
    "notes.update": {"status": "accepted"},
    "session": {},
}
PARTS = {
    "prompt": "load_prompt",
    "recall": "prefetch",
    "context": "context.plan",
    "extract": "extract",
    "notes": "notes.update",
}
MARK = {"cache_control": {"type": "ephemeral"}}
PROMPT: dict[str, Any] = {"role": "user", "content": "Which port?"}
REMEMBERED = [{"type": "text", "text": BLOCK}, {"type": "text", "text": "Which port?"}]
ANSWER: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}


@pytest.fixture(name="socket")
def _socket(tmp_path: Path) -> str:
    return str(tmp_path / "run" / "memd.sock")


@pytest.fixture(name="daemon")
def _daemon(socket: str) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(socket, ANSWERS) as daemon:
        yield daemon


def keeper(socket: str, **given: Any) -> Keeper:
    """Return a middleware of the daemon at a socket, which waits as long as a loaded machine is."""
    return Keeper(".", "s", socket=socket, **{"seconds": 10, **given})


def learnt(daemon: ScriptedDaemon, turns: int) -> None:
    """Wait until so many turns were given to memd."""
    until(lambda: daemon.methods.count("extract") >= turns, f"{turns} turns are given to memd")


def asked(daemon: ScriptedDaemon) -> list[str]:
    """Return the methods that were called, without those for the section, which may come early."""
    return [method for method in daemon.methods if method != "load_prompt"]


def texts(system: Any) -> list[str]:
    """Return the texts of a system prompt."""
    return [block["text"] for block in system]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_asking_has_the_whole_memory(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str, way: str
) -> None:
    """Section and memories go out, and the turn is learnt from with the very bytes sent."""
    given = body([PROMPT], system="You help.")
    assert sent_by(way, server.url, keeper(socket), given) == "done"
    learnt(daemon, 1)
    sent = server.messages[0].json
    assert texts(sent["system"]) == ["You help.", SECTION]
    assert sent["messages"] == [{"role": "user", "content": REMEMBERED}]
    for method in ("extract", "notes.update"):
        params = daemon.params(method)
        assert params["cache"] == {
            **{name: sent[name] for name in ("model", "system", "tools")},
            "messages": [*sent["messages"], ANSWER],
        }
        named = [{name: m[name] for name in ("role", "content")} for m in params["messages"]]
        assert named == params["cache"]["messages"]
        assert params["messages"][-1]["usage"]["output_tokens"] > 0
    assert asked(daemon) == ["prefetch", "context.plan", "notes.update", "extract"]


class Spy(Middleware):
    """A program's own middleware, which sees requests before and after the Keeper has them."""

    def __init__(self) -> None:
        self.bodies: list[tuple[Any, Any]] = []  # of each request, before it went on and after

    def handle(self, request: Any, call_next: Any) -> Any:
        before = copy.deepcopy(request.json)
        response = call_next(request)
        self.bodies.append((before, request.json))
        return response


@pytest.mark.usefixtures("daemon")
def test_no_request_is_changed_in_place(server: MessagesServer, socket: str) -> None:
    """Whoever else has the request still has it as the program made it."""
    spy = Spy()
    given = body([*history(LARGE), ANSWER, PROMPT], system=[{"type": "text", "text": "x", **MARK}])
    middleware = [spy, keeper(socket)]
    with Anthropic(base_url=server.url, api_key="k", middleware=middleware) as client:
        client.messages.create(**given)
    ((before, after),) = spy.bodies
    assert before == after
    assert server.messages[0].json["messages"][-1]["content"] == REMEMBERED


@pytest.mark.parametrize("part", PARTS)
def test_each_part_can_be_switched_off(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str, part: str
) -> None:
    """Without a part its method is never called, and the other parts do what they do."""
    sent_by("create", server.url, keeper(socket, **{part: False}), body([PROMPT]))
    others = {*PARTS.values()} - {PARTS[part]}
    until(lambda: others <= {*daemon.methods}, "all other parts have asked")
    assert {*daemon.methods} == others
    assert len(asked(daemon)) == len(others - {"load_prompt"})
    sent = server.messages[0].json
    assert ("system" in sent) is (part != "prompt")
    assert (sent["messages"] == [PROMPT]) is (part == "recall")


def test_with_all_parts_off_nothing_changes(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str
) -> None:
    """Without any part a request goes out byte for byte as without the middleware."""
    off = keeper(socket, **dict.fromkeys(PARTS, False))
    for known in (None, off):
        sent_by("create", server.url, known, body(history(LARGE), system="You help."))
    assert server.messages[0].body == server.messages[1].body
    assert daemon.methods == []


def test_a_turn_with_open_calls_is_not_learnt_from(daemon: ScriptedDaemon, socket: str) -> None:
    """In a loop of tools only the last reply ends the turn, and results bring no memories."""

    @beta_tool
    def report(n: int) -> str:
        """Report."""
        return f"{n}"

    script = [*(calling(("report", {"n": n})) for n in range(3)), text("done")]
    with messages_server(script) as server, blocking(server.url, keeper(socket)) as client:
        given = {"model": "claude-haiku-5-5", "max_tokens": 100, "messages": [PROMPT]}
        runner = client.beta.messages.tool_runner(**given, tools=[report], thread=False)
        runner.until_done()
        learnt(daemon, 1)
        last = server.messages[-1].json["messages"]
    assert daemon.methods.count("extract") == daemon.methods.count("notes.update") == 1
    assert daemon.methods.count("prefetch") == 1
    assert daemon.params("extract")["cache"]["messages"] == [*last, ANSWER]
    assert last[0] == {"role": "user", "content": REMEMBERED}


def test_a_retry_asks_nothing_anew(daemon: ScriptedDaemon, socket: str) -> None:
    """Attempts at one request have the same bytes, one prefetch and one turn."""
    script: list[Any] = [Failure(529), Failure(529), text("done")]
    with messages_server(script) as server, blocking(server.url, keeper(socket), 2) as client:
        client.messages.create(**body([PROMPT]))
        learnt(daemon, 1)
        assert len({request.body for request in server.messages}) == 1
        assert len(server.messages) == 3
    assert sorted(asked(daemon)) == sorted({*PARTS.values()} - {"load_prompt"})


def test_a_program_that_asks_again_gets_the_same(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str
) -> None:
    """The same prompt sent anew, marked or as a block, has the memories it had."""
    known = keeper(socket)
    for content in ("Which port?", [{"type": "text", "text": "Which port?", **MARK}]):
        sent_by("create", server.url, known, body([{"role": "user", "content": content}]))
    first, second = (request.json["messages"][0]["content"] for request in server.messages)
    assert second == [first[0], {**first[1], **MARK}]
    assert daemon.methods.count("prefetch") == 1


@pytest.mark.usefixtures("daemon")
def test_a_prompt_said_before_changes_no_earlier_one(server: MessagesServer, socket: str) -> None:
    """Words that stood in the history without memories stay so, when they are said once more."""
    known, go_on = keeper(socket), {"role": "user", "content": "Go on."}
    earlier = [go_on, ANSWER, PROMPT, ANSWER, go_on]
    for messages in (earlier, [*earlier, ANSWER, PROMPT]):
        sent_by("create", server.url, known, body(messages))
    first, second = (request.json["messages"] for request in server.messages)
    assert second[: len(first)] == first


def test_a_note_behind_a_prompt_hides_it_not(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str
) -> None:
    """A system's message behind the prompt leaves it a prompt, and results before it as well."""
    results = history("x")
    note = {"role": "system", "content": "Tools were added."}
    messages = [*results, PROMPT, note]
    sent_by("create", server.url, keeper(socket), body(messages))
    sent = server.messages[0].json["messages"]
    assert sent == [*results, {**PROMPT, "content": REMEMBERED}, note]
    assert daemon.params("prefetch")["query"] == "Which port?"
    assert daemon.params("prefetch")["recent_tools"] == ["report"]


@pytest.mark.usefixtures("daemon")
def test_a_mark_at_the_system_prompt_s_end_covers_the_section(
    server: MessagesServer, socket: str
) -> None:
    """What the program has cached of its system prompt includes the memory section."""
    system = [{"type": "text", "text": "You help.", **MARK}]
    sent_by("create", server.url, keeper(socket), body([PROMPT], system=system))
    unmarked, marked = server.messages[0].json["system"]
    assert (unmarked, marked) == (
        {"type": "text", "text": "You help."},
        {"type": "text", "text": SECTION, **MARK},
    )


@pytest.mark.parametrize("member", ["thread", "context_management"])
def test_a_history_of_others_gets_spilling_at_most(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str, member: str
) -> None:
    """Where a server or the program keeps the history nothing is brought and nothing learnt."""
    known = keeper(socket, context=False)
    managed: Any = {member: {"edits": []} if member == "context_management" else {"type": "start"}}
    given = body([PROMPT], system="You help.")
    with blocking(server.url, known) as client:
        for extra in (managed, None):  # the same prompt later stays as it was sent
            client.beta.messages.create(
                **given, extra_body=extra, betas=["context-management-2025-06-27"]
            )
    for request in server.messages:
        assert (request.json["system"], request.json["messages"]) == ("You help.", [PROMPT])
    learnt(daemon, 1)  # of the second request
    assert {*asked(daemon)} == {"extract", "notes.update"}
    assert daemon.methods.count("extract") == 1


def test_a_sub_agent_neither_learns_nor_compacts(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str
) -> None:
    """A sub-agent's conversation is recalled to as one of its own, and given to nobody."""
    for given in ({"conversation": "c1"}, {}):
        sent_by("create", server.url, keeper(socket, **given), body([PROMPT]))
    learnt(daemon, 1)
    first, second = (request.json for request in server.messages)
    assert first["system"] == second["system"]
    assert first["messages"] == second["messages"]
    recalled = [call.params for call in daemon.requested if call.method == "prefetch"]
    assert [params["session_id"] for params in recalled] == ["s/c1", "s"]
    assert daemon.methods.count("extract") == daemon.methods.count("notes.update") == 1


def test_a_slow_daemon_has_the_section_ready(server: MessagesServer, socket: str) -> None:
    """What was loaded when the Keeper was made stands in for an answer that does not come."""
    answers = iter([{"prompt": SECTION}, Silence()])
    with ScriptedDaemon(socket, {**ANSWERS, "load_prompt": lambda _: next(answers)}) as daemon:
        known = keeper(socket, seconds=0.3)
        until(lambda: known._memories._early_section, "the section is there")
        sent_by("create", server.url, known, body([PROMPT]))
        assert daemon.methods.count("load_prompt") == 2
    assert texts(server.messages[0].json["system"]) == [SECTION]


TROUBLE: tuple[Any, ...] = (
    None,
    [],
    {},
    {"prompt": 5, "block": 5},
    {"prompt": None, "block": ""},
    ScriptedRefusal(1002, "changed"),
    Silence(),
    HangUp(),
)


@pytest.mark.parametrize("answer", TROUBLE, ids=str)
def test_whatever_memd_answers_nothing_is_raised(
    server: MessagesServer, socket: str, answer: Any
) -> None:
    """Without a section or memories requests go out unchanged, and stay so once memd is well."""
    known = keeper(socket, seconds=0.1)
    given = body([PROMPT], system="You help.")
    with ScriptedDaemon(socket, {**dict.fromkeys(ANSWERS, answer), "context.plan": PLAN}):
        assert sent_by("create", server.url, known, given) == "done"
    with ScriptedDaemon(socket, ANSWERS) as daemon:
        later = body([PROMPT, ANSWER, PROMPT], system="You help.")
        assert sent_by("stream_async", server.url, known, later) == "done"
        learnt(daemon, 1)
    first, second = (request.json for request in server.messages)
    assert (first["system"], first["messages"]) == ("You help.", [PROMPT])
    assert (second["system"], second["messages"][:2]) == ("You help.", [PROMPT, ANSWER])
    assert second["messages"][2]["content"] == REMEMBERED


def test_counting_brings_nothing_and_marks_nothing(
    server: MessagesServer, daemon: ScriptedDaemon, socket: str
) -> None:
    """A count has what went out before, and asks for no memories of a prompt not sent yet."""
    known = keeper(socket)
    given = {name: value for name, value in body([PROMPT]).items() if name != "max_tokens"}
    with blocking(server.url, known) as client:
        client.messages.count_tokens(**given)
        client.messages.create(**body([PROMPT]))
        client.messages.count_tokens(**given)
    counts = [request.json for request in server.requests if request.route.endswith("tokens")]
    assert [texts(each["system"]) for each in counts] == [[SECTION]] * 2
    assert [each["messages"][0]["content"] for each in counts] == ["Which port?", REMEMBERED]
    learnt(daemon, 1)
    assert (daemon.methods.count("prefetch"), daemon.methods.count("extract")) == (1, 1)


def test_another_process_sends_the_same_bytes(server: MessagesServer, socket: str) -> None:
    """What one Keeper dumps as JSON another loads, whatever memd and its switches say by then."""
    with ScriptedDaemon(socket, ANSWERS):
        first = keeper(socket)
        sent_by("create", server.url, first, body([PROMPT], system="You help."))
    with ScriptedDaemon(socket, {**ANSWERS, "load_prompt": {"prompt": "Another."}}):
        second = keeper(socket, prompt=False, recall=False)
        second.load(json.loads(json.dumps(first.dump())))
        longer = [PROMPT, ANSWER, {"role": "user", "content": "Go on."}]
        sent_by("create", server.url, second, body(longer, system="You help."))
    before, after = (request.json for request in server.messages)
    assert before["system"] == after["system"]
    assert before["messages"] == after["messages"][:1]
    assert after["messages"][2] == longer[2]


def test_a_compaction_without_memd_is_the_conversation(socket: str) -> None:
    """Where no daemon answers, and where nothing helps, the messages come back as they are."""
    messages = [PROMPT, ANSWER]
    assert keeper(socket).compacted(messages) == messages
    with ScriptedDaemon(socket, {"context.compact": {"strategy": ""}}):
        assert keeper(socket).compacted(messages) == messages


def test_a_compaction_lets_memories_come_again(server: MessagesServer, socket: str) -> None:
    """After a compaction memd is told of it, before memories are asked for anew."""
    compacted = {"strategy": "notes", "keep_to": 0, "keep_from": 2, "edits": []}
    note = {"role": "user", "uuid": "memd-notes-1", "content": "The notes."}
    answers = {**ANSWERS, "context.compact": {**compacted, "messages": [note]}}
    with ScriptedDaemon(socket, answers) as daemon:
        known = keeper(socket)
        sent_by("create", server.url, known, body([PROMPT]))
        shorter = known.compacted([PROMPT, ANSWER])
        assert shorter == [{"role": "user", "content": "The notes."}]
        given = daemon.params("context.compact")["messages"]
        assert [message["content"] for message in given] == [REMEMBERED, ANSWER["content"]]
        ids = [message["uuid"] for message in daemon.params("extract")["messages"]]
        assert [message["uuid"] for message in given] == ids
        sent_by("create", server.url, known, body([*shorter, ANSWER, PROMPT]))
        asked = [name for name in daemon.methods if name in ("session", "prefetch")]
        assert asked == ["prefetch", "session", "prefetch"]
        assert daemon.params("session")["event"] == "compacted"


def test_a_runner_goes_on_from_the_notes(socket: str) -> None:
    """A due compaction of a runner takes the notes, and asks the API where they do not help."""

    @beta_tool
    def report(n: int) -> str:
        """Report."""
        return f"{n}"

    note = {"role": "user", "content": "The notes."}
    helps = {"strategy": "notes", "keep_to": 0, "keep_from": 1, "edits": [], "messages": [note]}
    due = {**PLAN, "compact": {"due": True}}
    can = SimpleNamespace(
        max_input_tokens=200_000,
        capabilities=SimpleNamespace(compaction=SimpleNamespace(supported=True)),
    )
    scheduled = []
    for answer in (helps, {"strategy": "", "messages": []}):
        answers = {**ANSWERS, "context.plan": due, "context.compact": answer}
        script = [calling(("report", {"n": 1})), text("done"), text("done")]
        with ScriptedDaemon(socket, answers) as daemon, messages_server(script) as server:
            known = keeper(socket, model=can)
            with blocking(server.url, known) as client:
                runner = client.beta.messages.tool_runner(
                    **body([PROMPT]) | {"tools": [report]},
                    thread=False,
                    betas=["compact-2026-09-04"],
                )
                assert known.after_turn(runner) is False
                next(iter(runner))
                scheduled.append((known.after_turn(runner), known.after_turn(runner)))
                next(iter(runner))
            assert daemon.params("context.compact")["strategy"] == "notes"
            bodies = [request.json for request in server.messages]
        if answer is helps:
            assert bodies[1]["messages"][0] == note
            assert [each["role"] for each in bodies[1]["messages"]] == ["user", "assistant", "user"]
        else:
            assert bodies[1]["compaction"] == {"type": "summarize"}
    assert scheduled == [(True, False)] * 2


@pytest.mark.full
def test_a_hanging_daemon_holds_no_program_at_its_end(server: MessagesServer, socket: str) -> None:
    """A program whose memd hangs ends by itself, without a word about it."""
    with ScriptedDaemon(socket, {**ANSWERS, "extract": Silence(), "notes.update": Silence()}):
        code = (
            "import sys; from memd.client.context import Keeper; from anthropic import Anthropic\n"
            "keeper = Keeper('.', 's', socket=sys.argv[2])\n"
            "api = Anthropic(base_url=sys.argv[1], api_key='k', middleware=[keeper])\n"
            "said = [{'role': 'user', 'content': 'Which port?'}]\n"
            "print(api.messages.create(model='m', max_tokens=9, messages=said).content[0].text)\n"
        )
        done = run_python(code, server.url, socket)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def run_python(code: str, *arguments: str) -> Any:
    """Run a program to its end."""
    environ = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
