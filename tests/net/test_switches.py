"""The order of the switches, and each feature's own switch; all are read at each use (1.3)."""

from typing import Any

import pytest

from tests.net.kit import Project
from tests.net.wire import RpcError

DISABLE, SIMPLE = "CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SIMPLE"
REMOTE, MOUNT = "CLAUDE_CODE_REMOTE", "CLAUDE_CODE_REMOTE_MEMORY_DIR"
CHAIN = [  # variables, enabled in the settings, and whether memory is on
    ({}, "true", "on"),
    ({}, "false", "off"),
    ({DISABLE: "1"}, "true", "off"),
    ({DISABLE: "yes"}, "true", "off"),
    ({DISABLE: "0"}, "false", "on"),
    ({DISABLE: "no"}, "false", "on"),
    ({DISABLE: "0", SIMPLE: "1"}, "true", "on"),
    ({"MEMD_DISABLE": "1"}, "true", "off"),
    ({"MEMD_DISABLE": "off"}, "false", "on"),
    ({SIMPLE: "1"}, "true", "off"),
    ({SIMPLE: "0"}, "true", "on"),
    ({REMOTE: "1"}, "true", "off"),
    ({REMOTE: "1", MOUNT: "{home}/mount"}, "true", "on"),
    ({REMOTE: "1", MOUNT: "{home}/mount"}, "false", "off"),
]


@pytest.mark.parametrize(("variables", "enabled", "expected"), CHAIN)
def test_the_first_switch_that_is_defined_wins(
    project: Project, variables: dict[str, str], enabled: str, expected: str
) -> None:
    """Environment before settings: prompt, recall and writes agree whether memory is on."""
    project.home.configure(f"enabled = {enabled}\n")
    place = project.home.environ["HOME"]
    environ = {name: value.format(home=place) for name, value in variables.items()}
    with project.home.connect(environ=environ) as client:
        loaded = client.call("load_prompt", cwd=project.cwd)
        given = {"cwd": project.cwd, "session_id": project.cwd, "query": "two words"}
        skipped = client.call("prefetch", **given)["skipped"]
        memory = {"name": "a", "description": "d e", "type": "project", "body": "x"}
        try:
            client.call("memory.write", cwd=project.cwd, path="a.md", **memory)
            written = True
        except RpcError as error:
            written = error.kind != "memory_off"
    is_on = expected == "on"
    assert (loaded["enabled"], loaded["prompt"] is not None) == (is_on, is_on)
    assert (skipped != "memory_off", written) == (is_on, is_on)


TALK = [
    {"role": "user", "content": "Always run the linter before you commit, in every session."},
    {"role": "assistant", "content": "Yes."},
]
FEATURES: list[tuple[str, str, dict[str, Any]]] = [
    ("[extract]\nenabled = false\n", "extract", {"session_id": "s", "messages": TALK}),
    ("[dream]\nenabled = false\n", "dream", {"force": True}),
    (
        "[notes]\nenabled = false\n",
        "notes.update",
        {"session_id": "s", "messages": TALK, "force": True},
    ),
]


@pytest.mark.parametrize(("settings", "method", "params"), FEATURES)
def test_each_feature_has_its_switch(
    project: Project, settings: str, method: str, params: dict[str, Any]
) -> None:
    """Off by its setting a feature is skipped; switched on again it works at the next call."""
    project.home.configure(settings)
    assert project.call(method, wait=True, **params)["status"] == "skipped"
    project.home.configure("")
    assert project.call(method, wait=True, **params)["status"] != "skipped"


def test_messages_have_their_switch(project: Project) -> None:
    """Off by the setting no agent registers; switched on again the next call registers it."""
    project.home.configure("[messages]\nenabled = false\n")
    with pytest.raises(RpcError, match="messages_off"):
        project.call("agent.register", name="a")
    project.home.configure("")
    assert project.call("agent.register", name="a")["address"]
