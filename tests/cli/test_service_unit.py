"""The units, and what the supervisors are told."""

import configparser
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from memd.base.errors import Refused
from memd.base.limits import DRAIN_SECONDS
from memd.cli import service_unit

ROOT = Path(service_unit.UNITS).parents[2]
PYTHON = '/opt/my "py"/100%\n/bin/python'
# Options that keep a user's unit from starting, or do nothing there.
HARMFUL = {
    "PrivateDevices",
    "ProtectClock",
    "ProtectKernelLogs",
    "CapabilityBoundingSet",
    "DynamicUser",
    "ProtectSystem",
    "PrivateTmp",
    "PrivateNetwork",
    "StateDirectory",
    "LogsDirectory",
    "RuntimeDirectory",
}


def _unit(content: bytes) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(content.decode())
    return parser


@pytest.mark.parametrize("name", ["memd.socket", "memd.service", "dev.memd.memd.plist"])
def test_the_repository_shows_what_the_package_brings(name: str) -> None:
    """The folders for packagers hold the package's own templates, byte for byte."""
    folder = "launchd" if name.endswith(".plist") else "systemd"
    shown = ROOT / folder / name
    if not shown.exists():
        pytest.skip("this is an installed package, without the repository around it")
    assert shown.read_bytes() == (Path(service_unit.UNITS) / name).read_bytes()


def test_systemd_units_are_what_works() -> None:
    """Socket and service fit together, name this Python, and hold no option that harms."""
    service = service_unit.systemd(PYTHON, {"XDG_CONFIG_HOME": "/c"}, "/h")
    socket_file, service_file = service.files
    assert socket_file == "/c/systemd/user/memd.socket"
    socket = _unit(service.files[socket_file])
    assert socket["Socket"]["ListenStream"] == "%t/memd/memd.sock"
    assert (socket["Socket"]["SocketMode"], socket["Socket"]["DirectoryMode"]) == ("0600", "0700")
    unit = _unit(service.files[service_file])
    expected = '"/opt/my \\"py\\"/100%%\\n/bin/python" -P -m memd serve'
    assert unit["Service"]["ExecStart"] == expected
    assert unit["Service"]["Type"] == "notify"
    assert unit["Unit"]["Requires"] == "memd.socket"
    assert float(unit["Service"]["TimeoutStopSec"]) > DRAIN_SECONDS
    starts = float(unit["Unit"]["StartLimitIntervalSec"]) / float(unit["Service"]["RestartSec"])
    assert starts < float(unit["Unit"]["StartLimitBurst"])  # no crash leaves it failed for good
    assert not HARMFUL & set(unit["Service"])
    for content in service.files.values():
        assert service_unit.MARK.encode() in content


def test_a_program_that_answers_for_a_model_has_room() -> None:
    """Its service allows code that is made at run time, and more memory and tasks."""
    wide = service_unit.systemd(PYTHON, {}, "/h", runs_program=True)
    unit = _unit(wide.files["/h/.config/systemd/user/memd.service"])["Service"]
    assert "MemoryDenyWriteExecute" not in unit
    assert (unit["MemoryMax"], unit["TasksMax"]) == ("4G", "512")
    narrow = service_unit.systemd(PYTHON, {}, "/h")
    before = _unit(narrow.files["/h/.config/systemd/user/memd.service"])["Service"]
    assert set(before) - set(unit) == {"MemoryDenyWriteExecute"}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """The units that are installed pass the supervisor's own check without a word."""
    python = tmp_path / "my py 100%" / "python"
    python.parent.mkdir()
    python.touch(mode=0o755)
    service = service_unit.systemd(str(python), {"XDG_CONFIG_HOME": str(tmp_path)}, "/h")
    written = service_unit.write(service)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", *written],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "memd" in line]
    assert (done.returncode, ours) == (0, [])


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """A unit that somebody else wrote is neither replaced nor removed."""
    service = service_unit.systemd("/p", {}, str(tmp_path))
    foreign = Path(tuple(service.files)[1])
    foreign.parent.mkdir(parents=True)
    foreign.write_text("[Unit]\n")
    with pytest.raises(Refused, match=r"memd\.service"):
        service_unit.write(service)
    assert os.listdir(foreign.parent) == ["memd.service"]
    assert service_unit.remove(service) == ()
    assert foreign.read_text() == "[Unit]\n"
