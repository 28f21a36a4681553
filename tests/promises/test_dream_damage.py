"""A dream without a model loses no fact, and what it did can be taken back to the byte."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.corpus import folder
from tests.support.daemon import client, daemon_process, throw_away_home

_SYSTEMS = tuple(
    f"{first} {second}"
    for first in ("billing", "search", "invoice", "mobile", "audit", "session")
    for second in ("gateway", "cluster", "worker", "ledger")
)
_FACTS = (
    "The {system} listens on port 4{number}7 in staging.",
    "Kai decides what goes into the {system} every {number} days.",
    "Requests to the {system} time out after 3{number} seconds.",
    "The budget of the {system} is 9{number}0 euros and Ana signs it.",
)
_COPIES: tuple[Callable[[str], str], ...] = (
    str,
    str.upper,
    lambda body: body.replace(" port ", " **port** "),
    lambda body: "- " + "\n- ".join(reversed(body.split("\n\n"))),
    lambda body: f"{body}\n\n(noted 2026-02-27)",
    lambda body: body.replace("\n", "  \r\n"),
)
_DENIALS = (
    ("The {system} speaks to replica 3.", "The {system} speaks to replica 5."),
    ("The {system} is never restarted.", "The {system} is restarted."),
    ("The {system} is released on Monday.", "The {system} is released on Friday."),
    ("The {system} flag is enabled.", "The {system} flag is disabled."),
)
_BY_HAND = "Nobody reads the wiki since 2019."
_WRITTEN = 1_772_450_000

Files = dict[str, tuple[bytes, int]]  # by name: bytes and time in ns


def plant(directory: Path) -> dict[str, str]:
    """Write memories into a directory; return every fact with the file that it stands in."""
    facts: dict[str, str] = {}
    index = [_BY_HAND, ""]
    for path, system, body in _memories():
        kind = ("project", "reference")[len(facts) % 2]
        head = f"name: {path[:-3]}\ndescription: What holds for the {system}\ntype: {kind}"
        directory.joinpath(path).write_bytes(f"---\n{head}\n---\n\n{body}\n".encode())
        if not path.startswith("copy"):
            facts |= {line: path for line in body.split("\n\n") if not line.startswith("See")}
        index.append(f"- [{path[:-3]}]({path}) — the {system}")
    directory.joinpath("broken.md").write_bytes(b"---\nname: broken\nno field\n---\n\nKept.\n")
    directory.joinpath("MEMORY.md").write_text("\n".join(index) + "\n")
    for file in directory.iterdir():
        os.utime(file, (_WRITTEN, _WRITTEN))
    return facts


def _memories() -> Iterator[tuple[str, str, str]]:
    """Yield path, system and body: plain ones, copies, some that deny each other, links."""
    for number, system in enumerate(_SYSTEMS):
        body = "\n\n".join(fact.format(system=system, number=number) for fact in _FACTS)
        yield f"plain-{number}.md", system, body
        if number < len(_COPIES):
            yield f"copy-{number}.md", system, _COPIES[number](body)
        elif number < 2 * len(_COPIES):
            about = f"The guide of the {system} is number {number}."
            link = f"[more](copy-{number - len(_COPIES)}.md)"
            yield f"linked-{number}.md", system, f"{about}\n\nSee {link}."
    for number, sides in enumerate(_DENIALS):
        for side, said in zip("ab", sides, strict=True):
            system = _SYSTEMS[-1 - number]
            yield f"pair-{number}-{side}.md", system, said.format(system=system)


def words(content: str) -> str:
    """Return the words of a text in order, without case and dress."""
    found = re.findall(r"[^\W_]+", content.casefold())
    return f" {' '.join(found)} "


def read(directory: Path) -> Files:
    """Return the memories and the index."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in directory.glob("*.md")
        if not file.name.startswith(".")
    }


def test_planted_facts_survive_a_dream() -> None:
    """Facts, contradictions, links and lines by hand stay; an exact copy goes; undo brings all."""
    with throw_away_home() as home:
        cwd = home.project()
        directory = Path(folder(home, cwd))
        directory.mkdir(parents=True, mode=0o700)
        facts = plant(directory)
        before = read(directory)
        with daemon_process(home), client(home) as line:

            def dream() -> Any:
                return line.call("dream", {"cwd": cwd, "force": True, "wait": True})

            first = dream()
            after = read(directory)
            again = dream()
            assert (again["change"], read(directory)) == (None, after)
            undone = line.call("memory.undo", {"cwd": cwd, "change": first["change"]})
            assert (undone["conflicts"], read(directory)) == ([], before)
    texts = {path: content.decode() for path, (content, _) in after.items()}
    memories = [words(text) for path, text in texts.items() if path != "MEMORY.md"]
    assert [fact for fact in facts if not any(words(fact) in text for text in memories)] == []
    assert {path for path in before if path.startswith("pair")} <= set(after)
    assert after["broken.md"] == before["broken.md"]
    gone = {path for path in before if path not in after}
    assert gone == {"plain-0.md"}  # its copy is linked to
    assert _BY_HAND in texts["MEMORY.md"].splitlines()
    listed = set(re.findall(r"\]\((\S+?)\)", texts["MEMORY.md"]))
    assert listed == set(after) - {"MEMORY.md"} - ({"broken.md"} - listed)
    links = re.compile(r"\[more\]\((\S+?)\)")
    linked = [target for path, text in texts.items() for target in links.findall(text)]
    assert linked
    assert set(linked) <= set(after)
