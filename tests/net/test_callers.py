"""Each caller is served by its own environment, and decides nothing for the person."""

import os
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.socket_bytes import answers, exchanged, request
from tests.net.wire import BIN, Json, RpcError

MESSAGES = [
    {"role": "user", "content": "Remember: always write dates as ISO 8601."},
    {"role": "assistant", "content": "Understood."},
]


def test_a_directory_of_one_caller_is_not_anothers(project: Project) -> None:
    """What a caller's environment names counts for its connection, in every method."""
    mine = project.home.path / f"h/mine{project.path.name}"
    client = project.home.connect(environ={"MEMD_MEMORY_PATH": str(mine)})
    client.call("subscribe", topics=["memory.changed"], cwd=project.cwd)
    written = {"name": "n", "description": "d", "type": "project", "body": "Theirs."}
    project.call("memory.write", path="theirs.md", **written)
    client.call("memory.write", cwd=project.cwd, path="mine.md", **{**written, "body": "Mine."})
    assert client.call("load_prompt", cwd=project.cwd)["memory_dir"].rstrip("/") == str(mine)
    listed = client.call("memory.list", cwd=project.cwd)["memories"]
    assert [memory["path"] for memory in listed] == ["mine.md"]
    changed = client.event("memory.changed")
    assert (changed["directory"].rstrip("/"), len(client.events)) == (str(mine), 1)
    assert sorted(project.tree()) == ["MEMORY.md", "theirs.md"]
    assert client.call("memory.search", cwd=project.cwd, query="Theirs")["hits"] == []
    extracted = {"cwd": project.cwd, "session_id": "s", "messages": MESSAGES, "wait": True}
    saved = client.call("extract", **extracted)["saved"]
    assert all((mine / path).exists() for path in saved)
    assert saved
    assert sorted(project.tree()) == ["MEMORY.md", "theirs.md"]


def test_hooks_name_their_own_environment(project: Project) -> None:
    """A hook's environment counts for that hook, as hello's does for a connection."""
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    payload = {"session_id": "s", "cwd": project.cwd, "prompt": "which port has the broker"}
    given: dict[str, Json] = {"client": "claude-code", "event": "UserPromptSubmit"}
    given["payload"] = payload | {"hook_event_name": "UserPromptSubmit"}
    call = project.home.call
    other = {"MEMD_MEMORY_PATH": str(project.home.path / "h/elsewhere")}
    assert "9911" not in str(call("hook", **given, environment=other, deadline_ms=10_000))
    assert "9911" in str(call("hook", **given, environment={}, deadline_ms=10_000))


def test_other_variables_count_for_nothing(project: Project) -> None:
    """Variables that are not on the list, and such without hello, change nothing."""
    plain = project.call("load_prompt")
    environ = {"HOME": "/nowhere", "PATH": "/x", "MEMD_SOCKET": "/x", "XDG_STATE_HOME": "/x"}
    client = project.home.connect(environ=environ)
    assert client.call("load_prompt", cwd=project.cwd) == plain


@pytest.mark.full
def test_without_hello_the_daemons_environment_counts(own: Home) -> None:
    """Who says nothing of an environment gets the daemon's."""
    project = own.start(environ={"MEMD_DISABLE": "1"}).project()
    (answer,) = answers(exchanged(own, request("load_prompt", 1, cwd=project.cwd)))
    assert answer["result"]["enabled"] is False


@pytest.mark.full
def test_with_hello_the_daemons_environment_does_not_count(own: Home) -> None:
    """Who says hello has its own environment, also where no variable of the list is set in it."""
    project = own.start(environ={"MEMD_DISABLE": "1"}).project()
    assert project.call("load_prompt")["enabled"] is True


OFF: dict[str, tuple[str, dict[str, Json]]] = {
    "load_prompt": ("enabled", {}),
    "prefetch": ("skipped", {"session_id": "s", "query": "which port has the broker"}),
    "extract": ("skipped", {"session_id": "s", "messages": MESSAGES}),
    "notes.update": ("skipped", {"session_id": "s", "messages": MESSAGES, "force": True}),
    "dream": ("skipped", {"force": True}),
    "memory.write": ("memory_off", {"path": "x.md", "name": "x", "description": "d",
                                    "type": "project", "body": "x"}),
    "memory.tool": ("memory_off", {"command": {"command": "create", "path": "/memories/x.md",
                                               "file_text": "---\nname: x\n---\nx"}}),
}  # fmt: skip


@pytest.mark.parametrize("method", OFF)
@pytest.mark.parametrize(
    "switch", [{"MEMD_DISABLE": "1"}, {"CLAUDE_CODE_SIMPLE": "1"}, {"CLAUDE_CODE_REMOTE": "1"}]
)
def test_methods_agree_that_memory_is_off(
    project: Project, method: str, switch: dict[str, str]
) -> None:
    """Whichever variable switches memory off, no method surfaces or writes anything."""
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    before = project.tree()
    client = project.home.connect(environ=switch)
    how, params = OFF[method]
    if how == "memory_off":
        assert _refused(client, method, cwd=project.cwd, **params) == (1010, "memory_off")
    else:
        answer = client.call(method, cwd=project.cwd, **params)
        assert "9911" not in str(answer)
        if how == "enabled":
            assert (answer["enabled"], answer["prompt"]) == (False, None)
            assert answer["reason"]
        elif method == "prefetch":
            assert (answer["memories"], bool(answer["skipped"])) == ([], True)
        else:
            assert answer["status"] == "skipped"
            assert answer.get("reason") or answer.get("gate")
    assert project.tree() == before


def _refused(client: Any, method: str, **params: Json) -> tuple[int, str]:
    with pytest.raises(RpcError) as error:
        client.call(method, **params)
    return error.value.code, error.value.kind


def test_the_person_still_reads_where_memory_is_off(project: Project) -> None:
    """List, read, history and export work for a caller whose memory is off."""
    project.write("port.md", "The broker listens on port 9911.")
    client = project.home.connect(environ={"MEMD_DISABLE": "1"})
    assert client.call("memory.list", cwd=project.cwd)["count"] == 1
    assert "9911" in client.call("memory.read", cwd=project.cwd, path="port.md")["content"]
    assert len(client.call("memory.history", cwd=project.cwd)["changes"]) == 1
    dest = str(project.home.path / f"off-{project.path.name}")
    assert client.call("export", cwd=project.cwd, dest=dest)["files"]


@pytest.mark.parametrize("method", ["memory.undo", "memory.delete"])
def test_the_person_still_removes_where_memory_is_off(project: Project, method: str) -> None:
    """Undo and delete work for a caller whose memory is off."""
    change = project.write("port.md", "The broker listens on port 9911.")["change"]
    client = project.home.connect(environ={"MEMD_DISABLE": "1"})
    given = {"change": change} if method == "memory.undo" else {"path": "port.md"}
    client.call(method, cwd=project.cwd, **given)
    assert "port.md" not in project.tree()


READS: dict[str, dict[str, Json]] = {
    "load_prompt": {},
    "memory.list": {},
    "memory.read": {"path": "port.md"},
    "memory.search": {"query": "which port has the broker"},
    "memory.history": {},
    "memory.diff": {"path": "port.md"},
    "memory.why": {"path": "port.md"},
    "dream.status": {},
    "doctor": {},
    "report": {},
    "rule.list": {},
    "notes.list": {},
}


def test_reading_marks_nothing_as_given(project: Project) -> None:
    """After every read a session's first prefetch still gives the memory, and no file changed."""
    project.write("port.md", "The broker listens on port 9911.", description="broker port")
    before, history = project.tree(), project.call("memory.history")
    for method, params in READS.items():
        project.call(method, **params)
    project.home.call("status")
    assert (project.tree(), project.call("memory.history")) == (before, history)
    assert not project.call("memory.why", path="port.md")["surfaced"]
    query = {"session_id": "s", "query": "which port has the broker", "deadline_ms": 10_000}
    assert [m["name"] for m in project.call("prefetch", **query)["memories"]] == ["port"]
    assert project.call("prefetch", **query)["memories"] == []


def _by_an_assistant(project: Project, *arguments: str) -> "Any":
    """Run memctl below a program that has the name of an assistant's."""
    shell = project.home.path / "bin/claude"
    shell.parent.mkdir(exist_ok=True)
    if not shell.is_symlink():
        shell.symlink_to(os.path.realpath("/bin/sh"))
    command = '"$@"; exit $?'
    return project.home.run(
        str(shell), "-c", command, "sh", f"{BIN}/memctl", *arguments, cwd=project.cwd
    )


PERSONS = {
    "rule": ["rule", "add", "rule.md", "--check", "tool Bash"],
    "held": ["review", "show", "m1"],
    "decided": ["review", "accept", "m1"],
}


@pytest.mark.parametrize("name", PERSONS)
def test_an_assistants_program_does_not_decide_for_the_person(project: Project, name: str) -> None:
    """A program that an assistant started is refused, and told that the person decides."""
    project.write("rule.md", "Never push to main.", type="feedback")
    done = _by_an_assistant(project, *PERSONS[name])
    assert done.returncode == 1
    assert "person" in done.stderr
    assert project.call("rule.list")["rules"] == []


def test_an_assistants_program_does_not_purge(project: Project) -> None:
    """What nobody can undo is for the person to do."""
    project.write("rule.md", "Never push to main.", type="feedback")
    done = _by_an_assistant(project, "rm", "--purge", "--pattern", "push", "--yes")
    assert done.returncode == 1


def test_what_an_assistants_program_saves_is_not_the_persons(project: Project) -> None:
    """The same memctl writes with origin user for the person, and assistant for an assistant."""
    added = ["add", "--type", "project", "--description", "d", "--body", "The body."]
    project.json(*added, "--name", "hers")
    assert _by_an_assistant(project, *added, "--name", "its").returncode == 0
    origins = {m["name"]: m["origin"] for m in project.call("memory.list")["memories"]}
    assert origins == {"hers": "user", "its": "assistant"}
