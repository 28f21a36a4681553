"""Running memctl inside the test, with streams of the test's own."""

import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from memd.cli.arguments import parser
from memd.cli.invocation import Invocation, Surroundings
from memd.cli.running import run
from tests.cli.home import Home
from tests.support.daemon import memctl_command


class Stream(io.StringIO):
    """A text stream that can claim to be a terminal."""

    def __init__(self, text: str = "", *, terminal: bool = False) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        """Whether it claims to be a terminal."""
        return self._terminal


@dataclass(frozen=True)
class Ran:
    """The end of a run."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def surroundings(
    home: Home, stdin: str = "", *, terminal: bool = False, **environ: str
) -> Surroundings:
    """Return what a process in this HOME has around it."""
    return Surroundings(
        {**home.environ, **environ},
        home.path,
        Stream(stdin),
        Stream(terminal=terminal),
        Stream(terminal=terminal),
    )


def memctl(
    home: Home, *arguments: str, stdin: str = "", terminal: bool = False, **environ: str
) -> Ran:
    """Run one command line in the home's project; no daemon is started."""
    around = surroundings(home, stdin, terminal=terminal, **environ)
    with chdir(home.cwd):
        status = run(["--no-start", *arguments], around)
    assert isinstance(around.stdout, Stream)
    assert isinstance(around.stderr, Stream)
    return Ran(status, around.stdout.getvalue(), around.stderr.getvalue())


class Following:
    """A command line that goes on, as a process."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: TextIO) -> None:
        self.process = process
        self.output = output

    def lines(self, count: int) -> list[str]:
        """Return the next lines of its output, once they are there."""
        return [self.output.readline().rstrip("\n") for _ in range(count)]

    def ended(self, number: signal.Signals | None = None) -> int:
        """Return its status once it has ended, by a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def following(
    home: Home, *arguments: str, pipe: tuple[int, int] | None = None
) -> Iterator[Following]:
    """Run a command line that goes on, as a process; end it with the block.

    Its output goes through ``pipe``, a new one unless given.
    """
    reading, writing = pipe or os.pipe()
    command = memctl_command("--cwd", home.cwd, "--no-start", *arguments)
    environ = dict(home.environ)
    with (
        os.fdopen(reading) as output,
        subprocess.Popen(
            command, env=environ, stdout=writing, stderr=subprocess.DEVNULL
        ) as process,
    ):
        os.close(writing)
        try:
            yield Following(process, output)
        finally:
            process.kill()


def invocation(home: Home, *arguments: str, terminal: bool = False, **environ: str) -> Invocation:
    """Return an invocation that was not run."""
    options = parser().parse_args(["--cwd", home.cwd, "--no-start", *arguments])
    return Invocation(options, surroundings(home, terminal=terminal, **environ))
