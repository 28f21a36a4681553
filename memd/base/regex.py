"""Match in linear time with google-re2, used only here.

Python's ``re`` backtracks: a short pattern can keep it busy for hours. A pattern from outside is
bounded in length and in memory; back references and look-around are refused in words.
"""

from collections.abc import Callable, Sequence
from typing import Any

from memd.base.errors import Invalid

PATTERN_CHARACTERS = 1_000  # of a foreign pattern; a longer one is refused
_AUTOMATON_BYTES = 1 << 20  # for a foreign pattern's automaton; an eighth of the library's bound


def pattern_refused(why: str) -> Invalid:
    """Return the error that a pattern from outside cannot be matched in linear time."""
    return Invalid(
        f"the pattern is refused: {why}",
        hint="plain regular expressions are understood, without back references and look-around",
        why=why,
    )


def own(pattern: str) -> Any:
    """Return one of memd's own patterns compiled (the library has no types).

    The library is imported at the first use: it and its patterns take 5 MB, which a process that
    matches nothing does not need.
    """
    import re2  # noqa: PLC0415 - see above

    options = re2.Options()
    options.log_errors = False  # where an automaton gets too large it goes on more slowly
    return re2.compile(pattern, options)


def words_in(words: Sequence[str]) -> Callable[[str], frozenset[str]]:
    """Return a function that finds which of these words are in a text, in one pass over it.

    The library gives up on a text with very many of them; then each word is searched by itself.
    """
    import re2  # noqa: PLC0415 - as in ``own``

    options = re2.Options()
    options.log_errors = False
    escaped_words = [re2.escape(word) for word in words]
    word_set = re2.Set.SearchSet(options)
    for escaped in escaped_words:
        word_set.Add(escaped)
    word_set.Compile()
    any_word = own("|".join(escaped_words))

    def find_words(text: str) -> frozenset[str]:
        """Return the words that are in a text."""
        if any_word.search(text) is None:  # as of most texts
            return frozenset()
        numbers = word_set.Match(text)
        # None also where the library gave up.
        return frozenset([words[n] for n in numbers] or [word for word in words if word in text])

    return find_words


def foreign(pattern: str, *, ignore_case: bool = False) -> Any:
    """Return a pattern from outside compiled; ``^`` and ``$`` match at the ends of lines.

    Raises Invalid.
    """
    import re2  # noqa: PLC0415 - as in ``own``

    if len(pattern) > PATTERN_CHARACTERS:
        why = f"it has {len(pattern)} characters of {PATTERN_CHARACTERS}"
        raise pattern_refused(why)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _AUTOMATON_BYTES
    flags = "(?mi)" if ignore_case else "(?m)"
    # The library takes UTF-8, which has no lone surrogates.
    valid_pattern = pattern.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    try:
        return re2.compile(flags + valid_pattern, options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        cause = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise pattern_refused(cause) from error
