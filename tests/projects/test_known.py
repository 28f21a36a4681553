"""Which projects can be found, and the memories of their sub-agents."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.base.agents import AgentScope
from memd.daemon.app import SCHEMAS
from memd.projects.agents import AgentMemory, agents_in, own_agents
from memd.projects.configuration import Configuration
from memd.projects.known import KnownProject, Visit, last_visits, remember_visit
from memd.projects.project import slug
from memd.projects.projects import Projects
from memd.state.database import Database, open_database
from memd.state.docs import Docs


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Open a state file."""
    opened = open_database(str(tmp_path / "state.db"), SCHEMAS)
    yield opened
    opened.close()


def test_every_project_is_found_once(tmp_path: Path, database: Database) -> None:
    """Visited ones know their root, remembered ones too; of a mere folder only its name is left."""
    home = str(tmp_path)
    projects = Projects(Configuration(f"{home}/c.toml", f"{home}/p.toml"), Docs(database), {}, home)
    base = f"{home}/.claude/projects"
    visits = Docs(database)
    for name in ("seen", "elsewhere", "gone"):
        (tmp_path / "src" / name).mkdir(parents=True)
    chosen = {"MEMD_MEMORY_PATH": f"{home}/mine"}
    for name, environ in (("seen", {}), ("elsewhere", chosen), ("gone", {})):
        project = projects.where(f"{home}/src/{name}", environ)[0]
        Path(project.memory_dir).mkdir(parents=True)
        remember_visit(visits, project.memory_dir, Visit(project.cwd, "c", environ), 1.0)
    (tmp_path / "src" / "gone").rmdir()
    Path(base, "-srv-their-notes", "memory").mkdir(parents=True)
    Path(base, "-srv-empty").mkdir()
    known = {each.directory: each for each in projects.known(last_visits(visits))}
    seen = f"{base}/{slug(f'{home}/src/seen')}"
    gone = f"{base}/{slug(f'{home}/src/gone')}"
    assert {real: (each.root, each.name) for real, each in known.items()} == {
        f"{seen}/memory": (f"{home}/src/seen", "seen"),
        f"{home}/mine": (f"{home}/src/elsewhere", "elsewhere"),
        f"{gone}/memory": (f"{home}/src/gone", "gone"),
        f"{base}/-srv-their-notes/memory": ("", "notes"),
    }
    assert known[f"{seen}/memory"].sessions == (seen,)
    assert known[f"{home}/mine"].config == f"{home}/.claude"


def test_the_state_file_may_be_new(tmp_path: Path, database: Database) -> None:
    """Without anything remembered the folders are enough, and without those nothing is found."""
    home = str(tmp_path)
    projects = Projects(Configuration(f"{home}/c.toml", f"{home}/p.toml"), Docs(database), {}, home)
    assert projects.known(()) == ()
    folder = f"{home}/.claude/projects/-srv-app"
    Path(folder, "memory").mkdir(parents=True)
    expected = KnownProject(f"{folder}/memory", "", (folder,), f"{home}/.claude")
    assert projects.known(()) == (expected,)


def test_memories_of_agents_lie_in_three_places(tmp_path: Path) -> None:
    """A root has those of two scopes, the person's folder the third; links are passed over."""
    root, config = tmp_path / "app", tmp_path / ".claude"
    places = {
        AgentScope.PROJECT: root / ".claude" / "agent-memory" / "reviewer",
        AgentScope.LOCAL: root / ".claude" / "agent-memory-local" / "tester",
        AgentScope.USER: config / "agent-memory" / "writer",
    }
    for folder in places.values():
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("x")
    (root / ".claude" / "agent-memory" / "linked").symlink_to(places[AgentScope.USER])
    (root / ".claude" / "agent-memory" / "empty").mkdir()
    found = [AgentMemory(str(path), path.name, scope) for scope, path in places.items()]
    assert (agents_in(str(root)), own_agents(str(config))) == (tuple(found[:2]), tuple(found[2:]))
    assert (agents_in(""), own_agents(f"{root}/nowhere")) == ((), ())
    (tmp_path / "borrowed" / ".claude").mkdir(parents=True)
    (tmp_path / "borrowed" / ".claude" / "agent-memory").symlink_to(config / "agent-memory")
    assert agents_in(str(tmp_path / "borrowed")) == ()
