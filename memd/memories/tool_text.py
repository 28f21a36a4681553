"""Write the results of the Messages API's memory tool: numbered lines, listings, errors. Pure.

Models are trained on these formats, so they follow the documentation to the letter. Only sentences
about refusals of memd are its own.
"""

from collections.abc import Iterable, Mapping, Sequence

from memd.text.invisible import without_directions

ROOT = "/memories"
LEVELS = 2  # of folders in a listing
MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))  # of a line's number
_AROUND = 2  # lines of context on each side of a replacement
_KIB = 1024


def content(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return a file's lines, or those of a range, with line numbers; -1 means the last line."""
    lines = text.split("\n")
    first, last = 1, len(lines)
    if view_range:
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
    shown_lines = lines[first - 1 : last]
    return f"Here's the content of {path} with line numbers:\n{_numbered(shown_lines, first)}"


def snippet(text: str, at: int) -> str:
    """Return the result of a replacement, with the lines around the character ``at``."""
    lines = text.split("\n")
    changed = text.count("\n", 0, at)
    first = max(0, changed - _AROUND)
    around = lines[first : changed + _AROUND + 1]
    head = "The memory file has been edited. Here is the snippet showing the change"
    return f"{head} (with line numbers):\n{_numbered(around, first + 1)}"


def listing(path: str, files: Mapping[str, int]) -> str:
    """Return a folder's listing; ``files`` are paths below it with their sizes in bytes.

    A folder's size is the sum of the files below it.
    """
    folder = path.rstrip("/")
    rows = [f"{size(sum(files.values()))}\t{folder}"]
    rows += [
        f"{size(count)}\t{folder}/{without_directions(name)}"
        for name, count in _levels(files, LEVELS)
    ]
    head = f"Here're the files and directories up to {LEVELS} levels deep in {folder}"
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
    """Return the lines of a text as ``insert`` counts them; a final line feed adds no line."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def missing(path: str) -> str:
    """Return the sentence that a path to read or edit does not exist."""
    return f"The path {path} does not exist. Please provide a valid path."


def gone(path: str) -> str:
    """Return the sentence that a path to remove or move does not exist."""
    return f"The path {path} does not exist"


def no_match(path: str, old: str) -> str:
    """Return the sentence that the text to replace was not found."""
    return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."


def matches(old: str, lines: Iterable[int]) -> str:
    """Return the sentence that the text to replace occurs in several lines."""
    numbers = ", ".join(map(str, lines))
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
        f"{numbers}. Please ensure it is unique"
    )


def bad_line(line: object, most: int) -> str:
    """Return the sentence that names the lines at which text can be inserted."""
    return f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {most}]."


def _numbered(lines: Sequence[str], first: int) -> str:
    """Return lines with their numbers from ``first`` on, as the tool prints them."""
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _levels(files: Mapping[str, int], levels: int) -> list[tuple[str, int]]:
    """Return the names and sizes below a folder, sorted by name, each folder before its files."""
    rows: list[tuple[str, int]] = []
    # By name, with "/" behind a folder's: the sizes of the files in it by path.
    entries: dict[str, dict[str, int]] = {}
    for path, count in files.items():
        name, slash, rest = path.partition("/")
        entries.setdefault(name + slash, {})[rest] = count
    for name, inside in sorted(entries.items(), key=lambda item: item[0].rstrip("/")):
        rows.append((name, sum(inside.values())))
        if name.endswith("/") and levels > 1:
            rows += [(name + path, count) for path, count in _levels(inside, levels - 1)]
    return rows
