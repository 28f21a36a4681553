"""What a dream without a model does to planted facts: nothing may be lost, copies shall go.

A daemon in a HOME of its own dreams over 150 memories with 400 facts; then it dreams again, and
what it did is undone. Each line of the table has its bar; ``run`` tells whether all were met.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import measures
from benchmarks.background import folder
from benchmarks.measures import Line
from benchmarks.planted import Fact, Planted, Shape, plant
from memd.core import limits
from memd.documents import index
from memd.text.links import names, targets
from tests.support.daemon import Home, daemon_process, throw_away_home

_AT_MOST = 5  # a fact that comes later than this is not found
_LESS = 0.9  # of the copies shall be gone
_DATE = re.compile(r"\s?\((?:week of )?\d{4}-\d\d-\d\d\)")
_WORD = re.compile(r"[^\W_]+")
_INDEX = "MEMORY.md"
_LOCKS = ".consolidate"
_TEMPORARY = ".memd-"  # a file that was replaced a moment ago

Files = Mapping[str, tuple[bytes, int]]  # a directory: bytes and times in ns


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table: what was looked at, how it was and is, and whether that will do."""

    what: str
    before: str
    after: str
    bar: str
    met: bool


def run(shape: Shape | None = None) -> bool:
    """Plant, dream, look, print; return whether every bar was met."""
    checks = measure(plant(shape or Shape()))
    rows = [("what", "before", "after", "bar", "")]
    rows += [(c.what, c.before, c.after, c.bar, "" if c.met else "MISSED") for c in checks]
    print(measures.table(rows))
    return all(check.met for check in checks)


def measure(planted: Planted) -> tuple[Check, ...]:
    """Let a real daemon dream over what was planted, again, and take it back."""
    with throw_away_home() as home:
        directory = folder(home, home.project())
        os.makedirs(directory, mode=0o700)
        planted.write(directory)
        before = _files(directory)
        with daemon_process(home), Line(home.places.socket) as line:
            requested = _Asked(home, line)
            first = requested.ranks(planted.facts, before)
            dreamt = requested.dream()
            after = _files(directory)
            second = requested.ranks(planted.facts, after)
            again = requested.dream()
            twice = _files(directory)
            undone = requested.call("memory.undo", {"change": dreamt["change"]})
            back = _files(directory)
            last = requested.dream()
            kept = _files(directory)
    checks = [
        *_facts(planted, before, after),
        _results("facts found by search", first["search"], second["search"]),
        _results("facts found by prefetch", first["prefetch"], second["prefetch"]),
        *_copies(planted, before, after, dreamt),
        *_index(planted, before, after),
        _links(planted, before, after),
        _same("a second dream changes nothing", after, twice, again),
        _check("undo restores bytes and times", 0, len(_differing(before, back)), 0),
        _check("files that undo had to leave", 0, len(undone["conflicts"]), 0),
        _same("a dream after the undo changes nothing", back, kept, last),
    ]
    return tuple(checks)


class _Asked:
    """The daemon as it is asked about one project."""

    def __init__(self, home: Home, line: Line) -> None:
        self._cwd = f"{home.path}/project"
        self._line = line
        self._sessions = 0

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Ask about the project. Raises RefusedError."""
        return self._line.call(method, {"cwd": self._cwd} | params)

    def dream(self) -> Any:
        """Dream now, and return the report."""
        return self.call("dream", {"force": True, "wait": True})

    def ranks(self, facts: Sequence[Fact], files: Files) -> dict[str, int]:
        """Return how many facts are found among the first memories, by way of asking."""
        said = {path: _plain(content) for path, (content, _) in files.items()}
        counts = {"search": 0, "prefetch": 0}
        for fact in facts:
            wanted = _plain(fact.text.encode())
            for way, ask in (("search", self._search), ("prefetch", self._prefetch)):
                counts[way] += any(wanted in said.get(path, "") for path in ask(fact.question))
        return counts

    def _search(self, question: str) -> list[str]:
        hits = self.call("memory.search", {"query": question, "limit": _AT_MOST})["hits"]
        return [hit["path"] for hit in hits]

    def _prefetch(self, question: str) -> list[str]:
        self._sessions += 1
        requested = {"query": f"{question}?", "session_id": f"s{self._sessions}", "limit": _AT_MOST}
        memories = self.call("prefetch", requested)["memories"]
        return [os.path.basename(memory["path"]) for memory in memories]


def _facts(planted: Planted, before: Files, after: Files) -> list[Check]:
    plain = [fact for fact in planted.facts if not fact.apart]
    apart = [fact for fact in planted.facts if fact.apart]
    counts = [_stand(facts, files) for facts in (plain, apart) for files in (before, after)]
    memories = sum(path != _INDEX for path in before), sum(path != _INDEX for path in after)
    there = sum(all(path in after for path in pair) for pair in planted.pairs)
    return [
        Check("memories", str(memories[0]), str(memories[1]), "", met=True),
        _check("facts that nothing denies", counts[0], counts[1], len(plain)),
        _check("sides of contradictions", counts[2], counts[3], len(apart)),
        _check(
            "contradictions in files of their own", len(planted.pairs), there, len(planted.pairs)
        ),
    ]


def _stand(facts: Sequence[Fact], files: Files) -> int:
    """Return how many facts stand word for word in a memory, or in the index where they were."""
    memories = [_plain(content) for path, (content, _) in files.items() if path != _INDEX]
    by_hand = _plain(files[_INDEX][0])
    results = 0
    for fact in facts:
        wanted = _plain(fact.text.encode())
        results += any(wanted in text for text in ([by_hand] if fact.by_hand else memories))
    return results


def _copies(
    planted: Planted, before: Files, after: Files, report: Mapping[str, Any]
) -> list[Check]:
    """Count the copies that neither went nor are named: those of rules go only if exact."""
    named = [set(question["paths"]) for question in report.get("questions", ())]
    counts = []
    for files, pairs in ((before, []), (after, named)):
        groups = [[p for p in (of, *copies) if p in files] for of, copies in planted.copies.items()]
        doubted = [group for group in groups if not any(set(group) <= pair for pair in pairs)]
        counts.append(sum(max(0, len(group) - 1) for group in doubted))
    most = int(counts[0] * (1 - _LESS))
    bar = f"at most {most}"
    before_count, after_count = map(str, counts)
    what = "copies that nobody names"
    return [Check(what, before_count, after_count, bar, met=counts[1] <= most)]


def _index(planted: Planted, before: Files, after: Files) -> list[Check]:
    old, new = index.load(before[_INDEX][0]), index.load(after[_INDEX][0])
    fits = new.lines <= limits.INDEX_LINES and new.bytes <= limits.INDEX_BYTES
    was, now = (f"{load.lines} lines, {load.bytes} bytes" for load in (old, new))
    limit = f"{limits.INDEX_LINES} lines, {limits.INDEX_BYTES} bytes"
    content = after[_INDEX][0]
    own = "\n".join(line for line in content.decode().split("\n") if line not in planted.by_hand)
    named = [entry.path for entry in index.entries(own.encode())]
    memories = sorted(path for path in after if path != _INDEX)
    wrong = len(set(named) ^ set(memories)) + len(named) - len(set(named))
    lost = sum(line.encode() not in content.splitlines() for line in planted.by_hand)
    return [
        Check("index", was, now, limit, met=fits),
        _check("pointers that are wrong or missing", "", wrong, 0),
        _check("lines by hand that are not as they were", 0, lost, 0),
    ]


def _links(planted: Planted, before: Files, after: Files) -> Check:
    """Look at links to copies: each shall lead to a memory that is there."""
    counts = []
    for files in (before, after):
        named = frozenset[str]().union(*map(names, files))
        texts = {path: files[path][0].decode() for path in planted.links if path in files}
        led = (targets(text, path) for path, text in texts.items())
        counts.append(sum(not named.isdisjoint(results) for results in led))
    return _check("links that lead to a memory", counts[0], counts[1], len(planted.links))


def _results(what: str, before: int, after: int) -> Check:
    return Check(what, str(before), str(after), f"at least {before}", met=after >= before)


def _same(what: str, one: Files, two: Files, report: Mapping[str, Any]) -> Check:
    changed = len(_differing(one, two))
    met = not changed and report["change"] is None and not report.get("problems")
    return Check(what, "0 files", f"{changed} files", "0 files", met=met)


def _check(what: str, before: object, after: int, bar: int) -> Check:
    return Check(what, str(before), str(after), str(bar), met=after == bar)


def _differing(one: Files, two: Files) -> set[str]:
    return {path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}


def _files(directory: str) -> dict[str, tuple[bytes, int]]:
    results = {}
    for entry in os.scandir(directory):
        if entry.is_file() and not entry.name.startswith((_LOCKS, _TEMPORARY)):
            with open(entry.path, "rb") as file:
                results[entry.name] = (file.read(), entry.stat().st_mtime_ns)
    return results


def _plain(content: bytes) -> str:
    """Return the words of a text in order, without dates in brackets, case and dress."""
    text = _DATE.sub("", content.decode()).casefold()
    return f" {' '.join(_WORD.findall(text))} "
