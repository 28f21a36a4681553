"""The hook as a client's shell runs it: silent whatever is missing; the spool of what it kept."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.net.kit import PYTHON, Conversation, Home, Project, as_nobody, until
from tests.net.wire import SECONDS, Json

PORT = "which port has the zebra deploy"
SAID = "Remember: always run the integration tests against a real database."
HARMLESS = (0, "", "")


class Hook:
    """The hook that setup has put into a home's settings, and one session of a client.

    ``kind`` is native or python: what setup leaves with a C compiler and without one.
    """

    def __init__(self, home: Home, kind: str, project: Project | None = None) -> None:
        self.home = home
        done = home.memctl("--no-start", "setup", "claude-code", "--yes")
        assert done.returncode == 0, done.stderr
        self.folder = home.path / "h/.local/share/memd"
        if kind == "python":
            (self.folder / "python").unlink()
            (self.folder / "python").symlink_to((self.folder / "interpreter").readlink())
        assert (self.folder / "python").is_symlink() == (kind == "python")
        self.talk = Conversation(project or home.project(), "s1")
        settings = json.loads((home.claude / "settings.json").read_text())
        self.commands = {
            event: rows[0]["hooks"][0]["command"] for event, rows in settings["hooks"].items()
        }

    def payload(self, event: str, **members: Json) -> str:
        return json.dumps({**self.talk.payload, "hook_event_name": event, **members})

    def send(
        self, event: str, *, before: str = "", start: bool = False, **options: Any
    ) -> tuple[int, str, str]:
        """Run the command of an event after some shell commands; return all that comes of it."""
        environ = {"MEMD_HOOK_DEADLINE_MS": "10000", "MEMD_HOOK_NO_START": "" if start else "1"}
        options["environ"] = {**environ, **options.get("environ", {})}
        options.setdefault("input", self.payload(event, prompt=PORT))
        shell = options.pop("shell", "/bin/sh -c").split()
        done = self.home.run(*shell, f"{before}\n{self.commands[event]}", **options)
        return done.returncode, done.stdout, done.stderr

    def link(self, interpreter: str) -> None:
        """Let the links name another interpreter."""
        for path in (self.folder / "interpreter", self.folder / "python"):
            if path.is_symlink():
                path.unlink()
                path.symlink_to(interpreter)

    def spooled(self) -> list[Path]:
        """Return the files of the spool, the oldest first."""
        folder = self.home.state / "spool"
        return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture(params=["native", "python"])
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of hook; the native one where it can be compiled."""
    if request.param == "native" and not os.path.exists("/usr/bin/cc"):
        pytest.skip("no C compiler: /usr/bin/cc")
    return str(request.param)


@pytest.fixture
def hook(own: Home, kind: str) -> Hook:
    """Return the hook of a home without a daemon."""
    return Hook(own, kind)


def test_the_command_of_the_settings_brings_memories(own: Home, kind: str) -> None:
    """With everything in place the answer is printed, in any shell of POSIX, as one object."""
    project = own.start().project()
    project.write("zebra.md", "The zebra deploy port is 7001.", description="zebra deploy port")
    hook = Hook(own, kind, project)
    shells = ("/bin/sh -c", "dash -c", "bash -c", "busybox sh -c")
    for number, shell in enumerate(name for name in shells if shutil.which(name.split()[0])):
        talk = Conversation(project, f"s{number}")
        sent = json.dumps({**talk.payload, "prompt": PORT, "prompt_id": "p"})
        status, printed, errors = hook.send("UserPromptSubmit", shell=shell, input=sent)
        assert (status, errors) == (0, "")
        assert "7001" in json.loads(printed)["hookSpecificOutput"]["additionalContext"]
    for event in ("Stop", "PreCompact", "SessionEnd"):
        assert hook.send(event) == HARMLESS
    below = {"MEMD_MODEL_RUN": "x"}  # memd's own model answers in this process
    assert hook.send("UserPromptSubmit", environ=below) == HARMLESS
    large = hook.payload("UserPromptSubmit", prompt=PORT, x="y" * (4 << 20))
    assert hook.send("UserPromptSubmit", input=large) == HARMLESS


def test_a_daemon_at_another_socket_is_found(own: Home, kind: str, tmp_path: Path) -> None:
    """A hook whose runtime directory is not the daemon's asks the daemon that holds the lock."""
    project = own.start().project()
    project.write("zebra.md", "The zebra deploy port is 7001.", description="zebra deploy port")
    elsewhere = {"XDG_RUNTIME_DIR": str(tmp_path)}
    hook = Hook(own, kind, project)
    sent = hook.payload("UserPromptSubmit", prompt=PORT, prompt_id="p")
    status, printed, errors = hook.send("UserPromptSubmit", environ=elsewhere, input=sent)
    assert (status, errors) == (0, "")
    assert "7001" in printed
    own.stop()
    assert hook.send("UserPromptSubmit", environ=elsewhere, input=sent) == HARMLESS
    for text in (b"", b"null", b'{"socket": "', b'{"socket": "/nowhere"}', b"\xff" * 5000):
        (own.state / "memd.lock").write_bytes(text)
        assert hook.send("UserPromptSubmit", environ=elsewhere, input=sent) == HARMLESS, text


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _closed(path: Path) -> None:
    path.chmod(0)


def _broken(path: Path) -> None:
    path.unlink()
    path.write_text("#!/bin/sh\necho broken; echo broken >&2; exit 2\n")
    path.chmod(0o755)


BREAKAGES: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("hook.py", Path.unlink),
    ("hook.py", _empty),
    ("hook.py", _torn),
    ("hook.py", _folder),
    ("hook.py", _closed),
    ("hook_body.py", Path.unlink),
    ("hook_body.py", _torn),
    ("hook.c", Path.unlink),
    ("python", Path.unlink),
    ("python", _folder),
    ("python", _broken),
    ("interpreter", Path.unlink),
    ("interpreter", _broken),
    (".", shutil.rmtree),
)
SHORTAGES = (
    "ulimit -f 0",
    "ulimit -n 4",
    "ulimit -v 30000",
    "exec <&-",
    "exec >&-",
    "exec >/dev/full",
    "exec 2>&-",
    "unset HOME",
    "PATH=/nowhere; export PATH",
    "cd /; umask 0777",
)


def test_whatever_of_memd_is_missing_the_prompt_goes_on(hook: Hook) -> None:
    """Without its files, interpreter or rights the hook ends with 0 and prints nothing."""
    kept = hook.folder.with_name("kept")
    shutil.copytree(hook.folder, kept, symlinks=True)
    for name, breakage in BREAKAGES:
        breakage(hook.folder / name)
        assert hook.send("UserPromptSubmit") == HARMLESS, (name, breakage)
        assert hook.send("Stop", environ={"PATH": "/nowhere"}) == HARMLESS, (name, breakage)
        shutil.rmtree(hook.folder, ignore_errors=True)
        shutil.copytree(kept, hook.folder, symlinks=True)


def test_whatever_the_system_lacks_the_prompt_goes_on(hook: Hook) -> None:
    """Without disk, descriptors, memory, streams, home or PATH the status is 0, and no error."""
    for shortage in SHORTAGES:
        status, _, errors = hook.send("UserPromptSubmit", before=shortage)
        assert (status, errors) == (0, ""), shortage


def test_without_processes_the_prompt_goes_on(hook: Hook) -> None:
    """A shell that cannot fork ends with another status by itself; with the hook it does not."""
    command = f"ulimit -u 0 2>/dev/null || ulimit -p 0\n{hook.commands['UserPromptSubmit']}"
    done = as_nobody("/bin/sh", "-c", command, env=hook.home.environ, cwd="/", input="{}")
    assert (done.returncode, done.stdout, done.stderr) == HARMLESS


def test_the_line_of_codex_runs_in_any_login_shell(hook: Hook) -> None:
    """Codex hands the line to the person's own shell; it ends with 0, with memd and without."""
    assert hook.home.memctl("--no-start", "setup", "codex").returncode == 0
    hooks = json.loads((hook.home.path / "h/.codex/hooks.json").read_text())["hooks"]
    line = hooks["UserPromptSubmit"][0]["hooks"][0]["command"]
    environ = {"MEMD_HOOK_NO_START": "1"}
    for shell in filter(shutil.which, ("sh", "dash", "bash", "zsh", "fish", "tcsh")):
        assert line.startswith(": memd;")
        done = hook.home.run(shell, "-c", line, input=hook.payload("Stop"), environ=environ)
        assert (done.returncode, done.stdout, done.stderr) == HARMLESS, shell
    shutil.rmtree(hook.folder)
    done = hook.home.run("bash", "-c", line, input="{}", environ=environ)
    assert (done.returncode, done.stdout, done.stderr) == HARMLESS


@pytest.mark.full
def test_any_bytes_on_standard_input_are_harmless(hook: Hook) -> None:
    """An empty, torn or foreign payload is as good as none."""
    for sent in ("", " \n", "[1]", "hello", '{"a":', '{"cwd": "\\ud800"}'):
        assert hook.send("UserPromptSubmit", input=sent) == HARMLESS, sent
        assert hook.send("Stop", input=sent) == HARMLESS, sent


def test_a_start_can_be_forbidden(hook: Hook) -> None:
    """With MEMD_HOOK_NO_START=1 no daemon is started and only ends are remembered."""
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse"):
        assert hook.send(event) == HARMLESS
        assert hook.spooled() == []
    assert not Path(hook.home.socket).exists()


@pytest.mark.full
@pytest.mark.parametrize(
    "event",
    [
        "Stop",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("PreCompact", "SessionEnd")),
    ],
)
def test_an_end_without_a_daemon_is_kept(hook: Hook, event: str) -> None:
    """The place of the conversation goes to a private file of at most 4 KiB, without its words."""
    sent = hook.payload(event, last_assistant_message="the words " * 10_000)
    assert hook.send(event, input=sent) == HARMLESS
    (file,) = hook.spooled()
    assert (file.stat().st_mode & 0o777, file.stat().st_size <= 4096) == (0o600, True)
    assert file.parent.stat().st_mode & 0o777 == 0o700
    text = file.read_text()
    assert str(hook.talk.path) in text
    assert "the words" not in text


def test_the_spool_has_a_bound(hook: Hook) -> None:
    """Of more than 200 ends the oldest go, and the newest is kept."""
    folder = hook.home.state / "spool"
    folder.mkdir(parents=True)
    for number in range(250):
        (folder / f"{number:020}-1").write_text("{}")
    assert hook.send("Stop") == HARMLESS
    kept = hook.spooled()
    assert len(kept) <= 200
    assert str(hook.talk.path) in kept[-1].read_text()


def _learnt(hook: Hook) -> list[str]:
    """Return what the memories say once the spool is empty and a job has ended."""

    def at_rest() -> bool:
        jobs = hook.home.call("job.list")["jobs"]
        return not hook.spooled() and bool(jobs) and all(job["ended"] for job in jobs)

    until(at_rest, "what was kept is learnt")
    found = hook.home.call("memory.list", cwd=hook.talk.project.cwd)["memories"]
    return [memory["description"] for memory in found]


@pytest.mark.full
def test_what_was_kept_is_learnt_at_the_next_start(hook: Hook) -> None:
    """A turn that ended without a daemon is learnt from once the next daemon runs, one time."""
    hook.talk.user(SAID).assistant("Noted.")
    for event in ("Stop", "Stop", "SessionEnd"):
        assert hook.send(event) == HARMLESS
    hook.home.start()
    assert len(_learnt(hook)) == 1


def test_the_first_conversation_is_learnt_from(hook: Hook) -> None:
    """From nothing: the prompt gets no answer, a daemon starts, and the turn is learnt."""
    hook.talk.user(SAID).assistant("Noted.")
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        assert hook.send(event, start=True)[::2] == (0, ""), event
    until(hook.home.answers, "a daemon runs")
    assert len(_learnt(hook)) == 1


@pytest.mark.full
def test_many_first_hooks_start_one_daemon(hook: Hook) -> None:
    """Ten sessions at once bring up one daemon, which learns from each."""
    talks = [hook.talk.project.conversation(f"t{number}") for number in range(10)]
    environ = {**hook.home.environ, "MEMD_HOOK_DEADLINE_MS": "10000"}
    running = []
    for number, talk in enumerate(talks):
        talk.user(f"Remember: always use {number} spaces in file{number}.").assistant("ok")
        process = subprocess.Popen(
            ["/bin/sh", "-c", hook.commands["Stop"]], env=environ, stdin=subprocess.PIPE
        )
        running.append((process, json.dumps(talk.payload).encode()))
    for process, sent in running:
        process.communicate(sent, SECONDS)
        assert process.returncode == 0
    until(hook.home.answers, "a daemon runs")
    _learnt(hook)
    jobs = hook.home.call("job.list", limit=1000)["jobs"]
    sessions = {job["session"] for job in jobs if job["kind"] == "extract"}
    assert sessions == {talk.session for talk in talks}
    log = (hook.home.state / "memd.log").read_text()
    assert sum('"ready"' in line for line in log.splitlines()) == 1


@pytest.mark.full
def test_a_stopped_daemon_costs_no_memory(hook: Hook) -> None:
    """Below a daemon that hangs each event ends silently, and the turn is learnt afterwards."""
    hook.home.start()
    process = hook.home.process
    assert process is not None
    hook.talk.user(SAID).assistant("Noted.")
    process.send_signal(signal.SIGSTOP)
    try:
        for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
            assert hook.send(event, environ={"MEMD_HOOK_DEADLINE_MS": "300"}) == HARMLESS
    finally:
        process.send_signal(signal.SIGCONT)
    assert len(_learnt(hook)) == 1


def test_without_memd_the_log_says_once_how_to_remove_the_hook(hook: Hook) -> None:
    """If memd was removed first nothing is started, and memd.log names the command, one time."""
    base = hook.home.run(PYTHON, "-c", "import sys; print(sys.base_prefix)").stdout.strip()
    hook.link(f"{base}/bin/python3")  # it has no memd
    log = hook.home.state / "memd.log"
    for _ in range(2):
        assert hook.send("UserPromptSubmit", start=True) == HARMLESS
        until(lambda: log.exists() and "--remove" in log.read_text(), "the log has the line")
        (hook.home.state / "hook-start").unlink(missing_ok=True)
    assert log.read_text().count("memctl setup claude-code --remove") == 1
    assert not Path(hook.home.socket).exists()


def _held_open(hook: Hook, event: str) -> str:
    """Return what is printed for a payload whose pipe the client keeps open."""
    environ = {**hook.home.environ, "MEMD_HOOK_DEADLINE_MS": "2000"}
    command = ["/bin/sh", "-c", hook.commands[event]]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environ, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(hook.payload(event, prompt=PORT).encode())
        process.stdin.flush()
        printed = process.stdout.read()
        assert process.wait(SECONDS) == 0
    return str(printed, "utf-8")


@pytest.mark.full
def test_a_payload_counts_as_soon_as_it_is_whole(own: Home, kind: str) -> None:
    """A client that keeps the pipe open gets its answer all the same."""
    project = own.start().project()
    project.write("zebra.md", "The zebra deploy port is 7001.", description="zebra deploy port")
    assert "7001" in _held_open(Hook(own, kind, project), "UserPromptSubmit")


@pytest.mark.full
def test_the_newest_hook_file_comes_with_the_daemon(hook: Hook) -> None:
    """A daemon replaces the files of an older memd and compiles the hook; the lines stay."""
    file = hook.folder / "hook.py"
    current = file.read_bytes()
    file.write_bytes(current + b"# another version\n")
    hook.home.start()
    until(lambda: file.read_bytes() == current, "the file is replaced")
    is_native = os.path.exists("/usr/bin/cc")
    program = hook.folder / "python"
    until(lambda: program.is_symlink() != is_native, "the program is made anew")
    assert os.access(hook.folder / "python", os.X_OK)
