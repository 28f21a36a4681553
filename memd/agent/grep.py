"""grep: lines that match, in files, folders or what is piped in."""

from collections.abc import Iterator

from memd.agent import globs, matching
from memd.agent.matching import Search
from memd.agent.options import Given, Syntax, number, read
from memd.agent.refusals import CommandRefusedError, OptionRefusedError, ToolError
from memd.agent.shell import Lines, Shell, Source
from memd.agent.shell_words import Word

_GREP = Syntax(
    "grep",
    "ivnclLwxEFGrRhHsqIa",
    ("e", "m", "A", "B", "C", "include", "exclude", "exclude-dir", "color"),
    {
        "--ignore-case": "i",
        "--invert-match": "v",
        "--line-number": "n",
        "--count": "c",
        "--files-with-matches": "l",
        "--files-without-match": "L",
        "--word-regexp": "w",
        "--line-regexp": "x",
        "--extended-regexp": "E",
        "--fixed-strings": "F",
        "--basic-regexp": "G",
        "--recursive": "r",
        "--no-filename": "h",
        "--with-filename": "H",
        "--no-messages": "s",
        "--quiet": "q",
        "--silent": "q",
        "--regexp": "e",
        "--max-count": "m",
        "--after-context": "A",
        "--before-context": "B",
        "--context": "C",
        "--include": "include",
        "--exclude": "exclude",
        "--exclude-dir": "exclude-dir",
        "--color": "color",
        "--colour": "color",
    },
    digits="C",
)
_NO_PATTERN = "grep has no pattern"
_NO_COLOUR = "nothing is coloured here"


def grep(shell: Shell, words: tuple[Word, ...], before: Lines | None) -> Lines:
    """Show lines that match, or count them, or name the files that have them."""
    given = read(_GREP, words)
    if given.value("color") not in (None, "never", "auto", "no"):
        raise OptionRefusedError(_GREP.command, "--color", _NO_COLOUR)
    patterns = list(given.values.get("e", ()))
    operands = given.operands
    if not patterns:
        if not operands:
            raise CommandRefusedError(_NO_PATTERN)
        patterns, operands = [operands[0].text], operands[1:]
    search = _search(patterns, given)
    recursive = bool(given.flags & {"r", "R"})
    if recursive and not operands:
        operands = (Word("."),)
    named = "H" in given.flags or ((recursive or len(operands) > 1) and "h" not in given.flags)
    for source in _sources(shell, given, operands, before, recursive=recursive):
        if isinstance(source, str):
            yield from () if "s" in given.flags else (source,)
            continue
        try:
            yield from _shown(shell, source, search, given, named=named)
        except ToolError as error:
            yield shell.trouble("grep", error)


def _search(patterns: list[str], given: Given) -> Search:
    form = [line for pattern in patterns for line in pattern.split("\n")]
    if "F" in given.flags:
        form = [globs.literal(pattern) for pattern in form]
    elif "E" not in given.flags:
        form = [matching.basic(pattern) for pattern in form]
    whole = "|".join(f"(?:{pattern})" for pattern in form) if len(form) > 1 else form[0]
    if "x" in given.flags:
        whole = f"^(?:{whole})$"
    elif "w" in given.flags:
        whole = rf"\b(?:{whole})\b"
    around = {
        option: number("grep", f"-{option}", given.value(option) or "0")
        for option in ("A", "B", "C")
    }
    most = given.value("m")
    return matching.search(
        whole,
        ignore_case="i" in given.flags,
        invert="v" in given.flags,
        before=around["B"] or around["C"],
        after=around["A"] or around["C"],
        most=None if most is None else number("grep", "-m", most),
    )


def _sources(
    shell: Shell, given: Given, operands: tuple[Word, ...], before: Lines | None, *, recursive: bool
) -> Iterator[Source | str]:
    if not recursive:
        yield from shell.sources("grep", operands, before)
        return
    wanted = [globs.compiled(pattern) for pattern in given.values.get("include", ())]
    unwanted = [globs.compiled(pattern) for pattern in given.values.get("exclude", ())]
    closed = [globs.compiled(pattern) for pattern in given.values.get("exclude-dir", ())]
    for word in operands:
        try:
            top = shell.view.entry(word.text)
            skipped = ""
            for _, entry in shell.view.walk(top):
                path = entry.shown
                if skipped and path.startswith(skipped):
                    continue
                if entry.folder:
                    hit = entry is not top and any(test(entry.name) for test in closed)
                    skipped = f"{path.rstrip('/')}/" if hit else ""
                    continue
                name = entry.name
                if (wanted and not any(test(name) for test in wanted)) or any(
                    test(name) for test in unwanted
                ):
                    continue
                yield Source(path, entry, None)
        except ToolError as error:
            yield shell.trouble("grep", error)


def _shown(shell: Shell, source: Source, search: Search, given: Given, *, named: bool) -> Lines:
    flags = given.flags
    name = source.path or "(standard input)"
    pieces = source.pieces(shell.view)
    found = matching.lines(search, pieces, shell.view.meter.tick)
    if flags & {"l", "L", "q"}:
        hit = next((True for line in found if line.hit), False)
        if "q" not in flags and hit == ("l" in flags):
            yield name
        return
    if "c" in flags:
        count = sum(line.hit for line in found)
        yield f"{name}:{count}" if named else str(count)
        return
    last = 0
    for line in found:
        if last and line.number > last + 1 and (search.before or search.after):
            yield "--"
        last = line.number
        mark = ":" if line.hit else "-"
        prefix = f"{name}{mark}" if named else ""
        yield prefix + (f"{line.number}{mark}" if "n" in flags else "") + line.text
