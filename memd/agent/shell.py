"""Answer the command lines of a model with Read, Grep and Glob: no shell, no process.

Rules of this file
- A line is one of ls, cat, head, tail, wc, grep, find and stat with plain arguments, and perhaps a
  pipe to head or tail. Any other syntax of a shell is refused and never taken literally, since the
  command would then do something else than it says.
- An error of one file is a line of the answer, as in a shell, and is counted.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from memd.agent import looking, tools
from memd.agent.answer import collect
from memd.agent.refusals import CommandRefusedError, LimitError, ToolError
from memd.agent.step import DENIED, FAILED, ToolResult
from memd.agent.view import AgentView
from memd.base import globs
from memd.base.errors import MemdError
from memd.base.names import is_text, printable

_LINE_CHARACTERS = 4_000  # of a command line
_WORDS = 200  # of a command line
_SHOWN_LINES = "10"  # of head and tail without a number
_LAST_SECOND = 253_402_300_799  # of the year 9999, the last that can be shown

# What a word is made of: texts in quotes, escaped characters, and characters that mean themselves.
_SINGLE_QUOTED = r"'[^']*'"
_DOUBLE_QUOTED = r'"(?:[^"\\$`]|\\.|\$(?![\w({]))*"'
_ESCAPE = r"\\."
_PLAIN = r"[^\s'\"\\|&;<>()`${}]|\$(?![\w({'\"])"
_IGNORED = r"2>(?:/dev/null|&1)(?=[\s|]|$)"
_WORD = rf"(?:{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|{_ESCAPE}|{_PLAIN})+"
_TOKEN = re.compile(rf"[ \t]*(?:{_IGNORED}|(?P<pipe>\|)|(?![#~])(?P<word>{_WORD}))")
_WORD_PART = rf"{_SINGLE_QUOTED}|{_DOUBLE_QUOTED}|{_ESCAPE}|."
_ESCAPE_IN_DOUBLE_QUOTES = r'\\(["\\$`])'
_NUMBER_OPTION = r"(?a)\A-(\d{1,7})\Z"  # such as ``-3``
_NUMBER = r"(?a)\+?\d{1,7}"

_TOO_LONG = f"it has more than {_LINE_CHARACTERS} characters or {_WORDS} words"
_STRANGE_CHARACTER = "it has a line end or another character that no command has"
_NO_COMMAND = "there is no command before or after a '|'"
_NO_FILE = "it names no file"
_NO_PATTERN = "grep has no pattern"
_NO_NUMBER = "head and tail need a number of lines"
_UNKNOWN_COMMAND = (
    "only ls, cat, head, tail, wc, grep, find and stat are known, with a pipe to head or tail; to "
    "read use Read, to search Grep, to name files Glob, to write Write or Edit"
)

Call = Callable[[], ToolResult]
Options = Mapping[str, Sequence[str]]  # the values of each option, "" for one without a value


def run(command: str, view: AgentView) -> ToolResult:
    """Run a command line and return its output. Raises nothing that a model can cause."""
    faults: list[str] = []
    problems: list[ToolError] = []
    try:
        (name, *words), *pipes = split(command)
        if name not in _COMMANDS or any(pipe[0] not in ("head", "tail") for pipe in pipes):
            raise CommandRefusedError(_UNKNOWN_COMMAND)
        lines = _lines(_COMMANDS[name](words, view), faults)
        for pipe in pipes:
            lines = _part(pipe, lines)
        text = collect(lines, problems)
    except (MemdError, ToolError) as error:
        return ToolResult(error.sentence, error.fault if isinstance(error, ToolError) else FAILED)
    faults += [problem.fault for problem in problems]
    return ToolResult(text or "(no output)", DENIED if DENIED in faults else "".join(faults[:1]))


def split(command: str) -> list[list[str]]:
    """Return the commands of a pipe, each as its words. Raises CommandRefusedError."""
    if len(command) > _LINE_CHARACTERS:
        raise CommandRefusedError(_TOO_LONG)
    command = command.strip(" \t\n")
    if not is_text(command) or not command.replace("\t", " ").isprintable():
        raise CommandRefusedError(_STRANGE_CHARACTER)
    words_of_commands: list[list[str]] = [[]]
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            character = command[position:].strip()[0]
            why = f"{character!r} is not understood; make one call for each command"
            raise CommandRefusedError(why)
        position = match.end()
        if match["pipe"]:
            words_of_commands.append([])
        elif match["word"]:
            parts = map(_unquoted, re.findall(_WORD_PART, match["word"]))
            words_of_commands[-1].append("".join(parts))
    if not all(words_of_commands):
        raise CommandRefusedError(_NO_COMMAND)
    if sum(map(len, words_of_commands)) > _WORDS:
        raise CommandRefusedError(_TOO_LONG)
    return words_of_commands


def _unquoted(part: str) -> str:
    """Return a part of a word without its quotes or its backslash."""
    if len(part) == 1 or part[0] not in "'\"\\":
        return part
    inner = part[1:] if part[0] == "\\" else part[1:-1]
    return re.sub(_ESCAPE_IN_DOUBLE_QUOTES, r"\1", inner) if part[0] == '"' else inner


def _lines(calls: Iterable[Call], faults: list[str]) -> Iterator[str]:
    """Yield the lines of all answers; faults are added to ``faults``. Raises LimitError."""
    for call in calls:
        try:
            result = call()
        except LimitError:
            raise
        except ToolError as error:
            result = ToolResult(error.sentence, error.fault)
        faults += [result.fault] if result.fault else []
        yield from result.text.split("\n")


def _part(words: Sequence[str], lines: Iterator[str]) -> Iterator[str]:
    """Return the lines that head or tail at the end of a pipe lets through."""
    number, paths = _number_and_paths(words[0], words[1:])
    if paths:
        raise CommandRefusedError(_UNKNOWN_COMMAND)
    if words[0] == "head":
        return islice(lines, int(number))
    if number.startswith("+"):
        return islice(lines, max(int(number) - 1, 0), None)
    return iter(deque(lines, maxlen=int(number)))


def _parse(
    name: str, words: Sequence[str], short: str, long: Sequence[str] = ()
) -> tuple[Options, list[str]]:
    """Return the options of a command and its other words. Raises CommandRefusedError."""
    # Only an agent's commands need it, and it loads gettext and locale: 3 ms of the start.
    from getopt import GetoptError, gnu_getopt  # noqa: PLC0415 - see above

    try:
        pairs, others = gnu_getopt(list(words), short, list(long))
    except GetoptError as error:
        instead = {"ls": "Glob", "grep": "Grep"}.get(name, "Read")
        why = f"{name}: {printable(error.msg)}; see whether the tool {instead} does it"
        raise CommandRefusedError(why) from error
    options: dict[str, list[str]] = {}
    for option, value in pairs:
        options.setdefault(option.lstrip("-"), []).append(value)
    return options, others


def _number_and_paths(name: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the number of lines and the paths of head or tail. Raises CommandRefusedError."""
    words = [re.sub(_NUMBER_OPTION, r"-n\1", word) for word in words]
    options, paths = _parse(name, words, "n:q", ("lines=",))
    number = [*options.get("n", ()), *options.get("lines", ()), _SHOWN_LINES][0]
    if not re.fullmatch(_NUMBER, number) or (name == "head" and number.startswith("+")):
        raise CommandRefusedError(_NO_NUMBER)
    return number, paths


def _of_files(paths: Sequence[str], make: Callable[[str], ToolResult]) -> Iterator[Call]:
    """Return one call for each path. Raises CommandRefusedError if there is none."""
    if not paths:
        raise CommandRefusedError(_NO_FILE)
    return (partial(make, path) for path in paths)


def _read(view: AgentView, path: str, first: str = "1", most: str | None = None) -> ToolResult:
    """Return some lines of a file as Read shows them."""
    given = {"file_path": path, "offset": first, "limit": most}
    call = tools.parse("Read", given)
    assert isinstance(call, tools.Read)  # noqa: S101 - for mypy
    return looking.read(call, view.file(path), view)


def _ls(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Name the files at or below each path."""
    _, paths = _parse("ls", words, "laA1htrRFpd")
    return _of_files(paths or ["."], partial(_files, view, "**"))


def _files(view: AgentView, pattern: str, path: str) -> ToolResult:
    """Return the names of the files below a path, or that fit it, as Glob shows them."""
    if globs.MAGIC.search(path):
        return looking.glob(tools.Glob(path), view)
    return looking.glob(tools.Glob(pattern, None if path == "." else path), view)


def _cat(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Read whole files."""
    _, paths = _parse("cat", words, "n")
    return _of_files(paths, partial(_read, view))


def _head(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Read the first lines of files."""
    number, paths = _number_and_paths("head", words)
    return _of_files(paths, partial(_read, view, most=number))


def _tail(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Read the last lines of files; with ``-n +N`` those from line N on."""
    number, paths = _number_and_paths("tail", words)

    def read(path: str) -> ToolResult:
        first = int(number)
        if not number.startswith("+"):
            first = sum(piece.count() for piece in view.pieces(view.file(path))) - first + 1
        return _read(view, path, str(max(first, 1)))

    return _of_files(paths, read)


def _wc(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Count the lines, words and bytes of files."""
    options, paths = _parse("wc", words, "lwc")

    def count(path: str) -> ToolResult:
        entry = view.file(path)
        lines = word_count = 0
        for piece in view.pieces(entry):
            lines += piece.raw.count("\n")
            word_count += len(piece.raw.split())
        counts = {"l": lines, "w": word_count, "c": entry.size}
        shown = [str(number) for option, number in counts.items() if option in (options or counts)]
        return ToolResult(" ".join([*shown, path]))

    return _of_files(paths, count)


def _stat(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Return the size and the time of files."""
    _, paths = _parse("stat", words, "")

    def describe(path: str) -> ToolResult:
        entry = view.entry(path)
        seconds = min(max(entry.mtime_ns // 1_000_000_000, 0), _LAST_SECOND)
        kind = "folder" if entry.folder else f"{entry.size} bytes"
        return ToolResult(f"{path}: {kind}, {datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}")

    return _of_files(paths, describe)


def _grep(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Search files."""
    words = [re.sub(_NUMBER_OPTION, r"-C\1", word) for word in words]
    options, others = _parse("grep", words, "inclwEFGrRhHsIae:m:A:B:C:", ("include=",))
    patterns = list(options.get("e", ())) or others[:1]
    paths: list[str | None] = [*others[0 if "e" in options else 1 :]]
    if not patterns:
        raise CommandRefusedError(_NO_PATTERN)
    if "F" in options:
        patterns = [re.escape(pattern) for pattern in patterns]
    elif "E" not in options:
        patterns = [pattern.replace("\\|", "|") for pattern in patterns]
    pattern = "|".join(patterns)
    mode = "files_with_matches" if "l" in options else "count" if "c" in options else "content"
    given: dict[str, object] = {
        "pattern": rf"\b(?:{pattern})\b" if "w" in options else pattern,
        "output_mode": mode,
        "-i": "i" in options,
    }
    given |= {f"-{option}": options[option][-1] for option in "ABC" if option in options}
    given |= {"head_limit": options["m"][-1]} if "m" in options else {}
    given |= {"glob": options["include"][-1]} if "include" in options else {}

    def search(path: str | None) -> ToolResult:
        call = tools.parse("Grep", given | {"path": None if path == "." else path})
        assert isinstance(call, tools.Grep)  # noqa: S101 - for mypy
        return looking.grep(call, view)

    return (partial(search, path) for path in paths or [None])


def _find(words: Sequence[str], view: AgentView) -> Iterator[Call]:
    """Name the files below each path, all or those with a name."""
    first_option = next((n for n, word in enumerate(words) if word[:1] in "-!("), len(words))
    paths, conditions = list(words[:first_option]), list(words[first_option:])
    name = "*"
    match conditions:
        case ["-name", name] | ["-type", "f", "-name", name] | ["-name", name, "-type", "f"]:
            pass
        case [] | ["-type", "f"]:
            pass
        case _:
            why = "find knows -name and -type f; see whether the tool Glob does it"
            raise CommandRefusedError(why)
    return _of_files(paths or ["."], partial(_files, view, f"**/{name}"))


_COMMANDS: Mapping[str, Callable[[Sequence[str], AgentView], Iterator[Call]]] = {
    "cat": _cat,
    "find": _find,
    "grep": _grep,
    "head": _head,
    "ls": _ls,
    "stat": _stat,
    "tail": _tail,
    "wc": _wc,
}
