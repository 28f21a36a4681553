"""Analyse the lists of English words for a quick start: ``python -m tools.stems``.

It writes ``memd/text/english/stems.json`` from the lists beside it. Run it after a change of a
list, of ``memd.text.words`` or of the stemmer.
"""

from collections import defaultdict
from pathlib import Path

import msgspec

from memd.text import stems, words
from memd.text.words import MAY, StemmedLists, list_text

FILE = Path(words.__file__).parent / "english" / "stems.json"


def stemmed_lists() -> str:
    """Return the content of the file."""
    # Forms and plain words in turn; each word has one stem.
    listed = stems.analyse(f"{list_text('irregular.txt')} {MAY} may", frozenset())
    groups: list[list[str]] = []
    places = defaultdict[str, list[int]](list)  # numbers of the groups by phrase
    for line in list_text("synonyms.txt").splitlines():
        items = line.split()
        # ``_`` joins the words of a phrase.
        phrases = [" ".join(words.words(item.replace("_", " "))) for item in items]
        end = items.index(">") if ">" in items else len(items)
        for phrase in filter(None, dict.fromkeys(phrases[:end])):
            places[phrase].append(len(groups))
        groups.append([phrase for phrase in phrases if phrase])
    lists = StemmedLists(
        groups,
        places,
        frozenset(words.words(list_text("common.txt"))),
        dict(zip(listed[::2], listed[1::2], strict=True)),
    )
    # A line for each group, so that a change is easy to read.
    return msgspec.json.encode(lists, order="sorted").decode().replace("],", "],\n") + "\n"


if __name__ == "__main__":
    for _ in range(2):  # ``words`` uses the irregular stems itself
        FILE.write_text(stemmed_lists(), "utf-8")
        words.stemmed_lists.cache_clear()
