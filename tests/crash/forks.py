"""Kill -9 at every call that a core counts, two deaths deep.

Usage: ``forks.py <folder> <operation>``. One process imports everything once and forks a child per
kill; the child kills itself just before its k-th call. No thread and no open state file is there
when it forks. A body is written in small portions, so that torn ones are among the states. Prints
``{"points": …, "double": …, "calls": […], "bad": […]}``.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.crash.cases import Case, decision, make_case, restore
from tests.crash.core import Core, open_core
from tests.crash.operation import OPERATIONS
from tests.support.countdown import Countdown

PORTION = 300  # of bodies of up to 1,700 bytes

Work = Callable[[Core], object]


class Fatal(Countdown):
    """Kills this process where a countdown raises."""

    def step(self, name: str) -> None:
        """Count one call, and die when it is its turn."""
        self.names.append(name)
        if len(self.names) == self.fail_at:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(root: Path, work: Work, fail_at: int) -> list[str] | None:
    """Do the work in a child that dies at a call; return its calls if it came to its end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with suppress(BaseException), open_core(root) as core:
            fatal = Fatal(fail_at)
            work(core.through(fatal, PORTION))
            os.write(writer, json.dumps(fatal.names).encode())
            os._exit(0)
        os._exit(1)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the work failed by itself"
    return json.loads(said) if said else None


def sweep(case: Case) -> dict[str, object]:
    """Try every point, and after each of them every point of the recovery."""
    half = case.root.with_name("half")
    restore(case.template, case.root)
    calls = in_child(case.root, OPERATIONS[case.name], 0) or []
    bad: list[list[object]] = []
    double = 0
    for first in range(1, len(calls) + 2):
        restore(case.template, case.root)
        acknowledged = in_child(case.root, OPERATIONS[case.name], first) is not None
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(case.root, half)
        second, finished = 0, False
        while not finished:
            second += 1
            restore(half, case.root)
            finished = in_child(case.root, Core.recover, second) is not None
            double += not finished
            wrong = decision(case, acknowledged=acknowledged)
            if wrong:
                bad.append([first, second, wrong])
    return {"points": len(calls), "double": double, "calls": calls, "bad": bad}


def main() -> None:
    """Do what the arguments say."""
    folder, name = sys.argv[1:]
    print(json.dumps(sweep(make_case(name, Path(folder)))))  # noqa: T201 - its answer


if __name__ == "__main__":
    main()
