"""``make fuzz``: doors fuzzed one after the other, each in a process with bounds.

``python -m tools.fuzz [NAME...] [--minutes N] [--keep]``: the minutes are those of all together.
What is found lies in ``build/fuzz/NAME``: a log, the corpus, which a later run goes on with, and
inputs that broke a promise. ``--keep`` writes a small corpus of each into the repository instead.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.fuzz import keeping
from tests.fuzz.targets import NAMES

_ROOT = Path(__file__).parents[1]
_GRACE_SECONDS = 90  # for imports with instruments, and the inputs to begin with
_IN_MEMORY = "/dev/shm"  # noqa: S108 - a folder of our own in it; a disk would be the slowest part
_RUNS = re.compile(r"stat::number_of_executed_units: +(\d+)")
_REACHED = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


def main() -> int:
    """Fuzz, print a line for each door, and return 1 where a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--minutes", type=float, default=5.0, help="of all together (5)")
    parser.add_argument("--keep", action="store_true", help="write the corpus into the repository")
    options = parser.parse_args()
    names = [name.replace("-", " ") for name in options.name] or list(NAMES)
    if unknown := set(names) - set(NAMES):
        parser.error(f"no such door: {', '.join(sorted(unknown))}")
    if options.keep:
        for name in names:
            print(keeping.keep(name, _folder(name) / "corpus"), flush=True)
        return 0
    seconds = max(1, int(options.minutes * 60 / len(names)))
    whole = [_fuzz(name, seconds) for name in names]
    return 0 if all(whole) else 1


def _folder(name: str) -> Path:
    return _ROOT / "build" / "fuzz" / name.replace(" ", "-")


def _fuzz(name: str, seconds: int) -> bool:
    """Fuzz one door, print what came of it, and return whether all its promises held."""
    folder = _folder(name)
    for part in ("corpus", "seeds"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*-*"))
    place = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    command = [sys.executable, "-m", "tests.fuzz.child", name, str(seconds), str(folder)]
    with tempfile.TemporaryDirectory(prefix="memd-", dir=place) as scratch:
        # A child that was ended leaves its files behind; all lie in a folder that goes afterwards.
        environ = {**os.environ, "TMPDIR": scratch, "HOME": scratch}
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                command,
                cwd=_ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            with suppress(subprocess.TimeoutExpired):
                process.wait(2 * seconds + 2 * _GRACE_SECONDS)
            process.kill()
            status = process.wait()
    crashes = sorted(set(folder.glob("*-*")) - before)
    said = (folder / "log").read_text(errors="replace")
    runs, reached = _RUNS.search(said), _REACHED.findall(said)
    count = int(runs[1]) if runs else 0
    cover = f", {reached[-1][0]} branches reached" if reached else ", by chance alone"
    broken = status != 0 or bool(crashes)
    told = f"status {status}, see {folder / 'log'}" if broken else "0 promises broken"
    print(f"{name}: {count:,} inputs in {seconds} s{cover}, {told}", flush=True)
    for crash in crashes:
        print(f"    {crash}: keep it, with a name, in tests/fuzz/crashes/{folder.name}/")
    return not broken


if __name__ == "__main__":
    sys.exit(main())
