"""The door of google-re2: patterns that match in linear time, whatever text and pattern are.

Python's ``re`` backtracks: a short pattern can keep it busy for hours. A pattern from outside is
bounded in length and in memory; back references and look-around are refused in words.
"""

from typing import Any

from memd.core.errors import MemdError

PATTERN_CHARACTERS = 1_000
_MEMORY = 1 << 20  # bytes for a foreign pattern's automaton; the library's own bound is eight times


class PatternRefusedError(MemdError):
    """A pattern from outside is not one that can be matched in linear time."""

    code = 1011
    kind = "pattern_refused"
    hint = "plain regular expressions are understood, without back references and look-around"
    exit_status = 2

    def __init__(self, why: str) -> None:
        super().__init__(f"the pattern is refused: {why}", why=why)


def own(pattern: str) -> Any:
    """Return one of memd's own patterns compiled (the library has no types).

    The library is loaded at the first use: it and its patterns are 5 MB that a plain memory or a
    log line does not need.
    """
    import re2  # noqa: PLC0415 - see above

    return re2.compile(pattern)


def foreign(pattern: str, *, ignore_case: bool = False) -> Any:
    """Return a pattern from outside compiled; ``^`` and ``$`` match at the ends of lines.

    Raises PatternRefusedError.
    """
    import re2  # noqa: PLC0415 - as in ``own``

    if len(pattern) > PATTERN_CHARACTERS:
        why = f"it has {len(pattern)} characters of {PATTERN_CHARACTERS}"
        raise PatternRefusedError(why)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    flags = "(?mi)" if ignore_case else "(?m)"
    text = flags + pattern.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise PatternRefusedError(said) from error
