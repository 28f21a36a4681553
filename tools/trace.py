"""Which functions of memd run for one request: ``python -m tools.trace [-v]``.

A real daemon process records the calls between a request's bytes and its reply (for an extraction,
to the end of its job), once everything was used before. A table counts the distinct functions of
each request; ``-v`` names them, with how often each was called. A request, and a job that it
begins, may each look up the project once: a job is run from its row in the state file, perhaps by a
later daemon.
"""

import json
import os
import runpy
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import memd
from memd.client.launch import Client
from tests.support.daemon import Home, client, daemon_process, throw_away_home

_ROOT = str(Path(memd.__file__).parent)
_RECORD = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); "
_RECORD += "from tools.trace import record; record()"
_COMMAND = (sys.executable, "-c", _RECORD)
_WAIT_SECONDS = 20.0
_QUIET_SECONDS = 0.5  # after which what an earlier request began has ended
_OLD = 1_700_000_000
# What a request needs to know of its project.
LOOKUPS = (
    "projects/git.py:find_place",
    "projects/configuration.py:Configuration.current",
    "projects/projects.py:Projects.where",
)
_INNER = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>", "<module>")

Calls = Mapping[str, int]


class _NotAllSavedError(Exception):
    """The traced extraction did not save the memories that it was to save."""


class _Recorder:
    """Counts the functions that are called while it is switched on, in all threads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._on = False
        self._calls: Counter[str] = Counter()

    def hook(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count one call."""
        code = frame.f_code
        if self._on and event == "call" and code.co_filename.startswith(_ROOT):
            self._calls[f"{code.co_filename[len(_ROOT) + 1 :]}:{code.co_qualname}"] += 1

    def switch(self, _signal: int, _frame: object) -> None:
        """Begin to count, or write down what was counted."""
        self._on = not self._on
        if self._on:
            self._calls.clear()
            Path(f"{self._path}.on").touch()
        else:
            Path(f"{self._path}.new").write_text(json.dumps(self._calls), "utf-8")
            os.replace(f"{self._path}.new", self._path)


def record() -> None:
    """Run the daemon with a recorder; SIGUSR1 switches it on and off."""
    recorder = _Recorder(f"{os.environ['HOME']}/trace")
    signal.signal(signal.SIGUSR1, recorder.switch)
    threading.setprofile(recorder.hook)
    sys.setprofile(recorder.hook)
    sys.argv[1:] = []
    runpy.run_module("memd", run_name="__main__")


def main(arguments: list[str]) -> int:
    """Print the table; return the exit status."""
    with throw_away_home() as home, daemon_process(home, command=_COMMAND) as process:
        cwd = home.project()
        with client(home) as caller:
            _prepare(caller, home, cwd)
            for name, ask in _requests(caller, cwd).items():
                ask()  # everything is loaded and known
                time.sleep(_QUIET_SECONDS)
                with _recording(home, process.pid) as calls:
                    ask()
                _show(name, calls, verbose="-v" in arguments, looks=1 + (name == "extract"))
    return 0


def _requests(caller: Client, cwd: str) -> dict[str, Callable[[], object]]:
    number = iter(range(1_000))

    def session() -> str:
        return f"s{next(number)}"

    def extract() -> None:
        said = (
            "Remember that the staging host is box-{}.dev.",
            "Keep in mind that I prefer answer {} without lists.",
        )
        messages = [
            message
            for sentence in said
            for message in (
                {"role": "user", "content": sentence.format(next(number))},
                {"role": "assistant", "content": "Noted."},
            )
        ]
        request = {"cwd": cwd, "session_id": session(), "messages": messages, "wait": True}
        saved = caller.call("extract", request)["saved"]
        if len(saved) != len(said):
            raise _NotAllSavedError(saved)

    return {
        "load_prompt": lambda: caller.call("load_prompt", {"cwd": cwd}),
        "prefetch": lambda: caller.call(
            "prefetch", {"cwd": cwd, "session_id": session(), "query": "when is the merge freeze?"}
        ),
        "memory.write": lambda: caller.call(
            "memory.write", {"cwd": cwd, **_memory(f"fact {next(number)}")}
        ),
        "extract": extract,
    }


def _memory(description: str) -> dict[str, str]:
    slug = description.replace(" ", "-").lower()
    head = {"path": f"{slug}.md", "name": slug, "description": description}
    return head | {"type": "project", "body": "Of use."}


def _prepare(caller: Client, home: Home, cwd: str) -> None:
    for about in ("merge freeze begins on Thursday", "deploys go out on Tuesday"):
        caller.call("memory.write", {"cwd": cwd, **_memory(about)})
    for path in Path(home.path).glob("**/memory/*.md"):
        os.utime(path, (_OLD, _OLD))  # a file that was just saved is read twice


@contextmanager
def _recording(home: Home, pid: int) -> Iterator[Calls]:
    """Yield a mapping that holds the calls of the block once it has ended."""
    path = Path(home.path) / "trace"
    calls: dict[str, int] = {}
    path.unlink(missing_ok=True)
    _switch(pid, Path(f"{path}.on"))
    yield calls
    _switch(pid, path)
    calls.update(json.loads(path.read_text("utf-8")))
    Path(f"{path}.on").unlink()


def _switch(pid: int, done: Path) -> None:
    os.kill(pid, signal.SIGUSR1)
    until = time.monotonic() + _WAIT_SECONDS
    while not done.exists():
        if time.monotonic() > until:
            raise TimeoutError(done)
        time.sleep(0.01)


def _show(name: str, calls: Calls, *, verbose: bool, looks: int) -> None:
    """Print how many functions ran, and which look-ups ran more often than ``looks`` times."""
    functions = {f: times for f, times in calls.items() if not f.endswith(_INNER)}
    looked = {f: functions.get(f, 0) for f in LOOKUPS}
    again = ", ".join(f"{f} {times} times" for f, times in looked.items() if times > looks)
    print(f"{name}: {len(functions)} functions{f'; {again}' if again else ''}")
    for function, times in sorted(functions.items()) if verbose else ():
        print(f"  {times:>4} {function}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
