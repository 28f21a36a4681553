"""rule add, list, test and off."""

from typing import Any

from tests.cli.driver import memctl
from tests.cli.home import Home
from tests.support.scripted_daemon import ScriptedDaemon

RULE: dict[str, Any] = {
    "id": "r3",
    "path": "no-force.md",
    "name": "no-force",
    "check": "git push --force",
    "answer": "ask",
    "state": "on",
    "at": 1_772_539_200.0,
    "answered": 2,
    "last_at": 1_772_539_200.0,
    "words": "the person's rule no-force says: Never force-push",
}


def test_rules_and_candidates_are_shown(home: Home) -> None:
    """Each with its check and state, and the command that switches a candidate on."""
    changed = {**RULE, "id": "r4", "state": "changed", "answered": 0}
    strange = {**RULE, "id": "r5", "check": "g\u0456t push \x1b[31m", "state": "gone", "words": ""}
    quoted = {"path": "a.md", "name": "a", "check": "npm run x", "written": False, "repeated": 3}
    written = {"path": "b.md", "name": "b", "check": "npm ci", "written": True, "repeated": 0}
    answer = {"rules": [RULE, changed, strange], "candidates": [quoted, written]}
    with ScriptedDaemon(home.places.socket, {"rule.list": answer}) as daemon:
        ran = memctl(home, "rule", "list")
        shown = memctl(home, "rule", "list", terminal=True).out
        as_json = memctl(home, "rule", "list", "--json")
    assert daemon.params("rule.list") == {"cwd": home.cwd}
    assert ran.out.startswith(
        "r3  on  ask  git push --force\n"
        "    no-force.md: the person's rule no-force says: Never force-push\n"
        "    answered 2 times, last "
    )
    assert "agree to what it says now: memctl rule add no-force.md" in ran.out
    assert "it does not hold: the memory is gone" in ran.out
    assert "(with U+0456)" in ran.out
    assert "\x1b[31m" not in shown
    assert "a.md could be a rule, you said it again 3 times: npm run x\n" in ran.out
    assert "    memctl rule add a.md --check 'npm run x'\n" in ran.out
    assert ran.out.endswith("    memctl rule add b.md\n")
    assert as_json.json == answer


def test_nothing_to_show_is_said_aside(home: Home) -> None:
    """The answer is empty."""
    with ScriptedDaemon(home.places.socket, {"rule.list": {"rules": [], "candidates": []}}):
        ran = memctl(home, "rule", "list")
    assert (ran.status, ran.out.strip()) == (0, "")
    assert "no rules here" in ran.err


def test_one_is_switched_on(home: Home) -> None:
    """What was consented to is shown, and how to take it back."""
    done = {"rule": {**RULE, "answered": 0}, "change": "c7"}
    with ScriptedDaemon(home.places.socket, {"rule.add": done}) as daemon:
        ran = memctl(
            home, "rule", "add", "no-force.md", "--check", "git push --force", "--answer", "deny"
        )
    assert daemon.params("rule.add") == {
        "cwd": home.cwd,
        "path": "no-force.md",
        "check": "git push --force",
        "answer": "deny",
    }
    assert "says: Never force-push\nswitch it off with: memctl rule off r3\n" in ran.out
    assert "memctl undo c7 takes it back" in ran.err


def test_a_call_is_tried(home: Home) -> None:
    """A text is what the tool looks at, JSON its whole input; the status says whether it passes."""
    said = {"answer": "ask", "rule": "r3", "words": RULE["words"]}
    with ScriptedDaemon(home.places.socket, {"rule.test": said}) as daemon:
        ran = memctl(home, "rule", "test", "git push --force")
        assert daemon.params("rule.test")["input"]["command"] == "git push --force"
        assert daemon.params("rule.test")["tool"] == "Bash"
        memctl(home, "rule", "test", "--tool", "mcp__x__y", '{"a": 1}')
        assert daemon.params("rule.test")["input"] == {"a": 1}
        memctl(home, "rule", "test", "--tool", "Write", "{x/.env")
        assert daemon.params("rule.test")["input"]["file_path"] == "{x/.env"
    assert (ran.status, ran.out) == (1, f"ask: {RULE['words']} (r3)\n")
    allowed = {"answer": "allow", "rule": None, "words": ""}
    with ScriptedDaemon(home.places.socket, {"rule.test": allowed}):
        ran = memctl(home, "rule", "test", "ls")
    assert (ran.status, ran.out) == (0, "allow\n")


def test_one_is_switched_off(home: Home) -> None:
    """It says how to switch it on again; one whose memory is gone is forgotten."""
    for state, words in (
        ("off", "r3 is off; memctl rule add no-force.md turns it on\n"),
        ("gone", "r3 is forgotten\n"),
    ):
        with ScriptedDaemon(home.places.socket, {"rule.off": {**RULE, "state": state}}) as daemon:
            ran = memctl(home, "rule", "off", "r3")
        assert (ran.out, daemon.params("rule.off")["rule"]) == (words, "r3")
