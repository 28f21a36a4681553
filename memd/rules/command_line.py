"""The programs that a shell line starts, as far as its text shows them. Pure.

Rules of this file
- Nothing is expanded and nothing is run. docs/rules.md lists what is not seen.
- A line is split at ``; & |``, line ends, brackets, ``$( )`` and backticks; quotes, comments and
  redirections are respected. A line that no shell would run is no error: what was read counts.
- Each piece takes at least one character and none is read again, so a line costs what its length
  does. After ``PIECES`` pieces, those of ``sh -c`` included, the rest is not read.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice

from msgspec import Struct, field

PIECES = 10_000  # a line of a person or an assistant has a few hundred
PLAIN_WORDS = 64  # that are no options; no sub-command stands behind so many

# Programs that run another one, which is named behind their options.
_RUNNERS = str.split(
    "sudo doas env command builtin exec time nice ionice nohup setsid stdbuf timeout xargs parallel"
    " watch npx . source"
)
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "fish"}  # with -c they run a text
_RESERVED = {"if", "then", "elif", "else", "while", "until", "do", "{", "}", "!"}
_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n)|(?P<quoted>'[^']*'?)|\\(?P<escaped>.?)|(?P<inner>\$\()"""
    r"""|(?P<tick>`)|(?P<end>[;&|\n()])|(?P<file>&?[<>][<>&|]*)|(?P<quotes>")|(?P<comment>#)"""
    r"""|(?P<text>[^ \t\r'\\()`;&|\n<>"$#]+|\$)""",
    re.DOTALL,
)
_PIECE_IN_QUOTES = re.compile(
    r"""\\(?P<escaped>[$`"\\])|(?P<inner>\$\()|(?P<tick>`)|(?P<quotes>")|(?P<text>[^"\\`$]+|[\\$])""",
    re.DOTALL,
)
_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*([\"']?)([A-Za-z_]\w*)\1")
_MOST_DOCUMENTS = 16
_ASSIGNMENT = r"[A-Za-z_]\w*\+?="
_NUMBER = r"[0-9][0-9.]*[smhd]?"  # of timeout, nice, xargs
_SCRIPT_OPTION = r"-[A-Za-z]*c[A-Za-z]*"
_SHORT_OPTIONS = r"-([A-Za-z]{1,4})"
_MOST_DEPTH = 8  # of texts within texts
_MOST_PROGRAMS = 16  # of one command


class Started(Struct, frozen=True, dict=True):
    """A program that a shell line starts, with the words of its call: ``words[at]`` names it."""

    words: Sequence[str]
    at: int

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.words[self.at].rpartition("/")[2]

    @cached_property
    def options(self) -> frozenset[str]:
        """Its options; one with a value behind ``=`` is there with and without the value."""
        options = [word for word in self.words[self.at + 1 :] if word.startswith("-")]
        return frozenset((*options, *(option.partition("=")[0] for option in options)))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters of its short options, written one by one or together."""
        matches = (re.fullmatch(_SHORT_OPTIONS, option) for option in self.options)
        return frozenset(letter for match in matches if match for letter in match[1])

    @cached_property
    def plain(self) -> tuple[tuple[str, bool], ...]:
        """Its words that are not options, each with whether it may be the value of an option."""
        result: list[tuple[str, bool]] = []
        may_be_value = False
        for word in self.words[self.at + 1 :]:
            is_option = word.startswith("-")
            if not is_option:
                result.append((word, may_be_value))
                if len(result) == PLAIN_WORDS:
                    break
            may_be_value = is_option and "=" not in word
        return tuple(result)


class _Command(Struct):
    """A command that is read, and what stands around it once it is at its end."""

    words: list[str] = field(default_factory=list)
    word: list[str] | None = None  # the pieces of the word that is read now
    in_quotes: bool = False
    before_file: bool = False  # the next word names a file of a redirection
    end: str = ""  # the sign that ends it within another command


def started(text: str) -> Iterator[Started]:
    """Yield each program that a shell line starts; of a very long line only the beginning."""
    pieces_left = PIECES
    texts = [(text, 0)]  # it grows by the texts that shells run, each with its depth
    for line, depth in texts:
        commands, pieces = _commands(_without_documents(line), pieces_left)
        pieces_left -= pieces
        for words in commands:
            for at in _program_indices(words):
                yield Started(words, at)
                if depth < _MOST_DEPTH and words[at].rpartition("/")[2] in _SHELLS:
                    texts += ((script, depth + 1) for script in _scripts(words, at))


def _without_documents(text: str) -> str:
    """Return a text without the here-documents in it, 16 at most."""
    start = 0
    for _ in range(_MOST_DOCUMENTS):
        begin = _DOCUMENT.search(text, start)
        line_end = text.find("\n", begin.end()) if begin else -1
        if begin is None or line_end < 0:
            break
        last_line = re.compile(rf"^[ \t]*{begin[2]}$", re.MULTILINE).search(text, line_end + 1)
        start = begin.end()
        text = text[: line_end + 1] + (text[last_line.end() :] if last_line else "")
    return text


def _commands(text: str, most: int) -> tuple[list[list[str]], int]:
    """Return the words of each command of a text, and how many pieces were read."""
    result: list[list[str]] = []
    stack = [_Command()]  # the commands that are read, the innermost last
    position = pieces = 0
    while position < len(text) and pieces < most:
        command, pieces = stack[-1], pieces + 1
        match = (_PIECE_IN_QUOTES if command.in_quotes else _PIECE).match(text, position)
        if match is None or match.lastgroup is None:  # no such text: each character is a piece
            break
        kind, piece = match.lastgroup, match[match.lastgroup]
        position = match.end()
        if kind == "quotes":
            command.in_quotes = not command.in_quotes
            _add(command, "")
        elif kind == "comment" and command.word is None:
            line_end = text.find("\n", position)
            position = len(text) if line_end < 0 else line_end
        elif kind in ("quoted", "escaped", "text", "comment"):
            _add(command, piece.strip("'") if kind == "quoted" else piece)
        elif kind == "inner" or (kind == "tick" and command.end != piece):
            _add(command, "$")
            stack.append(_Command(end=")" if kind == "inner" else piece))
        else:
            _end_word(command, is_file_number=kind == "file")
            if kind == "file":
                command.before_file = True
            elif kind != "blank":
                result.append(command.words)
                is_inner = len(stack) > 1 and piece == command.end
                stack[-1:] = [] if is_inner else [_Command(end=command.end)]
                stack += [_Command(end=")")] if piece == "(" else []
    for command in stack:
        _end_word(command)
        result.append(command.words)
    return [words for words in result if words], pieces


def _add(command: _Command, piece: str) -> None:
    """Add a piece to the word that is read."""
    command.word = [] if command.word is None else command.word
    command.word.append(piece)


def _end_word(command: _Command, *, is_file_number: bool = False) -> None:
    """Put the word that is read into the command, unless it is a file or of the grammar."""
    if command.word is None:
        return
    word, command.word = "".join(command.word), None
    is_of_grammar = not command.words and word in _RESERVED
    if command.before_file:
        command.before_file = False
    elif not is_of_grammar and not (is_file_number and word.isdigit()):
        command.words.append(word)


def _program_indices(words: Sequence[str]) -> list[int]:
    """Return the indices of the words that name programs in a command, 16 at most."""
    # The first word that is no assignment of a variable names a program.
    indices = list(
        islice((n for n, word in enumerate(words) if not re.match(_ASSIGNMENT, word)), 1)
    )
    for at in indices:  # the list grows by the programs that these programs start
        name = words[at].rpartition("/")[2]
        if name in _RUNNERS or name in _SHELLS:
            indices += _indices_behind_options(words, at + 1)
        del indices[_MOST_PROGRAMS:]
    return indices


def _indices_behind_options(words: Sequence[str], at: int) -> Iterator[int]:
    """Yield the indices at which a program may begin behind the options of another.

    The first word behind an option is either its value or the program, so both are yielded.
    """
    may_be_value = False
    for n in range(at, len(words)):
        word = words[n]
        if word.startswith("-"):
            may_be_value = "=" not in word
        elif not (re.match(_ASSIGNMENT, word) or re.fullmatch(_NUMBER, word)):
            yield n
            if not may_be_value:
                return
            may_be_value = False


def _scripts(words: Sequence[str], at: int) -> Iterator[str]:
    """Yield the text that a shell runs: the first word behind ``-c`` that is no option."""
    options = (n for n in range(at + 1, len(words)) if re.fullmatch(_SCRIPT_OPTION, words[n]))
    behind_option = words[next(options, len(words)) :]
    yield from islice((word for word in behind_option if word[:1] not in "-+"), 1)
