"""A hook that has lost memd, or anything else, never keeps its user from working."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memd.client.launch import connect
from memd.testing.scripted_daemon import ScriptedDaemon
from tests.promises import installed_hook
from tests.promises.installed_hook import BREAKAGES, SHORTAGES, Installed, installed

ANSWER = {"hookSpecificOutput": {"additionalContext": "found"}}
NOBODY = 65534
SECONDS = 60.0


@pytest.fixture(name="hook")
def _hook() -> Iterator[Installed]:
    """Install memd and set up its hook."""
    with installed() as made:
        yield made


def harmless(done: "subprocess.CompletedProcess[bytes]") -> bool:
    """Return whether a client would go on as if there were no hook."""
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_command_of_the_settings_brings_memories(hook: Installed) -> None:
    """With everything in its place the daemon's answer comes out, in any POSIX shell."""
    with ScriptedDaemon(hook.home.places.socket, {"hook": ANSWER}) as daemon:
        assert b'"found"' in hook.run().stdout
        for shell in ("dash", "bash", "busybox"):
            if results := shutil.which(shell):
                again = "sh -c" if shell == "busybox" else "-c"
                done = subprocess.run(
                    [results, *again.split(), hook.command],
                    input=b"{}",
                    env=dict(hook.home.environ) | {"MEMD_HOOK_DEADLINE_MS": "10000"},
                    capture_output=True,
                    check=True,
                )
                assert b'"found"' in done.stdout
    assert set(daemon.methods) == {"hook"}


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: str(one.__name__))
def test_whatever_is_missing_the_prompt_goes_on(
    hook: Installed, breakage: Callable[[Installed], None]
) -> None:
    """Nothing is printed and the status is 0, for root, for a user without rights, without PATH."""
    breakage(hook)
    assert harmless(hook.run())
    assert harmless(hook.run(environ={"PATH": "/nowhere"}))
    if os.geteuid() == 0:
        assert harmless(hook.run(user=NOBODY))


@pytest.mark.parametrize("shortage", SHORTAGES[1:])
def test_whatever_the_system_lacks_the_prompt_goes_on(hook: Installed, shortage: str) -> None:
    """No disk, descriptors, memory, streams or home: the status is 0 and no error is seen."""
    done = hook.run(before=shortage)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run it as another user")
def test_without_processes_the_prompt_goes_on(hook: Installed) -> None:
    """A shell that cannot fork ends with 2 by itself; the hook's does not."""
    assert harmless(hook.run(before="ulimit -u 0 2>/dev/null || ulimit -p 0", user=NOBODY))


@pytest.mark.parametrize("gone", [installed_hook.package_gone, installed_hook.installation_gone])
def test_without_memd_nothing_is_started_and_the_log_tells_once(
    hook: Installed, gone: Callable[[Installed], None]
) -> None:
    """An orphaned hook says one time how to remove it, and no daemon comes up."""
    gone(hook)
    for _ in range(2):
        assert harmless(hook.run(environ={"MEMD_HOOK_NO_START": "0"}))
        os.unlink(f"{hook.home.places.state_dir}/hook-start")
    words = Path(hook.home.places.log).read_text()
    assert words.count("memd is not installed any more") == 1
    assert str(hook.hook) in words
    assert "memctl setup claude-code --remove" in words
    assert not os.path.exists(hook.home.places.socket)
    assert not os.path.exists(hook.home.places.lock)


def test_the_hook_starts_a_daemon_that_refreshes_it(hook: Installed) -> None:
    """One way to start: memd's own launch; the daemon brings an older hook to its version."""
    current = hook.hook.read_bytes()
    hook.hook.write_bytes(current + b"# another version\n")
    environ = {"MEMD_HOOK_NO_START": "0", "ANTHROPIC_API_KEY": "sk-canary", "CLAUDECODE": "1"}
    assert harmless(hook.run(environ=environ))
    with connect(hook.home.places, hook.home.environ, name="t", deadline=SECONDS) as client:
        results = client.call("status")
        assert results["model"]["configured"] is False
        if os.path.exists("/proc"):
            assert b"canary" not in Path(f"/proc/{results['pid']}/environ").read_bytes()
        assert hook.hook.read_bytes() == current
        client.call("shutdown")
        subprocess.run(["flock", hook.home.places.lock, "true"], check=True, timeout=SECONDS)
