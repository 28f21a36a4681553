"""service install, uninstall and status."""

import os
import stat
import sys
from pathlib import Path

import pytest

from memd.cli import service_unit
from memd.cli.commands import service
from tests.cli.driver import Ran, invocation, memctl
from tests.cli.home import Home

LINUX = pytest.mark.skipif(sys.platform == "darwin", reason="systemd is Linux's")
pytestmark = LINUX


class Supervisor:
    """A program that plays systemctl or launchctl: it notes what it was told and answers."""

    def __init__(self, home: Home, name: str = "systemctl") -> None:
        self._folder = Path(home.path) / "bin"
        self._folder.mkdir(exist_ok=True)
        self._log = self._folder / "log"
        program = self._folder / name
        program.write_text(
            f'#!/bin/sh\necho "$*" >> "{self._log}"\n'
            f'while read -r words; do case "$*" in *"$words"*)\n'
            f"echo 'it says no' >&2; exit 3;; esac; done < \"{self._folder}/refused\"\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.path = str(self._folder)
        self.refuse("is-active")

    def refuse(self, *words: str) -> None:
        """Fail for commands that hold one of these words."""
        (self._folder / "refused").write_text("".join(f"{word}\n" for word in words))

    def reported(self) -> list[str]:
        """Return and forget the commands it got."""
        results = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return results


def _files(home: Home) -> list[str]:
    folder = Path(home.path) / ".config/systemd/user"
    return sorted(os.listdir(folder)) if folder.exists() else []


def _service(home: Home, *arguments: str, path: str = "/nothing", own: str = "") -> Ran:
    return memctl(home, "service", *arguments, PATH=path, MEMD_SOCKET=own)


def test_it_is_installed_and_started(home: Home) -> None:
    """Files first, then the supervisor is told to read and start them; again is nothing new."""
    supervisor = Supervisor(home)
    ran = _service(home, "install", path=supervisor.path)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "memd runs as a service"
    assert _files(home) == ["memd.service", "memd.socket"]
    assert supervisor.reported() == [
        "--user show-environment",
        "--user is-active --quiet memd.service",
        "--user reset-failed memd.socket memd.service",
        "--user daemon-reload",
        "--user enable --now memd.socket memd.service",
    ]
    supervisor.refuse()
    ran = _service(home, "install", "--json", path=supervisor.path)
    assert ran.json == {
        "supervisor": "systemd",
        "written": [],
        "started": True,
        "problem": "",
    }
    assert not any("enable" in words for words in supervisor.reported())


def test_new_files_count_at_once(home: Home) -> None:
    """A service that runs is restarted when its files changed."""
    supervisor = Supervisor(home)
    _service(home, "install", path=supervisor.path)
    unit = Path(home.path) / ".config/systemd/user/memd.service"
    unit.write_text(unit.read_text().replace("RestartSec=2", "RestartSec=9"))
    supervisor.refuse()
    supervisor.reported()
    assert _service(home, "status", path=supervisor.path).status == 1
    supervisor.reported()
    assert _service(home, "install", path=supervisor.path).status == 0
    assert supervisor.reported()[-1] == "--user restart memd.service"


def test_a_refusal_of_the_supervisor_is_told(home: Home) -> None:
    """What the supervisor says no to is an error in its words."""
    supervisor = Supervisor(home)
    supervisor.refuse("is-active", "enable")
    ran = _service(home, "install", path=supervisor.path)
    assert ran.status == 1
    assert "systemctl --user enable --now memd.socket memd.service failed: it says no" in ran.err


def test_a_dry_run_prints_the_files(home: Home) -> None:
    """Nothing is written or asked."""
    ran = _service(home, "install", "--dry-run")
    assert f'ExecStart="{sys.executable}" -P -m memd serve' in ran.out
    assert _service(home, "uninstall", "--dry-run").out == "nothing to remove\n"
    assert _files(home) == []
    _service(home, "install", "--no-enable")
    assert _service(home, "uninstall", "--dry-run").out.count("would remove") == 2
    assert len(_files(home)) == 2


def test_it_is_taken_away(home: Home) -> None:
    """The service is stopped, then our files go, and the supervisor forgets them."""
    supervisor = Supervisor(home)
    _service(home, "install", path=supervisor.path)
    supervisor.reported()
    ran = _service(home, "uninstall", path=supervisor.path)
    assert (ran.status, ran.out.count("removed ")) == (0, 2)
    assert supervisor.reported() == [
        "--user show-environment",
        "--user disable --now memd.socket memd.service",
        "--user daemon-reload",
    ]
    assert _files(home) == []
    assert _service(home, "uninstall").out == "nothing to remove\n"
    _service(home, "install", "--no-enable")
    assert _service(home, "uninstall").status == 0
    assert _files(home) == []


def test_the_status_tells_files_and_daemon(home: Home) -> None:
    """Only installed files are status 0; whether it runs is told beside."""
    ran = _service(home, "status")
    assert ran.status == 1
    assert "systemd" in ran.out.splitlines()[-1]
    assert "does not run memd" in ran.out
    supervisor = Supervisor(home)
    _service(home, "install", "--no-enable")
    supervisor.refuse()
    ran = _service(home, "status", "--json", path=supervisor.path)
    assert (ran.status, ran.json["active"]) == (0, True)
    assert set(ran.json["files"].values()) == {"installed"}


def test_the_doctor_looks_at_the_service(home: Home) -> None:
    """No service is no fault; files that nobody runs or of another version have a remedy."""
    supervisor = Supervisor(home)

    def row(path: str = supervisor.path) -> dict[str, str]:
        return service.check(invocation(home, "doctor", PATH=path))

    assert row()["state"] == "off"
    _service(home, "install", "--no-enable")
    assert (row()["state"], row()["remedy"]) == ("warning", "memctl service install")
    assert "there is no systemctl" in row("/nothing")["detail"]
    supervisor.refuse()
    assert (row()["state"], row()["detail"]) == ("ok", "systemd runs memd")
    (Path(home.path) / ".config/systemd/user/memd.socket").unlink()
    assert row()["state"] == "warning"


def test_macos_has_an_agent(home: Home) -> None:
    """On macOS the launch agent is meant; a running one is loaded anew when its file changed."""
    supervisor = Supervisor(home, "launchctl")
    run = invocation(home, "service", "install", PATH=supervisor.path)
    agent = service.find(run, "darwin")
    assert agent.supervisor == "launchd"
    (path,) = service_unit.write(agent)
    supervisor.refuse()
    service._enable(run, agent, files_changed=True)
    uid = os.getuid()
    assert supervisor.reported() == [
        f"print gui/{uid}/dev.memd.memd",
        f"bootout gui/{uid}/dev.memd.memd",
        f"bootstrap gui/{uid} {path}",
    ]


def test_a_program_that_cannot_run_is_no_supervisor(home: Home) -> None:
    """A systemctl that is no program counts as none."""
    supervisor = Supervisor(home)
    (Path(supervisor.path) / "systemctl").write_text("")
    run = invocation(home, "service", "status", PATH=supervisor.path)
    assert service._failure_of(run, ("systemctl", "--user")) != ""
    Supervisor(home).refuse("quiet")
    (Path(supervisor.path) / "systemctl").write_text("#!/bin/sh\nexit 4\n")
    assert service._failure_of(run, ("systemctl", "--user")) == "status 4"


def test_without_a_supervisor_it_says_what_to_run(home: Home) -> None:
    """Nothing is written where there is none; one that does not answer is told so, with words."""
    ran = _service(home, "install", own=f"{home.path}/own.sock")
    assert (ran.status, _files(home)) == (1, [])
    assert "memd does not run as a service: there is no systemctl" in ran.out
    assert "-P -m memd serve" in ran.err
    assert "the service does not see MEMD_SOCKET" in ran.err
    supervisor = Supervisor(home)
    supervisor.refuse("show-environment")
    ran = _service(home, "install", path=supervisor.path)
    assert ran.status == 1
    assert "memd does not run as a service: it says no" in ran.out
    assert "systemctl --user enable --now memd.socket memd.service" in ran.err
    assert _files(home) == ["memd.service", "memd.socket"]
    answer = _service(home, "install", "--json", path=supervisor.path).json
    assert (answer["started"], answer["problem"]) == (False, "it says no")
    ran = _service(home, "install", "--no-enable")
    assert (ran.status, ran.out, ran.err) == (0, "no file was written anew\n", "")
