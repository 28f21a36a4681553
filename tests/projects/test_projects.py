"""Two projects in one memory directory."""

from pathlib import Path

from msgspec.structs import replace

from memd.core.values import Project
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects, with_other_root
from memd.state.database import open_database
from memd.state.roots import SCHEMA, Roots


def project(root: Path, source: str = "default") -> Project:
    """Return a project at a root, all with the same memory directory."""
    return Project(str(root), str(root), "/m", source, "/t", enabled=True)


def test_two_roots_that_meet_are_told(tmp_path: Path) -> None:
    """The second root hears of the first; a path that somebody chose is shared on purpose."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    roots = Roots(database)
    (tmp_path / "a").mkdir()
    first, second = project(tmp_path / "a"), project(tmp_path / "b")
    assert with_other_root(first, roots) == first
    reported = with_other_root(second, roots)
    assert str(tmp_path / "a") in reported.problems[0]
    assert replace(reported, problems=()) == second
    chosen = project(tmp_path / "b", "MEMD_MEMORY_PATH")
    assert with_other_root(chosen, roots) == chosen
    database.close()


def test_a_root_that_is_gone_gives_its_directory_up(tmp_path: Path) -> None:
    """A repository that was moved away is no neighbour."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    roots = Roots(database)
    with_other_root(project(tmp_path / "gone"), roots)
    (tmp_path / "b").mkdir()
    assert with_other_root(project(tmp_path / "b"), roots).problems == ()
    (tmp_path / "gone").mkdir()
    assert with_other_root(project(tmp_path / "gone"), roots).problems
    database.close()


def test_without_a_state_file_nothing_is_said(tmp_path: Path) -> None:
    """A state file that cannot be used costs the warning, never the memory."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    database.close()
    results = project(tmp_path)
    assert with_other_root(results, Roots(database)) == results


def test_the_folder_of_claude_code_is_where_its_variable_says(
    tmp_path: Path,
) -> None:
    """The client's variables count before the daemon's; a relative path names no folder."""
    database = open_database(str(tmp_path / "state.db"), [SCHEMA])
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "sub").mkdir()
    configuration = Configuration(str(tmp_path / "memd.toml"), str(tmp_path / "policy.toml"))
    own = {"CLAUDE_CONFIG_DIR": "relative"}
    projects = Projects(configuration, Roots(database), own, "/home/p")
    here = replace(project(tmp_path), cwd=str(tmp_path / "repo" / "sub"))
    folders = projects.client_folders(here, {})
    assert folders.checkout == str(tmp_path / "repo")
    assert (folders.home, folders.config) == ("/home/p", "/home/p/.claude")
    moved = {"CLAUDE_CONFIG_DIR": "/c/"}
    folders = projects.client_folders(replace(here, cwd=str(tmp_path)), moved)
    assert folders.config == "/c"
    assert folders.checkout == str(tmp_path)
    database.close()
