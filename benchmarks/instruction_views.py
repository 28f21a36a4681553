"""What resolving instruction files costs (part of ``make bench-instructions``).

The claude view on a real disk, without socket and daemon: how long it takes beside one ``stat`` of
each file that it lists, for trees that people have and for such as somebody made to do harm; and
whether twice the text takes twice the time, for what parsers are known to be slow at. Nothing here
fails; the aims stand beside the figures.
"""

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.measures import each, least, table
from memd.instructions import includes, patterns, rules
from memd.instructions.disk import RealDisk
from memd.instructions.loading import MISSING
from memd.instructions.values import View, ViewRequest
from memd.instructions.views import VIEWS

_TEXT = "Use the `name` of the thing and **not** of its place.\n" * 40
_TRIES = 20
_FEW = 3  # of what takes long
_LONG = 100.0  # ms
_HALF = 512 * 1024
_UNITS = {
    "line ends": "\n",
    "paragraphs": "a\n\n",
    "headings": "# @a\n",
    "items of a list": "- a\n  b\n\n  c\n",
    "items in items": "- - - - - - - a\n",
    "quotations": "> > > > > > > a\n",
    "emphasis": "*@a _@b **c** ",
    "ticks": "` `` ```  @b\n",
    "brackets": "[@a](",
    "tags": "<a <b @c ",
    "comments": "x <!-- @a\n\n",
    "fences": "```\n~~~\n@a\n",
}


def request(folder: Path, touched: tuple[str, ...] = ()) -> ViewRequest:
    """Return a request for a project in a folder of its own."""
    home, cwd = str(folder / "home"), str(folder / "project")
    return ViewRequest(
        cwd=cwd,
        root=cwd,
        home=home,
        config=f"{home}/.claude",
        codex=f"{home}/.codex",
        gemini=f"{home}/.gemini",
        managed=f"{home}/managed",
        touched=touched,
    )


def write(folder: Path, name: str, text: str) -> None:
    """Write a file of the project."""
    path = folder / "project" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def usual(folder: Path, count: int) -> ViewRequest:
    """Make a project with a CLAUDE.md that includes two files, and rules."""
    write(folder, "CLAUDE.md", f"{_TEXT}See @docs/a.md and @docs/b.md too.\n")
    for name in "ab":
        write(folder, f"docs/{name}.md", _TEXT)
    for number in range(count - 3):
        write(folder, f".claude/rules/{number % 10}/{number}.md", f"# Rule {number}\n{_TEXT}")
    return request(folder)


def many_rules(folder: Path) -> ViewRequest:
    """Make a project with 10,000 rules that have conditions, and touch 200 files."""
    for number in range(10_000):
        head = f"---\npaths:\n  - src/{number}/**/*.ts\n---\n"
        write(folder, f".claude/rules/{number:05}.md", f"{head}Rule {number}\n")
    return request(folder, tuple(f"src/{number}/a/b/c.ts" for number in range(200)))


def bomb(folder: Path) -> ViewRequest:
    """Make 1,000 files that include all of them."""
    everything = "".join(f"@f{number}.md\n" for number in range(1000))
    for number in range(1000):
        write(folder, f"f{number}.md", everything)
    write(folder, "CLAUDE.md", everything)
    return request(folder)


def huge(folder: Path) -> ViewRequest:
    """Make files of 1 MiB of what takes longest, FIFOs, and a file of 1 GiB."""
    for number in range(20):
        write(folder, f".claude/rules/{number:02}.md", "- a\n" * (_HALF // 2 - 8) + "@x <!--")
        os.mkfifo(folder / "project/.claude/rules" / f"{number:02}-pipe.md")
    write(folder, "CLAUDE.md", "")
    os.truncate(folder / "project/CLAUDE.md", 1 << 30)
    return request(folder)


def row(name: str, make: Callable[[Path], ViewRequest], aim: str) -> tuple[str, ...]:
    """Return what a tree takes: the first time, then, and beside a stat of each listed file."""
    with tempfile.TemporaryDirectory() as top:
        wanted, disk = make(Path(os.path.realpath(top))), RealDisk()
        resolve = VIEWS[View.CLAUDE]
        files = resolve(wanted, RealDisk()).files
        paths = [file.path for file in files if file.why_not != MISSING]
        cold = min(each(lambda _: resolve(wanted, RealDisk()), _FEW).times)
        resolve(wanted, disk)
        warm = least(lambda: resolve(wanted, disk), _TRIES if cold < _LONG else _FEW)
        stats = least(lambda: [os.lstat(path) for path in paths], _TRIES)
    figures = f"{cold:.1f} ms", f"{warm:.1f} ms", f"{warm / stats:.1f}"
    return name, f"{len(files):,}", *figures, aim


def busy(act: Callable[[], object]) -> float:
    """Return the shortest processor time of some tries in ms, which a busy machine leaves alone."""
    times = []
    for _ in range(_FEW):
        begun = time.process_time()
        act()
        times.append((time.process_time() - begun) * 1000)
    return min(times)


def linear() -> tuple[str, ...]:
    """Return how many times longer 1 MiB takes than half of it at most, and the longest time."""
    ratios, longest = dict[str, float](), 0.0
    for name, unit in _UNITS.items():
        half = unit * (_HALF // len(unit)) + "@x <!--"
        times = [busy(partial(includes.parsed, text)) for text in (half, half + half)]
        ratios[name] = times[1] / times[0]
        longest = max(longest, times[1])
    worst = max(ratios, key=lambda name: ratios[name])
    return f"{ratios[worst]:.2f} ({worst})", f"{longest:.0f} ms"


def pattern() -> str:
    """Return how long the head of a rule with a pattern of 64 KiB takes."""
    text = f"---\npaths: '{'**/a*' * 13_107}'\n---\nText.\n"
    seconds = least(lambda: rules.compile_patterns(rules.head(text)), _TRIES)
    longest = patterns.compile_pattern(("[ab]*?" * 80)[:240])
    fits = least(lambda: patterns.fits([longest], "ab/" * 1000), _TRIES)
    return f"{seconds:.2f} ms; the slowest glob on a path of 3,000 characters {fits:.2f} ms"


def main() -> None:
    """Measure and print."""
    heading = ("tree", "listed", "first", "again", "in stats", "aim")
    rows = [
        heading,
        row("20 files", lambda folder: usual(folder, 20), "2 ms again"),
        row("200 files", lambda folder: usual(folder, 200), "50 ms first"),
        row("10,000 rules, 200 files touched", many_rules, "1 s"),
        row("1,000 files that include all", bomb, "1 s"),
        row("20 MiB of rules, FIFOs, 1 GiB", huge, "1 s"),
    ]
    print(table(rows))
    ratio, longest = linear()
    print(f"1 MiB beside half of it, at most {ratio}; the longest {longest}")
    print(f"a pattern of 64 KiB {pattern()}")


if __name__ == "__main__":
    main()
