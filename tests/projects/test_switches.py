"""Whether memory is on for a caller, and which switch says so."""

import json
from pathlib import Path
from types import MappingProxyType

import pytest

from memd.base import places
from memd.base.agents import SystemProcess
from memd.projects.claude_code import ClaudeSettings, ClientMemory
from memd.projects.git import ProjectPlace
from memd.projects.switches import Environ, is_below, reason_for_off

NONE = ClientMemory()


def why(
    environ: Environ = MappingProxyType({}),
    off_in: str = "",
    client: ClientMemory = NONE,
    *,
    claude: bool = False,
) -> str:
    """Return which switch says off."""
    return reason_for_off(environ, off_in, client, lambda: claude)


@pytest.mark.parametrize(
    ("environ", "reason"),
    [
        ({}, ""),
        ({"MEMD_DISABLE": "1"}, "MEMD_DISABLE"),
        ({"MEMD_DISABLE": "yes"}, "MEMD_DISABLE"),
        ({"MEMD_DISABLE": ""}, ""),
        ({"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "true"}, "CLAUDE_CODE_DISABLE_AUTO_MEMORY"),
        ({"MEMD_DISABLE": "0", "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1"}, ""),
        ({"MEMD_DISABLE": "Off", "CLAUDE_CODE_SIMPLE": "1"}, ""),
        ({"CLAUDE_CODE_SIMPLE": "1"}, "bare mode"),
        ({"CLAUDE_CODE_SIMPLE": "false"}, ""),
        ({"CLAUDE_CODE_REMOTE": "1"}, "remotely"),
        ({"CLAUDE_CODE_REMOTE": "1", "CLAUDE_CODE_REMOTE_MEMORY_DIR": "/x/y"}, ""),
    ],
)
def test_the_first_variable_that_is_set_decides(environ: dict[str, str], reason: str) -> None:
    """The strongest variable of the caller decides; a falsy one says on."""
    assert set(environ) <= set(places.FORWARDED)
    assert reason in why(environ)
    assert bool(why(environ)) is bool(reason)


def test_files_come_after_variables() -> None:
    """First memd's settings, then a repository's or the policy's file, then the person's own."""
    both = ClientMemory(off_in="/r/settings.json", person_off_in="/p/settings.json")
    person = ClientMemory(person_off_in="/p/settings.json")
    assert why({}, "/m.toml", both, claude=True) == "enabled is false in /m.toml"
    assert why({}, "", both, claude=True) == "autoMemoryEnabled is false in /r/settings.json"
    assert why({}, "", person, claude=True) == "autoMemoryEnabled is false in /p/settings.json"
    assert why({}, "", person) == ""
    assert why({"MEMD_DISABLE": "no"}, "/m.toml", both, claude=True) == ""


@pytest.mark.parametrize("value", [True, False])
def test_the_policy_comes_before_the_person(tmp_path: Path, *, value: bool) -> None:
    """A policy that says off is everybody's switch; one that says on undoes the person's own."""
    policy, user = tmp_path / "policy.json", tmp_path / ".claude/settings.json"
    user.parent.mkdir()
    user.write_text('{"autoMemoryEnabled": false}')
    root = str(tmp_path / "repo")
    found = ClaudeSettings(str(tmp_path), str(policy))
    assert found.memory(ProjectPlace(root, root, root), {}).person_off_in == str(user)
    policy.write_text(json.dumps({"autoMemoryEnabled": value}))
    memory = found.memory(ProjectPlace(root, root, root), {})
    assert (memory.off_in, memory.person_off_in) == ("" if value else str(policy), "")


def test_a_process_is_below_a_program() -> None:
    """Ancestors count by their names; a chain that never ends is cut."""
    names = {5: "sh", 4: "claude", 3: "zsh", 9: "loop"}
    chain = {5: 4, 4: 3, 3: 1, 9: 9}

    def find(pid: int) -> SystemProcess | None:
        return SystemProcess(pid, 0, 0.0, chain[pid], names[pid]) if pid in names else None

    assert is_below(find, 5, ("claude",))
    assert not is_below(find, 3, ("claude",))
    assert not is_below(find, 9, ("claude",))
