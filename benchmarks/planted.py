"""Memories with planted facts, to see what a dream does to them; always the same ones.

Each fact is a sentence that stands in one place, or in one place and its copies. Words and numbers
are drawn from a seed, so what has to be found afterwards is known by construction.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

_SEED = 41
_WRITTEN = 1_772_450_000  # 2026-03-02, a Monday
_DAY = 86_400
_SYSTEMS = (
    "billing gateway|search cluster|invoice worker|mobile client|audit ledger|session cache|"
    "deploy pipeline|report exporter|image resizer|mail relay|token vault|price engine|"
    "shipping tracker|fraud model|chat bridge|backup runner|metrics store|feature board|"
    "partner portal|tax calculator|login service|video encoder|queue broker|catalogue index|"
    "refund desk|alert router|schema registry|feed reader|print server|map renderer|"
    "loyalty scheme|contract editor|batch scheduler|sensor hub|survey builder|ticket inbox|"
    "payroll bridge|domain proxy|sandbox fleet|archive shelf|review queue|calendar sync|"
    "voice assistant|coupon factory|badge printer|stock forecast|press kit|travel planner|"
    "recipe finder|parking meter|library desk|garden monitor|weather cache|music player|"
    "photo album|crash collector|license server|puzzle club|radio tower|ferry timetable"
)
_PEOPLE = "Ana Bo Cem Dina Eli Fay Gus Hana Ivo Jun Kai Lea Mo Nia Oto Pia Rui Sol Tea Uma"
_PLACES = "staging production sandbox canary Lisbon Oslo Kyoto Quito"
_TYPES = ("user", "feedback", "project", "reference")
_ASPECTS: tuple[tuple[str, str], ...] = (
    ("The {system} listens on port {number} in {place}.", "which port does the {system} use"),
    (
        "{person} decides what goes into the {system} every {number} days.",
        "who decides on {system}",
    ),
    ("Requests to the {system} time out after {number} seconds in {place}.", "{system} time out"),
    ("The {system} keeps its logs for {number} days under `{name}.log`.", "{system} logs kept"),
    ("Whoever restarts the {system} tells {person} within {number} minutes.", "restart {system}"),
    ("The budget of the {system} is {number} euros and {person} signs it.", "budget of {system}"),
)
_CHINESE = (
    ("{name}的端口是{number}。", "{name}的端口"),
    ("{name}由{person}负责到第{number}周。", "{name}由谁负责"),
    ("{name}的超时是{number}秒。", "{name}的超时"),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How many files of each kind; a copy is of a plain memory, a pair is two files."""

    plain: int = 56
    exact: int = 12
    near: int = 24
    pairs: int = 8
    dated: int = 14
    linked: int = 12
    chinese: int = 6
    code: int = 5
    damaged: int = 3
    mendable: int = 2


SMALL = Shape(12, 3, 8, 7, 3, 4, 2, 2, 1, 1)


@dataclass(frozen=True, slots=True)
class Fact:
    """What was planted: the sentence, a question about it, and where.

    ``apart`` is one that another memory denies, ``by_hand`` a line of the index.
    """

    text: str
    question: str
    path: str
    apart: bool = False
    by_hand: bool = False


@dataclass(slots=True)
class Planted:
    """A directory: files with their bytes and times, facts, copies by their original, links.

    ``pairs`` are files that deny each other. ``links`` are what was linked to, by the file that
    the link stands in.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    copies: dict[str, list[str]] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    by_hand: tuple[str, ...] = ()

    def write(self, directory: str) -> None:
        """Put the files into a directory, with their times."""
        for path, content in self.files.items():
            with open(f"{directory}/{path}", "wb") as file:
                file.write(content)
            os.utime(f"{directory}/{path}", (self.times[path], self.times[path]))


def plant(shape: Shape = Shape()) -> Planted:
    """Return the directory of a shape; 150 memories with 400 facts unless said otherwise."""
    return _Gardener(shape).planted


class _Gardener:
    """Makes the files one after the other."""

    def __init__(self, shape: Shape) -> None:
        self.planted = Planted()
        self._draw = Random(_SEED)  # noqa: S311 - the same on every run is the point
        self._systems = self._names()
        self._hooks: dict[str, str] = {}
        plain = [self._plain(number) for number in range(shape.plain)]
        copies = [
            self._copy(plain[number], f"copy-{number}.md", number - shape.exact)
            for number in range(shape.exact + shape.near)
        ]
        for number in range(shape.pairs):
            self._pair(number)
        for number in range(shape.dated):
            self._dated(number)
        for number in range(shape.linked):
            self._linked(number, copies[-1 - number % len(copies)])
        for number in range(shape.chinese):
            self._chinese(number)
        for number in range(shape.code):
            self._code(number)
        for number in range(shape.damaged):
            self._broken(number, "\nthis line is no field", "damaged")
        for number in range(shape.mendable):
            self._broken(number, "", "mendable")
        self._index(plain)

    def _names(self) -> Iterator[str]:
        for prefix in ("", "old ", "new ", "spare ", "second "):
            for system in _SYSTEMS.split("|"):
                yield prefix + system

    def _put(self, path: str, kind: str, description: str, body: str) -> None:
        name = path.removesuffix(".md")
        head = f"name: {name}\ndescription: {description}\nmetadata:\n  type: {kind}"
        self._raw(path, f"---\n{head}\n---\n\n{body}\n")
        self._hooks[path] = description

    def _raw(self, path: str, content: str) -> None:
        self.planted.files[path] = content.encode()
        age = self._draw.randrange(_DAY * 9)
        self.planted.times[path] = _WRITTEN - age

    def _sentences(self, system: str, path: str, count: int) -> list[str]:
        """Plant facts about a system and return their sentences."""
        results = []
        for text, question in self._draw.sample(_ASPECTS, count):
            given = {
                "system": system,
                "name": system.replace(" ", "_"),
                "number": str(self._draw.randrange(100, 9_999)),
                "person": self._draw.choice(_PEOPLE.split()),
                "place": self._draw.choice(_PLACES.split()),
            }
            results.append(text.format(**given))
            self.planted.facts.append(Fact(results[-1], question.format(**given), path))
        return results

    def _plain(self, number: int) -> str:
        system, path = next(self._systems), f"plain-{number}.md"
        said = self._sentences(system, path, 4)
        shapes = (" ".join(said), "\n\n".join(said), "- " + "\n- ".join(said))
        kind = _TYPES[number % len(_TYPES)]
        self._put(path, kind, f"How the {system} is run and by whom", shapes[number % len(shapes)])
        return path

    def _copy(self, of: str, path: str, variant: int) -> str:
        """Make a copy; from ``variant`` 0 on a near-duplicate."""
        head, _, body = self.planted.files[of].decode().partition("\n---\n\n")
        body = body.strip()
        if variant >= 0:
            body = _VARIANTS[variant % len(_VARIANTS)](body)
        if variant >= 0 and variant % len(_VARIANTS) == len(_VARIANTS) - 1:
            body += " " + self._sentences(next(self._systems), path, 1)[0]
        self._raw(path, f"{head.replace(of[:-3], path[:-3])}\n---\n\n{body}\n")
        self._hooks[path] = self._hooks[of]
        self.planted.copies.setdefault(of, []).append(path)
        return path

    def _pair(self, number: int) -> None:
        system = next(self._systems)
        paths = f"left-{number}.md", f"right-{number}.md"
        said = self._sentences(system, paths[0], 3)
        for path, text in zip(paths, _DENIALS[number % len(_DENIALS)], strict=True):
            reported = text.format(system=system)
            self.planted.facts.append(Fact(reported, f"{system} rule", path, apart=True))
            self._put(
                path, "reference", f"What holds for the {system}", " ".join([*said, reported])
            )
        self.planted.pairs.append(paths)

    def _dated(self, number: int) -> None:
        system, path = next(self._systems), f"dated-{number}.md"
        said = self._sentences(system, path, 2)
        when = ("on Thursday", "tomorrow", "next week", "in 3 days", "by Friday")[number % 5]
        said.append(f"The freeze of the {system} begins {when} at {number} o'clock.")
        self.planted.facts.append(Fact(said[-1], f"when does the freeze of {system} begin", path))
        self._put(path, "project", f"The freeze of the {system}", "\n\n".join(said))

    def _linked(self, number: int, target: str) -> None:
        system, path = next(self._systems), f"linked-{number}.md"
        said = self._sentences(system, path, 3)
        link = f"[more]({target})" if number % 2 else f"[[{target.removesuffix('.md')}]]"
        kind = ("project", "reference", "reference", "feedback")[number % 4]
        body = "\n\n".join([*said, f"See {link}."])
        self._put(path, kind, f"The {system} and its neighbours", body)
        self.planted.links[path] = target

    def _chinese(self, number: int) -> None:
        path, name = f"chinese-{number}.md", f"系统{'甲乙丙丁戊己庚辛'[number]}"
        said = []
        for text, question in _CHINESE:
            given = {
                "name": name,
                "number": str(self._draw.randrange(100, 9_999)),
                "person": self._draw.choice(_PEOPLE.split()),
            }
            said.append(text.format(**given))
            self.planted.facts.append(Fact(said[-1], question.format(**given), path))
        self._put(path, "project", f"{name}的约定", "".join(said))

    def _code(self, number: int) -> None:
        system, path = next(self._systems), f"code-{number}.md"
        said = self._sentences(system, path, 3)
        line = (
            f"make {system.replace(' ', '-')} RETRIES={self._draw.randrange(100, 999)} # by Friday"
        )
        self.planted.facts.append(Fact(line, f"make {system} retries", path))
        body = f"{said[0]}\n\n```sh\n{line}\n```\n\n{said[1]} {said[2]}"
        self._put(path, "project", f"How to build the {system}", body)

    def _broken(self, number: int, line: str, stem: str) -> None:
        """Make a file whose frontmatter YAML refuses; with a ``line`` memd refuses it as well."""
        system, path = next(self._systems), f"{stem}-{number}.md"
        said = self._sentences(system, path, 3)
        head = f"name: {path[:-3]}\ndescription: note: the {system}{line}\ntype: reference"
        self._raw(path, f"---\n{head}\n---\n\n{' '.join(said)}\n")
        self._hooks[path] = f"note on the {system}"

    def _index(self, plain: Sequence[str]) -> None:
        reported = ("The flag week is number 4711 this year.", "Nobody reads the wiki since 2019.")
        for text in reported:
            self.planted.facts.append(Fact(text, text, "MEMORY.md", by_hand=True))
        self.planted.by_hand = (
            "# Where everything is",
            *reported,
            f"Begin with [this]({plain[0]}).",
        )
        lines = [*self.planted.by_hand, ""]
        unlisted = set(list(self._hooks)[::25])
        lines += [f"- [{p[:-3]}]({p}) — {h}" for p, h in self._hooks.items() if p not in unlisted]
        lines.append("- [Long gone](long-gone.md) — a file that memd never saw")  # goes
        self.planted.files["MEMORY.md"] = ("\n".join(lines) + "\n").encode()
        self.planted.times["MEMORY.md"] = _WRITTEN


def _emphasised(body: str) -> str:
    return body.replace(" port ", " **port** ").replace(" tells ", " *tells* ")


def _turned(body: str) -> str:
    """Return the sentences in another order, as a list."""
    parts = [part.strip("- ") for part in body.replace("\n", " ").split(". ")]
    return "- " + "\n- ".join(part.rstrip(".") + "." for part in reversed(parts) if part)


def _bullets(body: str) -> str:
    return body.replace("- ", "* ") if body.startswith("- ") else "* " + body


_VARIANTS: tuple[Callable[[str], str], ...] = (
    _emphasised,
    str.upper,
    _turned,
    _bullets,
    lambda body: body.replace(".\n", "!\n").replace(" after ", ", after "),
    lambda body: f"{body}\n\n(noted 2026-02-27)",
    lambda body: body.replace("\n", "  \r\n"),
    lambda body: body,  # and one more sentence, which is another fact
)
_DENIALS = (
    ("The {system} speaks to replica 3.", "The {system} speaks to replica 5."),
    ("The {system} runs on Postgres here.", "The {system} runs on Maria here."),
    ("The {system} is never restarted.", "The {system} is restarted."),
    ("The {system} is released on Monday.", "The {system} is released on Friday."),
    ("The {system} indents with tabs.", "The {system} indents with spaces."),
    ("The {system} flag is enabled.", "The {system} flag is disabled."),
    ("Tests of the {system} wait one hour.", "Tests of the {system} wait two hours."),
    ("The {system} calls `pull()` first.", "The {system} calls `push()` first."),
)
