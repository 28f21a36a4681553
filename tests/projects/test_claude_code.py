"""What Claude Code's own settings say about its memory, as version 2.1.329 was seen to do."""

import json
from pathlib import Path
from typing import Any

import pytest

from memd.base.settings import Settings
from memd.base.values import Project
from memd.projects.claude_code import ClaudeSettings, ClientMemory
from memd.projects.git import ProjectPlace
from memd.projects.project import find_project, locate, slug

POLICY, USER = "policy.json", "home/.claude/settings.json"
PROJECT, LOCAL = "repo/.claude/settings.json", "repo/.claude/settings.local.json"
FILES = (USER, PROJECT, LOCAL, POLICY)  # the last that says something wins


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a home and a repository that the person trusts."""
    for folder in ("home/.claude", "repo/.claude", "repo/.git", "repo/sub/.claude"):
        (tmp_path / folder).mkdir(parents=True)
    trusted = {"projects": {str(tmp_path / "repo"): {"hasTrustDialogAccepted": True}}}
    (tmp_path / "home/.claude.json").write_text(json.dumps(trusted))
    return tmp_path


def says(place: Path, name: str, **options: Any) -> None:
    """Write a settings file."""
    (place / name).write_text(json.dumps(options))


def _place(cwd: Path, root: Path) -> ProjectPlace:
    """Return the place of a directory in the checkout that is the root."""
    return ProjectPlace(str(cwd), str(root), str(root))


def memory(place: Path, cwd: str = "repo", **environ: str) -> ClientMemory:
    """Return what the settings say."""
    found = ClaudeSettings(str(place / "home"), str(place / POLICY))
    return found.memory(_place(place / cwd, place / "repo"), environ)


def project(place: Path, settings: Settings | None = None, **environ: str) -> Project:
    """Return the repository's project."""
    where = locate(str(place / "repo"))
    home = str(place / "home")
    return find_project(where, settings or Settings(), environ, home, memory(place, **environ))


@pytest.mark.parametrize("number", range(len(FILES)))
def test_the_strongest_file_that_speaks_wins(place: Path, number: int) -> None:
    """Policy comes before local, local before project, project before user settings."""
    for name in FILES[: number + 1]:
        says(place, name, autoMemoryDirectory=f"/m/{name}", autoMemoryEnabled=name == FILES[number])
    for name in FILES[number + 1 :]:
        says(place, name, autoMemoryDirectory="", autoMemoryEnabled="no")
    found = memory(place)
    assert (found.enabled, found.directory) == (True, f"/m/{FILES[number]}")


def test_a_subdirectory_has_its_own_project_settings(place: Path) -> None:
    """Project settings lie where the client was started, local ones in the root as well."""
    says(place, PROJECT, autoMemoryDirectory="/m/project")
    assert memory(place, "repo/sub").directory == ""
    says(place, "repo/sub/.claude/settings.local.json", autoMemoryDirectory="/m/sub")
    assert memory(place, "repo/sub").directory == "/m/sub"
    says(place, LOCAL, autoMemoryDirectory="/m/root")
    assert memory(place, "repo/sub").directory == "/m/root"


def test_the_users_settings_may_lie_elsewhere(place: Path) -> None:
    """CLAUDE_CONFIG_DIR is where the user's settings are looked for."""
    says(place, "settings.json", autoMemoryEnabled=False)
    assert not memory(place, CLAUDE_CONFIG_DIR=str(place)).enabled


@pytest.mark.parametrize("content", ["[1]", "{", "[" * 100_000, '{"autoMemoryEnabled": "no"}'])
def test_odd_settings_change_nothing(place: Path, content: str) -> None:
    """Settings that are no JSON object, or say something else, leave the default."""
    (place / USER).write_text(content)
    (place / "home/.claude.json").write_text(content)
    assert memory(place) == ClientMemory()


def test_a_change_is_seen_at_once(place: Path) -> None:
    """The files are read again when they change, and a file that goes away says nothing."""
    found = ClaudeSettings(str(place / "home"), str(place / POLICY))
    where = _place(place / "repo", place / "repo")
    for directory in ("/m/a", "/m/longer"):
        says(place, USER, autoMemoryDirectory=directory)
        assert found.memory(where, {}).directory == directory
    (place / USER).unlink()
    assert found.memory(where, {}) == ClientMemory()


@pytest.mark.parametrize("name", [USER, LOCAL, POLICY])
def test_memd_writes_where_the_client_does(place: Path, name: str) -> None:
    """The client's own directory is memd's, and the client loads it by itself."""
    says(place, name, autoMemoryDirectory="~/mine")
    results = project(place)
    assert results.memory_dir == results.client_dir == str(place / "home/mine")
    assert results.source == "autoMemoryDirectory"


@pytest.mark.parametrize("name", [LOCAL, PROJECT])
def test_a_folder_that_nobody_trusts_chooses_no_directory(place: Path, name: str) -> None:
    """A checkout cannot borrow another project's memory; what the client loads is known."""
    (place / "home/.claude.json").write_text('{"projects": {"/other": 3}}')
    says(place, name, autoMemoryDirectory="/secret/memory")
    results = project(place)
    assert results.memory_dir.endswith(f"/projects/{slug(results.root)}/memory")
    assert results.client_dir == "/secret/memory"


def test_what_a_repository_brings_chooses_no_directory(place: Path) -> None:
    """Settings that are committed count for Claude Code only, and hide nothing of the person's."""
    says(place, USER, autoMemoryDirectory="/m/person")
    says(place, PROJECT, autoMemoryDirectory="/m/committed")
    results = project(place)
    assert (results.memory_dir, results.client_dir) == ("/m/person", "/m/committed")


@pytest.mark.parametrize("folder", ["/", "repo/.."])
def test_trust_in_a_folder_holds_below_it(place: Path, folder: str) -> None:
    """As Claude Code has it."""
    parent = str((place / folder).resolve())
    (place / "home/.claude.json").write_text(
        json.dumps({"projects": {parent: {"hasTrustDialogAccepted": True}}})
    )
    says(place, LOCAL, autoMemoryDirectory="/m/mine")
    assert project(place).memory_dir == "/m/mine"


def test_what_only_memd_knows_the_client_does_not_load(place: Path) -> None:
    """A directory of memd's own settings or variables is not the client's."""
    both = project(place)
    assert both.client_dir == both.memory_dir
    for chosen in (
        project(place, Settings(auto_memory_directory="/m/memd")),
        project(place, MEMD_MEMORY_PATH="/m/memd"),
        project(place, MEMD_BASE_DIR="/m/base"),
    ):
        assert chosen.client_dir == both.client_dir != chosen.memory_dir
    shared = project(place, CLAUDE_COWORK_MEMORY_PATH_OVERRIDE="/m/cowork")
    assert shared.client_dir == shared.memory_dir == "/m/cowork"
    remote = project(place, CLAUDE_CODE_REMOTE_MEMORY_DIR="/m/remote")
    assert remote.client_dir == remote.memory_dir


@pytest.mark.parametrize(
    ("user", "older", "variable", "compacts"),
    [
        (None, None, "", True),
        (False, None, "", False),
        (None, False, "", False),
        (True, False, "0", True),
        (True, True, "1", False),
    ],
)
def test_whether_the_client_compacts_by_itself(
    place: Path, *, user: bool | None, older: bool | None, variable: str, compacts: bool
) -> None:
    """A variable says no for good; of the settings the newer file comes before the older one."""
    says(place, USER, autoCompactEnabled=user)
    (place / "home/.claude.json").write_text(json.dumps({"autoCompactEnabled": older}))
    assert project(place, DISABLE_AUTO_COMPACT=variable).compacts is compacts


@pytest.mark.parametrize(
    ("enabled", "switch", "loads"),
    [(True, "", True), (False, "", False), (True, "1", False), (False, "0", True)],
)
def test_the_switch_decides_before_the_settings(
    place: Path, *, enabled: bool, switch: str, loads: bool
) -> None:
    """A false value of the variable switches the client's memory on whatever the settings say."""
    says(place, USER, autoMemoryEnabled=enabled)
    results = project(place, CLAUDE_CODE_DISABLE_AUTO_MEMORY=switch)
    assert bool(results.client_dir) is loads


def test_excludes_are_the_users_and_the_machines(place: Path) -> None:
    """A repository hides no instruction file; what is no list of texts counts for nothing."""
    says(place, USER, claudeMdExcludes=["/u/**", 3])
    says(place, POLICY, claudeMdExcludes=["/p/**"])
    for name in (PROJECT, LOCAL):
        says(place, name, claudeMdExcludes=["/r/**"])
    found = ClaudeSettings(str(place / "home"), str(place / POLICY))
    assert found.excludes(str(place / "home/.claude")) == ("/u/**", "/p/**")
    assert found.excludes(str(place / "elsewhere")) == ("/p/**",)
    says(place, POLICY, claudeMdExcludes="/p/**")
    assert found.excludes(str(place / "elsewhere")) == ()
