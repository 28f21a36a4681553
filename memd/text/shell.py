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

_SIGN = re.compile(r"&>>|<<<|<<-|;;&|<<|<>|>>|>\||>&|<&|&>|&&|\|\||\|&|;;|;&|[;&|<>()\n]")
_TARGETS = {"<<<", "<<-", "<<", "<>", ">>", ">|", ">&", "<&", "&>", "&>>", "<", ">"}
_PLAIN = re.compile(r"[^ \t\r\n;&|<>()\"'`\\$]+")
_QUOTED = re.compile(r'[^()}"`\\$]+')
_BLANKS = re.compile(r"[ \t\r]+")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'?", re.DOTALL)
_ESCAPE, _ESCAPES = re.compile(r"\\(.)", re.DOTALL), {"n": "\n", "t": "\t"}  # in $' '
_BACKTICKS = re.compile(r"`((?:[^`\\]|\\.)*)`?", re.DOTALL)
_RESERVED = {"if", "then", "elif", "else", "while", "until", "do", "{", "}", "!"}
_BEFORE_BRACE = (["function"], ["time"], ["coproc"])
_CASE = 3  # words before its first pattern: case x in
_DOCUMENTS = 16  # that begin in one line of the text


class ShellCommand(Struct):
    """One simple command: its words without quotes, and the texts that it gets as its input."""

    words: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)


class _Frame(Struct):
    """Commands that are open up to their ``end``, "" for the end of the line.

    ``silent`` ones run nothing: the members of an array. ``cases`` counts the ``case`` whose
    patterns end with a parenthesis that closes nothing. ``target`` is the redirection whose target
    comes next. A word is ``plain`` while nothing of it was quoted.
    """

    end: str = ""
    silent: bool = False
    cases: int = 0
    command: ShellCommand = field(default_factory=ShellCommand)
    word: list[str] | None = None
    plain: bool = True
    target: str = ""


class _Text(Struct):
    """Double quotes, ``${ }``, arithmetic (``depth`` parentheses), or a document.

    ``owner`` is the frame whose word it is a part of, ``None`` for a document.
    """

    end: str
    owner: _Frame | None
    depth: int = 0


class ShellLine:
    """The ``commands`` of a line, and how many ``steps`` they took.

    ``more`` are texts to be read as well, each with whether it is a document: text in which only
    expansions count.
    """

    def __init__(self, text: str, steps: int = STEPS, *, document: bool = False) -> None:
        self.commands: list[ShellCommand] = []
        self.more: list[tuple[str, bool]] = []
        self.steps = 0
        self._text = text
        self._at = 0
        self._open: list[_Frame | _Text] = [_Text("", None) if document else _Frame()]
        self._documents: list[tuple[str, str, bool, ShellCommand]] = []
        while self._at < len(text) and self.steps < steps:
            self.steps += 1
            top = self._open[-1]
            if isinstance(top, _Frame):
                self._in_commands(top)
            else:
                self._in_text(top)
        for frame in reversed(self._open):
            if isinstance(frame, _Frame):
                self._end_command(frame)

    def _in_commands(self, frame: _Frame) -> None:
        """Read one step of a command: a blank, a comment, a quotation, an operator or a piece."""
        text, at = self._text, self._at
        char = text[at]
        if char in " \t\r":
            self._run(_BLANKS)
            self._end_word(frame)
        elif char == "#" and frame.word is None:
            self._until("\n", at)
        elif char == "'":
            self._add(frame, self._until("'", at + 1), plain=False)
            self._at += 1
        elif char == '"':
            self._add(frame, "", plain=False)
            self._begin(_Text('"', frame), 1)
        elif sign := _SIGN.match(text, at):
            self._at = sign.end()
            self._sign(frame, sign[0])
        elif not self._expansion(frame, char):
            self._add(frame, self._run(_PLAIN))

    def _in_text(self, top: _Text) -> None:
        """Read one step inside quotes, braces or arithmetic, up to the end of these."""
        char = self._text[self._at]
        if top.depth and char in "()":
            self._at += 1
            top.depth += 1 if char == "(" else -1
            if not top.depth:
                self._open.pop()
        elif char == top.end:
            self._at += 1
            self._open.pop()
        elif char == '"' and top.end:
            self._begin(_Text('"', top.owner), 1)
        elif not self._expansion(top.owner, char, quoted=True):
            self._add(top.owner, self._run(_QUOTED))

    def _expansion(self, frame: _Frame | None, char: str, *, quoted: bool = False) -> bool:
        """Read a backslash, backticks or a dollar, which mean the same in and outside of quotes.

        Returns whether it was one of these.
        """
        text, at = self._text, self._at
        if char == "\\":
            self._at += 2
            after = text[at + 1 : at + 2]
            if after != "\n":
                stays = quoted and after not in '$`"\\'
                self._add(frame, f"\\{after}" if stays else after, plain=False)
        elif char == "`":
            inside = self._run(_BACKTICKS).strip("`")
            self.more.append((re.sub(r"\\([`\\$])", r"\1", inside), False))
            self._add(frame, "$()", plain=False)
        elif char == "$":
            self._dollar(frame, quoted=quoted)
        else:
            return False
        return True

    def _dollar(self, frame: _Frame | None, *, quoted: bool) -> None:
        """Read what begins with a dollar: an expansion, or a quotation in the style of ANSI C."""
        following = self._text[self._at + 1 : self._at + 3]
        if following == "((":
            self._add(frame, "$()", plain=False)
            self._begin(_Text("", frame, depth=2), 3)
        elif following.startswith("("):
            self._add(frame, "$()", plain=False)
            self._begin(_Frame(")"), 2)
        elif following.startswith("{"):
            self._add(frame, "${", plain=False)
            self._begin(_Text("}", frame), 2)
        elif following.startswith("'") and not quoted:
            inside = self._run(_ANSI)[2:].removesuffix("'")
            unescaped = _ESCAPE.sub(lambda one: _ESCAPES.get(one[1], one[1]), inside)
            self._add(frame, unescaped, plain=False)
        else:
            self._at += 1
            # Before a quote it only says in which language the text is.
            self._add(frame, "" if following.startswith('"') and not quoted else "$", plain=False)

    def _sign(self, frame: _Frame, sign: str) -> None:
        """Read an operator: it ends a word or a command, redirects, or opens a parenthesis."""
        if sign in _TARGETS:
            if frame.word and frame.plain and "".join(frame.word).isdigit():
                frame.word = None  # a descriptor
            self._end_word(frame)
            frame.target = sign
        elif sign == "(":
            self._parenthesis(frame)
        elif sign == ")" and frame.cases:
            self._end_word(frame)
            frame.command = ShellCommand()  # a pattern
        elif sign == ")" and frame.end:
            self._end_command(frame)
            self._open.pop()
        else:
            self._end_command(frame)
            if sign == "\n":
                self._read_documents()

    def _parenthesis(self, frame: _Frame) -> None:
        """Begin what an opening parenthesis starts: a subshell, an array or arithmetic."""
        inner = _Frame(")")
        if frame.target:  # <( ) is a file that a command writes
            frame.target = ""
            self._add(frame, "$()", plain=False)
        elif frame.word and frame.word[-1].endswith("="):
            inner.silent = True
        elif frame.word or frame.command.words:  # a function: its name, and nothing in between
            self._end_word(frame)
            frame.command = ShellCommand()
        elif self._text.startswith("(", self._at):
            self._begin(_Text("", frame, depth=2), 1)
            return
        self._begin(inner, 0)

    def _end_word(self, frame: _Frame) -> None:
        """End the open word and put it into the command, its input, or nowhere."""
        if frame.word is None:
            return
        word, plain, target = "".join(frame.word), frame.plain, frame.target
        frame.word, frame.plain, frame.target = None, True, ""
        words, first = frame.command.words, not frame.command.words
        if target == "<<<":
            frame.command.inputs.append(word)
        elif target.startswith("<<"):
            self._documents.append((word, target, plain, frame.command))
            del self._documents[_DOCUMENTS:]
        elif target or (plain and first and word in _RESERVED):
            pass
        elif plain and first and word == "esac":
            frame.cases -= 1 if frame.cases else 0
        elif plain and word == "{" and words[:1] in _BEFORE_BRACE:
            frame.command = ShellCommand()
        else:
            words.append(word)
            if plain and word == "in" and len(words) == _CASE and words[0] == "case":
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
        for word, target, expands, command in self._documents:
            tabs = r"\t*" if target == "<<-" else ""
            last = re.compile(f"^{tabs}{re.escape(word)}$", re.MULTILINE)
            end = last.search(self._text, self._at)
            body = self._text[self._at : end.start() if end else None]
            self._at = end.end() if end else len(self._text)
            command.inputs.append(body)
            if expands:
                self.more.append((body, True))
        self._documents.clear()

    def _begin(self, inner: _Frame | _Text, characters: int) -> None:
        """Open an inner frame or text behind so many characters."""
        self._at += characters
        self._open.append(inner)

    def _add(self, frame: _Frame | None, piece: str, *, plain: bool = True) -> None:
        """Add a piece to the open word of a frame; quoted pieces are not ``plain``."""
        if frame is not None:
            frame.word = [] if frame.word is None else frame.word
            frame.word.append(piece)
            frame.plain = frame.plain and plain

    def _run(self, pattern: "re.Pattern[str]") -> str:
        """Take what a pattern matches here, or one character."""
        match = pattern.match(self._text, self._at)
        begin, self._at = self._at, match.end() if match else self._at + 1
        return self._text[begin : self._at]

    def _until(self, sign: str, begin: int) -> str:
        """Take all before a sign, or the rest where there is none."""
        end = self._text.find(sign, begin)
        self._at = len(self._text) if end < 0 else end
        return self._text[begin : self._at]
