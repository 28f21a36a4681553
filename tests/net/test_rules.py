"""Rules that bite: a memory's words before a tool runs, only as the person switched them on."""

import json
from typing import Any

import pytest

from tests.net.kit import Project, differs
from tests.net.wire import RpcError

WORDS = "Never force-push a shared branch"


@pytest.fixture
def ruled(project: Project) -> Project:
    """Return a project in which one memory is a rule about pushing."""
    project.write("push.md", f"{WORDS}.", name="no-force", type="feedback", description=WORDS)
    project.call("rule.add", path="push.md", check="git push --force")
    return project


def answer(project: Project, command: str, client: str = "claude-code", **more: Any) -> Any:
    """Return what the hook prints before a shell command runs."""
    events = {"claude-code": ("PreToolUse", "Bash"), "codex": ("PreToolUse", "shell")}
    event, tool = events.get(client, ("BeforeTool", "run_shell_command"))
    payload = {"session_id": "r", "cwd": project.cwd, "tool_name": tool, **more}
    payload.setdefault("tool_input", {"command": command})
    given = {"client": client, "event": event, "deadline_ms": 10_000}
    return project.home.call("hook", payload=payload, **given)


def asks(project: Project, command: str, **more: Any) -> bool:
    """Return whether the hook of Claude Code says anything."""
    return answer(project, command, **more) is not None


def test_the_hook_says_the_memorys_words(ruled: Project) -> None:
    """Claude Code asks with the rule's name and words; Codex and Gemini refuse the call."""
    shown = answer(ruled, "git push --force origin main")["hookSpecificOutput"]
    assert shown["permissionDecision"] == "ask"
    assert f"no-force says: {WORDS}" in shown["permissionDecisionReason"]
    for client in ("codex", "gemini"):
        refused = json.dumps(answer(ruled, "git push --force", client=client))
        assert "deny" in refused
        assert WORDS in refused


SEEN = [
    "git push --force",
    "git push origin main --force",
    "/usr/bin/git push --force",
    "cd x && git push --force",
    "echo a; git push --force | cat",
    "GIT_DIR=x git push --force",
    "sudo git push --force",
    "env A=1 git push --force",
    "bash -c 'git push --force'",
    'sh -c "cd x; git push --force"',
    "echo $(git push --force)",
    "xargs git push --force",
]
UNSEEN = [
    "git push",
    "git status --force",
    "echo 'git push --force'",
    'git commit -m "git push --force"',
    "git pushx --force",
    "",
]


@pytest.mark.parametrize("command", SEEN)
def test_commands_that_a_rule_sees(ruled: Project, command: str) -> None:
    """A rule sees its words wherever a shell line runs them."""
    assert asks(ruled, command)


@pytest.mark.parametrize("command", UNSEEN)
def test_commands_that_a_rule_lets_pass(ruled: Project, command: str) -> None:
    """A rule lets pass what is another command, or a text in quotes."""
    assert not asks(ruled, command)


PATTERNS = [
    ("WebFetch /example\\.com/", "WebFetch", {"url": "https://example.com/x"}, True),
    ("WebFetch /example\\.com/", "WebFetch", {"url": "https://example.org/x"}, False),
    ("Write /secrets/", "Write", {"file_path": "/x/secrets/a"}, True),
    ("Write /secrets/", "Read", {"file_path": "/x/secrets/a"}, False),
    ("mcp__db__* /drop/", "mcp__db__query", {"sql": "drop table x"}, True),
    ("mcp__db__* /drop/", "mcp__web__query", {"sql": "drop table x"}, False),
]


@pytest.mark.parametrize(("check", "tool", "given", "is_asked"), PATTERNS)
def test_patterns_of_tools(
    project: Project, check: str, tool: str, given: dict[str, str], *, is_asked: bool
) -> None:
    """A pattern is looked for in what its tool is about to do, and in no other tool's input."""
    project.write("p.md", "Words.", type="feedback")
    project.call("rule.add", path="p.md", check=check)
    assert asks(project, "", tool_name=tool, tool_input=given) is is_asked


def test_a_check_in_a_file_does_nothing(project: Project) -> None:
    """A check that the person did not switch on, whoever wrote it, holds for nobody."""
    text = "---\nname: a\ndescription: d e\ntype: feedback\ncheck: git push\n---\n\nNo pushing.\n"
    project.put("a.md", text)
    project.write("b.md", "No pushing.", type="feedback")
    assert project.call("rule.list")["rules"] == []
    assert not asks(project, "git push")


def test_a_rule_holds_for_the_same_words_only(ruled: Project) -> None:
    """A changed memory has no rule any more, which is said, and has it again with the old words."""
    before = ruled.read("push.md")
    ruled.put("push.md", before.replace("shared", "private"))
    assert not asks(ruled, "git push --force")
    assert ruled.call("rule.list")["rules"][0]["state"] != "on"
    ruled.put("push.md", before)
    assert asks(ruled, "git push --force")


def test_a_removed_memory_has_no_rule(ruled: Project) -> None:
    """With its memory a rule goes, and status says that rules hold no more."""
    ruled.call("memory.delete", path="push.md")
    assert not asks(ruled, "git push --force")
    assert ruled.call("rule.list")["rules"][0]["state"] == "gone"


def test_a_rule_is_switched_off(ruled: Project) -> None:
    """rule.off ends a rule."""
    (rule,) = ruled.call("rule.list")["rules"]
    ruled.call("rule.off", rule=rule["id"])
    assert not asks(ruled, "git push --force")


def test_a_rule_holds_where_memory_is_off(ruled: Project) -> None:
    """A rule holds whether memory is on or not."""
    (ruled.path / ".memd.toml").write_text("enabled = false\n")
    assert asks(ruled, "git push --force")


def test_a_rule_refuses_where_it_says_so(project: Project) -> None:
    """With the answer deny Claude Code refuses the call."""
    project.write("p.md", "No pushing.", type="feedback")
    project.call("rule.add", path="p.md", check="git push", answer="deny")
    shown = answer(project, "git push")["hookSpecificOutput"]
    assert shown["permissionDecision"] == "deny"


REFUSED = ["x" * 501, "Bash /(/", "", "git \u202epush"]
TWO_LINES = pytest.param(
    "two\nlines", marks=differs("14", "a check of two lines is taken as one with a blank")
)


@pytest.mark.parametrize("check", [*REFUSED, TWO_LINES])
def test_checks_that_cannot_hold_are_refused(project: Project, check: str) -> None:
    """A check that is empty, too long, of two lines or no pattern is refused with the reason."""
    project.write("p.md", "No pushing.", type="feedback")
    before = project.read("p.md")
    with pytest.raises(RpcError) as failed:
        project.call("rule.add", path="p.md", check=check)
    assert failed.value.message
    assert project.read("p.md") == before


def test_hostile_lines_and_patterns_end(project: Project) -> None:
    """A megabyte of brackets, and a pattern that others take exponential time for, are answered."""
    project.write("p.md", "No pushing.", type="feedback")
    project.call("rule.add", path="p.md", check="Bash /(a+)+$/")
    for command in ("a" * 60_000 + "!", "$(" * 500_000, '"' * 1_000_000):
        answer(project, command)
    assert project.home.call("status")["pid"]


def test_a_rule_is_read_and_tried(ruled: Project) -> None:
    """rule.test says without a run what a rule would answer."""
    tried = ruled.call("rule.test", tool="Bash", input={"command": "git push --force"})
    assert (tried["answer"], WORDS in tried["words"]) == ("ask", True)
    free = ruled.call("rule.test", tool="Bash", input={"command": "ls"})
    assert (free["answer"], free["rule"]) == ("allow", None)
