"""The words of the Messages API's memory tool: numbered lines, listings, sizes, answers. Pure.

Models are trained on these formats, so they are the documented ones to the letter; sentences for
what only memd refuses are memd's own.
"""

from collections.abc import Iterable, Mapping, Sequence

from memd.text.invisible import without_directions

ROOT = "/memories"
LEVELS = 2
MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
_AROUND = 2  # lines of context on each side of a replacement
_KIB = 1024


def content(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return a file with line numbers, or the lines of a range; -1 stands for its last line."""
    lines = text.split("\n")
    first, last = 1, len(lines)
    if view_range:
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
    shown = lines[first - 1 : last]
    return f"Here's the content of {path} with line numbers:\n{_numbered(shown, first)}"


def snippet(text: str, at: int) -> str:
    """Return the answer to a replacement, with the lines around the character ``at``."""
    lines = text.split("\n")
    changed = text.count("\n", 0, at)
    first = max(0, changed - _AROUND)
    around = lines[first : changed + _AROUND + 1]
    head = "The memory file has been edited. Here is the snippet showing the change"
    return f"{head} (with line numbers):\n{_numbered(around, first + 1)}"


def listing(path: str, files: Mapping[str, int]) -> str:
    """Return a folder's listing; ``files`` are paths below it with their sizes in bytes.

    A folder's size is that of all files below it.
    """
    shown = path.rstrip("/")
    rows = [f"{size(sum(files.values()))}\t{shown}"]
    rows += [
        f"{size(count)}\t{shown}/{without_directions(name)}"
        for name, count in _levels(files, LEVELS)
    ]
    head = f"Here're the files and directories up to {LEVELS} levels deep in {shown}"
    return f"{head}, excluding hidden items:\n" + "\n".join(rows)


def size(count: int) -> str:
    """Return a size in the tool's short form: 0B, 512B, 1.5K, 2M."""
    value, unit = float(count), "B"
    for larger in "KMG":
        if value < _KIB:
            break
        value, unit = value / _KIB, larger
    return f"{value:.0f}{unit}" if value == int(value) else f"{value:.1f}{unit}"


def lines_of(text: str) -> list[str]:
    """Return the lines as ``insert`` counts them: a line feed at the end begins no further one."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def missing(path: str) -> str:
    """Say that a path that was to be read or edited is not there."""
    return f"The path {path} does not exist. Please provide a valid path."


def gone(path: str) -> str:
    """Say that a path that was to be removed or moved is not there."""
    return f"The path {path} does not exist"


def no_match(path: str, old: str) -> str:
    """Say that the text to replace was not found."""
    return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."


def matches(old: str, lines: Iterable[int]) -> str:
    """Say that the text to replace stands in several places."""
    numbers = ", ".join(map(str, lines))
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
        f"{numbers}. Please ensure it is unique"
    )


def bad_line(line: object, most: int) -> str:
    """Say between which lines text can be inserted."""
    return f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {most}]."


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _levels(files: Mapping[str, int], levels: int) -> list[tuple[str, int]]:
    """Return names below a folder with sizes, each folder before what lies in it, by name."""
    rows: list[tuple[str, int]] = []
    below: dict[str, dict[str, int]] = {}
    for path, count in files.items():
        name, slash, rest = path.partition("/")
        below.setdefault(name + slash, {})[rest] = count
    for name, inside in sorted(below.items(), key=lambda item: item[0].rstrip("/")):
        rows.append((name, sum(inside.values())))
        if name.endswith("/") and levels > 1:
            rows += [(name + path, count) for path, count in _levels(inside, levels - 1)]
    return rows
