"""Join the instruction files of a view into one text, for a client that loads none. Pure.

Rules of this file
- The same resolution gives the same bytes
  (tests/instructions/test_compose.py::test_the_same_files_give_the_same_bytes).
- What a file says stands in a quote below its path. No text and no path closes the quote, opens
  another, poses as a tag of a client or hides a character
  (tests/instructions/test_compose.py::test_no_file_leaves_its_quote).
- The whole has at most ``TEXT_CHARACTERS``. First a file goes that does not fit by itself, then the
  earliest, then those of the machine's policy, which nothing in a repository may push out
  (tests/instructions/test_compose.py::test_the_earliest_files_go_first).
"""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memd.core.names import printable
from memd.core.prose import fill, inert, template
from memd.core.text import sha256
from memd.instructions.values import TEXT_CHARACTERS, InstructionFile, Resolution
from memd.text import quoting

_MANAGED = "managed"
_ETAG_CHARACTERS = 16
_PATH_CHARACTERS = 4096  # as long as a path may be
_NAMED = 20  # files in problems; all of them are among the files
_HEADING = template("heading", "memd.instructions")
_FILE = template("file", "memd.instructions")
# The quote's own tag, however it is dressed up.
_TAG = re.compile(r"[<\uff1c\ufe64\u2039](?=[\W_]{0,8}+instruction[\W_]?file)", re.IGNORECASE)
_LEFT_OUT = f"it is left out: all files together have more than {TEXT_CHARACTERS:,} characters"


class InstructionText(Struct, frozen=True):
    """What a client puts into a prompt: ``text`` is "" where no file is loaded.

    ``etag`` changes with the text. ``files`` are all that the view knows of, ``problems`` sentences
    about what a person may want to mend.
    """

    text: str
    etag: str
    files: tuple[InstructionFile, ...]
    problems: tuple[str, ...]


def compose(resolution: Resolution) -> InstructionText:
    """Return the files that a view loads as one text."""
    texts = resolution.texts
    loaded = [file for file in resolution.files if file.loaded and texts.get(file.path)]
    sections = {file.path: _section(file, texts[file.path]) for file in loaded}
    left_out = _left_out(loaded, {path: len(section) + 2 for path, section in sections.items()})
    shown = [sections[file.path] for file in loaded if file.path not in left_out]
    text = "\n\n".join((_HEADING, *shown)) + "\n" if shown else ""
    files = tuple(
        replace(file, loaded=False, why_not=_LEFT_OUT) if file.path in left_out else file
        for file in resolution.files
    )
    problems = (*resolution.problems, *_problems(loaded, left_out))
    return InstructionText(text, etag(text), files, problems)


def etag(text: str) -> str:
    """Return the mark by which a client knows that a text is the one it has."""
    return sha256(text.encode(errors="replace"))[:_ETAG_CHARACTERS]


def _section(file: InstructionFile, content: str) -> str:
    """Return one file's part of the text: its path, where it is included from, and its content."""
    flags = {file.scope, *(("included",) if file.included_by else ())}
    values = {
        "path": _path(file.path),
        "included_by": _path(file.included_by),
        "text": _TAG.sub("&lt;", quoting.neutralise(content).strip("\n")),
    }
    return fill(_FILE, flags, values)


def _path(path: str) -> str:
    """Return a path that is one line and no tag."""
    return inert(printable(path, _PATH_CHARACTERS))


def _left_out(loaded: Sequence[InstructionFile], sizes: dict[str, int]) -> frozenset[str]:
    """Return the paths of the files that the text has no room for."""
    room = TEXT_CHARACTERS - len(_HEADING) - 1
    result = {path for path, size in sizes.items() if size > room}
    total = sum(size for path, size in sizes.items() if path not in result)
    by_worth = sorted(loaded, key=lambda file: file.scope == _MANAGED)  # stable: else their order
    for file in by_worth:
        if total <= room:
            break
        if file.path not in result:
            result.add(file.path)
            total -= sizes[file.path]
    return frozenset(result)


def _problems(loaded: Sequence[InstructionFile], left_out: frozenset[str]) -> Iterator[str]:
    """Yield a sentence for each file that was left out, and how many more there are."""
    paths = [file.path for file in loaded if file.path in left_out]
    for path in paths[:_NAMED]:
        yield f"{printable(path)}: {_LEFT_OUT}"
    if len(paths) > _NAMED:
        yield f"{len(paths) - _NAMED} more files are left out for the same reason"
