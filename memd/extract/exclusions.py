"""What is never saved, not even when asked for. Pure."""

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
# One ticket is a task's state; the tracker that holds it is a place.
_TICKET = re.compile(
    r"https?://\S+/(?:issues|pull|pulls|merge_requests|browse|commit|tickets?)/[\w-]*\d",
    re.IGNORECASE,
)
_CALL = re.compile(r"\b[A-Za-z_]\w*\([^)]*\)|\b\w+::\w+")
_LEAST = {"en": 8, "zh": 4}  # characters of a sentence that says something


def objection(content: Sentence, kind: str, language: Language) -> str:
    """Return why a candidate's words may not be saved as a memory of this kind, "" if they may.

    A rule may name a file or a function; every other memory may not.
    """
    text = content.masked
    plain = without_addresses(content.text)
    if language.forbid["vague"].match(text):
        return "vague"
    if len(text.replace(BLANK, "").strip(" .!\u3002")) < _LEAST[language.name]:
        return "short"
    if _PATH.search(plain) or language.forbid["structure"].search(text):
        return "structure"
    if language.forbid["recipe"].search(text):
        return "recipe"
    if _TICKET.search(content.text):
        return "ephemeral"
    return "" if kind == "feedback" else _no_fact(plain, text, language)


def _no_fact(plain: str, text: str, language: Language) -> str:
    if language.forbid["ephemeral"].search(without_addresses(text)):
        return "ephemeral"
    return "code" if _FILE.search(plain) or _CALL.search(plain) else ""
