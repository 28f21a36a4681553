"""Stem English words with tantivy, whose text analysis is only used here.

The library costs 7.6 MB and 15 ms; it is imported at first use.
"""

from functools import cache
from typing import Any

_WORD_BYTES = 64  # of a word that counts; longer ones are left out


def analyse(text: str, stop: tuple[str, ...]) -> list[str]:
    """Return the stems of a text's words in lower case and in their order, without stop words.

    ``stop`` are the stop words. A word is a row of letters and digits without a break.
    """
    result: list[str] = _analyser(stop).analyze(text)
    return result


@cache
def _analyser(stop: tuple[str, ...]) -> Any:
    """Return the library's analysis: words in lower case, without stop words, as stems."""
    import tantivy  # noqa: PLC0415 - lazy start-up: a daemon that nobody asks does without it

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    lowered = builder.filter(tantivy.Filter.lowercase())
    # The stemmer takes a minute for a million letters without a break.
    bounded = lowered.filter(tantivy.Filter.remove_long(_WORD_BYTES))
    without_stop = bounded.filter(tantivy.Filter.custom_stopword(list(stop)))
    return without_stop.filter(tantivy.Filter.stemmer("english")).build()
