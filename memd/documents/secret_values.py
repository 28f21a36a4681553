"""Decides whether a value beside a credential's name may be a secret or is ordinary words. Pure.

``auth: oauth2-pkce-s256`` and ``password hunter2-Prod-9981`` are both words, digits and dashes.
They are told apart by their parts: a part is *ordinary* when people put it into identifiers
(a word, a number, a version, an algorithm), and a value of ordinary parts alone is an identifier.
"""

import re
from collections.abc import Callable, Mapping

_PARTS = re.compile(r"[-_./:@]+")  # what stands between the parts of an identifier
_WORD = re.compile(r"[^\W\d_]{1,40}")
_NUMBER = re.compile(
    r"v?\d{1,8}[a-z]?|\d{1,4}(?:st|nd|rd|th|am|pm|[kmgt]i?b|ms|px|x\d{1,4})", re.IGNORECASE
)
# Short letters with digits: SHA256, k8s, tls13, Http2, 2fa.
_CODE = re.compile(
    r"[A-Z]{2,10}\d{1,5}|(?:[a-z]{1,4}|[A-Z][a-z]{0,3})\d{1,5}[a-z]{0,2}|\d[a-z]{1,3}"
)
# What prose and code number: "password field2". Another word with one digit may be a password.
_COUNTED = re.compile(
    r"(?:[a-z]{1,4}|field|input|column|param|value|level|version|phase|chapter|section|option|check"
    r"|example|prompt|screen|dialog|stage|group|round|table|figure|question|attempt|model|python"
    r"|windows|office|postgres|sqlite|mysql|redis|kafka|angular|react|django|rails|docker)\d",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[A-Za-z]{2,20}\d{1,4}")  # region1, customer2024
# Names of algorithms and protocols whose word has more than four letters: hashlib and PHC strings,
# RFC 6749, RFC 7539, RFC 8018, RFC 8032.
_ALGORITHM = re.compile(
    r"(?:oauth|openid|argon|pbkdf|scrypt|bcrypt|blake|keccak|chacha|xchacha|poly|salsa|curve|base"
    r"|ed|crc|utf|sha|md|aes|rsa|tls|ssl|http|ipv|hmac)-?\d{1,5}(?:[a-z]{1,3}|\.\d+)?",
    re.IGNORECASE,
)
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_ASCII = re.compile(r"[A-Za-z]+")
# Consonants in a row: "length" has four, "Knightsbridge" five.
_FIVE_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{5,}", re.IGNORECASE)
_FOUR_CONSONANTS = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}", re.IGNORECASE)
# A word, an acronym or a number within words that are written together.
_HUMP = re.compile(r"OAuth|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_MAIL = re.compile(r"[^@\s]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_PLACE = re.compile(r"[/~]|\.{1,2}/|https?:", re.IGNORECASE)  # a path or an address
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
# The beginnings of options, paths, variables and templates.
_NO_VALUE = re.compile(r"[-/~.@$%&<>{}\[\]()=]|https?:|www\.", re.IGNORECASE)
_SIGN = re.compile(r"\w[^\w\s.,;:/=()\[\]{}<>'\"`-]+\w")  # between two letters or digits
_LAST_SIGN = re.compile(r"\w[!$%&#*^~?+@]+\Z")
# What refers to an issue or a version: PR#12, package@1.2.3, python>=3.11.
_REFERENCE = re.compile(
    r"(?:[a-z]{0,4}|issue|ticket|item)#\d+|[a-z_.-]+@v?\d+(?:\.\d+)*"
    r"|[a-z_]+[=<>~^]+v?\d+(?:\.\d+)*[a-z]{0,3}",
    re.IGNORECASE,
)
_ENDS = ".,;:)]}'\"`*_"  # signs behind a word that belong to the sentence
_LEAST_CHARACTERS = 6  # of a password in prose
_LOGIN_PASSWORD_CHARACTERS = 10  # of a password without a sign behind "login" or "secret"
_MEAN_WORD_LETTERS = 3.5  # of the words within a name, at least
_ACRONYM_LETTERS = 4  # up to which a word needs no vowel: "http"


def may_be_key(value: str) -> bool:
    """Say whether a value that is assigned to a key or token may be one, and is no identifier."""
    return not (_is_digest(value) or _all_parts(value, _is_named) or _is_camel_case(value))


def may_be_password(value: str) -> bool:
    """Say whether the value behind "password:" may be a password.

    It is none if it is a path, a call, the name of an algorithm or several ordinary words.
    """
    bare = value.rstrip(_ENDS)
    if _PLACE.match(value) or _CALL.match(value) or _is_digest(bare):
        return False
    if _ALGORITHM.fullmatch(bare) or _REFERENCE.fullmatch(bare):
        return False
    has_several_parts = len(_PARTS.split(bare)) > 1
    return not (has_several_parts and _all_parts(bare, _is_common))


def may_be_password_in_prose(value: str) -> bool:
    """Say whether a word that follows "password" after a blank may be a password.

    In prose most such words are not, so it must have a sign, or letters and digits mixed in a way
    that no identifier has.
    """
    bare = value.rstrip(_ENDS)
    if not _is_candidate(bare):
        return False
    if _has_sign(bare):
        return True
    digits = sum(letter.isdigit() for letter in bare)
    if digits == 1:
        return bool(_NUMBERED.fullmatch(bare)) and not _COUNTED.fullmatch(bare)
    return not _all_parts(bare.rstrip("!?"), _is_common) and not _is_camel_case(bare)


def may_be_password_of_login(value: str) -> bool:
    """Say whether a word that follows "login" or "secret" may be a password.

    Both are words of everyday prose, and names of accounts and resources follow them. So the word
    must have a sign, or be long, with capital and small letters, and look like a password in prose.
    """
    bare = value.rstrip(_ENDS)
    if not _is_candidate(bare):
        return False
    if _has_sign(bare):
        return True
    is_long = len(bare) >= _LOGIN_PASSWORD_CHARACTERS
    return is_long and _has_both_cases(bare) and may_be_password_in_prose(bare)


def may_be_session(value: str) -> bool:
    """Say whether the value of a cookie may be a session's."""
    return not _all_parts(value, _is_named) and _UUID.fullmatch(value) is None


# By the name that a rule of ``secret_rules.toml`` has in its field ``value``.
CHECKS: Mapping[str, Callable[[str], bool]] = {
    "": lambda _value: True,
    "assigned": may_be_key,
    "password": may_be_password,
    "phrase": may_be_password_in_prose,
    "login": may_be_password_of_login,
    "session": may_be_session,
}


def _is_candidate(value: str) -> bool:
    """Say whether a word in prose could be a password at all."""
    if len(value) < _LEAST_CHARACTERS or _NO_VALUE.match(value) or "://" in value:
        return False
    known_forms = (_UUID, _HEX, _MAIL, _REFERENCE, _ALGORITHM)
    if _is_digest(value) or any(pattern.fullmatch(value) for pattern in known_forms):
        return False
    has_digit, has_letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    return has_digit and has_letter


def _is_digest(value: str) -> bool:
    """Say whether a value is a fingerprint that names its algorithm: ``SHA256:nThb…``."""
    algorithm, _, rest = value.partition(":")
    return bool(rest and _ALGORITHM.fullmatch(algorithm))


def _has_sign(value: str) -> bool:
    """Say whether a value has a sign like ``!`` or ``$`` where prose has none.

    A sign at the end counts only beside capital and small letters: "really!" is prose.
    """
    if _SIGN.search(value):
        return True
    return _has_both_cases(value) and _LAST_SIGN.search(value) is not None


def _has_both_cases(value: str) -> bool:
    """Say whether a value has capital and small letters."""
    return any(map(str.isupper, value)) and any(map(str.islower, value))


def _all_parts(value: str, is_ordinary: Callable[[str], bool]) -> bool:
    """Say whether all parts of a value, split at dashes, dots and the like, are ordinary."""
    parts = [part for part in _PARTS.split(value) if part]
    return bool(parts) and all(map(is_ordinary, parts))


def _is_common(part: str) -> bool:
    """Say whether a part is a word, a number, a version or the name of a technique."""
    patterns = (_NUMBER, _CODE, _ALGORITHM)
    return _is_word(part) or any(pattern.fullmatch(part) for pattern in patterns)


def _is_named(part: str) -> bool:
    """Say whether a part is common, or a word with a number as resources are called."""
    return _is_common(part) or bool(_NUMBERED.fullmatch(part))


def _is_word(part: str) -> bool:
    """Say whether a part reads as a word, or as words written together: ``camelCase``."""
    if not _WORD.fullmatch(part):
        return False
    if not _ASCII.fullmatch(part):
        return True  # letters of a language with accents, or without vowels at all
    humps = _HUMP.findall(part)  # the words within, each with its capital
    single_letters = sum(len(hump) == 1 for hump in humps)
    return single_letters <= 1 and all(map(_is_pronounceable, humps))


def _is_pronounceable(word: str) -> bool:
    """Say whether a word is short, or has a vowel and no long run of consonants."""
    is_short = len(word) <= _ACRONYM_LETTERS
    return is_short or bool(_VOWEL.search(word) and not _FIVE_CONSONANTS.search(word))


def _is_camel_case(value: str) -> bool:
    """Say whether a value is words and numbers written together: ``GoogleOAuth2Provider``.

    Letters at random have single ones among their capitals, and short runs between their digits.
    """
    humps = _HUMP.findall(value)
    words = [hump for hump in humps if not hump.isdigit()]
    return (
        "".join(humps) == value
        and len(words) > 1
        and any(map(str.isupper, value))
        and all(map(_is_hump, words))
        and sum(map(len, words)) >= _MEAN_WORD_LETTERS * len(words)
    )


def _is_hump(word: str) -> bool:
    """Say whether a part of a camel-case name is an acronym or reads as a word."""
    if word.isupper():
        return 1 < len(word) <= _ACRONYM_LETTERS
    return len(word) > 1 and _is_word(word) and not _FOUR_CONSONANTS.search(word)
