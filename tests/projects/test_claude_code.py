"""What Claude Code's settings say about its own memory."""

from pathlib import Path

import pytest

from memd.core.values import Project
from memd.projects.projects import loads_memory


def project(root: Path, source: str = "default") -> Project:
    """Return a project below a home."""
    return Project(str(root), str(root), f"{root}/m", source, f"{root}/t", enabled=True)


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
def test_a_settings_file_switches_it_off(tmp_path: Path, name: str) -> None:
    """The user's or the project's settings may say that it does not."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / name).write_text('{"autoMemoryEnabled": false}')
    assert not loads_memory(project(tmp_path), {}, str(tmp_path))


def test_the_users_settings_may_lie_elsewhere(tmp_path: Path) -> None:
    """CLAUDE_CONFIG_DIR is where the user's settings are looked for."""
    (tmp_path / "settings.json").write_text('{"autoMemoryEnabled": false}')
    environ = {"CLAUDE_CONFIG_DIR": str(tmp_path)}
    assert not loads_memory(project(tmp_path / "p"), environ, "/nowhere")


def test_a_directory_of_memds_own_is_not_known_to_it(tmp_path: Path) -> None:
    """What only memd's settings chose, Claude Code does not load."""
    assert not loads_memory(project(tmp_path, "MEMD_MEMORY_PATH"), {}, str(tmp_path))


@pytest.mark.parametrize("content", ["[1]", "{", "[" * 100_000, '{"autoMemoryEnabled": "no"}'])
def test_odd_settings_change_nothing(tmp_path: Path, content: str) -> None:
    """Settings that are no JSON object, or say something else, leave the default."""
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text(content)
    assert loads_memory(project(tmp_path), {}, str(tmp_path))
