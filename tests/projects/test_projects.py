"""The answer of a project is kept while nothing that it depends on has changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.daemon.app import SCHEMAS
from memd.projects.configuration import Configuration
from memd.projects.projects import Projects
from memd.state.database import open_database
from memd.state.docs import Docs


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[Projects]:
    """Return the projects of a home, in which a repository has a folder."""
    for folder in ("home/.claude", "repo/.git", "repo/sub/.claude"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repo/sub")
    files = Configuration(str(tmp_path / "memd.toml"), str(tmp_path / "policy.toml"))
    database = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield Projects(files, Docs(database), {}, str(tmp_path / "home"))
    database.close()


def save(name: str, text: str) -> Callable[[Path], object]:
    """Return a change that saves a file."""
    return lambda place: (place / name).write_text(text)


OFF = json.dumps({"autoMemoryEnabled": False})
CHANGES: dict[str, Callable[[Path], object]] = {
    "memd's settings": save("memd.toml", "enabled = false\n"),
    "the policy": save("policy.toml", "enabled = false\n"),
    "the repository": save("repo/.memd.toml", "enabled = false\n"),
    "the folder": save("repo/sub/.claude/settings.json", OFF),
    "the person": save("home/.claude/settings.json", '{"autoMemoryDirectory": "/m/mine"}'),
    "a new repository": lambda place: (place / "repo/sub/.git").mkdir(),
    "no repository": lambda place: (place / "repo/.git").rmdir(),
    "a forged worktree": lambda place: (place / "repo/sub/.git").write_text("gitdir: /x\n"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("cwd", ["repo/sub", "link"])
def test_a_change_is_seen_at_once(
    tmp_path: Path, projects: Projects, change: str, cwd: str
) -> None:
    """The next answer is another one after each change of a file, and the same one without."""
    where = str(tmp_path / cwd)
    before = projects.where(where, {})
    assert projects.where(where, {})[0] is before[0]
    CHANGES[change](tmp_path)
    after = projects.where(where, {})
    assert after[0] != before[0]
    assert projects.where(where, {})[0] is after[0]


def test_a_link_that_leads_elsewhere_is_seen_at_once(tmp_path: Path, projects: Projects) -> None:
    """The folder behind a link is looked up at each request."""
    link = tmp_path / "link"
    assert projects.where(str(link), {})[0].root == str(tmp_path / "repo")
    link.unlink()
    link.symlink_to(tmp_path / "home/.claude")
    assert projects.where(str(link), {})[0].root == str(tmp_path / "home/.claude")


def test_each_caller_has_an_answer_of_its_own(tmp_path: Path, projects: Projects) -> None:
    """Variables and the name of the client are part of the question."""
    where = str(tmp_path / "repo")
    (tmp_path / "home/.claude/settings.json").write_text(OFF)
    answers = [
        projects.where(where, {})[0].enabled,
        projects.where(where, {}, "claude-code")[0].enabled,
        projects.where(where, {})[0].enabled,
        projects.where(where, {"MEMD_DISABLE": "1"})[0].enabled,
        projects.where(where, {"MEMD_DISABLE": "1"}, by_files=True)[0].enabled,
    ]
    assert answers == [True, False, True, False, True]


def test_a_directory_belongs_to_one_root(tmp_path: Path, projects: Projects) -> None:
    """Of two roots with one slug the first counts until it is gone; both are told at once."""
    first, second, third = (str(tmp_path / name) for name in ("a.b", "a-b", "a_b"))
    for root in (first, second, third):
        Path(root).mkdir()

    def other(root: str) -> str:
        """Return which other root a root's project names, "" for none."""
        problems = "".join(projects.where(root, {})[0].problems)
        return next((each for each in (first, second, third) if f" {each}:" in problems), "")

    assert [other(first), other(second)] == ["", first]
    assert [other(second), other(first)] == [first, second]
    Path(second).rmdir()
    assert other(first) == ""
    Path(first).rmdir()
    assert other(third) == ""
    Path(second).mkdir()
    assert [other(second), other(third)] == [third, second]
