"""Read the simple commands of a shell line as words, with bounded work. Pure.

Rules of this file
- Nothing is expanded and nothing is run. What a word takes from an expansion is not known: its text
  stays (``$x``). What stands in ``$( )``, ``<( )`` or backticks is read as commands of its own.
- Each step takes at least one character and none is read again, so a line costs what its length
  does. After ``STEPS`` steps the rest is not read.
- A line that no shell would run is no error: what was read of it counts.
"""

import re

from msgspec import Struct, field

STEPS = 10_000  # a line of a person or an assistant takes a few hundred

_OPERATOR = re.compile(r"&>>|<<<|<<-|;;&|<<|<>|>>|>\||>&|<&|&>|&&|\|\||\|&|;;|;&|[;&|<>()\n]")
_REDIRECTIONS = {"<<<", "<<-", "<<", "<>", ">>", ">|", ">&", "<&", "&>", "&>>", "<", ">"}
_UNQUOTED = re.compile(r"[^ \t\r\n;&|<>()\"'`\\$]+")
_QUOTED = re.compile(r'[^()}"`\\$]+')
_BLANKS = re.compile(r"[ \t\r]+")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.DOTALL)
_ESCAPE, _ESCAPES = re.compile(r"\\(.)", re.DOTALL), {"n": "\n", "t": "\t"}  # in $' '
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`?", re.DOTALL)
_RESERVED = {"if", "then", "elif", "else", "while", "until", "do", "{", "}", "!"}
_BEFORE_BRACE = (["function"], ["time"], ["coproc"])  # words before a group in braces
_WORDS_OF_CASE = 3  # before its first pattern: case x in
_MOST_DOCUMENTS = 16  # that begin in one line of the text


class ShellCommand(Struct):
    """One simple command: its words without quotes, and the texts that it gets as its input."""

    words: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)


class _Frame(Struct):
    """Commands that are read: those of the line, of a subshell or of an expansion."""

    end: str = ""  # the sign that ends them, "" for the end of the line
    silent: bool = False  # whether they run nothing: the members of an array
    cases: int = 0  # the open ``case``, whose patterns end with a parenthesis that closes nothing
    command: ShellCommand = field(default_factory=ShellCommand)  # the one that is read now
    word: list[str] | None = None  # the pieces of the word that is read now
    plain: bool = True  # whether nothing of that word was quoted
    target: str = ""  # the redirection whose target comes next


class _Text(Struct):
    """A text that is read: double quotes, ``${ }``, arithmetic, or a document."""

    end: str  # the sign that ends it, "" for arithmetic and a document
    owner: _Frame | None  # the frame whose word it is a part of, ``None`` for a document
    depth: int = 0  # open parentheses of arithmetic


class ShellLine:
    """The simple commands of a line.

    ``steps`` bounds how many steps are read. With ``document`` the text is a document, in which
    only expansions count.
    """

    def __init__(self, text: str, steps: int = STEPS, *, document: bool = False) -> None:
        self.commands: list[ShellCommand] = []  # in the order in which they end
        # Texts to be read as well, each with whether it is a document.
        self.more: list[tuple[str, bool]] = []
        self.steps = 0  # that were taken
        self._text = text
        self._position = 0  # in the text, up to which it is read
        # What is open, the innermost last.
        self._stack: list[_Frame | _Text] = [_Text("", None) if document else _Frame()]
        # The here-documents of this line: the word that ends it, the redirection, whether
        # expansions count in it, and the command that gets it.
        self._documents: list[tuple[str, str, bool, ShellCommand]] = []
        while self._position < len(text) and self.steps < steps:
            self.steps += 1
            top = self._stack[-1]
            if isinstance(top, _Frame):
                self._read_in_command(top)
            else:
                self._read_in_text(top)
        for frame in reversed(self._stack):
            if isinstance(frame, _Frame):
                self._end_command(frame)

    def _read_in_command(self, frame: _Frame) -> None:
        """Read one step of a command: a blank, a comment, a quotation, an operator or a piece."""
        text, at = self._text, self._position
        char = text[at]
        if char in " \t\r":
            self._take(_BLANKS)
            self._end_word(frame)
        elif char == "#" and frame.word is None:
            self._take_until("\n", at)
        elif char == "'":
            self._add_to_word(frame, self._take_until("'", at + 1), plain=False)
            self._position += 1
        elif char == '"':
            self._add_to_word(frame, "", plain=False)
            self._open_inner(_Text('"', frame), 1)
        elif sign := _OPERATOR.match(text, at):
            self._position = sign.end()
            self._read_operator(frame, sign[0])
        elif not self._read_expansion(frame, char):
            self._add_to_word(frame, self._take(_UNQUOTED))

    def _read_in_text(self, top: _Text) -> None:
        """Read one step inside quotes, braces or arithmetic, up to the end of these."""
        char = self._text[self._position]
        if top.depth and char in "()":
            self._position += 1
            top.depth += 1 if char == "(" else -1
            if not top.depth:
                self._stack.pop()
        elif char == top.end:
            self._position += 1
            self._stack.pop()
        elif char == '"' and top.end:
            self._open_inner(_Text('"', top.owner), 1)
        elif not self._read_expansion(top.owner, char, quoted=True):
            self._add_to_word(top.owner, self._take(_QUOTED))

    def _read_expansion(self, frame: _Frame | None, char: str, *, quoted: bool = False) -> bool:
        """Read a backslash, backticks or a dollar, which mean the same in and outside of quotes.

        Return whether it was one of these.
        """
        text, at = self._text, self._position
        if char == "\\":
            self._position += 2
            after = text[at + 1 : at + 2]
            if after != "\n":
                stays = quoted and after not in '$`"\\'
                self._add_to_word(frame, f"\\{after}" if stays else after, plain=False)
        elif char == "`":
            inside = self._take(_BACKTICKS).strip("`")
            self.more.append((re.sub(r"\\([`\\$])", r"\1", inside), False))
            self._add_to_word(frame, "$()", plain=False)
        elif char == "$":
            self._read_dollar(frame, quoted=quoted)
        else:
            return False
        return True

    def _read_dollar(self, frame: _Frame | None, *, quoted: bool) -> None:
        """Read what begins with a dollar: an expansion, or a quotation in the style of ANSI C."""
        following = self._text[self._position + 1 : self._position + 3]
        if following == "((":
            self._add_to_word(frame, "$()", plain=False)
            self._open_inner(_Text("", frame, depth=2), 3)
        elif following.startswith("("):
            self._add_to_word(frame, "$()", plain=False)
            self._open_inner(_Frame(")"), 2)
        elif following.startswith("{"):
            self._add_to_word(frame, "${", plain=False)
            self._open_inner(_Text("}", frame), 2)
        elif following.startswith("'") and not quoted:
            inside = self._take(_ANSI)[2:].removesuffix("'")
            unescaped = _ESCAPE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), inside)
            self._add_to_word(frame, unescaped, plain=False)
        else:
            self._position += 1
            # Before a quote it only says in which language the text is.
            names_language = following.startswith('"') and not quoted
            self._add_to_word(frame, "" if names_language else "$", plain=False)

    def _read_operator(self, frame: _Frame, sign: str) -> None:
        """Read an operator: it ends a word or a command, redirects, or opens a parenthesis."""
        if sign in _REDIRECTIONS:
            if frame.word and frame.plain and "".join(frame.word).isdigit():
                frame.word = None  # a file descriptor, which is no word of the command
            self._end_word(frame)
            frame.target = sign
        elif sign == "(":
            self._read_parenthesis(frame)
        elif sign == ")" and frame.cases:
            self._end_word(frame)
            frame.command = ShellCommand()  # a pattern, which is no command
        elif sign == ")" and frame.end:
            self._end_command(frame)
            self._stack.pop()
        else:
            self._end_command(frame)
            if sign == "\n":
                self._read_documents()

    def _read_parenthesis(self, frame: _Frame) -> None:
        """Begin what an opening parenthesis starts: a subshell, an array or arithmetic."""
        inner = _Frame(")")
        if frame.target:  # <( ) is a file that a command writes
            frame.target = ""
            self._add_to_word(frame, "$()", plain=False)
        elif frame.word and frame.word[-1].endswith("="):
            inner.silent = True
        elif frame.word or frame.command.words:  # a function: its name, and nothing in between
            self._end_word(frame)
            frame.command = ShellCommand()
        elif self._text.startswith("(", self._position):
            self._open_inner(_Text("", frame, depth=2), 1)
            return
        self._open_inner(inner, 0)

    def _end_word(self, frame: _Frame) -> None:
        """End the open word and put it into the command, its input, or nowhere."""
        if frame.word is None:
            return
        word, plain, target = "".join(frame.word), frame.plain, frame.target
        frame.word, frame.plain, frame.target = None, True, ""
        words = frame.command.words
        may_be_reserved = plain and not words  # only an unquoted first word is
        if target == "<<<":
            frame.command.inputs.append(word)
        elif target.startswith("<<"):
            self._documents.append((word, target, plain, frame.command))
            del self._documents[_MOST_DOCUMENTS:]
        elif target or (may_be_reserved and word in _RESERVED):
            pass  # a file, or a word of the shell's grammar
        elif may_be_reserved and word == "esac":
            frame.cases = max(frame.cases - 1, 0)
        elif plain and word == "{" and words[:1] in _BEFORE_BRACE:
            frame.command = ShellCommand()
        else:
            words.append(word)
            if plain and word == "in" and len(words) == _WORDS_OF_CASE and words[0] == "case":
                frame.cases += 1
                frame.command = ShellCommand()

    def _end_command(self, frame: _Frame) -> None:
        """End the open command, and keep it if it has words and is run."""
        self._end_word(frame)
        if frame.command.words and not frame.silent:
            self.commands.append(frame.command)
        frame.command, frame.target = ShellCommand(), ""

    def _read_documents(self) -> None:
        """Read the here-documents that began in the line before, as input of their commands."""
        for word, redirection, expands, command in self._documents:
            tabs = r"\t*" if redirection == "<<-" else ""
            last_line = re.compile(f"^{tabs}{re.escape(word)}$", re.MULTILINE)
            end = last_line.search(self._text, self._position)
            body = self._text[self._position : end.start() if end else None]
            self._position = end.end() if end else len(self._text)
            command.inputs.append(body)
            if expands:
                self.more.append((body, True))
        self._documents.clear()

    def _open_inner(self, inner: _Frame | _Text, characters: int) -> None:
        """Open an inner frame or text behind so many characters."""
        self._position += characters
        self._stack.append(inner)

    def _add_to_word(self, frame: _Frame | None, piece: str, *, plain: bool = True) -> None:
        """Add a piece to the open word of a frame; quoted pieces are not ``plain``."""
        if frame is not None:
            frame.word = [] if frame.word is None else frame.word
            frame.word.append(piece)
            frame.plain = frame.plain and plain

    def _take(self, pattern: "re.Pattern[str]") -> str:
        """Take what a pattern matches here, or one character."""
        match = pattern.match(self._text, self._position)
        begin, self._position = self._position, match.end() if match else self._position + 1
        return self._text[begin : self._position]

    def _take_until(self, sign: str, begin: int) -> str:
        """Take all before a sign, or the rest where there is none."""
        end = self._text.find(sign, begin)
        self._position = len(self._text) if end < 0 else end
        return self._text[begin : self._position]
