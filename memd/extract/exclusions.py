"""What is never saved, not even when asked for (spec 1.5). Pure."""

import re

from memd.extract.conditions import without_addresses
from memd.extract.cues import Language
from memd.extract.sentences import BLANK, Sentence

_FOLDERS = (
    "src|lib|app|apps|cmd|pkg|internal|tests?|docs?|scripts|packages|node_modules|dist|build|bin"
)
# Something with slashes that is a path, not "and/or" or "CI/CD".
_PATH = re.compile(
    r"(?<![\w/:.])(?:\.{0,2}/|~/)?"
    rf"(?:(?:{_FOLDERS})/|(?:[\w.-]+/){{2,}}|[\w-]+/(?=[\w-]+\.[a-z]{{1,4}}\b)|(?:\.{{1,2}}|~)/)"
    r"|(?<![\w/:.])/(?:[\w.-]+/)+",
    re.IGNORECASE,
)
_FILE = re.compile(
    r"(?<![\w/.])[\w-]+\."
    r"(?:py|go|js|jsx|ts|tsx|rs|java|rb|c|cc|cpp|h|cs|php|sql|sh|toml|ya?ml|json|md)\b"
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\([^)]*\)|\b\w+::\w+")
_LEAST = {"en": 8, "zh": 4}  # characters of a sentence that says something


def worth_keeping(content: Sentence, kind: str, language: Language) -> bool:
    """Return whether a candidate's words may be saved as a memory of this kind.

    A rule may name a file or a function; every other memory may not.
    """
    text = content.masked
    said = text.replace(BLANK, "").strip(" .!\u3002")
    if len(said) < _LEAST[language.name] or language.forbid["vague"].match(text):
        return False
    plain = without_addresses(content.text)
    if _PATH.search(plain) or language.forbid["structure"].search(text):
        return False
    if language.forbid["recipe"].search(text):
        return False
    if kind == "feedback":
        return True
    if language.forbid["ephemeral"].search(without_addresses(text)):
        return False
    return not (_FILE.search(plain) or _CALL.search(plain))
