"""Find out whether a sentence stands in an instruction file. Pure.

Rules of this file
- Sentences are compared as wholes, without case, punctuation and emphasis. Other words are another
  sentence, and so are the same words under a heading or lead that denies.
- The evidence and the reasons in a memory's body do not count.
"""

import re
from collections.abc import Mapping

from memd.base.covered import Covered
from memd.base.yielding import yield_to_requests
from memd.text.bounds import DENIAL
from memd.text.statements import Statement, statements

_ALL_CHARACTERS = 1_000_000  # of all files are searched
_PART = r"(?i)\s*\*\*(?:said|why|how to apply):\*\*"  # of a memory's body


def covered(texts: Mapping[str, str]) -> Covered:
    """Return a function that names the file in which a text stands, "" if it stands in none.

    ``texts`` are the files' texts by path. Each sentence of the text must stand in one of the
    files; the file of the first one is named. The function blocks when it is called first.
    """
    path_by_key: dict[str, str] = {}  # by the key of a sentence
    room = _ALL_CHARACTERS
    for path, text in texts.items():
        for statement in statements(text[:room]):
            yield_to_requests()
            if DENIAL not in Statement(statement.context).limits:
                path_by_key.setdefault(Statement(statement.raw).key, path)
        room = max(room - len(text), 0)

    def find_file(text: str) -> str:
        """Return the file with the first sentence of a text, "" if a sentence is in no file."""
        lines = [line for line in text.splitlines() if not re.match(_PART, line)]
        paths = [
            path_by_key.get(Statement(each.raw).key, "") for each in statements("\n".join(lines))
        ]
        return paths[0] if paths and all(paths) else ""

    return find_file
