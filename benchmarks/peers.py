"""What else could look through the same files, and the floors that the file system sets."""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass

from benchmarks.corpus import Question, memory
from benchmarks.measures import Series, each, least

_HEAD_BYTES = 4096
_LIMIT = 5
_SECONDS = 15.0  # of one peer's questions; the slow ones get fewer of them


@dataclass(frozen=True, slots=True)
class Floors:
    """In milliseconds: reading the heads of all files, and asking the status of all."""

    heads: float
    stats: float


def floors(directory: str, paths: Sequence[str]) -> Floors:
    """Measure the least that a first and a warm look at all files can cost."""
    whole = [f"{directory}/{path}" for path in paths]
    return Floors(least(lambda: _heads(whole), 3), least(lambda: _stats(directory), 3))


def searcher() -> tuple[str, list[str]]:
    """Return a program that finds files by words, and how it is called."""
    program = shutil.which("rg")
    if program:
        return "ripgrep", [program, "-l", "-i", "-F"]
    return "grep -r", ["grep", "-r", "-l", "-i", "-F"]


def scanned(directory: str, requested: Sequence[Question]) -> Series:
    """Return what the searcher takes for a question's three longest words."""
    _, command = searcher()

    def scan(number: int) -> None:
        words = sorted(set(_words(requested[number].text)), key=len, reverse=True)[:3]
        patterns = [part for word in words for part in ("-e", word)]
        subprocess.run([*command, *patterns, directory], capture_output=True, check=False)

    return each(scan, min(40, len(requested)), _SECONDS)


def full_text(path: str, count: int, requested: Sequence[Question]) -> tuple[float, Series]:
    """Return the milliseconds that SQLite's index takes to build, and its times."""
    with closing(sqlite3.connect(path)) as connection:
        built = each(lambda _: _build(connection, count), 1).p50

        def search(number: int) -> None:
            match = " OR ".join(f'"{word}"' for word in _words(requested[number].text))
            connection.execute(
                "SELECT path FROM memory WHERE memory MATCH ? ORDER BY bm25(memory) LIMIT ?",
                (match, _LIMIT),
            ).fetchall()

        times = each(search, min(200, len(requested)), _SECONDS)
    os.unlink(path)
    return built, times


def _build(connection: sqlite3.Connection, count: int) -> None:
    connection.execute(
        "CREATE VIRTUAL TABLE memory USING"
        " fts5(path UNINDEXED, name, description, body, tokenize = 'porter unicode61')"
    )
    connection.executemany("INSERT INTO memory VALUES (?, ?, ?, ?)", _rows(count))
    connection.commit()


def _rows(count: int) -> Iterable[tuple[str, str, str, str]]:
    for results in map(memory, range(count)):
        yield results.path, results.name, results.description, results.body


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _heads(paths: Sequence[str]) -> None:
    for path in paths:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        os.read(file, _HEAD_BYTES)
        os.close(file)


def _stats(directory: str) -> None:
    folders = [directory]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
