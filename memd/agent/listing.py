"""ls and stat: what is there, how large and how old."""

from memd.agent.options import Given, Syntax, read
from memd.agent.refusals import CommandRefusedError, OptionRefusedError, ToolError
from memd.agent.shell import Lines, Shell, exactly, human, when
from memd.agent.shell_words import Word
from memd.agent.view import Entry

_LS = Syntax(
    "ls",
    "laA1hrtSdRFpn",
    long={
        "--all": "a",
        "--almost-all": "A",
        "--human-readable": "h",
        "--recursive": "R",
        "--reverse": "r",
    },
)
_STAT = Syntax("stat", "", ("c",), {"--format": "c"})
_NO_FILE = "stat names no file"
_FORMAT = "formats know %n, %s, %y, %Y and %F"
_WHOLE = "  File: %n\n  Size: %s  Type: %F\nModify: %y"
_DEPTH = 24
_SECOND = 1_000_000_000


def ls(shell: Shell, words: tuple[Word, ...], _before: Lines | None) -> Lines:
    """List folders and files; hidden ones are not shown, whatever is asked."""
    given = read(_LS, words)
    paths = [word.text for word in given.operands] or ["."]
    files: list[Entry] = []
    folders: list[Entry] = []
    for path in paths:
        try:
            entry = shell.view.entry(path)
        except ToolError as error:
            yield shell.trouble("ls", error)
            continue
        (folders if entry.folder and "d" not in given.flags else files).append(entry)
    for entry in _sorted(files, given):
        yield _line(entry, entry.shown, given)
    for folder in folders:
        yield from _folder(shell, folder, given, titled=len(paths) > 1 or "R" in given.flags)


def stat(shell: Shell, words: tuple[Word, ...], _before: Lines | None) -> Lines:
    """Say of each file what it is, its size and when it was changed."""
    given = read(_STAT, words)
    form = given.value("c") or _WHOLE
    if not given.operands:
        raise CommandRefusedError(_NO_FILE)
    for word in given.operands:
        try:
            entry = shell.view.entry(word.text)
        except ToolError as error:
            yield shell.trouble("stat", error)
            continue
        yield from _formatted(form, entry).split("\n")


def _folder(shell: Shell, folder: Entry, given: Given, *, titled: bool) -> Lines:
    top = (
        [entry for _, entry in shell.view.walk(folder) if entry.folder]
        if "R" in given.flags
        else [folder]
    )
    for place, entry in enumerate(top):
        if titled:
            yield from ([""] if place else [])
            yield f"{entry.shown}:"
        for child in _sorted(shell.view.children(entry), given):
            yield _line(child, child.name, given)


def _sorted(entries: list[Entry], given: Given) -> list[Entry]:
    found = sorted(entries, key=lambda entry: entry.shown)
    if "t" in given.flags:
        found.sort(key=lambda entry: -entry.mtime_ns)
    elif "S" in given.flags:
        found.sort(key=lambda entry: -entry.size)
    return found[::-1] if "r" in given.flags else found


def _line(entry: Entry, name: str, given: Given) -> str:
    marked = f"{name}/" if entry.folder and given.flags & {"F", "p"} else name
    if not given.flags & {"l", "n"}:
        return marked
    size = human(entry.size) if "h" in given.flags else str(entry.size)
    kind = "d" if entry.folder else "-"
    return f"{kind} {size:>9} {when(entry.mtime_ns)} {marked}"


def _formatted(form: str, entry: Entry) -> str:
    known = {
        "n": entry.shown,
        "s": str(entry.size),
        "y": exactly(entry.mtime_ns),
        "Y": str(entry.mtime_ns // _SECOND),
        "F": "directory" if entry.folder else "regular file",
        "%": "%",
    }
    parts = form.split("%")
    text = parts[0]
    at = 1
    while at < len(parts):
        part = parts[at]
        if not part and at + 1 < len(parts):  # %%
            text += "%" + parts[at + 1]
            at += 2
            continue
        if part[:1] not in known:
            raise OptionRefusedError(_STAT.command, "-c", _FORMAT)
        text += known[part[:1]] + part[1:]
        at += 1
    return text
