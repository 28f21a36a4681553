"""load_prompt: the memory section of a system prompt, byte for byte (2)."""

import re
import time
from typing import Any

import pytest

from tests.net.kit import Home, Project
from tests.net.wire import RpcError

TYPES = ("user", "feedback", "project", "reference")


def prompt(project: Project, **params: Any) -> str:
    """Return the text that load_prompt gives for a project."""
    return str(project.call("load_prompt", **params)["prompt"])


def test_equal_inputs_give_equal_bytes(project: Project) -> None:
    """Sessions, calls and times do not show: prompt and etag are the same."""
    project.write("a.md", "text")
    first = project.call("load_prompt", session_id="one")
    second = project.call("load_prompt", session_id="two")
    assert (first["prompt"], first["etag"]) == (second["prompt"], second["etag"])
    project.write("b.md", "text")
    third = project.call("load_prompt", session_id="one")
    assert third["etag"] != first["etag"]


def test_days_and_restarts_change_no_byte(own: Home) -> None:
    """The prompt of a project is the same a month later and from another daemon, in all modes."""
    project = own.start(clock=True).project()
    project.write("a.md", "The broker listens on port 9911 in server.py:12.")
    project.put("team/t.md", "---\nname: t\ndescription: d e\ntype: user\n---\n\nx\n")

    def texts() -> list[str]:
        settings = ("", '[team]\nenabled = "true"\n', "[prompt]\ndaily_log = true\n")
        modes: list[dict[str, Any]] = [{}, {"mode": "daily_log"}, {"mode": "agent", "agent": "a"}]
        result = []
        for each in settings:
            own.configure(each)
            result += [prompt(project, **mode) for mode in modes]
        return result

    first = texts()
    own.pass_time(days=31)
    assert texts() == first
    own.stop()
    own.start(clock=True)
    assert texts() == first


PARTS = {  # what the standard text says, in this order
    "heading": r"^# Memory",
    "exists already": r"exist.*mkdir",
    "what for": r"remember.*save.*(?s:.*?)forget",
    "types": r"<name>user</name>",
    "never saved": r"never.*memory",
    "how to save": r"MEMORY\.md",
    "when to use": r"ignore memory",
    "before recommending": r"^#+ Before recommending from memory",
    "plans": r"plan.*task",
    "search": r"\*\.md",
    "transcripts last": r"\*\.jsonl",
    "guidelines": r"Prefer French\.",
    "index": r"^- \[a\]\(a\.md\)",
}


def test_the_parts_stand_in_their_order(project: Project) -> None:
    """The standard text has its parts in the order of the specification."""
    project.write("a.md", "text")
    text = prompt(project, extra_guidelines="Prefer French.")
    at = [
        found.start() if (found := re.search(pattern, text, re.MULTILINE | re.IGNORECASE)) else name
        for name, pattern in PARTS.items()
    ]
    assert all(isinstance(place, int) for place in at), at
    assert at == sorted(at, key=int)


def test_the_four_types_are_tagged(project: Project) -> None:
    """Each type has its name, description, use, structure and examples in tags."""
    text = prompt(project)
    types = text[text.index("<types>") : text.index("</types>")]
    for kind in TYPES:
        block = types[types.index(f"<name>{kind}</name>") :]
        for tag in ("description", "when_to_save", "how_to_use", "body_structure", "examples"):
            assert f"<{tag}>" in block.partition("</type>")[0]


@pytest.mark.parametrize(
    "words",
    ["git", "CLAUDE.md", "AGENTS.md", "architecture", "debugging", "task", "when the user asks"],
)
def test_what_is_never_saved_is_said(project: Project, words: str) -> None:
    """Code, git history, fixes, instruction files and running tasks are named as no memory."""
    text = prompt(project)
    start = text.index("never becomes a memory")
    assert words in text[start : text.index("\n## ", start)]


def test_the_directory_that_is_named_exists(project: Project) -> None:
    """The prompt names the memory directory, which has been made before."""
    answer = project.call("load_prompt")
    assert answer["memory_dir"] in answer["prompt"]
    assert project.memory.is_dir()


@pytest.mark.parametrize("modes", [{"mode": "agent", "agent": "a"}, {"mode": "daily_log"}])
def test_no_prompt_fails_because_no_directory_could_be_made(
    own: Home, modes: dict[str, str]
) -> None:
    """Where a file bars the directory the answer comes, with a problem."""
    project = own.start().project()
    for path in (project.folder, own.claude / "agent-memory"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("in the way")
    for params in ({}, modes):
        answer = project.call("load_prompt", **params)
        assert answer["enabled"]
    assert answer["problems"]


def test_without_an_index(project: Project) -> None:
    """skip_index leaves out the index and the step that writes its line."""
    project.write("a.md", "text")
    text = prompt(project, skip_index=True)
    assert "(a.md)" not in text
    assert "one line for it" not in text
    assert len(text) < len(prompt(project))


def test_settings_of_the_prompt(project: Project) -> None:
    """Name, guidelines and the part on searching follow the settings at the next call."""
    configure = project.home.configure
    configure('[prompt]\ndisplay_name = "Notebook"\nextra_guidelines = "Write in Latin."\n')
    text = prompt(project)
    assert text.startswith("# Notebook\n")
    assert "Write in Latin." in text
    configure("[prompt]\nsearch_past_context = false\n")
    assert ".jsonl" not in prompt(project)
    configure("")
    assert ".jsonl" in prompt(project)


def test_guidelines_of_the_environment(project: Project) -> None:
    """Both variables of a client's hello bring guidelines; another client gets none."""
    for name in ("MEMD_EXTRA_GUIDELINES", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"):
        with project.home.connect(environ={name: "Rule 7 of the house."}) as client:
            text = client.call("load_prompt", cwd=project.cwd)["prompt"]
        assert "Rule 7 of the house." in text
    assert "Rule 7" not in prompt(project)


def test_memory_that_is_off_gives_no_text(project: Project) -> None:
    """Off by the environment, the settings or the repository: null with a reason, in each mode."""
    modes: list[dict[str, Any]] = [{}, {"mode": "daily_log"}, {"mode": "agent", "agent": "a"}]

    def is_off(environ: dict[str, str]) -> bool:
        with project.home.connect(environ=environ) as client:
            answers = [client.call("load_prompt", cwd=project.cwd, **mode) for mode in modes]
        assert all(bool(answer["reason"]) is not answer["enabled"] for answer in answers)
        return all(answer["prompt"] is None for answer in answers)

    assert is_off({"MEMD_DISABLE": "1"})
    assert is_off({"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "true"})
    (project.path / ".memd.toml").write_text("enabled = false\n")
    assert is_off({})
    (project.path / ".memd.toml").unlink()
    project.home.configure("enabled = false\n")
    assert is_off({})
    project.home.configure("")
    assert not is_off({})


@pytest.mark.parametrize("how", ["setting", "mode"])
def test_a_daily_log_prompt_holds_no_date(project: Project, how: str) -> None:
    """The log's path is a pattern, and what is to be written is appended with a time."""
    project.write("a.md", "text")
    project.home.configure("[prompt]\ndaily_log = true\n" if how == "setting" else "")
    text = prompt(project, **({"mode": "daily_log"} if how == "mode" else {}))
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in text
    assert time.strftime("%Y-%m-%d") not in text
    assert time.strftime("%Y/%m") not in text
    assert "append" in text.lower()
    assert "(a.md)" in text


def test_a_daily_log_marks_the_persons_words(project: Project) -> None:
    """The person's words go into the log as a line that says so."""
    assert 'user said: "' in prompt(project, mode="daily_log")


def test_the_daily_log_comes_before_team(project: Project) -> None:
    """With both settings the text is that of the daily log."""
    project.home.configure('[prompt]\ndaily_log = true\n[team]\nenabled = "true"\n')
    assert prompt(project) == prompt(project, mode="daily_log")


def combined(project: Project) -> str:
    """Return the prompt of a project with private and team memories, with team switched on."""
    head = "---\nname: {0}\ndescription: {0} one\ntype: project\n---\n\nx\n"
    for path, words in (("a.md", "private"), ("team/t.md", "team")):
        project.put(path, head.format(words))
        index = f"{path.rpartition('/')[0]}/MEMORY.md".lstrip("/")
        project.put(index, f"- [{words}]({path.rpartition('/')[2]}) \u2014 {words} one\n")
    project.home.configure('[team]\nenabled = "true"\n')
    return prompt(project)


def test_team_memory_is_beside_the_private(project: Project) -> None:
    """Both directories and indexes are in the text, each index quoted on its own."""
    text = combined(project)
    assert f"{project.memory}/team" in text
    assert "private one" in text
    assert "team one" in text
    project.home.configure('[team]\nenabled = "false"\n')
    assert "team one" not in prompt(project)


def test_each_type_has_a_scope_with_team(project: Project) -> None:
    """A <scope> in each type says where its memories go: user memories are private always."""
    text = combined(project)
    scopes = {
        kind: re.search(f"<name>{kind}</name>.*?<scope>(.*?)</scope>", text, re.DOTALL)
        for kind in TYPES
    }
    assert all(scopes.values())
    assert scopes["user"] is not None
    assert "private" in scopes["user"][1]
    assert re.search("(?i)no password.*credential", text)


def test_team_memory_that_was_not_joined_is_not_loaded(project: Project) -> None:
    """Without a server and without the setting, files below team/ change no prompt."""
    combined(project)
    project.home.configure("")
    assert "team one" not in prompt(project)


def test_an_agents_directory_and_name(project: Project) -> None:
    """A sub-agent's memory lies by its scope; a colon becomes a dash; its index is loaded."""
    places = {
        "user": project.home.claude / "agent-memory/rev-iew",
        "project": project.path / ".claude/agent-memory/rev-iew",
        "local": project.path / ".claude/agent-memory-local/rev-iew",
    }
    for scope, place in places.items():
        given = {"mode": "agent", "agent": "rev:iew", "scope": scope}
        answer = project.call("load_prompt", **given)
        assert answer["memory_dir"].rstrip("/") == str(place)
        assert place.is_dir()
        (place / "MEMORY.md").write_text(f"- [x](x.md) \u2014 of {scope}\n")
        assert f"of {scope}" in prompt(project, **given)
        assert f"of {scope}" not in prompt(project)


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "..", ".", "x\0", "a\\b", "-x", "a" * 300])
@pytest.mark.parametrize("scope", ["user", "project"])
def test_an_agents_name_does_not_lead_out(project: Project, name: str, scope: str) -> None:
    """A name that could be a path is refused, and nothing is made."""
    with pytest.raises(RpcError):
        project.call("load_prompt", mode="agent", agent=name, scope=scope)
    assert not (project.path / ".claude").exists()


def test_an_unknown_mode_is_refused(project: Project) -> None:
    """A mode that does not exist is an error of its parameters."""
    with pytest.raises(RpcError) as refused:
        project.call("load_prompt", mode="loud")
    assert refused.value.code == -32602


RULE = "Integration tests must hit a real Postgres, never a mock."


def test_the_persons_rules_come_whole(project: Project) -> None:
    """Memories of type user and feedback that the person saved are in the text, whole."""
    project.write("rule.md", RULE, type="feedback", description="tests and databases")
    assert RULE in prompt(project)


def test_rules_of_others_do_not_come_as_rules(project: Project) -> None:
    """The body of a feedback memory that another program wrote is not in the text."""
    head = "---\nname: rule\ndescription: tests\ntype: feedback\n---\n\n"
    project.put("rule.md", f"{head}{RULE}\n")
    assert RULE not in prompt(project)


@pytest.mark.parametrize("client", ["codex", "gemini"])
def test_the_section_reaches_clients_by_their_hook(project: Project, client: str) -> None:
    """The hook of a session's start gives the whole section to clients without own memory."""
    project.write("a.md", "text")
    payload = {"session_id": project.cwd, "cwd": project.cwd, "source": "startup"}
    payload |= {
        "hook_event_name": "SessionStart",
        "transcript_path": str(project.folder / "s.jsonl"),
    }
    answer = project.home.call(
        "hook", client=client, event="SessionStart", payload=payload, deadline_ms=10_000
    )
    assert "Before recommending from memory" in str(answer)
    assert "(a.md)" in str(answer)


def claude_code_starts(project: Project, settings: str) -> str:
    """Return what the hook of a session's start gives Claude Code with these settings."""
    project.write("a.md", "text")
    project.home.configure(settings)
    payload = {"session_id": project.cwd, "cwd": project.cwd, "source": "startup"}
    payload |= {"hook_event_name": "SessionStart", "transcript_path": "/s.jsonl"}
    given = {"client": "claude-code", "event": "SessionStart", "deadline_ms": 10_000}
    return str(project.home.call("hook", payload=payload, **given))


def test_claude_code_loads_its_index_itself(project: Project) -> None:
    """The private index does not come a second time by the hook."""
    assert "(a.md)" not in claude_code_starts(project, "")


def test_claude_code_gets_the_daily_log(project: Project) -> None:
    """By the hook come the instructions of the daily log."""
    assert "logs/YYYY/MM" in claude_code_starts(project, "[prompt]\ndaily_log = true\n")


def test_claude_code_gets_the_teams_part(project: Project) -> None:
    """By the hook comes the team's directory."""
    words = claude_code_starts(project, '[team]\nenabled = "true"\n')
    assert f"{project.memory}/team" in words
