"""find: files by name, kind, size and age. Nothing is run, deleted or written."""

from collections.abc import Callable
from dataclasses import dataclass

from memd.agent import globs
from memd.agent.options import number
from memd.agent.refusals import LimitError, OptionRefusedError, ToolError
from memd.agent.shell import Lines, Shell
from memd.agent.shell_words import Word
from memd.agent.view import Entry

Test = Callable[[Entry], bool]
_FIND = "find"
_NESTED = 16
_DAY, _MINUTE = 24 * 60 * 60, 60
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1024, "M": 1024**2, "G": 1024**3}

_NO_VALUE = "it needs a value"
_NO_TYPE = "types are f and d"
_TOO_DEEP = "conditions are nested too deep"
_UNBALANCED = "a condition or a bracket is missing"
_PLACE = "paths come before conditions"


@dataclass(slots=True)
class _Bounds:
    """How deep is looked."""

    lowest: int = 0
    deepest: int = 1_000_000


def find(shell: Shell, words: tuple[Word, ...], _before: Lines | None) -> Lines:
    """Name what fulfils the conditions, below each path."""
    texts = [word.text for word in words]
    first = next((n for n, t in enumerate(texts) if t.startswith("-") or t in ("(", "!")), None)
    paths, conditions = (texts, []) if first is None else (texts[:first], texts[first:])
    parser = _Parser(conditions, shell)
    test = parser.test()
    for path in paths or ["."]:
        try:
            top = shell.view.entry(path)
            for level, entry in shell.view.walk(top, parser.bounds.deepest):
                if level >= parser.bounds.lowest and test(entry):
                    yield entry.shown
        except LimitError:
            raise
        except ToolError as error:
            yield shell.trouble("find", error)


class _Parser:
    """Conditions from words: ``-o`` binds loosest, then what stands side by side, then ``!``."""

    def __init__(self, words: list[str], shell: Shell) -> None:
        self.bounds = _Bounds()
        self._words = words
        self._shell = shell
        self._at = 0

    def test(self) -> Test:
        """Return the whole condition; with none, everything fulfils it."""
        if not self._words:
            return _always
        found = self._either(0)
        if self._at < len(self._words):
            raise OptionRefusedError(_FIND, self._words[self._at], _UNBALANCED)
        return found

    def _peek(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _either(self, depth: int) -> Test:
        if depth > _NESTED:
            raise OptionRefusedError(_FIND, "(", _TOO_DEEP)
        tests = [self._both(depth)]
        while self._peek() in ("-o", "-or"):
            self._at += 1
            tests.append(self._both(depth))
        return lambda entry: any(test(entry) for test in tests)

    def _both(self, depth: int) -> Test:
        tests = [self._one(depth)]
        while self._peek() not in ("", ")", "-o", "-or"):
            if self._peek() in ("-a", "-and"):
                self._at += 1
            tests.append(self._one(depth))
        return lambda entry: all(test(entry) for test in tests)

    def _one(self, depth: int) -> Test:
        negated = False
        while self._peek() in ("!", "-not"):
            negated = not negated
            self._at += 1
        word = self._peek()
        self._at += 1
        if word == "(":
            test = self._either(depth + 1)
            if self._peek() != ")":
                raise OptionRefusedError(_FIND, word, _UNBALANCED)
            self._at += 1
        else:
            test = self._condition(word)
        return (lambda entry: not test(entry)) if negated else test

    def _value(self, word: str) -> str:
        if self._at >= len(self._words):
            raise OptionRefusedError(_FIND, word, _NO_VALUE)
        self._at += 1
        return self._words[self._at - 1]

    def _condition(self, word: str) -> Test:
        if word in ("", "-o", "-or", "-a", "-and", ")"):
            raise OptionRefusedError(_FIND, word, _UNBALANCED)
        if not word.startswith("-"):
            raise OptionRefusedError(_FIND, word, _PLACE)
        if word in ("-print", "-true"):
            return _always
        if word == "-empty":
            return self._empty
        makers = {
            "-name": _named,
            "-iname": _named,
            "-path": _at_path,
            "-ipath": _at_path,
            "-wholename": _at_path,
            "-type": _typed,
            "-size": _sized,
            "-mtime": self._aged,
            "-mmin": self._aged,
            "-newer": self._newer,
            "-maxdepth": self._depth,
            "-mindepth": self._depth,
        }
        if word not in makers:
            raise OptionRefusedError(_FIND, word)
        return makers[word](word, self._value(word))

    def _empty(self, entry: Entry) -> bool:
        return not (self._shell.view.children(entry) if entry.folder else entry.size)

    def _aged(self, word: str, value: str) -> Test:
        unit = _DAY if word == "-mtime" else _MINUTE
        compare = _compared(word, value)
        now = self._shell.view.now
        return lambda entry: compare(int(max(now - entry.mtime_ns / 1e9, 0) // unit))

    def _newer(self, _word: str, value: str) -> Test:
        since = self._shell.view.entry(value).mtime_ns
        return lambda entry: entry.mtime_ns > since

    def _depth(self, word: str, value: str) -> Test:
        levels = number(_FIND, word, value)
        if word == "-maxdepth":
            self.bounds.deepest = levels
        else:
            self.bounds.lowest = levels
        return _always


def _always(_entry: Entry) -> bool:
    return True


def _named(word: str, value: str) -> Test:
    fits = globs.compiled(value, ignore_case=word == "-iname")
    return lambda entry: fits(entry.name)


def _at_path(word: str, value: str) -> Test:
    # In -path a star crosses parts of a path.
    fits = globs.compiled(value.replace("*", "**"), ignore_case=word == "-ipath")
    return lambda entry: fits(entry.shown)


def _typed(word: str, value: str) -> Test:
    if value not in ("f", "d"):
        raise OptionRefusedError(_FIND, word, _NO_TYPE)
    return lambda entry: entry.folder == (value == "d")


def _sized(word: str, value: str) -> Test:
    unit = _UNITS.get(value[-1:], 0)
    compare = _compared(word, value[:-1] if unit else value)
    size = unit or _UNITS["b"]
    return lambda entry: not entry.folder and compare(-(-entry.size // size))


def _compared(word: str, value: str) -> Callable[[int], bool]:
    """Return the test that ``+5``, ``-5`` or ``5`` stands for."""
    bound = number(_FIND, word, value[1:] if value[:1] in "+-" else value)
    if value.startswith("+"):
        return lambda found: found > bound
    if value.startswith("-"):
        return lambda found: found < bound
    return lambda found: found == bound
