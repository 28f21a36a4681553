"""Join instruction files into one text, for a client that loads none. Pure.

Rules of this file
- The same resolution gives the same bytes
  (tests/instructions/test_compose.py::test_the_same_files_give_the_same_bytes).
- The text of a file stands in a quote below its path. No text and no path can close the quote, open
  another one, imitate a tag of a client or hide a character
  (tests/instructions/test_compose.py::test_no_file_leaves_its_quote).
- The text has at most ``TEXT_CHARACTERS``. A file that is too long by itself is left out first,
  then the earliest files, and last those of the machine's policy, so that no repository can
  displace these (tests/instructions/test_compose.py::test_the_earliest_files_go_first).
"""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from memd.base.instruction_files import InstructionFile, InstructionText
from memd.base.names import printable
from memd.base.prose import fill, inert, template
from memd.base.text import sha256
from memd.instructions.values import TEXT_CHARACTERS, Resolution
from memd.text import quoting

_MANAGED = "managed"
_ETAG_CHARACTERS = 16
_PATH_CHARACTERS = 4096  # as long as a path may be
_MOST_NAMED = 20  # files in problems; all of them are among the files
_HEADING = template("heading", "memd.instructions")
_FILE = template("file", "memd.instructions")
# The quote's own tag, also with other brackets or with signs before its name.
_TAG = r"(?i)[<\uff1c\ufe64\u2039](?=[\W_]{0,8}+instruction[\W_]?file)"
_LEFT_OUT = f"it is left out: all files together have more than {TEXT_CHARACTERS:,} characters"


def compose(resolution: Resolution) -> InstructionText:
    """Return the loaded files as one text."""
    texts = resolution.texts
    loaded = [file for file in resolution.files if file.loaded and texts.get(file.path)]
    sections = {file.path: _file_section(file, texts[file.path]) for file in loaded}
    sizes = {path: len(section) + 2 for path, section in sections.items()}  # with two line ends
    left_out = _files_without_room(loaded, sizes)
    shown = [sections[file.path] for file in loaded if file.path not in left_out]
    text = "\n\n".join((_HEADING, *shown)) + "\n" if shown else ""
    files = tuple(
        replace(file, loaded=False, why_not=_LEFT_OUT) if file.path in left_out else file
        for file in resolution.files
    )
    problems = (*resolution.problems, *_left_out_problems(loaded, left_out))
    return InstructionText(text, etag(text), files, problems)


def etag(text: str) -> str:
    """Return a short hash by which a client sees whether it has the text already."""
    return sha256(text.encode(errors="replace"))[:_ETAG_CHARACTERS]


def _file_section(file: InstructionFile, content: str) -> str:
    """Return one file's part of the text: its path, where it is included from, and its content."""
    flags = {file.scope, "included"} if file.included_by else {file.scope}
    values = {
        "path": _safe_path(file.path),
        "included_by": _safe_path(file.included_by),
        "text": re.sub(_TAG, "&lt;", quoting.neutralise(content).strip("\n")),
    }
    return fill(_FILE, flags, values)


def _safe_path(path: str) -> str:
    """Return a path as one line in which no tag can stand."""
    return inert(printable(path, _PATH_CHARACTERS))


def _files_without_room(loaded: Sequence[InstructionFile], sizes: dict[str, int]) -> frozenset[str]:
    """Return the paths of the files for which the text has no room.

    ``sizes`` are the characters of each file's section, by path.
    """
    room = TEXT_CHARACTERS - len(_HEADING) - 1
    result = {path for path, size in sizes.items() if size > room}
    total = sum(size for path, size in sizes.items() if path not in result)
    # A stable sort: the files of the machine's policy come last, the others stay in their order.
    least_important_first = sorted(loaded, key=lambda file: file.scope == _MANAGED)
    for file in least_important_first:
        if total <= room:
            break
        if file.path not in result:
            result.add(file.path)
            total -= sizes[file.path]
    return frozenset(result)


def _left_out_problems(
    loaded: Sequence[InstructionFile], left_out: frozenset[str]
) -> Iterator[str]:
    """Yield a sentence for each file that was left out, and how many more there are."""
    paths = [file.path for file in loaded if file.path in left_out]
    for path in paths[:_MOST_NAMED]:
        yield f"{printable(path)}: {_LEFT_OUT}"
    if len(paths) > _MOST_NAMED:
        yield f"{len(paths) - _MOST_NAMED} more files are left out for the same reason"
