"""instructions: the CLAUDE.md, rules and AGENTS.md that assistants load."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memd.base.errors import Invalid
from memd.base.names import printable
from memd.cli.invocation import Invocation

_MAX_FILES = 5  # files listed for one reason; the others are only counted
_LINE_CHARACTERS = 4096  # characters, as many as a path may have
_BOTH = "--allow and --deny contradict each other"

File = Mapping[str, Any]


def show(invocation: Invocation) -> None:
    """Print the files, or their text, after storing the person's decision if there is one."""
    options, screen = invocation.options, invocation.screen
    if options.allow and options.deny:
        raise Invalid(_BOTH)
    allow = options.allow or (False if options.deny else None)
    listed = invocation.request(touched=_touched_paths(invocation), allow=allow)
    if not options.text:
        screen.answer(listed, "\n".join(_list_lines(invocation, listed)))
        return
    for problem in listed["problems"]:
        screen.note(problem)
    if not listed["text"]:
        screen.note("no instruction file is loaded here")
    screen.text(listed, listed["text"])


def _touched_paths(invocation: Invocation) -> list[str] | None:
    """Return the absolute paths of ``--touched``, ``None`` if there are none."""
    paths = invocation.options.touched
    return [os.path.abspath(path) for path in paths] if paths else None


def _list_lines(invocation: Invocation, listed: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the list: loaded files, the others by reason, then the problems."""
    screen = invocation.screen
    loaded = [file for file in listed["files"] if file["loaded"]]
    total = sum(file["chars"] for file in loaded)
    words = f"{_count_noun(len(loaded), 'file')} with {total:,} characters"
    yield f"{screen.paint('loaded', 'green')}: {words}"
    for file in loaded:
        yield f"  {file['chars']:>7,}  {file['kind']:<8} {_file_words(invocation, file)}"
    reasons = dict.fromkeys(file["why_not"] for file in listed["files"] if not file["loaded"])
    for reason in reasons:
        files = [file for file in listed["files"] if file["why_not"] == reason]
        needs_approval = files[0]["path"] in listed["external"]
        yield f"{screen.paint('not loaded', 'yellow')}: {_short_sentence(invocation, reason)}"
        yield from _file_lines(invocation, files)
        if needs_approval:
            yield "  to allow what this project includes from outside: memctl instructions --allow"
    for problem in listed["problems"]:
        yield f"{screen.paint('problem', 'red')}: {_short_sentence(invocation, problem)}"


def _file_lines(invocation: Invocation, files: Sequence[File]) -> Iterator[str]:
    """Yield a line for each of the first files, then how many more there are."""
    for file in files[:_MAX_FILES]:
        globs = printable(", ".join(file["condition"]), _LINE_CHARACTERS)
        condition = f" ({globs})" if globs else ""
        yield f"  {'':>7}  {file['kind']:<8} {_file_words(invocation, file)}{condition}"
    if len(files) > _MAX_FILES:
        yield f"  {'':>7}  and {len(files) - _MAX_FILES:,} more, which --json names"


def _file_words(invocation: Invocation, file: File) -> str:
    """Return a file's path for display, with the file that includes it."""
    by = f", by {_short_path(invocation, file['included_by'])}" if file["included_by"] else ""
    return f"{invocation.screen.paint(_short_path(invocation, file['path']), 'bold')}{by}"


def _short_path(invocation: Invocation, path: str) -> str:
    """Return a path relative to the directory or, with ``~/``, to the home if it is below one."""
    for folder, prefix in (
        (os.path.realpath(invocation.cwd), ""),
        (invocation.surroundings.home, "~/"),
    ):
        if path.startswith(f"{folder}/"):
            return printable(prefix + path[len(folder) + 1 :], _LINE_CHARACTERS)
    return printable(path, _LINE_CHARACTERS)


def _short_sentence(invocation: Invocation, sentence: str) -> str:
    """Return a sentence on one line, with the paths below the directory made relative."""
    return printable(sentence.replace(f"{os.path.realpath(invocation.cwd)}/", ""), _LINE_CHARACTERS)


def _count_noun(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless it is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
