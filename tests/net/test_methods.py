"""Which methods there are, with which parameters, and what their errors look like."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.recorder import Recorder
from tests.net.socket_bytes import answers, exchanged, request
from tests.net.wire import Json, RpcError

_AGENT = " agent? scope?"
# Each method with its permission and parameters; nothing else may be given.
METHODS = {
    "memory.purge": "write cwd path? pattern? regex? dry_run?" + _AGENT,
    "context.plan": "write cwd session_id messages decisions? conversation? model? system? tools?"
    " betas? usage? diagnostics? reader? supports? window? may_drop_thinking? idle_seconds?"
    " request? baseline?",
    "context.spill": "write cwd session_id tool_use_id tool content? source_path? reader? action?",
    "hello": "read client? version? environment?",
    "session": "write cwd session_id event parent?",
    "subscribe": "read topics? cwd?",
    "status": "read",
    "doctor": "read cwd?",
    "report": "read cwd? days?",
    "pause": "operate now?",
    "resume": "operate",
    "shutdown": "operate",
    "load_prompt": "read cwd session_id? mode? agent? scope? skip_index? extra_guidelines?"
    " instructions?",
    "prefetch": "read cwd session_id query recent_tools? read_paths? limit? strategy? deadline_ms?"
    " explain?",
    "extract": "write cwd session_id transcript_path? messages? cache? wait?",
    "job.list": "read cwd? job? parked? record? limit?",
    "job.cancel": "write job",
    "dream": "write cwd force? wait?",
    "dream.status": "read cwd",
    "memory.list": "read cwd limit? after? contains? type?" + _AGENT,
    "memory.read": "read cwd path at?" + _AGENT,
    "memory.delete": "write cwd path base_hash? request_id?" + _AGENT,
    "memory.search": "read cwd query limit?" + _AGENT,
    "memory.tool": "write cwd command request_id? session_id?" + _AGENT,
    "memory.history": "read cwd path? actor? session? client? since? until? all_projects? limit?"
    " before?" + _AGENT,
    "memory.diff": "read cwd change? path? from? to?" + _AGENT,
    "memory.undo": "write cwd change? from? to? as_of? path? dry_run? request_id?" + _AGENT,
    "memory.why": "read cwd path" + _AGENT,
    "memory.take_over": "write cwd",
    "notes.list": "read cwd? limit?",
    "notes.read": "read cwd session_id max_chars?",
    "notes.update": "write cwd session_id transcript_path? messages? cache? force? wait?",
    "notes.delete": "write cwd session_id",
    "context.compact": "write cwd session_id messages? transcript_path? conversation? strategy?"
    " skip? from? up_to? instructions? trigger? model? betas? supports? window? wait? retry?",
    "rule.list": "read cwd",
    "rule.test": "read cwd tool input",
    "rule.add": "write cwd path check? answer? request_id?",
    "rule.off": "write cwd rule",
    "hook": "write client event payload? environment? deadline_ms? messages?",
    "hook.printed": "write",
    "job.wait": "read job",
    "instructions": "read cwd touched? allow?",
    "memory.write": "write cwd path? content? name? description? type? body? title? hook? when?"
    " base_hash? request_id? session_id? said?" + _AGENT,
    "review.list": "read cwd? kind? id? all?",
    "review.decide": "write cwd? id choice text? type? paths? reason?",
}
# Of these the specification leaves optional parameters to the method: those named are among them.
AT_LEAST = {
    "rpc.discover": "read",
    "team.join": "write cwd url code? repo?",
    "team.leave": "write cwd",
    "team.share": "write cwd path request_id?",
    "team.remove": "write cwd path reason",
    "team.sync": "write cwd",
    "team.resolve": "write cwd path? how text? revision?",
    "team.status": "read cwd path?",
    "team.log": "read cwd path? limit? before?",
    "agent.register": "write cwd name? session_id? parent? key? kind? pid? transcript_path?",
    "agent.list": "read cwd? all?",
    "agent.end": "write key",
    "message.send": "write to body? summary? cwd? key? as_parent? kind? reply_to? request? approve?"
    " reason? feedback? ttl? request_id?",
    "message.receive": "read key? as_parent? limit? wait?",
    "message.ack": "write ids key? as_parent?",
    "message.log": "read cwd id? limit?",
    "export": "read cwd dest project? all? with?",
    "import": "write cwd source kind? project? dry_run? accept?",
}


@cache
def _declared(home: Home) -> dict[str, set[str]]:
    """Return each method's permission and parameters; ``?`` marks optional ones."""
    return {
        method["name"]: {
            f"{method['x-permission']} of {method['name']}",
            *(p["name"] + ("" if p.get("required") else "?") for p in method["params"]),
        }
        for method in home.call("rpc.discover")["methods"]
        if method["name"] != "rpc.discover"
    }


def _wanted(name: str, row: str) -> set[str]:
    permission, *params = row.split()
    return {f"{permission} of {name}", *params}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_these_parameters(home: Home, name: str) -> None:
    """A method has exactly these parameters and this permission."""
    assert _declared(home).get(name) == _wanted(name, METHODS[name])


@pytest.mark.parametrize("name", [name for name in AT_LEAST if name != "rpc.discover"])
def test_a_method_has_at_least_these_parameters(home: Home, name: str) -> None:
    """A method needs exactly these parameters, and takes at least these optional ones."""
    _assert_at_least(_declared(home).get(name), _wanted(name, AT_LEAST[name]))


def _assert_at_least(declared: set[str] | None, wanted: set[str]) -> None:
    assert declared is not None
    assert wanted <= declared
    assert [name for name in declared - wanted if not name.endswith("?")] == []


def test_there_are_no_other_methods(home: Home) -> None:
    """What rpc.discover lists is the table, without the methods of MCP."""
    tables = {**METHODS, **AT_LEAST}
    assert set(_declared(home)) - set(tables) == set()


def test_discover_is_an_openrpc_document(home: Home) -> None:
    """Each method has a summary, a result and parameters by name with a schema each."""
    document = home.call("rpc.discover")
    assert document["openrpc"].startswith("1.")
    names = [method["name"] for method in document["methods"]]
    assert len(names) == len(set(names))
    for method in document["methods"]:
        assert method["summary"]
        assert method["paramStructure"] == "by-name"
        assert "schema" in method["result"]
        assert all("schema" in parameter for parameter in method["params"])


REPLACED = {
    "session": ("session.start", "session.compacted", "session.end"),
    "job.list": ("job.get",),
    "extract": ("job.retry",),
    "dream.status": ("dream.last",),
    "review.list": ("dream.review", "suggestion.list", "message.held"),
    "review.decide": ("dream.accept", "dream.reject", "suggestion.accept", "suggestion.edit",
                      "suggestion.dismiss", "message.decide"),
    "hook": ("suggestion.offer",),
    "memory.undo": ("memory.restore",),
    "memory.write": ("memory.adopt",),
    "notes.read": ("notes.write",),
    "context.plan": ("context.count", "context.observe", "context.restore"),
    "": ("context.forget", "context.show", "context.list", "metrics", "debug", "recall.probe",
         "agent.merge"),
    "instructions": ("instructions.list", "instructions.read", "instructions.check",
                     "instructions.approve"),
    "team.sync": ("team.pull", "team.push"),
    "team.resolve": ("team.keep", "team.drop", "team.restore", "team.accept"),
    "team.status": ("team.diff",),
    "team.log": ("team.members",),
    "message.log": ("message.status",),
    "report": ("spend", "usage.list", "usage.recent"),
    "status": ("project.list",),
    "shutdown": ("restart",),
    "close": ("unsubscribe",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [(old, new) for new, names in REPLACED.items() for old in names],
)
def test_a_method_that_is_gone_names_what_replaces_it(home: Home, old: str, new: str) -> None:
    """An old name answers -32601, and its hint says what to use instead."""
    # An unknown parameter keeps a method that still exists from doing anything.
    (answer,) = answers(exchanged(home, request(old, no_such_parameter=1)))
    assert answer.get("error", {}).get("code") == -32601
    assert new in answer["error"]["data"]["hint"]


def _call(method: str, **params: Json) -> Callable[[Project], Any]:
    return lambda project: project.call(method, **params)


_WRITE = {"path": "w.md", "name": "w", "description": "d", "type": "project"}
_TOKEN = "ghp_" + "R4nd0mQw8ZtYuLpXcVbNmKjHgFdSaTq19EwZ"
_BIG = f"---\nname: w\ndescription: d\ntype: project\n---\n\n{'word ' * 20_000}"
ERRORS: dict[str, tuple[Callable[[Project], Any], int, str]] = {
    "not found": (_call("memory.read", path="none.md"), 1001, "not_found"),
    "name": (_call("memory.write", **_WRITE | {"path": "-w.md"}, body="x"), 1006, "name_refused"),
    "parameter": (_call("memory.list", limit="many"), -32602, "invalid_params"),
    "secret": (_call("memory.write", **_WRITE, body=_TOKEN), 1003, "secret"),
    "job": (lambda p: p.home.call("job.wait", job="j999"), 1001, "not_found"),
    "project": (lambda p: p.home.call("memory.list", cwd="/nowhere/x"), -32602, "no_project"),
    "shape": (_call("memory.write", path="w.md", content="no head"), -32602, "invalid_params"),
    "size": (_call("memory.write", path="w.md", content=_BIG), 1007, "too_large"),
    "transcript": (
        _call("extract", session_id="s", transcript_path="/etc/passwd"), 1006, "transcript_refused",
    ),
}  # fmt: skip


def _assert_error(project: Project, call: Callable[[Project], Any], code: int, kind: str) -> None:
    project.write("other.md", "There is a directory.")
    with pytest.raises(RpcError) as caught:
        call(project)
    error = caught.value
    assert (error.code, error.kind) == (code, kind or error.kind)
    assert error.message[-1] not in ".!"
    assert type(error.data["retryable"]) is bool
    assert type(error.data["hint"]) is str


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_its_family(project: Project, name: str) -> None:
    """An error has the code and kind of its family, a sentence, a hint, and says if to retry."""
    _assert_error(project, *ERRORS[name])


def test_a_stale_hash_is_a_conflict(project: Project) -> None:
    """Who writes what cannot be merged with the newer text gets Conflict and overwrites nothing."""
    first = project.write("port.md", "Port 1.")
    project.write("port.md", "Port 2.", base_hash=first["hash"])
    with pytest.raises(RpcError) as error:
        project.write("port.md", "Port 3.", base_hash=first["hash"])
    assert (error.value.code, error.value.kind) == (1002, "conflict")
    assert error.value.data["retryable"] is False
    assert "Port 2." in project.read("port.md")


def test_memory_that_is_off_names_its_switch(project: Project) -> None:
    """A write is refused with Off, which names the variable that holds."""
    client = project.home.connect(environ={"MEMD_DISABLE": "1"})
    with pytest.raises(RpcError, match="MEMD_DISABLE") as error:
        client.call("memory.write", cwd=project.cwd, **_WRITE, body="x")
    assert (error.value.code, error.value.kind) == (1010, "memory_off")


def test_no_error_holds_what_was_refused(project: Project, model: Recorder) -> None:
    """A refusal names rule and line of a credential, and no fault shows a traceback."""
    (answer,) = answers(
        exchanged(
            project.home,
            request("memory.write", **_WRITE, cwd=project.cwd, body=f"fine\n\ntoken {_TOKEN}"),
        )
    )
    assert answer["error"]["data"]["rule"]
    assert answer["error"]["data"]["line"] > 1
    assert _TOKEN not in str(answer)
    model.script = lambda _: 500
    (answer,) = answers(exchanged(project.home, request("dream", cwd=project.cwd, force=True)))
    assert "raceback" not in str(answer)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["show", "none"], 1),
        (["show", "../x.md"], 1),
        (["no-such-command"], 2),
        (["list", "--no-such-option"], 2),
    ],
)
def test_memctl_ends_with_the_status_of_the_family(
    project: Project, arguments: list[str], status: int
) -> None:
    """NotFound and Refused end with 1, a wrong command line with 2, with one sentence on stderr."""
    done = project.memctl(*arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert "memctl: " in done.stderr
    assert "raceback" not in done.stderr


def test_an_absent_daemon_is_unavailable(new_home: Callable[[], Home]) -> None:
    """With --no-start memctl ends with 69 where no daemon runs, and starts none."""
    home = new_home()
    assert home.memctl("--no-start", "list").returncode == 69
    assert not home.state.exists()
