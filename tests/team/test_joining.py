"""What a project would join: its repository, read from a file; the server; the device."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from memd.core.values import Project
from memd.team.errors import TeamRefusedError
from memd.team.joining import device_name, moved, prospect
from memd.team.membership import Memberships
from memd.team.values import Membership

TOKEN = "t" * 43
SERVER = "https://team.example"
ORIGIN = '[remote "origin"]\n\turl = git@github.com:Acme/App.git\n'


def project(tmp_path: Path, config: str = ORIGIN, name: str = "app") -> Project:
    """Make a project with a ``.git/config``."""
    root = tmp_path / name
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text(config)
    return Project(
        cwd=str(root),
        root=str(root),
        memory_dir=f"{tmp_path}/memory/{name}",
        source="default",
        transcripts=str(tmp_path),
        enabled=True,
    )


def joined(found: Project, memberships: Memberships) -> Membership:
    """Let a project join."""
    plan = prospect(memberships, found, SERVER, "")
    row = Membership(
        root=found.root,
        directory=found.memory_dir,
        server=plan.server,
        repository="r1",
        remote=plan.remote,
        member="anna",
        device=plan.device,
        token="",
        at=1.0,
        origin=plan.origin,
    )
    return memberships.add(row, TOKEN)


def test_a_project_joins_what_its_origin_names(tmp_path: Path) -> None:
    """Without a word of the person's it is origin, and no token is known yet."""
    plan = prospect(Memberships(f"{tmp_path}/c"), project(tmp_path), f"{SERVER}/", "")
    assert (plan.server, plan.remote, plan.origin) == (SERVER, "github.com/acme/app", plan.remote)
    assert (plan.known, plan.device) == (None, device_name())


@pytest.mark.parametrize(
    "repo", ["gitlab.com/a/b", "https://gitlab.com/A/b.git", "git@gitlab.com:a/b"]
)
def test_a_person_may_name_another(tmp_path: Path, repo: str) -> None:
    """--repo wins over origin, however it is written; what origin named is remembered."""
    plan = prospect(Memberships(f"{tmp_path}/c"), project(tmp_path), SERVER, repo)
    assert (plan.remote, plan.origin) == ("gitlab.com/a/b", "github.com/acme/app")


@pytest.mark.parametrize("config", ["", '[remote "origin"]\nurl = /srv/git/app\n', "[[["])
def test_no_repository_joins_nothing(tmp_path: Path, config: str) -> None:
    """Without a repository on a server a person has to name one, and nonsense is none."""
    found, memberships = project(tmp_path, config), Memberships(f"{tmp_path}/c")
    with pytest.raises(TeamRefusedError, match="--repo"):
        prospect(memberships, found, SERVER, "")
    with pytest.raises(TeamRefusedError):
        prospect(memberships, found, SERVER, "../other")
    assert prospect(memberships, found, SERVER, "github.com/a/b").origin == ""


def test_a_second_clone_uses_the_token_of_the_first(tmp_path: Path) -> None:
    """The device has a token for the server; it and its name serve the other clone."""
    memberships = Memberships(f"{tmp_path}/c")
    row = joined(project(tmp_path), memberships)
    assert prospect(memberships, project(tmp_path, name="clone"), SERVER, "").known == row
    assert prospect(memberships, project(tmp_path, name="x"), "https://other", "").known is None


def test_who_joins_again_brings_a_code(tmp_path: Path) -> None:
    """The token of a directory that joined is no good, or nobody would; elsewhere is refused."""
    memberships, found = Memberships(f"{tmp_path}/c"), project(tmp_path)
    joined(found, memberships)
    assert prospect(memberships, found, SERVER, "").known is None
    with pytest.raises(TeamRefusedError, match="leave"):
        prospect(memberships, found, "https://other", "")
    with pytest.raises(TeamRefusedError, match="leave"):
        prospect(memberships, found, SERVER, "github.com/a/b")


def test_a_repository_that_becomes_another_is_noticed(tmp_path: Path) -> None:
    """Once origin names another repository, or the checkout is gone, the sentence says so."""
    found = project(tmp_path)
    row = joined(found, Memberships(f"{tmp_path}/c"))
    config = Path(found.root, ".git", "config")
    assert moved(row) == ""
    config.write_text(ORIGIN.replace("App.git", "app/"))  # the same one, written otherwise
    assert moved(row) == ""
    config.write_text(ORIGIN.replace("App", "other"))
    assert "github.com/acme/other" in moved(row)
    config.unlink()
    assert "no repository" in moved(row)
    assert moved(replace(row, origin="")) == ""


def test_a_device_has_a_plain_name() -> None:
    """What is sent of the machine is one short ASCII word."""
    assert device_name().isascii()
    assert 0 < len(device_name()) <= 64
