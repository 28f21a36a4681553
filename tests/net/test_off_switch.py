"""Memory that is off is off: each switch, in every method, hook event and work of its own accord.

The order of the switches is that of the protocol: variables, then files. A repository can only
switch off. The person's own ``autoMemoryEnabled: false`` is for Claude Code.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import Conversation, Home, Project, until
from tests.net.wire import Client, RpcError

SAID = "Always run the linter before you commit, in every session."
TURN = [{"role": "user", "content": SAID}, {"role": "assistant", "content": "ok"}]
NEW = {"name": "x", "description": "y z", "type": "project", "body": "b"}
LARGE = {"tool": "Grep", "tool_use_id": "t", "content": "x\n" * 90_000, "reader": "Read"}
OFF = {"autoMemoryEnabled": False}
MEMORY = {"name": "zebra-port", "description": "zebra port of the staging server"}


def says(path: Path, value: object) -> None:
    """Write a JSON file, or a text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


FILES: dict[str, Callable[[Project], None]] = {
    "settings.json": lambda project: says(project.path / ".claude/settings.json", OFF),
    "settings.local.json": lambda project: says(project.path / ".claude/settings.local.json", OFF),
    ".memd.toml": lambda project: says(project.path / ".memd.toml", "enabled = false\n"),
    "memd.toml": lambda project: project.home.configure("enabled = false\n"),
}
VARIABLES = {
    "MEMD_DISABLE": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "true",
    "CLAUDE_CODE_SIMPLE": "1",
    "CLAUDE_CODE_REMOTE": "1",
}
SWITCHES = (*FILES, *VARIABLES)
FORCED = ("MEMD_DISABLE", "CLAUDE_CODE_DISABLE_AUTO_MEMORY")

# Each client's events, with members of their payload.
SHARED: list[tuple[str, dict[str, Any]]] = [
    ("SessionStart", {"source": "startup"}),
    ("SessionStart", {"source": "compact"}),
    ("UserPromptSubmit", {"prompt": "which port has the zebra staging server"}),
    ("PostToolUse", {"tool_name": "Write", "tool_input": {"file_path": "{memory}/new.md"}}),
    ("PostToolUse", {"tool_name": "mcp__x__y", "tool_response": "line\n" * 40_000}),
    ("PreCompact", {"trigger": "auto"}),
    ("Stop", {}),
    ("SessionEnd", {"reason": "other"}),
]
EVENTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "claude-code": [
        *SHARED,
        ("SubagentStart", {"agent_id": "a1", "agent_type": "reviewer"}),
        ("SubagentStop", {"agent_id": "a1", "agent_type": "reviewer"}),
    ],
    "codex": [*SHARED, ("PostCompact", {})],
    "gemini": [
        ("SessionStart", {"source": "startup"}),
        ("BeforeAgent", {"prompt": "which port has the zebra staging server"}),
        ("AfterTool", {"tool_name": "write_file", "tool_input": {"file_path": "{memory}/new.md"}}),
        ("PreCompress", {"trigger": "manual"}),
        ("AfterAgent", {}),
        ("SessionEnd", {"reason": "exit"}),
    ],
    "opencode": [("chat.message", {"prompt": "Which port does the zebra staging server use?"})],
}


@pytest.fixture
def known(project: Project) -> Project:
    """Return a project with a memory."""
    project.write("zebra.md", "The zebra staging server has port 9911.", **MEMORY)
    return project


def spoken(project: Project) -> Conversation:
    """Return a new conversation that would be learnt from, and get notes."""
    talk = project.conversation()
    for _ in range(8):
        talk.user(SAID).assistant("I shall run it. " + "And so on. " * 400)
    return talk


@contextmanager
def switched(project: Project, switch: str, **variables: str) -> Iterator[Client]:
    """Switch memory off in a project; yield a client with the variables that belong to it."""
    own = {switch: VARIABLES[switch]} if switch in VARIABLES else {}
    if switch in FILES:
        FILES[switch](project)
    with project.home.connect(environ={**own, **variables}) as client:
        yield client


def files(project: Project) -> dict[str, str]:
    """Return what all files of Claude Code's folder and of the project hold, notes too."""
    roots = (project.folder, project.path, project.home.claude / "agent-memory")
    return {
        str(path): path.read_text(errors="surrogateescape")
        for root in roots
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".memd-")
    }


def hooks(
    talk: Conversation, client: Client, dialect: str, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return what the hook of each event of a conversation prints."""
    printed: dict[str, Any] = {}
    for number, (event, members) in enumerate(EVENTS[dialect]):
        given = json.loads(json.dumps(members).replace("{memory}", str(talk.project.memory)))
        payload = {**talk.payload, **given, "prompt_id": f"p{number}", "turn_id": f"p{number}"}
        asked = {"client": dialect, "event": event, "environment": dict(environment or {})}
        name = f"{event} {members.get('source', number)}"
        printed[name] = client.call("hook", **asked, payload=payload, deadline_ms=20_000)
    return printed


def jobs(project: Project) -> list[Any]:
    """Return the jobs of a project."""
    found: list[Any] = project.call("job.list")["jobs"]
    return found


def refused(client: Client, method: str, **params: Any) -> RpcError:
    """Return the error of a call that must fail."""
    with pytest.raises(RpcError) as caught:
        client.call(method, **params)
    return caught.value


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_method_is_off(known: Project, switch: str) -> None:
    """No method brings, learns or changes a memory; each names the switch, none writes a file."""
    cwd = {"cwd": known.cwd}
    talk = {**cwd, "session_id": "s1", "messages": TURN}
    with switched(known, switch) as client:
        before = files(known)
        loaded = client.call("load_prompt", **cwd)
        assert (loaded["prompt"], loaded["enabled"], loaded["index"]["lines"]) == (None, False, 0)
        assert switch in loaded["reason"]
        sub_agent = client.call("load_prompt", **cwd, mode="agent", agent="reviewer")
        assert (sub_agent["prompt"], sub_agent["reason"]) == (None, loaded["reason"])
        found = client.call("prefetch", **cwd, session_id="s1", query="zebra staging port")
        assert (found["memories"], found["skipped"]) == ([], "memory_off")
        skipped = client.call("extract", **talk, wait=True)
        assert (skipped["status"], skipped["reason"]) == ("skipped", "memory_off")
        dreamt = client.call("dream", **cwd, force=True, wait=True)
        assert (dreamt["status"], dreamt["gate"]) == ("skipped", "memory_off")
        gate = client.call("dream.status", **cwd)["gates"][0]
        assert (gate["name"], gate["says"]) == ("memory_off", loaded["reason"])
        noted = client.call("notes.update", **talk, force=True, wait=True)
        assert (noted["status"], noted["gate"]) == ("skipped", "off")
        spilled = client.call("context.spill", **cwd, session_id="s1", **LARGE)
        assert spilled["spilled"] is False
        view = {"command": "view", "path": "/memories"}
        for method, params in (
            ("memory.write", {"path": "x.md", **NEW}),
            ("memory.write", {"path": "x.md", "agent": "reviewer", "scope": "project", **NEW}),
            ("memory.tool", {"command": view}),
        ):
            error = refused(client, method, **cwd, **params)
            assert error.kind == "memory_off", method
            assert error.data["reason"] == loaded["reason"]
        for event in ("start", "compacted", "cleared", "end"):
            client.call("session", **cwd, session_id="s1", event=event)
        assert files(known) == before
        assert jobs(known) == []


@pytest.mark.parametrize("dialect", EVENTS)
@pytest.mark.parametrize("switch", SWITCHES)
def test_every_hook_is_silent(known: Project, switch: str, dialect: str) -> None:
    """No event of an assistant prints anything, starts a job or writes a file."""
    environment = {switch: VARIABLES[switch]} if switch in VARIABLES else {}
    talk = spoken(known)
    with switched(known, switch) as client:
        before = files(known)
        printed = hooks(talk, client, dialect, environment)
        assert {name: text for name, text in printed.items() if text is not None} == {}
        assert files(known) == before
        assert jobs(known) == []


@pytest.mark.parametrize("dialect", [name for name in EVENTS if name != "opencode"])
def test_hooks_speak_where_memory_is_on(known: Project, dialect: str) -> None:
    """The same events bring the index and a memory, learn, and write notes."""
    with known.home.connect() as client:
        printed = hooks(spoken(known), client, dialect)
    names = [*printed]
    start, prompt = printed[names[0]], printed[names[1 if dialect == "gemini" else 2]]
    assert "zebra.md" in json.dumps(start) or dialect == "claude-code"  # which loads it by itself
    assert "9911" in json.dumps(prompt)
    assert "extract" in [job["kind"] for job in jobs(known)]


@pytest.mark.parametrize("forced", FORCED)
@pytest.mark.parametrize("switch", FILES)
def test_a_variable_that_says_on_wins_everywhere(known: Project, switch: str, forced: str) -> None:
    """A falsy value is one answer for every method and hook, whatever the files say."""
    cwd = {"cwd": known.cwd}
    with switched(known, switch, **{forced: "0"}) as client:
        assert client.call("load_prompt", **cwd)["enabled"] is True
        found = client.call("prefetch", **cwd, session_id="s1", query="zebra staging port")
        assert [memory["path"].rpartition("/")[2] for memory in found["memories"]] == ["zebra.md"]
        assert client.call("memory.write", **cwd, path="x.md", **NEW)["change"]
        talk = {**cwd, "session_id": "s1", "messages": TURN, "wait": True}
        assert client.call("extract", **talk)["status"] == "completed"
        assert client.call("dream", **cwd, force=True, wait=True)["status"] == "completed"
        assert client.call("notes.update", **talk, force=True)["gate"] != "off"
        assert client.call("context.spill", **cwd, session_id="s1", **LARGE)["spilled"] is True
        printed = hooks(spoken(known), client, "codex", {forced: "0"})
        assert "zebra.md" in json.dumps(printed["SessionStart startup"])


def test_the_person_can_look_and_take_away(known: Project) -> None:
    """Where memory is off memctl lists, shows, exports, undoes and removes, and adds nothing."""
    change = known.write("later.md", "A second memory.")["change"]
    FILES["settings.json"](known)
    assert known.json("list")["count"] == 2
    assert "9911" in known.memctl("show", "zebra.md").stdout
    assert known.json("search", "zebra")["hits"]
    assert known.memctl("export", f"{known.home.path}/{known.path.name}").returncode == 0
    assert known.memctl("undo", change).returncode == 0
    assert known.memctl("rm", "zebra.md").returncode == 0
    assert set(known.tree()) <= {"MEMORY.md"}
    added = known.memctl("add", "Never deploy on a Friday")
    assert added.returncode != 0
    assert "autoMemoryEnabled is false in" in added.stderr


def test_an_assistant_may_not_even_look(known: Project) -> None:
    """An MCP client reads, searches, saves and removes nothing in a project that is off."""
    FILES["settings.json"](known)
    with closing(known.mcp()) as mcp:
        mcp.initialize(name="cursor")
        for tool, arguments in (
            ("search", {"query": "zebra port"}),
            ("read", {"path": "zebra.md"}),
            ("save", {"path": "x.md", "name": "x", "description": "y", "body": "b"}),
            ("forget", {"path": "zebra.md"}),
        ):
            result = mcp.tool(tool, **arguments)
            assert (tool, result.get("isError")) == (tool, True)
            assert "9911" not in json.dumps(result)
    assert "zebra.md" in known.tree()


@pytest.mark.parametrize("place", ["sub", "worktree", "worktree's own", "sub's own"])
def test_a_repository_is_off_as_a_whole(known: Project, place: str) -> None:
    """The root's file counts in subdirectories and worktrees, a worktree's own in itself."""
    sub = known.path / "src/deep"
    sub.mkdir(parents=True)
    worktree = known.path.with_name(f"{known.path.name}-wt")
    git = known.path / ".git/worktrees/wt"
    git.mkdir(parents=True)
    says(worktree / ".git", f"gitdir: {git}\n")
    says(git / "commondir", "../..\n")
    says(git / "gitdir", f"{worktree}/.git\n")
    cwd, owner = {
        "sub": (sub, known.path),
        "worktree": (worktree, known.path),
        "worktree's own": (worktree, worktree),
        "sub's own": (sub, sub),
    }[place]
    assert known.home.call("load_prompt", cwd=str(cwd))["memory_dir"] == str(known.memory)
    says(owner / ".claude/settings.json", OFF)
    loaded = known.home.call("load_prompt", cwd=str(cwd))
    assert (loaded["enabled"], str(owner) in loaded["reason"]) == (False, True)
    assert known.call("load_prompt")["enabled"] is (owner != known.path)
    (owner / ".claude/settings.json").unlink()
    assert known.home.call("load_prompt", cwd=str(cwd))["enabled"] is True


def test_a_repository_switches_nothing_on(known: Project) -> None:
    """What the person's settings say off stays off, whatever a repository says."""
    says(known.path / ".claude/settings.json", {"autoMemoryEnabled": True})
    says(known.path / ".memd.toml", "enabled = true\n[claude_code]\nbring_memory = true\n")
    known.home.configure("enabled = false\n")
    assert known.call("load_prompt")["enabled"] is False
    known.home.configure("")
    with person_says_off(known.home), known.home.connect(name="claude-code") as client:
        assert client.call("load_prompt", cwd=known.cwd)["enabled"] is False


@pytest.mark.parametrize("text", ["{", "[]", '{"autoMemoryEnabled": "no"}', "// no\n{}"])
def test_a_file_that_cannot_be_read_switches_nothing(known: Project, text: str) -> None:
    """Broken JSON and a wrong type are ignored, and doctor names the file."""
    path = known.path / ".claude/settings.json"
    says(path, text)
    assert known.call("load_prompt")["enabled"] is True
    checks = known.call("doctor")["checks"]
    (check,) = [each for each in checks if each["name"] == "Claude Code's switches"]
    assert (check["state"], str(path) in check["detail"]) == ("warning", True)
    path.unlink()
    checks = known.call("doctor")["checks"]
    assert [c["state"] for c in checks if c["name"] == "Claude Code's switches"] == ["ok"]


@contextmanager
def person_says_off(home: Home) -> Iterator[None]:
    """Let the person's own settings of Claude Code switch memory off, as its /memory does."""
    path = home.claude / "settings.json"
    says(path, OFF)
    try:
        yield
    finally:
        path.unlink()


def test_the_persons_own_switch_is_for_claude_code(known: Project) -> None:
    """Claude Code, its MCP server and its shell are off; every other client goes on."""
    home = known.home
    program = home.path / "claude"  # a program with the name of Claude Code, and its shell
    program.write_text('#!/bin/sh\nmemctl add "Never deploy on a Friday"\nexit $?\n')
    program.chmod(0o755)
    with person_says_off(home):
        with home.connect(name="claude-code") as client:
            loaded = client.call("load_prompt", cwd=known.cwd)
            assert loaded["prompt"] is None
            assert str(home.claude / "settings.json") in loaded["reason"]
            error = refused(client, "memory.write", cwd=known.cwd, path="x.md", **NEW)
            assert error.kind == "memory_off"
            talk = spoken(known)
            before = files(known)
            silent = hooks(talk, client, "claude-code")
            assert {name: text for name, text in silent.items() if text is not None} == {}
            assert (files(known), jobs(known)) == (before, [])
            on = {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "0"}
            assert "9911" in json.dumps(hooks(talk, client, "claude-code", on))
        with closing(known.mcp()) as mcp:
            mcp.initialize(name="claude-code")
            assert mcp.tool("search", query="zebra port")["isError"] is True
        shell = home.run(str(program), cwd=known.cwd)
        assert shell.returncode != 0
        assert "memory is off here" in shell.stderr
        assert "Friday" not in json.dumps(files(known))
        assert known.call("load_prompt")["enabled"] is True
        with home.connect(name="codex") as client:
            assert "zebra.md" in json.dumps(hooks(spoken(known), client, "codex"))


def test_a_setting_lets_memd_take_over(known: Project) -> None:
    """With bring_memory memd brings the index to Claude Code; status, doctor and setup say so."""
    home = known.home
    says(home.claude / "settings.json", OFF)
    try:
        for brings, words in ((False, "memd is silent there"), (True, "memd brings memory")):
            home.configure(f"[claude_code]\nbring_memory = {str(brings).lower()}\n")
            with home.connect() as client:
                printed = hooks(spoken(known), client, "claude-code")
            assert ("zebra.md" in json.dumps(printed["SessionStart startup"])) is brings
            status = home.call("status")
            assert words in json.dumps([status["health"], status["notes"]])
            assert words in json.dumps(home.call("doctor")["checks"])
            setup = home.memctl("setup", "claude-code", "--dry-run")
            assert words in setup.stdout + setup.stderr
            FILES["settings.json"](known)  # a repository's switch holds all the same
            with home.connect(name="claude-code") as client:
                assert client.call("load_prompt", cwd=known.cwd)["enabled"] is False
            (known.path / ".claude/settings.json").unlink()
    finally:
        (home.claude / "settings.json").unlink()


def test_the_home_has_the_persons_settings_only(home: Home) -> None:
    """In the home directory ~/.claude is the person's folder, not a repository's."""
    cwd = str(home.path / "h")
    with person_says_off(home):
        assert home.call("load_prompt", cwd=cwd)["enabled"] is True
        with home.connect(name="claude-code") as client:
            assert client.call("load_prompt", cwd=cwd)["enabled"] is False


@pytest.mark.full
def test_what_waited_for_the_daemon_is_not_learnt(own: Home) -> None:
    """Events in the spool and conversations that grew meanwhile go by the files."""
    project = own.project()
    talk = project.conversation("talk")
    talk.user(SAID).assistant("I shall.")
    own.hook("Stop", talk.payload, environ={"MEMD_HOOK_NO_START": "1"})
    spool = own.state / "spool"
    assert len([*spool.iterdir()]) == 1
    FILES["settings.json"](project)
    own.start()
    until(lambda: not [*spool.iterdir()], "the spool is empty")
    assert jobs(project) == []
    assert not project.memory.exists() or project.tree() == {}
